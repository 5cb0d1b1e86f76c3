//===- FakeAttention.cpp - a cuDNN that is too old ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include <cstddef>

extern "C" size_t cudnnGetVersion() { return 90100; }
