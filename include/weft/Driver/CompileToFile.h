//===- CompileToFile.h - descriptions to a file -----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DRIVER_COMPILETOFILE_H
#define WEFT_DRIVER_COMPILETOFILE_H

#include "weft/Driver/CompileOptions.h"
#include "weft/Driver/Descriptions.h"
#include "weft/Driver/Report.h"

namespace weft {

/// Compiles `descriptions` to the executable `options.output`, and writes the plan and, if the
/// options ask for it, the kernels' object file beside it. Each file is written whole or not at
/// all, the executable last. An error without a message means that the errors have been printed.
llvm::Expected<CompileReport> compileToProgram(const CompileOptions &options,
                                               const Descriptions &descriptions);

/// Writes the module after phase `options.stopAfter`, with locations, to `options.output` or
/// standard output. Fails as above.
llvm::Error compileToModule(const CompileOptions &options, const Descriptions &descriptions);

} // namespace weft

#endif // WEFT_DRIVER_COMPILETOFILE_H
