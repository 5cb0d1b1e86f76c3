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

/// What `count` elements of `type` are reduced in: bf16 and f16 in f32, others in themselves. A
/// reduction begins with the first operand, takes in the others one by one, and ends in the result.
ElementType accumulatorOf(ElementType type);

/// sum[i] = source[i].
void beginReduction(ElementType type, void *sum, const void *source, int64_t count);

/// sum[i] = sum[i] (+ or max) source[i], in this order. Integers wrap around. The maximum of
/// anything and NaN is NaN, so that no member of a group can hide another's.
void reduceInto(ElementType type, ReductionKind kind, void *sum, const void *source, int64_t count);

/// target[i] = sum[i], rounded to the nearest.
void endReduction(ElementType type, void *target, const void *sum, int64_t count);

} // namespace weft::rt

#endif // WEFT_RT_BACKENDS_REDUCE_H
