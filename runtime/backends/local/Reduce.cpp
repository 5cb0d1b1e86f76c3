//===- Reduce.cpp - element by element reduction ----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/local/Reduce.h"

#include <type_traits>

using namespace weft::rt;

template <typename T> static T add(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>; // Signed overflow is not defined.
    return T(Unsigned(a) + Unsigned(b));
  } else {
    return a + b;
  }
}

template <typename T> static T larger(T a, T b) { return a >= b || a != a ? a : b; }

template <typename T>
static void reduceTyped(ReductionKind kind, void *target, const void *source, int64_t count) {
  // Target and source are different buffers: the caller's chunk or result, and a partner's operand.
  T *__restrict to = static_cast<T *>(target);
  const T *__restrict from = static_cast<const T *>(source);
  if (kind == ReductionKind::Sum) {
    for (int64_t i = 0; i < count; ++i) {
      to[i] = add(to[i], from[i]);
    }
  } else {
    for (int64_t i = 0; i < count; ++i) {
      to[i] = larger(to[i], from[i]);
    }
  }
}

void weft::rt::local::reduceInto(ElementType type, ReductionKind kind, void *target,
                                 const void *source, int64_t count) {
  switch (type) {
  case ElementType::F64:
    return reduceTyped<double>(kind, target, source, count);
  case ElementType::F32:
    return reduceTyped<float>(kind, target, source, count);
  case ElementType::I64:
    return reduceTyped<int64_t>(kind, target, source, count);
  case ElementType::I32:
    return reduceTyped<int32_t>(kind, target, source, count);
  }
}
