//===- Constant.h - tensors that are known at compile time ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Exporters write arithmetic on shapes as nodes: they take the shape of a tensor, join parts of it,
// and reshape by the result. All numbers are known at compile time except the batch. A symbol
// stands for it: the number kBatch, 2^70, and n * kBatch for n samples. Real lengths are far
// smaller, and multiples of a power of two are exact.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_ONNX_CONSTANT_H
#define WEFT_ONNX_CONSTANT_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weft::onnx {

/// The element types of ONNX that Weft reads; not those of programs, which have no truth values.
enum class ElementType : uint8_t { F32, F64, I64, I32, Bool };

/// "float32", "int64", ...
const char *nameOf(ElementType type);
/// Bytes of one element.
int64_t sizeOf(ElementType type);
bool isFloat(ElementType type);

/// The number that stands for the batch in a tensor of lengths.
inline constexpr double kBatch = 0x1p70;

/// Returns true if a number stands for a multiple of the batch.
inline bool isPerSample(double value) { return value >= 0x1p60 && value <= 0x1p120; }

/// A known tensor, row-major. Whole numbers are exact up to 2^53. Greater numbers are only
/// meaningful as large counts (ends of slices) or as multiples of the batch.
struct Constant {
  ElementType type = ElementType::F32;
  std::vector<int64_t> shape;
  std::vector<double> values;

  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  bool isScalar() const { return values.size() == 1; }
};

/// Returns true if there are at most 16 lengths, and the product of any of them is at most 2^40.
/// (Lengths other than 0 are checked even if a tensor has no elements.)
bool isReasonable(const std::vector<int64_t> &shape);

/// Returns the number of elements of a shape of known lengths. REQUIRES: `isReasonable(shape)`.
int64_t elementCount(const std::vector<int64_t> &shape);

} // namespace weft::onnx

#endif // WEFT_ONNX_CONSTANT_H
