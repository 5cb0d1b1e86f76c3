//===- Reduce.cpp - elementwise reduction -----------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/Reduce.h"

#include "support/BFloat16.h"
#include "support/Float16.h"

#include <cstring>
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

template <typename T, typename Accumulator = T>
static void reduceTyped(ReductionKind kind, void *sum, const void *source, int64_t count) {
  // Sum and source are different buffers: the caller's chunk, and a partner's operand.
  Accumulator *__restrict to = static_cast<Accumulator *>(sum);
  const T *__restrict from = static_cast<const T *>(source);
  if (kind == ReductionKind::Sum) {
    for (int64_t i = 0; i < count; ++i) {
      to[i] = add(to[i], Accumulator(from[i]));
    }
  } else {
    for (int64_t i = 0; i < count; ++i) {
      to[i] = larger(to[i], Accumulator(from[i]));
    }
  }
}

template <typename From, typename To>
static void convert(void *target, const void *source, int64_t count) {
  To *__restrict to = static_cast<To *>(target);
  const From *__restrict from = static_cast<const From *>(source);
  for (int64_t i = 0; i < count; ++i) {
    to[i] = To(from[i]);
  }
}

ElementType weft::rt::accumulatorOf(ElementType type) {
  return isNarrow(type) ? ElementType::F32 : type;
}

void weft::rt::beginReduction(ElementType type, void *sum, const void *source, int64_t count) {
  if (type == ElementType::BF16) {
    return convert<BFloat16, float>(sum, source, count);
  }
  if (type == ElementType::F16) {
    return convert<Float16, float>(sum, source, count);
  }
  std::memcpy(sum, source, size_t(count) * sizeOf(type));
}

void weft::rt::endReduction(ElementType type, void *target, const void *sum, int64_t count) {
  if (type == ElementType::BF16) {
    return convert<float, BFloat16>(target, sum, count);
  }
  if (type == ElementType::F16) {
    return convert<float, Float16>(target, sum, count);
  }
  std::memcpy(target, sum, size_t(count) * sizeOf(type));
}

void weft::rt::reduceInto(ElementType type, ReductionKind kind, void *sum, const void *source,
                          int64_t count) {
  switch (type) {
  case ElementType::BF16:
    return reduceTyped<BFloat16, float>(kind, sum, source, count);
  case ElementType::F16:
    return reduceTyped<Float16, float>(kind, sum, source, count);
  case ElementType::F64:
    return reduceTyped<double>(kind, sum, source, count);
  case ElementType::F32:
    return reduceTyped<float>(kind, sum, source, count);
  case ElementType::I64:
    return reduceTyped<int64_t>(kind, sum, source, count);
  case ElementType::I32:
    return reduceTyped<int32_t>(kind, sum, source, count);
  case ElementType::F8E4M3:
  case ElementType::F8E5M2:
    break; // Of no collective of a well-formed program.
  }
}
