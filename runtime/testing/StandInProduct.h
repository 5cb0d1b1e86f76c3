//===- StandInProduct.h - computes a matrix product as a device would ----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Products have the host's bits, as they are its code, but for those of float64, which the
// host has none for. Epilogues are plain loops: on what the product has summed in float32, before
// it is rounded.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_TESTING_STANDINPRODUCT_H
#define WEFT_RT_TESTING_STANDINPRODUCT_H

#include "execution/PreparedProduct.h"
#include "support/BFloat16.h"

#include <vector>

namespace weft::rt::cuda {

/// Where operands are in the host's memory; unspecified for those that a product has not.
struct ProductData {
  const void *a, *b;
  void *c;
  const void *addend, *bias;
  void *aux, *sums;
  const void *factorA, *factorB;
};

class StandInProduct {
public:
  StandInProduct() = default;
  /// Says what is wrong in `error` where there is no memory or oneDNN fails.
  StandInProduct(const Product &product, int64_t cores, std::string &error);

  bool run(const ProductData &at, std::string &error);

private:
  Product product;
  /// In float32 where there is an epilogue.
  std::vector<std::unique_ptr<PreparedProduct>> pieces;
  /// Before the epilogue, its rows without distance.
  std::vector<float> wide;
  /// What is multiplied, of matrices of eight bits.
  std::vector<BFloat16> a, b;
};

} // namespace weft::rt::cuda

#endif // WEFT_RT_TESTING_STANDINPRODUCT_H
