//===- NoAttention.cpp - replaces attention by cuDNN ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Used if libweft-rt-cuda.so.1 is built without cudnn_frontend: refuses all attention.
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/Parts.h"

using namespace weft::rt;
using namespace weft::rt::cuda;

CallResult cuda::closeAttention(Device &) { return nullptr; }

void cuda::addAttention(DriverTable &library) {
  library.prepareAttention = [](Handle, const Attention *, const AttentionPart *, bool,
                                Handle *prepared, const char **refusal) -> CallResult {
    *prepared = 0;
    *refusal = "libweft-rt-cuda.so.1 was built without cudnn_frontend, which "
               "'utils/setup-cuda --runtime' gets";
    return nullptr;
  };
  library.freeAttention = [](Handle, Handle) -> CallResult { return nullptr; };
  library.runAttention = [](Handle, Handle, Handle, const Address *, size_t) -> CallResult {
    return say("there is no attention in libweft-rt-cuda.so.1");
  };
}
