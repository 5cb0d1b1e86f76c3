//===- Samples.cpp - sources of training samples --------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "data/Samples.h"

#include "support/CheckedMath.h"

using namespace weft::rt;

std::optional<DataField> weft::rt::dataField(std::string_view name) {
  constexpr std::pair<std::string_view, DataField> fields[] = {
      {"tokens", DataField::Tokens},
      {"targets", DataField::Targets},
      {"document_starts", DataField::DocumentStarts},
      {"images", DataField::Images},
      {"labels", DataField::Labels}};
  for (const auto &[known, field] : fields) {
    if (known == name) {
      return field;
    }
  }
  return std::nullopt;
}

int64_t InputShard::sampleOf(int64_t row) const {
  return offset[0] + (run == 0 ? row : row / run * stride + row % run);
}

size_t InputShard::bytes() const { return size_t(elementCount(shape)) * sizeOf(type); }

size_t InputShard::rowBytes() const { return bytes() / size_t(shape[0]); }
