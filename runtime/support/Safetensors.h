//===- Safetensors.h - named tensors in a file ------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The safetensors format: length of the header (u64, little-endian), header (JSON:
// name -> dtype, shape, data_offsets; "__metadata__" -> strings), tensors, without
// gaps. https://huggingface.co/docs/safetensors (Format).
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

/// "F64", "F32", "I64" or "I32".
const char *safetensorsName(ElementType type);

/// All of a file that comes before the tensors, which must then be written in the
/// order of `tensors`, each row-major and little-endian.
std::string safetensorsHeader(const std::vector<TensorHeader> &tensors,
                              const std::map<std::string, std::string> &metadata);

/// A safetensors file to read. Any thread may read after `open`.
class SafetensorsFile {
public:
  struct Tensor {
    /// As the file names it: "F32", "BF16", ...
    std::string dtype;
    std::vector<int64_t> shape;
    /// Exactly what dtype and shape need. Not aligned.
    std::span<const char> data;
  };

  /// Fails with a reason, and safely, on anything that is not the format: damaged or oversized
  /// header, unknown dtype, tensors that overlap, leave gaps, or end beyond the file.
  bool open(const std::string &path, std::string &error);

  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;

  /// All of the file that comes before the tensors.
  std::span<const char> header() const { return file.bytes().first(headerBytes); }

private:
  MappedFile file;
  size_t headerBytes = 0;
};

} // namespace weft::rt

#endif // WEFT_RT_SUPPORT_SAFETENSORS_H
