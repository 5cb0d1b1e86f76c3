//===- OwnedTensors.h - the tensors of a run, over all rank classes -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Files have each tensor of a run once, whichever rank classes hold it. Its owner is the
// first class that does.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_PROGRAM_OWNEDTENSORS_H
#define WEFT_RT_PROGRAM_OWNEDTENSORS_H

#include "weft-rt/Program.h"

namespace weft::rt {

/// Both outlive it.
struct OwnedTensor {
  const NamedTensor *tensor = nullptr;
  const Program *owner = nullptr;
};

/// Return the parameters, or the optimizer states, of all programs.
std::vector<OwnedTensor> parametersOf(std::span<const Program> programs);
std::vector<OwnedTensor> optimizerStateOf(std::span<const Program> programs);
/// Returns both, parameters first.
std::vector<OwnedTensor> savedTensorsOf(std::span<const Program> programs);

} // namespace weft::rt

#endif // WEFT_RT_PROGRAM_OWNEDTENSORS_H
