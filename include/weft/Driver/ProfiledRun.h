//===- ProfiledRun.h - lets a compiled program measure itself ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DRIVER_PROFILEDRUN_H
#define WEFT_DRIVER_PROFILEDRUN_H

#include "weft-rt/Program.h"
#include "weft/Driver/KernelReport.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FileUtilities.h"

namespace weft {

/// A temporary file, which the destructor removes.
class TemporaryFile {
public:
  /// Makes an empty file. Fails if the system cannot.
  llvm::Error create(llvm::StringRef suffix);
  llvm::StringRef getPath() const { return path; }

private:
  llvm::SmallString<128> path;
  llvm::FileRemover remover;
};

/// Runs `steps` steps of the executable `path`, which contains `program`, on made-up tokens or
/// images; the run writes its profile to the file `profile`. `threads` is the value of --threads,
/// empty for the program's default. The program prints its errors to standard error.
llvm::Error profileProgram(llvm::StringRef path, const rt::Program &program, int64_t steps,
                           llvm::StringRef threads, llvm::StringRef profile);

/// Runs `steps` steps of the program at `path`, as profileProgram does, and reads its profile.
llvm::Expected<KernelReports> reportKernels(llvm::StringRef path, int64_t steps,
                                            const std::string &threads);

/// Reads a profile that a run of the program at `path` has written. Fails if the profile is of
/// another plan.
llvm::Expected<KernelReports> readKernelReports(llvm::StringRef path, llvm::StringRef profile);

} // namespace weft

#endif // WEFT_DRIVER_PROFILEDRUN_H
