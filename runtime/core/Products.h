//===- Products.h - matrix products by library ------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_CORE_PRODUCTS_H
#define WEFT_RT_CORE_PRODUCTS_H

#include "weft-rt/Program.h"

namespace weft::rt {

/// Tells the library to use the calling thread only. Once per process, before any product:
/// ranks are the parallelism, and a library's own threads would make bits depend on timing.
void prepareProducts();

/// Overwrites C, never reads it. Any number of threads may call at once.
/// REQUIRES: `product` is of f32 or f64; for bf16 see BF16Product.
void runProduct(const Product &product, const void *a, const void *b, void *c);

} // namespace weft::rt

#endif // WEFT_RT_CORE_PRODUCTS_H
