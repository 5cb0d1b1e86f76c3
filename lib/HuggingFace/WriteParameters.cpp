//===- WriteParameters.cpp - writes a checkpoint's parameters for programs -===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Weights.h"
#include "support/Elements.h"
#include "support/OutputFile.h"
#include "support/Text.h"

using namespace weft;
using namespace weft::hf;

namespace {

/// Writes one parameter or a part of it, row by row of its matrix.
bool writeSlot(const Slot &slot, const Weights &weights, rt::OutputFile &file, std::string &error) {
  const rt::SafetensorsFile::Tensor &tensor = weights.tensorOf(slot);
  rt::ElementType type = *rt::floatTypeOf(tensor.dtype);
  auto bytesOfOne = int64_t(rt::sizeOf(type));
  const char *first = tensor.data.data() + slot.offset() * bytesOfOne;
  // Enough rows at a time for few system calls.
  constexpr int64_t batchElements = 1 << 18;
  std::vector<float> batch;
  for (int64_t row = 0; row < slot.outputs; ++row) {
    size_t begin = batch.size();
    batch.resize(begin + size_t(slot.inputs));
    rt::decode(type, first + row * slot.outputStride() * bytesOfOne, slot.inputStride(),
               slot.inputs, batch.data() + begin);
    if (int64_t(batch.size()) >= batchElements || row + 1 == slot.outputs) {
      auto bytes = std::as_bytes(std::span(batch));
      if (!rt::succeeds(file.write({reinterpret_cast<const char *>(bytes.data()), bytes.size()}),
                        error)) {
        return false;
      }
      batch.clear();
    }
  }
  return true;
}

bool writeAll(const std::vector<Slot> &slots, const Weights &weights, const std::string &path,
              std::string &error) {
  std::vector<rt::TensorHeader> headers;
  for (const Slot &slot : slots) {
    if (slot.skippedOutputs == 0) {
      headers.push_back({slot.parameter, rt::ElementType::F32, slot.shape});
    }
  }
  rt::OutputFile file;
  if (!rt::succeeds(file.open(path), error) ||
      !rt::succeeds(file.write(rt::safetensorsHeader(headers, {{"format", "weft"}})), error)) {
    return false;
  }
  for (const Slot &slot : slots) {
    if (!writeSlot(slot, weights, file, error)) {
      return false;
    }
  }
  return rt::succeeds(file.commit(), error);
}

} // namespace

desc::Diagnostics Folder::writeParameters(const std::string &path) const {
  std::string error;
  if (writeAll(slots, *weights, path, error)) {
    return {};
  }
  return {inFile("", "", error)};
}
