//===- Plugin.cpp - the table of CUDA's functions -------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the shared library exports, and all that it does; see Library.h.
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/Parts.h"

using namespace weft::rt::cuda;

static Library makeLibrary() {
  Library library = {};
  addDriver(library);
  addProducts(library);
  addCommunication(library);
  addAttention(library);
  addGraphs(library);
  // Nobody is asked to be strict.
  library.seal = library.unseal = [](Library::Handle) -> Library::Result { return nullptr; };
  return library;
}

__attribute__((visibility("default"))) const Library *weft_rt_cuda(uint32_t version) {
  static const Library library = makeLibrary();
  return version == Library::kVersion ? &library : nullptr;
}
