//===- Conformance.h - the tests that every backend must pass ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The suite is compiled once. To test a backend, link the suite with a file that defines
// `makeBackendUnderTest` and `isExact` and, if hardware may be missing, prints that it skips.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_CONFORMANCE_CONFORMANCE_H
#define WEFT_RT_CONFORMANCE_CONFORMANCE_H

#include "weft-rt/Backend.h"

#include <chrono>

namespace weft::rt::conformance {

/// Makes a backend for `ranks` ranks, whose collectives wait up to `timeout`. Returns null in a
/// process without ranks: the other processes run the test.
std::unique_ptr<Backend> makeBackendUnderTest(int64_t ranks, std::chrono::milliseconds timeout);

/// Returns true if the backend sums as Program.h says: in group order, rounding narrow elements
/// once, with maxima that keep NaN. Other backends may sum in any order and round at each addition.
bool isExact();

/// The bytes of an operand or a result, by rank.
using Buffers = std::vector<std::vector<char>>;

/// Makes elements for one rank. They differ between ranks, and their sums depend on the order.
std::vector<char> makeOperand(ElementType type, uint64_t elements, int64_t rank);

/// Returns the result that each of `ranks` must get, computed elementwise from the definition in
/// Program.h; empty for other ranks.
Buffers expectedResults(const Collective &collective, std::span<const Axis> mesh,
                        const Buffers &operands, RankRange ranks);

/// Returns, for each element, the largest deviation from `expectedResults` that summing in any
/// order can cause.
std::vector<std::vector<double>> marginsOf(const Collective &collective, std::span<const Axis> mesh,
                                           const Buffers &operands, RankRange ranks);
/// Returns true if all elements of `result` differ from `expected` by at most their margins.
bool isNear(ElementType type, const std::vector<char> &expected, const std::vector<char> &result,
            std::span<const double> margins);

/// Returns the number of elements of the result in a group of `members`.
uint64_t resultElements(const Collective &collective, size_t members);

} // namespace weft::rt::conformance

#endif // WEFT_RT_CONFORMANCE_CONFORMANCE_H
