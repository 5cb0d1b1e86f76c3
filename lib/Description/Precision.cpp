//===- Precision.cpp - names and sizes of number formats ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Description/Precision.h"

#include "weft/machine.pb.h"

namespace weft::desc {

static_assert(int(Precision::F8) == proto::Precision_MAX);

const char *nameOf(Precision precision) {
  return proto::Precision_Name(proto::Precision(precision)).c_str();
}

int bytesOf(Precision precision) {
  static constexpr int bytes[proto::Precision_ARRAYSIZE] = {8, 4, 2, 4, 2, 1};
  return bytes[int(precision)];
}

} // namespace weft::desc
