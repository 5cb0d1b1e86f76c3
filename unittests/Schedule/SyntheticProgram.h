//===- SyntheticProgram.h - programs like those of transformers -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_UNITTESTS_SCHEDULE_SYNTHETICPROGRAM_H
#define WEFT_UNITTESTS_SCHEDULE_SYNTHETICPROGRAM_H

#include "weft-rt/Program.h"
#include "weft/Schedule/Arena.h"

#include <cstdint>

namespace weft::test {

struct SyntheticShape {
  int64_t layers = 2;
  int64_t dataRanks = 2, tensorRanks = 2;
  int64_t tokens = 16, hidden = 8;
};

/// Returns a correct program: a weight per layer, a matmul and a kernel for each layer forward and
/// backward, all-reduces of activations over "tp" and of gradients over "dp", a gathered and
/// a scattered tensor, and an update in place. Its arena is packed.
rt::Program makeProgram(const SyntheticShape &shape);
/// Returns the same with a rank class for each coordinate on "dp".
rt::Programs makeClasses(const SyntheticShape &shape);

/// Returns buffers like those of a training step of `layers` layers, about ten for each: results
/// that live until the layer's backward pass, and temporaries; sizes vary with `seed`.
schedule::ArenaProblem makeStepProblem(int64_t layers, uint64_t seed);

} // namespace weft::test

#endif // WEFT_UNITTESTS_SCHEDULE_SYNTHETICPROGRAM_H
