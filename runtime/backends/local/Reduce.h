//===- Reduce.h - element by element reduction ------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_LOCAL_REDUCE_H
#define WEFT_RT_BACKENDS_LOCAL_REDUCE_H

#include "weft-rt/Program.h"

namespace weft::rt::local {

/// target[i] = target[i] (+ or max) source[i], in this order, for `count` elements.
/// Integers wrap around. The maximum of anything and NaN is NaN, so that no member
/// of a group can hide another's.
void reduceInto(ElementType type, ReductionKind kind, void *target, const void *source,
                int64_t count);

} // namespace weft::rt::local

#endif // WEFT_RT_BACKENDS_LOCAL_REDUCE_H
