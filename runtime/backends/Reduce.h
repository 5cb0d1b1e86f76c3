//===- Reduce.h - elementwise reduction -------------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_REDUCE_H
#define WEFT_RT_BACKENDS_REDUCE_H

#include "weft-rt/Program.h"

namespace weft::rt {

/// The bytes that backends reduce at a time: operands of this length stay in the first-level cache
/// until the last one has been added.
inline constexpr int64_t kReducedBytes = 4096;

/// Returns the type in which elements of `type` are summed: f32 for bf16 and f16, else `type`. A
/// reduction calls `beginReduction` with the first operand, `reduceInto` with each other operand,
/// then `endReduction`.
ElementType accumulatorOf(ElementType type);

/// sum[i] = source[i].
void beginReduction(ElementType type, void *sum, const void *source, int64_t count);

/// sum[i] = sum[i] (+ or max) source[i], in this order. Integers wrap around. The maximum of NaN
/// and any number is NaN, so that a NaN of one rank reaches all.
void reduceInto(ElementType type, ReductionKind kind, void *sum, const void *source, int64_t count);

/// target[i] = sum[i], rounded to the nearest.
void endReduction(ElementType type, void *target, const void *sum, int64_t count);

} // namespace weft::rt

#endif // WEFT_RT_BACKENDS_REDUCE_H
