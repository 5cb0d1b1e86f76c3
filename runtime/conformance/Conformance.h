//===- Conformance.h - what every backend is tested with --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The suite is compiled once. A backend is tested by linking it with a file that
// defines `makeBackendUnderTest` and `isExact` and, if hardware may be missing, skips aloud.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_CONFORMANCE_CONFORMANCE_H
#define WEFT_RT_CONFORMANCE_CONFORMANCE_H

#include "weft-rt/Backend.h"

#include <chrono>

namespace weft::rt::conformance {

/// A backend for all ranks of `mesh`, whose collectives wait for `timeout`. Null in a process that
/// has none of them: the test is the others'.
std::unique_ptr<Backend> makeBackendUnderTest(std::vector<Axis> mesh,
                                              std::chrono::milliseconds timeout);

/// Whether the backend adds up as Program.h says, in group order and rounding once where elements
/// are narrow, and its maxima keep what is not a number. What adds up in an order of its own may
/// round at each addition.
bool isExact();

/// What each rank brings or gets: bytes by rank.
using Buffers = std::vector<std::vector<char>>;

/// Elements of `type` for one rank, different for each, whose sums depend on their order.
std::vector<char> makeOperand(ElementType type, uint64_t elements, int64_t rank);

/// What each of `ranks` must get, computed elementwise from the definition in Program.h; of
/// the others nothing.
Buffers expectedResults(const Collective &collective, std::span<const Axis> mesh,
                        const Buffers &operands, RankRange ranks);

/// How far a result that is added up in any order may be from that, for each of its elements.
std::vector<std::vector<double>> marginsOf(const Collective &collective, std::span<const Axis> mesh,
                                           const Buffers &operands, RankRange ranks);
/// Whether all elements of a result are no farther from what is expected than their margins.
bool isNear(ElementType type, const std::vector<char> &expected, const std::vector<char> &result,
            std::span<const double> margins);

/// Elements of the result.
uint64_t resultElements(const Collective &collective, std::span<const Axis> mesh);

} // namespace weft::rt::conformance

#endif // WEFT_RT_CONFORMANCE_CONFORMANCE_H
