//===- Random.cpp - the counter-based generator, as code -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Random.h"

#include <cmath>

namespace weft::lower {

namespace {

/// The finalizer of splitmix64.
Num mix(Num z) {
  z = (z ^ (z >> 30)) * static_cast<int64_t>(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * static_cast<int64_t>(0x94D049BB133111EB);
  return z ^ (z >> 31);
}

} // namespace

Generator::Generator(Code &code, Num seed, Num stream)
    : code(&code), base(mix(mix(seed) ^ stream)) {}

Generator Generator::forDropout(Code &code, Num seed, Num step, Num layer, int64_t site) {
  return Generator(code, seed, step * (int64_t(1) << 20) + layer * 256 + site);
}

Num Generator::bits(Num i) const {
  return mix(base + i * static_cast<int64_t>(0x9E3779B97F4A7C15));
}

Num Generator::isKept(Num i, double rate) const {
  // uniform = (bits >> 11) 2^-53 >= rate, if and only if bits >= ceil(rate 2^53) 2^11: the bits
  // that the shift drops cannot change that, and scaling by a power of two is exact.
  auto least = static_cast<uint64_t>(std::ceil(std::ldexp(rate, 53))) << 11;
  Num dropped = code->lessUnsigned(bits(i), code->integer(static_cast<int64_t>(least)));
  return dropped == int64_t(0);
}

Placement::Placement(Code &code, llvm::ArrayRef<int64_t> localShape, mlir::ValueRange given,
                     std::optional<llvm::ArrayRef<int64_t>> globalShape)
    : code(&code) {
  llvm::ArrayRef<int64_t> shape = globalShape.value_or(localShape);
  strides.assign(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) {
    strides[i - 1] = strides[i] * shape[i];
  }
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    offsets.push_back(dim < given.size() ? code.num(given[dim]) : code.index(0));
  }
}

Num Placement::globalIndex(llvm::ArrayRef<Num> indices) const {
  Num total = code->index(0);
  for (auto [index, offset, stride] : llvm::zip_equal(indices, offsets, strides)) {
    total = total + (index + offset) * stride;
  }
  return code->toInteger(total);
}

} // namespace weft::lower
