//===- PreparedProduct.h - a matrix product by oneDNN -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// oneDNN makes code for a product when it is prepared, by the processor: AVX2, AVX-512, and for
// bf16 AVX512-BF16 or AMX. Where it has none for bf16 or f16, as on processors with no more than
// AVX2, operands are widened and multiplied as float32, at its speed; those of TF32 are rounded.
// All sum in float32.
//
// A thread that runs products keeps one piece of memory for the library, had at its first run. A
// PreparedProduct may be run by one thread at a time, from any thread, and only on that one: teams
// are the parallelism.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_EXECUTION_PREPAREDPRODUCT_H
#define WEFT_RT_EXECUTION_PREPAREDPRODUCT_H

#include "execution/Products.h"

#include <memory>
#include <string>

namespace weft::rt {

class PreparedProduct {
public:
  /// Null, with the reason in `error`, if there is no memory for it or the library fails.
  /// REQUIRES: `piece` belongs to a well-formed program.
  static std::unique_ptr<PreparedProduct> make(const ProductPiece &piece, std::string &error);
  virtual ~PreparedProduct() = default;

  /// Overwrites the piece's part of C, never reads it. `a`, `b` and `c` are those of the whole
  /// product. Fails only where the library does or memory is out; then says why in
  /// `error`.
  virtual bool run(const void *a, const void *b, void *c, std::string &error) = 0;
};

} // namespace weft::rt

#endif // WEFT_RT_EXECUTION_PREPAREDPRODUCT_H
