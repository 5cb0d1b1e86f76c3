//===- ImageFile.cpp - images and their labels from a file ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "data/ImageFile.h"

#include "support/CheckedMath.h"
#include "support/Text.h"

#include <cstring>

using namespace weft::rt;

/// Returns the number at element `index` of unaligned memory.
template <typename T> static T elementAt(std::span<const char> bytes, uint64_t index) {
  T number;
  std::memcpy(&number, bytes.data() + index * sizeof(T), sizeof(T));
  return number;
}

Status ImageFile::open(const std::string &path, std::span<const int64_t> sampleShape,
                       int64_t classes) {
  this->path = path;
  if (Status status = file.open(path); !status) {
    return status;
  }
  for (auto [name, tensor] : {std::pair("images", &images), std::pair("labels", &labels)}) {
    auto found = file.tensors.find(name);
    if (found == file.tensors.end()) {
      return makeError("'", path, "' has no tensor '", name,
                       "', expected images and labels in a safetensors file");
    }
    *tensor = &found->second;
  }
  if (Status status = checkImages(sampleShape); !status) {
    return status;
  }
  return checkLabels(classes);
}

Status ImageFile::checkImages(std::span<const int64_t> sampleShape) {
  const std::vector<int64_t> &shape = images->shape;
  if (images->dtype != "F32" && images->dtype != "F64" && images->dtype != "U8") {
    return makeError("'", path, "' has images of type ", images->dtype,
                     ", expected F32, F64 or U8");
  }
  if (shape.empty() ||
      !std::equal(shape.begin() + 1, shape.end(), sampleShape.begin(), sampleShape.end())) {
    return makeError("'", path, "' has images ", shapeText(shape), ", the model takes ",
                     shapeText(sampleShape), " for each sample");
  }
  samples = uint64_t(shape[0]);
  elements = uint64_t(elementCount(sampleShape));
  if (samples == 0) {
    return makeError("'", path, "' has no images");
  }
  return {};
}

Status ImageFile::checkLabels(int64_t classes) {
  if (labels->dtype != "I64" && labels->dtype != "I32") {
    return makeError("'", path, "' has labels of type ", labels->dtype, ", expected I64 or I32");
  }
  if (labels->shape != std::vector<int64_t>{int64_t(samples)}) {
    return makeError("'", path, "' has labels ", shapeText(labels->shape), ", expected [", samples,
                     "], one for each image");
  }
  for (uint64_t sample = 0; sample < samples; ++sample) {
    int64_t label = labelAt(sample);
    if (label < 0 || label >= classes) {
      return makeError("'", path, "' has the label ", label, " at image ", sample,
                       ", the model's classes are 0 to ", classes - 1);
    }
  }
  file.mapped().release(labels->data);
  return {};
}

int64_t ImageFile::labelAt(uint64_t sample) const {
  return labels->dtype == "I64" ? elementAt<int64_t>(labels->data, sample)
                                : elementAt<int32_t>(labels->data, sample);
}

std::string ImageFile::describe() const {
  return concat("'", path, "', ", formatName(), ": ", samples, " samples");
}

/// Copies `count` numbers from element `first` on and divides each by `divisor`.
template <typename From, typename To>
static void copyNumbers(std::span<const char> from, uint64_t first, uint64_t count, To divisor,
                        char *out) {
  for (uint64_t i = 0; i < count; ++i) {
    To number = To(elementAt<From>(from, first + i)) / divisor;
    std::memcpy(out + i * sizeof(To), &number, sizeof(To));
  }
}

template <typename To>
static void copyImage(const SafetensorsFile::Tensor &images, uint64_t first, uint64_t count,
                      char *out) {
  if (images.dtype == "F32") {
    copyNumbers<float, To>(images.data, first, count, 1, out);
  } else if (images.dtype == "F64") {
    copyNumbers<double, To>(images.data, first, count, 1, out);
  } else {
    copyNumbers<uint8_t, To>(images.data, first, count, 255, out);
  }
}

Status ImageFile::readRow(uint64_t sample, const InputShard &shard, char *out) const {
  if (shard.field == DataField::Labels) {
    auto label = int32_t(labelAt(sample));
    std::memcpy(out, &label, sizeof(label));
    return {};
  }
  if (shard.type == ElementType::F64) {
    copyImage<double>(*images, sample * elements, elements, out);
  } else {
    copyImage<float>(*images, sample * elements, elements, out);
  }
  size_t bytes = images->data.size() / samples; // Otherwise all images would be in memory at last.
  file.mapped().release(images->data.subspan(sample * bytes, bytes));
  return {};
}
