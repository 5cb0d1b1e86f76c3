//===- Safetensors.h - named tensors in a file ------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The safetensors format: the header's length (u64, little-endian), the header
// (JSON: name -> dtype, shape, data_offsets; "__metadata__" -> strings) and the
// tensors, without gaps. See https://huggingface.co/docs/safetensors (Format).
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_SUPPORT_SAFETENSORS_H
#define WEFT_RT_SUPPORT_SAFETENSORS_H

#include "support/MappedFile.h"
#include "weft-rt/Program.h"

#include <map>
#include <vector>

namespace weft::rt {

struct TensorHeader {
  std::string name;
  ElementType type = ElementType::F32;
  std::vector<int64_t> shape;
};

/// Returns the dtype as safetensors name it: "F64", "BF16", ...
const char *safetensorsName(ElementType type);

/// Returns all bytes of a file before its tensors. The tensors must follow in the order of
/// `tensors`, each row-major and little-endian.
std::string safetensorsHeader(const std::vector<TensorHeader> &tensors,
                              const std::map<std::string, std::string> &metadata);

/// A mapped safetensors file. Any thread may read it after `open`. The bytes of tensors that were
/// read take memory until they are released (MappedFile.h).
class SafetensorsFile {
public:
  struct Tensor {
    /// The dtype as in the file: "F32", "BF16", ...
    std::string dtype;
    std::vector<int64_t> shape;
    /// The tensor's bytes, exactly as many as dtype and shape need. Not aligned.
    std::span<const char> data;
  };

  /// Maps and checks the file. Safe on any bytes: fails on a damaged or oversized header, on an
  /// unknown dtype, and on tensors that overlap, leave gaps or end beyond the file.
  Status open(const std::string &path);

  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;

  /// Returns all bytes of the file before its tensors.
  std::span<const char> header() const { return file.bytes().first(headerBytes); }

  const MappedFile &mapped() const { return file; }

private:
  MappedFile file;
  size_t headerBytes = 0;
};

} // namespace weft::rt

#endif // WEFT_RT_SUPPORT_SAFETENSORS_H
