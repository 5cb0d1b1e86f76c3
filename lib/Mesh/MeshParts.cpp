//===- MeshParts.cpp - sub-axes of a mesh ---------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Mesh/MeshParts.h"

#include <algorithm>
#include <cassert>
#include <charconv>

namespace weft {

std::string SubAxis::name() const {
  return axis + ":(" + std::to_string(before) + ")" + std::to_string(size);
}

/// Reads a number of 1 to 2^20 without leading zeros off the front of `text`.
static std::optional<int64_t> takeNumber(std::string_view &text) {
  int64_t number = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc() || number < 1 || number > (int64_t(1) << 20) || text.front() == '0') {
    return std::nullopt;
  }
  text.remove_prefix(size_t(end - text.data()));
  return number;
}

std::optional<SubAxis> parseSubAxis(std::string_view name) {
  size_t colon = name.find(":(");
  if (colon == std::string_view::npos || colon == 0) {
    return std::nullopt;
  }
  std::string_view rest = name.substr(colon + 2);
  std::optional<int64_t> before = takeNumber(rest);
  if (!before || !rest.starts_with(')')) {
    return std::nullopt;
  }
  rest.remove_prefix(1);
  std::optional<int64_t> size = takeNumber(rest);
  if (!size || !rest.empty()) {
    return std::nullopt;
  }
  return SubAxis{std::string(name.substr(0, colon)), *before, *size};
}

int64_t SplitAxis::size() const {
  int64_t product = 1;
  for (int64_t part : parts) {
    product *= part;
  }
  return product;
}

std::vector<SubAxis> SplitAxis::subAxes() const {
  std::vector<SubAxis> found;
  int64_t before = 1;
  for (int64_t part : parts) {
    found.push_back({name, before, part});
    before *= part;
  }
  return found;
}

std::vector<std::string> SplitAxis::partNames() const {
  if (parts.size() == 1) {
    return {name};
  }
  std::vector<std::string> names;
  for (const SubAxis &part : subAxes()) {
    names.push_back(part.name());
  }
  return names;
}

MeshParts::MeshParts(std::vector<SplitAxis> axes) : split(std::move(axes)) {}

MeshParts::MeshParts(std::vector<std::string> names, std::vector<int64_t> sizes) {
  assert(names.size() == sizes.size() && "each part has a name and a size");
  for (size_t i = 0; i < names.size(); ++i) {
    std::optional<SubAxis> part = parseSubAxis(names[i]);
    if (part && !split.empty() && split.back().name == part->axis) {
      split.back().parts.push_back(sizes[i]);
    } else {
      split.push_back({part ? part->axis : std::move(names[i]), {sizes[i]}});
    }
  }
}

const SplitAxis *MeshParts::find(std::string_view name) const {
  auto found = std::find_if(split.begin(), split.end(),
                            [&](const SplitAxis &axis) { return axis.name == name; });
  return found == split.end() ? nullptr : &*found;
}

std::vector<std::string> MeshParts::partNames() const {
  std::vector<std::string> all;
  for (const SplitAxis &axis : split) {
    std::vector<std::string> names = axis.partNames();
    all.insert(all.end(), names.begin(), names.end());
  }
  return all;
}

std::vector<int64_t> MeshParts::partSizes() const {
  std::vector<int64_t> all;
  for (const SplitAxis &axis : split) {
    all.insert(all.end(), axis.parts.begin(), axis.parts.end());
  }
  return all;
}

std::optional<std::vector<std::string>> MeshParts::partsOf(std::string_view name) const {
  if (const SplitAxis *whole = find(name)) {
    return whole->partNames();
  }
  std::optional<SubAxis> wanted = parseSubAxis(name);
  const SplitAxis *axis = wanted ? find(wanted->axis) : nullptr;
  if (!axis) {
    return std::nullopt;
  }
  const std::vector<SubAxis> parts = axis->subAxes();
  const std::vector<std::string> names = axis->partNames();
  const int64_t end = wanted->before * wanted->size;
  int64_t reached = wanted->before;
  std::vector<std::string> found;
  for (size_t i = 0; i < parts.size() && reached < end; ++i) {
    if (parts[i].before == reached) {
      found.push_back(names[i]);
      reached *= parts[i].size;
    }
  }
  return found.empty() || reached != end ? std::nullopt : std::optional(std::move(found));
}

std::vector<std::string> MeshParts::join(const std::vector<std::string> &parts) const {
  std::vector<std::string> joined;
  for (size_t i = 0; i < parts.size();) {
    std::optional<SubAxis> run = parseSubAxis(parts[i++]);
    if (!run) {
      joined.push_back(parts[i - 1]);
      continue;
    }
    for (; i < parts.size(); ++i) {
      std::optional<SubAxis> next = parseSubAxis(parts[i]);
      if (!next || next->axis != run->axis || next->before != run->before * run->size) {
        break;
      }
      run->size *= next->size;
    }
    const SplitAxis *axis = find(run->axis);
    joined.push_back(axis && axis->size() == run->size ? run->axis : run->name());
  }
  return joined;
}

std::string MeshParts::sized(const std::vector<std::string> &parts,
                             std::string_view separator) const {
  std::string text;
  for (const std::string &name : join(parts)) {
    const SplitAxis *axis = find(name);
    text += text.empty() ? std::string_view() : separator;
    text += name + (axis ? "=" + std::to_string(axis->size()) : "");
  }
  return text;
}

std::string MeshParts::text() const {
  std::string text;
  for (const SplitAxis &axis : split) {
    text += (text.empty() ? "" : " ") + axis.name;
    for (size_t i = 0; i < axis.parts.size(); ++i) {
      text += (i == 0 ? "=" : "x") + std::to_string(axis.parts[i]);
    }
  }
  return text;
}

} // namespace weft
