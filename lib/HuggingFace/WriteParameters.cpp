//===- WriteParameters.cpp - writes a checkpoint's parameters for programs -===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Weights.h"
#include "support/Elements.h"
#include "support/OutputFile.h"

using namespace weft;
using namespace weft::hf;

namespace {

/// Writes one parameter or a part of it, row by row of its matrix.
rt::Status writeSlot(const Slot &slot, const Weights &weights, rt::OutputFile &file) {
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
      rt::Status status = file.write({reinterpret_cast<const char *>(bytes.data()), bytes.size()});
      if (!status) {
        return status;
      }
      batch.clear();
    }
  }
  return {};
}

rt::Status writeAll(const std::vector<Slot> &slots, const Weights &weights,
                    const std::string &path) {
  std::vector<rt::TensorHeader> headers;
  for (const Slot &slot : slots) {
    if (slot.skippedOutputs == 0) {
      headers.push_back({slot.parameter, rt::ElementType::F32, slot.shape});
    }
  }
  rt::OutputFile file;
  rt::Status status = file.open(path);
  status = status ? file.write(rt::safetensorsHeader(headers, {{"format", "weft"}})) : status;
  for (size_t i = 0; status && i < slots.size(); ++i) {
    status = writeSlot(slots[i], weights, file);
  }
  return status ? file.commit() : status;
}

} // namespace

desc::Diagnostics Folder::writeParameters(const std::string &path) const {
  if (rt::Status status = writeAll(slots, *weights, path); !status) {
    return {inFile("", "", status.error().message)};
  }
  return {};
}
