//===- Cases.cpp - test cases of kernels for a device -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kernels/Cases.h"

#include "kernels/Parts.h"
#include "support/Elements.h"
#include "support/Json.h"
#include "support/Text.h"

#include <array>
#include <cstring>
#include <dlfcn.h>
#include <type_traits>

using namespace weft::rt;
using namespace weft::rt::kernels;

namespace {

/// The value of bytes that were not written; floating-point numbers of it are NaN.
constexpr char kPoison = '\xFF';

bool readType(const nlohmann::json &text, ElementType &type) {
  std::optional<ElementType> known =
      text.is_string() ? elementTypeOf(text.get_ref<const std::string &>()) : std::nullopt;
  type = known.value_or(type);
  return known.has_value();
}

CaseBuffer readBuffer(const nlohmann::json &fields, size_t dataBytes) {
  CaseBuffer buffer;
  static constexpr std::array accesses = {Access::Read, Access::Write, Access::ReadWrite};
  buffer.count = fields.at("count");
  buffer.access = accesses.at(fields.at("access").get<size_t>());
  buffer.offset = fields.value("offset", int64_t(-1));
  buffer.seed = fields.value("seed", uint64_t(0));
  buffer.least = fields.value("least", 0.0);
  buffer.most = fields.value("most", 0.0);
  if (!readType(fields.at("type"), buffer.type) ||
      !readType(fields.at("reference"), buffer.referenceType)) {
    throw std::out_of_range("an unknown type");
  }
  if (buffer.offset >= 0 && uint64_t(buffer.offset) + buffer.bytes() > dataBytes) {
    throw std::out_of_range("an operand beyond the end of cases.bin");
  }
  return buffer;
}

Case readCase(const nlohmann::json &fields, size_t kernels, size_t dataBytes) {
  Case one;
  one.name = fields.at("name");
  one.kernel = fields.at("kernel");
  one.reference = fields.at("reference");
  one.isLarge = fields.at("large");
  one.immediates = fields.at("immediates").get<std::vector<int64_t>>();
  one.coordinates = fields.at("coordinates").get<std::vector<int64_t>>();
  for (const nlohmann::json &buffer : fields.at("buffers")) {
    one.buffers.push_back(readBuffer(buffer, dataBytes));
  }
  if (one.kernel >= kernels || one.reference >= kernels) {
    throw std::out_of_range("an unknown kernel");
  }
  return one;
}

Status readTable(const std::string &folder, Cases &cases) {
  MappedFile table;
  if (Status status = table.open(folder + "/cases.json"); !status) {
    return status;
  }
  Result<nlohmann::json> fields = parseObject(table.bytes(), "cases.json");
  if (!fields) {
    return fields.error();
  }
  auto data = std::make_unique<MappedFile>();
  if (Status status = data->open(folder + "/cases.bin"); !status) {
    return status;
  }
  cases.data = std::move(data);
  try {
    cases.kernels = fields->at("kernels").get<std::vector<std::string>>();
    for (const nlohmann::json &one : fields->at("cases")) {
      cases.cases.push_back(readCase(one, cases.kernels.size(), cases.data->bytes().size()));
    }
  } catch (const std::exception &what) {
    return makeError(folder, "/cases.json is not a file of kernel cases: ", what.what());
  }
  return {};
}

Status loadCode(const std::string &folder, Cases &cases) {
  void *handle = dlopen((folder + "/kernels.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    return makeError(dlerror());
  }
  auto find = [&](const char *name) { return dlsym(handle, name); };
  cases.code = static_cast<const KernelCode *>(find("weft_kernels"));
  auto images = static_cast<const DeviceImage *>(find("weft_images"));
  auto count = static_cast<const uint64_t *>(find("weft_image_count"));
  if (!cases.code || !images || !count) {
    return makeError(folder, "/kernels.so has no kernels for devices");
  }
  cases.images = {images, size_t(*count)};
  return {};
}

/// Mixes the bits of a number (SplitMix64; Steele, Lea and Flood, "Fast Splittable Pseudorandom
/// Number Generators", 2014).
uint64_t mixed(uint64_t value) {
  value += 0x9E3779B97F4A7C15;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EB;
  return value ^ (value >> 31);
}

void putElement(ElementType type, char *elements, uint64_t index, double value) {
  visitElement(type, [&]<typename T>(T element) {
    if constexpr (std::is_arithmetic_v<T>) {
      element = T(value);
    } else {
      element = T(float(value));
    }
    std::memcpy(elements + index * sizeof(T), &element, sizeof(T));
  });
}

} // namespace

Result<Cases> weft::rt::kernels::readCases(const std::string &folder) {
  Cases cases;
  Status status = readTable(folder, cases);
  status = status ? loadCode(folder, cases) : status;
  if (!status) {
    return status.error();
  }
  return cases;
}

Elements weft::rt::kernels::makeOperand(const CaseBuffer &buffer, std::span<const char> data,
                                        int64_t threads) {
  Elements bytes(buffer.bytes(), kPoison);
  if (buffer.access == Access::Write) {
    return bytes;
  }
  if (buffer.offset >= 0) {
    std::copy_n(data.data() + buffer.offset, bytes.size(), bytes.data());
    return bytes;
  }
  double span = buffer.most - buffer.least + (isFloat(buffer.type) ? 0 : 1);
  inParts(buffer.count, threadsFor(buffer.count, threads),
          [&](size_t, uint64_t begin, uint64_t end) {
            for (uint64_t i = begin; i < end; ++i) {
              double part = double(mixed(buffer.seed * 0x100000001B3 + i) >> 11) * 0x1p-53;
              putElement(buffer.type, bytes.data(), i, buffer.least + part * span);
            }
          });
  return bytes;
}

Elements weft::rt::kernels::converted(ElementType from, std::span<const char> elements,
                                      ElementType to, int64_t threads) {
  if (from == to) {
    return {elements.begin(), elements.end()};
  }
  uint64_t count = elements.size() / sizeOf(from);
  Elements result(count * sizeOf(to));
  inParts(count, threadsFor(count, threads), [&](size_t, uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) {
      putElement(to, result.data(), i, elementAt(from, elements.data(), i));
    }
  });
  return result;
}
