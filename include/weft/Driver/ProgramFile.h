//===- ProgramFile.h - the program inside of an executable ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DRIVER_PROGRAMFILE_H
#define WEFT_DRIVER_PROGRAMFILE_H

#include "weft-rt/Program.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace weft {

/// Reads the programs of all rank classes from an executable that `weft compile` made, without
/// running it. Fails if the file cannot be read or contains no programs of this version.
llvm::Expected<rt::Programs> readProgramsOf(llvm::StringRef path);

} // namespace weft

#endif // WEFT_DRIVER_PROGRAMFILE_H
