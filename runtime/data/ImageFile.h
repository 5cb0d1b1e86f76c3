//===- ImageFile.h - images and their labels from a file --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A safetensors file with two tensors:
//
//   images   [samples, channel, height, width], or another shape of the model's samples:
//            F32, F64, or U8, of which n becomes n / 255
//   labels   [samples], I64 or I32: the number of the class
//
// The file is mapped, not read: opening it checks all labels but reads no image.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_DATA_IMAGEFILE_H
#define WEFT_RT_DATA_IMAGEFILE_H

#include "data/Samples.h"
#include "support/Safetensors.h"

namespace weft::rt {

class ImageFile : public SampleSource {
public:
  /// Opens the file. `sampleShape` is the shape of one image. Fails if the file cannot be read,
  /// lacks a tensor, has one of a wrong type or shape, or has a label of `classes` or more.
  Status open(const std::string &path, std::span<const int64_t> sampleShape, int64_t classes);

  uint64_t sampleCount() const override { return samples; }
  const char *formatName() const override { return "images"; }
  std::string describe() const override;

  /// Writes an image or a label. REQUIRES: the shard has whole images.
  Status readRow(uint64_t sample, const InputShard &shard, char *out) const override;

private:
  Status checkImages(std::span<const int64_t> sampleShape);
  Status checkLabels(int64_t classes);
  int64_t labelAt(uint64_t sample) const;

  std::string path;
  SafetensorsFile file;
  const SafetensorsFile::Tensor *images = nullptr, *labels = nullptr;
  uint64_t samples = 0, elements = 0;
};

} // namespace weft::rt

#endif // WEFT_RT_DATA_IMAGEFILE_H
