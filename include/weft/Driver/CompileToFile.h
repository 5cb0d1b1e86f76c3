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

/// Compiles `descriptions` to the executable `options.output`, with the plan beside it and, where
/// the options ask for it, the object file of the kernels. The files are there whole or not at all,
/// the executable last. An error without a message says that what fails has been printed.
llvm::Expected<CompileReport> compileToProgram(const CompileOptions &options,
                                               const Descriptions &descriptions);

/// Writes the module after phase `options.stopAfter`, with locations, to `options.output` or
/// standard output. Fails as above.
llvm::Error compileToModule(const CompileOptions &options, const Descriptions &descriptions);

} // namespace weft

#endif // WEFT_DRIVER_COMPILETOFILE_H
