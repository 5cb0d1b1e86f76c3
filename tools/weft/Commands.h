//===- Commands.h - the commands of weft ----------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_TOOLS_WEFT_COMMANDS_H
#define WEFT_TOOLS_WEFT_COMMANDS_H

#include "llvm/ADT/ArrayRef.h"

namespace weft {

/// `weft compile`: descriptions to an executable. Returns the exit status.
int compileCommand(llvm::ArrayRef<const char *> arguments);

/// `weft plan`: predicts a model's time and memory on a machine. Returns the exit status, 1 if no
/// plan fits.
int planCommand(llvm::ArrayRef<const char *> arguments);

/// `weft calibrate`: measures this machine. Returns the exit status.
int calibrateCommand(llvm::ArrayRef<const char *> arguments);

/// `weft import`: a checkpoint folder of transformers to a description and weights. Returns the
/// exit status.
int importCommand(llvm::ArrayRef<const char *> arguments);

/// `weft export`: trained weights to a checkpoint folder of transformers. Returns the exit status.
int exportCommand(llvm::ArrayRef<const char *> arguments);

/// `weft run`: starts a compiled program. Returns the exit status; if the program can be started,
/// it takes over this process, and the function does not return.
int runCommand(llvm::ArrayRef<const char *> arguments);

/// `weft verify`: compares a plan's results with those of one rank. Returns the exit status.
int verifyCommand(llvm::ArrayRef<const char *> arguments);

/// `weft explain`: lists the times of a compiled program's kernels, draws its schedule, or tells
/// the reason for the sharding of a value. Returns the exit status.
int explainCommand(llvm::ArrayRef<const char *> arguments);

} // namespace weft

#endif // WEFT_TOOLS_WEFT_COMMANDS_H
