//===- PrepareProducts.h - the same ways for products on all ranks --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How a product is computed decides its last bits, and ranks that hold the same parameters have to
// keep the same. So of each kind of device one rank chooses, by a file of earlier choices or by
// trying, and tells the others, who take over what it says.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_CUDA_PREPAREPRODUCTS_H
#define WEFT_RT_BACKENDS_CUDA_PREPAREPRODUCTS_H

#include "backends/cuda/Library.h"
#include "weft-rt/Backend.h"
#include "weft-rt/Program.h"

#include <vector>

namespace weft::rt::cuda {

struct ProductSetup {
  const Program &program;
  const Library &library;
  Library::Handle device;
  const DeviceFacts &facts;
  /// The number of the device, for what is said of failures.
  int64_t number, rank;
  Communicator &communicator;
  /// Of earlier choices; empty for none.
  const std::string &cacheFile;
};

/// Prepares all products of the program, in `products`, in their order; 0 for the one that failed.
/// To be called by all ranks. On failure tells the communicator.
bool prepareProducts(const ProductSetup &setup, std::vector<Library::Handle> &products);

/// Where the operands of an instruction are, by their order in the program.
ProductPlaces placesOf(const Product &product, void *const *operands);

} // namespace weft::rt::cuda

#endif // WEFT_RT_BACKENDS_CUDA_PREPAREPRODUCTS_H
