//===- Constant.h - tensors that are known before training ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Exporters write arithmetic on shapes as nodes: the shape of a tensor is taken,
// parts of it are joined, and a reshape goes by the result. All of this is known
// at compile time but for the batch, which is computed with as a symbol: the batch
// is the number kBatch, 2^70, and n samples are n * kBatch. No length that can
// occur comes near it, and multiples of a power of two are exact.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_ONNX_CONSTANT_H
#define WEFT_ONNX_CONSTANT_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weft::onnx {

/// Types of elements that are read.
enum class ElementType : uint8_t { F32, F64, I64, I32, Bool };

/// "float32", "int64", ...
const char *nameOf(ElementType type);
/// Bytes of one element.
int64_t sizeOf(ElementType type);
bool isFloat(ElementType type);

/// The batch, as a number in a tensor of lengths.
inline constexpr double kBatch = 0x1p70;

/// Whether a number stands for a multiple of the batch.
inline bool isPerSample(double value) { return value >= 0x1p60 && value <= 0x1p120; }

/// A tensor that is known, row-major. Whole numbers are kept as they are up to 2^53; beyond, only
/// that they are large counts (ends of slices) or that they are multiples of the batch.
struct Constant {
  ElementType type = ElementType::F32;
  std::vector<int64_t> shape;
  std::vector<double> values;

  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  bool isScalar() const { return values.size() == 1; }
};

/// Whether there are at most 16 lengths, and no product of some of them is beyond 2^40. (A tensor
/// without elements may have other lengths, which are multiplied, too.)
bool isReasonable(const std::vector<int64_t> &shape);

/// Number of elements of a shape of known lengths. REQUIRES: `isReasonable(shape)`.
int64_t elementCount(const std::vector<int64_t> &shape);

} // namespace weft::onnx

#endif // WEFT_ONNX_CONSTANT_H
