//===- FakeAttention.cpp - a fake cuDNN that only reports versions --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Environment variables set the versions that it reports. It also acts as the compiler that cuDNN
// needs.
//
//===----------------------------------------------------------------------===//

#include <cstddef>
#include <cstdlib>

static size_t numberOf(const char *variable, size_t otherwise) {
  const char *text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

extern "C" {

size_t cudnnGetVersion() { return numberOf("WEFT_FAKE_CUDNN_VERSION", 90100); }
size_t cudnnGetCudartVersion() { return numberOf("WEFT_FAKE_CUDNN_CUDART", 99000); }

int nvrtcVersion(int *major, int *minor) {
  *major = 97;
  *minor = 3;
  return 0;
}
}
