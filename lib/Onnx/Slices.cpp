//===- Slices.cpp - ONNX's rules for shapes and slices --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Onnx/Slices.h"

#include "FoldParts.h"
#include "Schema.h"

#include "support/Text.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace weft::onnx {

int64_t clampedInteger(double value) {
  return std::isnan(value) ? 0 : static_cast<int64_t>(std::clamp(value, -0x1p53, 0x1p53));
}

std::string textOf(const std::vector<int64_t> &shape) {
  std::string text;
  for (int64_t size : shape) {
    text += (text.empty() ? "" : ", ") + std::to_string(size);
  }
  return "[" + text + "]";
}

rt::Status allocateValues(Constant &constant) {
  if (!isReasonable(constant.shape) || elementCount(constant.shape) > kMostElements) {
    return rt::makeError("makes a constant of more than 2^26 elements");
  }
  constant.values.assign(static_cast<size_t>(elementCount(constant.shape)), 0.0);
  return {};
}

bool broadcastShapes(const std::vector<const std::vector<int64_t> *> &shapes,
                     std::vector<int64_t> &result) {
  for (const std::vector<int64_t> *shape : shapes) {
    if (shape->size() > result.size()) {
      result.insert(result.begin(), shape->size() - result.size(), 1);
    }
  }
  for (const std::vector<int64_t> *shape : shapes) {
    for (size_t i = 0; i < shape->size(); ++i) {
      int64_t size = (*shape)[i], &joined = result[result.size() - shape->size() + i];
      if (size != joined && size != 1 && joined != 1) {
        return false;
      }
      joined = joined == 1 ? size : joined;
    }
  }
  return true;
}

rt::Result<std::vector<int64_t>> lengthsOf(const Constant &constant) {
  std::vector<int64_t> lengths;
  for (double value : constant.values) {
    if (isPerSample(value)) {
      return rt::makeError("makes a constant as long as the batch, whose size is not known");
    }
    if (!(value >= 0 && value < 0x1p32) || value != std::trunc(value)) {
      return rt::makeError("expected lengths from 0 to 2^32, got ", std::to_string(value));
    }
    lengths.push_back(static_cast<int64_t>(value));
  }
  return lengths;
}

std::vector<int64_t> stridesOf(const std::vector<int64_t> &shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) {
    strides[i - 1] = strides[i] * shape[i];
  }
  return strides;
}

std::vector<int64_t> spreadStrides(const std::vector<int64_t> &shape,
                                   const std::vector<int64_t> &over) {
  std::vector<int64_t> strides(over.size() - shape.size(), 0), own = stridesOf(shape);
  for (size_t i = 0; i < shape.size(); ++i) {
    strides.push_back(shape[i] == 1 ? 0 : own[i]);
  }
  return strides;
}

std::optional<ElementType> elementTypeOfNumber(int64_t number) {
  return number > 0 && number < 100 ? elementTypeOf(static_cast<int>(number)) : std::nullopt;
}

int64_t integerAttribute(const Node &node, const std::string &name, int64_t otherwise) {
  auto found = node.attributes.find(name);
  const int64_t *value =
      found == node.attributes.end() ? nullptr : std::get_if<int64_t>(&found->second);
  return value ? *value : otherwise;
}

double realAttribute(const Node &node, const std::string &name, double otherwise) {
  auto found = node.attributes.find(name);
  const double *value =
      found == node.attributes.end() ? nullptr : std::get_if<double>(&found->second);
  return value ? *value : otherwise;
}

std::string textAttribute(const Node &node, const std::string &name, const char *otherwise) {
  auto found = node.attributes.find(name);
  const std::string *value =
      found == node.attributes.end() ? nullptr : std::get_if<std::string>(&found->second);
  return value ? *value : otherwise;
}

std::optional<std::vector<int64_t>> integersAttribute(const Node &node, const std::string &name) {
  auto found = node.attributes.find(name);
  const auto *value =
      found == node.attributes.end() ? nullptr : std::get_if<std::vector<int64_t>>(&found->second);
  return value ? std::optional(*value) : std::nullopt;
}

std::optional<int64_t> axisOf(int64_t axis, int64_t rank) {
  int64_t counted = axis < 0 ? axis + rank : axis;
  return counted >= 0 && counted < rank ? std::optional(counted) : std::nullopt;
}

ShapeRange shapeRange(const Node &node, int64_t rank) {
  auto bound = [&](const char *name, int64_t otherwise) {
    int64_t value = integerAttribute(node, name, otherwise);
    return std::clamp<int64_t>(value < 0 ? value + rank : value, 0, rank);
  };
  ShapeRange range{bound("start", 0), bound("end", rank)};
  range.end = std::max(range.begin, range.end);
  return range;
}

rt::Result<std::vector<double>> reshapedLengths(const std::vector<double> &lengths,
                                                const std::vector<double> &asked, bool allowZero) {
  std::vector<double> result;
  double all = 1, known = 1;
  for (double length : lengths) {
    all *= length;
  }
  std::optional<size_t> open;
  for (size_t i = 0; i < asked.size(); ++i) {
    double length = asked[i];
    if (length == -1 && !open) {
      open = i;
      length = 1;
    } else if (length == 0 && !allowZero && i < lengths.size()) {
      length = lengths[i];
    } else if (!(length > 0 && (length <= 0x1p53 || isPerSample(length)))) {
      return rt::makeError("expected lengths above 0, and one that is -1 at most");
    }
    known *= length;
    result.push_back(length);
  }
  if (open) {
    result[*open] = all / known;
    known *= result[*open];
  }
  bool isWhole = std::all_of(result.begin(), result.end(), [](double length) {
    return isPerSample(length) ? std::fmod(length, kBatch) == 0 : length == std::trunc(length);
  });
  if (known != all || !isWhole) {
    return rt::makeError("the lengths of the result do not give the number of elements");
  }
  return result;
}

bool newAxes(const std::vector<int64_t> &axes, int64_t rank, std::vector<bool> &isNew) {
  auto total = rank + static_cast<int64_t>(axes.size());
  isNew.assign(static_cast<size_t>(total), false);
  for (int64_t axis : axes) {
    std::optional<int64_t> place = axisOf(axis, total);
    if (!place || isNew[static_cast<size_t>(*place)]) {
      return false;
    }
    isNew[static_cast<size_t>(*place)] = true;
  }
  return true;
}

bool permutationOf(const Node &node, int64_t rank, std::vector<int64_t> &order) {
  if (std::optional<std::vector<int64_t>> given = integersAttribute(node, "perm")) {
    order = *given;
  } else {
    order.resize(static_cast<size_t>(rank));
    std::iota(order.rbegin(), order.rend(), 0);
  }
  std::vector<int64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (int64_t i = 0; i < static_cast<int64_t>(sorted.size()); ++i) {
    if (sorted[static_cast<size_t>(i)] != i) {
      return false;
    }
  }
  return static_cast<int64_t>(order.size()) == rank;
}

rt::Result<Slices> slicesOf(const std::vector<int64_t> &shape, const std::vector<int64_t> &starts,
                            const std::vector<int64_t> &ends,
                            const std::optional<std::vector<int64_t>> &axes,
                            const std::optional<std::vector<int64_t>> &steps) {
  Slices result = {shape, std::vector<int64_t>(shape.size(), 0),
                   std::vector<int64_t>(shape.size(), 1)};
  bool isEven = starts.size() == ends.size() && (!axes || axes->size() == starts.size()) &&
                (!steps || steps->size() == starts.size());
  if (!isEven) {
    return rt::makeError("expected equally many starts, ends, axes and steps");
  }
  for (size_t i = 0; i < starts.size(); ++i) {
    std::optional<int64_t> axis =
        axisOf(axes ? (*axes)[i] : static_cast<int64_t>(i), static_cast<int64_t>(shape.size()));
    int64_t step = steps ? (*steps)[i] : 1;
    if (!axis) {
      return rt::makeError("has an axis out of range");
    }
    if (step < 1) {
      return rt::makeError("expected steps of at least 1, got ", step);
    }
    auto at = static_cast<size_t>(*axis);
    int64_t length = shape[at];
    auto bound = [&](int64_t value) {
      return std::clamp<int64_t>(value < 0 ? value + length : value, 0, length);
    };
    int64_t begin = bound(starts[i]), end = bound(ends[i]);
    result.offsets[at] = begin;
    result.strides[at] = step;
    result.shape[at] = end > begin ? (end - begin + step - 1) / step : 0;
  }
  return result;
}

rt::Result<std::vector<int64_t>>
splitLengths(const Node &node, const std::optional<std::vector<int64_t>> &given, int64_t length) {
  constexpr int64_t kMostParts = 1024;
  auto parts = integerAttribute(node, "num_outputs", static_cast<int64_t>(node.outputs.size()));
  if ((given ? static_cast<int64_t>(given->size()) : parts) > kMostParts) {
    return rt::makeError("makes more than 1024 parts");
  }
  std::vector<int64_t> lengths;
  if (given) {
    lengths = *given;
  } else {
    parts = std::clamp<int64_t>(parts, 1, std::max<int64_t>(length, 1));
    int64_t each = (length + parts - 1) / parts;
    for (int64_t begin = 0; begin < length; begin += each) {
      lengths.push_back(std::min(each, length - begin));
    }
  }
  bool isFine = std::accumulate(lengths.begin(), lengths.end(), int64_t(0)) == length &&
                std::all_of(lengths.begin(), lengths.end(), [](int64_t part) { return part > 0; });
  if (!isFine) {
    return rt::makeError("the parts do not make up the length ", length);
  }
  return lengths;
}

} // namespace weft::onnx
