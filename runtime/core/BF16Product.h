//===- BF16Product.h - a matrix product of bf16 by oneDNN ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// oneDNN picks its code by the processor when a product is made: AMX, AVX512-BF16 or AVX-512. Where
// it has none, as on processors with no more than AVX2, operands are widened and OpenBLAS
// multiplies in float32, at its speed. All sum in float32.
//
// What a product needs besides its operands is had when it is made. A BF16Product may be run by
// one thread at a time, from any thread, and only on that one: teams are the parallelism.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_CORE_BF16PRODUCT_H
#define WEFT_RT_CORE_BF16PRODUCT_H

#include "core/Products.h"

#include <memory>

namespace weft::rt {

class BF16Product {
public:
  /// Null, with the reason in `error`, if there is no memory for it or the library fails.
  /// REQUIRES: `piece` is of bf16 and belongs to a well-formed program.
  static std::unique_ptr<BF16Product> make(const ProductPiece &piece, std::string &error);
  virtual ~BF16Product() = default;

  /// Overwrites the piece's part of C, never reads it. `a`, `b` and `c` are those of the whole
  /// product. Fails only where the library does; then says why in `error`.
  virtual bool run(const void *a, const void *b, void *c, std::string &error) = 0;
};

} // namespace weft::rt

#endif // WEFT_RT_CORE_BF16PRODUCT_H
