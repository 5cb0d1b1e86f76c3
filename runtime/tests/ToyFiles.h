//===- ToyFiles.h - files of the toy program's runs ---------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_TESTS_TOYFILES_H
#define WEFT_RT_TESTS_TOYFILES_H

#include "support/Random.h"
#include "support/Safetensors.h"
#include "tests/ErrorOf.h"

#include <cstring>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace weft::rt {

/// Returns text to train on.
inline std::string toyText() {
  std::string text;
  for (uint64_t i = 0; i < 4000; ++i) {
    text.push_back("the quick brown fox"[randomBits(1, 1, i) % 19]);
  }
  return text;
}

/// Returns the tensor `name` of f64 in a safetensors file.
inline std::vector<double> tensorIn(const std::string &path, const std::string &name) {
  SafetensorsFile tensors;
  EXPECT_EQ(errorOf(tensors.open(path)), "");
  std::span<const char> bytes = tensors.tensors.at(name).data;
  std::vector<double> values(bytes.size() / sizeof(double));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

} // namespace weft::rt

#endif // WEFT_RT_TESTS_TOYFILES_H
