//===- Products.h - how matrix products are cut for threads ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_EXECUTION_PRODUCTS_H
#define WEFT_RT_EXECUTION_PRODUCTS_H

#include "weft-rt/Program.h"

#include <vector>

namespace weft::rt {

/// A part of a product that is a product itself, on operands that begin further on.
struct ProductPiece {
  Product product;
  /// Elements.
  int64_t offsetA = 0, offsetB = 0, offsetC = 0;
};

/// Cuts a product into pieces that together write each element of C once, for a device of `cores`:
/// rows and columns into a grid whose pieces are as square as can be, since what a piece reads is
/// packed once for each piece. The sum over k stays whole, so no piece waits for another. A small
/// product is left whole. The last bits of a sum depend on the cut, since libraries take its terms
/// in parts that depend on the rows and columns.
std::vector<ProductPiece> cutProduct(const Product &product, int64_t cores);

} // namespace weft::rt

#endif // WEFT_RT_EXECUTION_PRODUCTS_H
