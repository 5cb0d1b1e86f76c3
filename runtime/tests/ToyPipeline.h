//===- ToyPipeline.h - the small program with micro-batches in flight -------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The model of Toy.h, one micro-batch after another: `forward` leaves the differences of
// a micro-batch's tokens in a frame, of which `backward` makes gradients. Whatever the
// order of these actions, losses and gradients are added in the order of micro-batches,
// so the bits are the same.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_TESTS_TOYPIPELINE_H
#define WEFT_RT_TESTS_TOYPIPELINE_H

#include "weft-rt/Program.h"

#include <string>

namespace weft::rt {

/// Orders of four micro-batches, by names of schedules: "F2@1" is forward of micro-batch 2 in frame
/// 1.
inline constexpr const char *kAllForwardFirst = "F0@0 F1@1 F2@2 F3@3 B0@0 B1@1 B2@2 B3@3";
inline constexpr const char *kTwoInFlight = "F0@0 F1@1 B0@0 F2@0 B1@1 F3@1 B2@0 B3@1";
inline constexpr const char *kThreeInFlight = "F0@0 F1@1 F2@2 B0@0 F3@0 B1@1 B2@2 B3@0";
inline constexpr const char *kOneInFlight = "F0@0 B0@0 F1@0 B1@0 F2@0 B2@0 F3@0 B3@0";

/// Returns the program for a mesh of `data` x `model` ranks, and `frames` frames. A sum over
/// "model" in `forward` runs beside computation. REQUIRES: `data` divides 2, and `model` divides
/// 256.
Program makeToyPipeline(int64_t data, int64_t model, const std::string &order, uint32_t frames);

/// The kernels' code, in the program's order.
extern const KernelCode kToyPipelineKernels[];

} // namespace weft::rt

#endif // WEFT_RT_TESTS_TOYPIPELINE_H
