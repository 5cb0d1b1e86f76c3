//===- Reference.cpp - collectives by their definition ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Slow and simple on purpose. Uses no code of the runtime but Program.h.
//
//===----------------------------------------------------------------------===//

#include "conformance/Conformance.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

using namespace weft::rt;
using namespace weft::rt::conformance;

namespace {

using Index = std::vector<int64_t>;

uint64_t countOf(const Index &shape) {
  uint64_t count = 1;
  for (int64_t size : shape) {
    count *= uint64_t(size);
  }
  return count;
}

/// Sets `index` in place, since allocating one for each element would take most of a test's time.
void setIndex(Index &index, uint64_t position, const Index &shape) {
  index.resize(shape.size());
  for (size_t dim = shape.size(); dim-- > 0;) {
    index[dim] = int64_t(position % uint64_t(shape[dim]));
    position /= uint64_t(shape[dim]);
  }
}

uint64_t positionOf(const Index &index, const Index &shape) {
  uint64_t position = 0;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    position = position * uint64_t(shape[dim]) + uint64_t(index[dim]);
  }
  return position;
}

Index resultShape(const Collective &collective, int64_t members) {
  Index shape = collective.shape;
  switch (collective.kind) {
  case CollectiveKind::AllReduce:
  case CollectiveKind::Permute:
  case CollectiveKind::Transfer:
    break;
  case CollectiveKind::AllGather:
    shape[collective.dim] *= members;
    break;
  case CollectiveKind::ReduceScatter:
    shape[collective.dim] /= members;
    break;
  case CollectiveKind::AllToAll:
    shape[collective.dim] /= members;
    shape[collective.dim2] *= members;
    break;
  }
  return shape;
}

/// Finds the origin of the element at `index` of the result of member `me`: returns the member
/// whose operand holds it (-1 for reductions: all members') and sets `index` to its place there.
int64_t moveToOrigin(const Collective &collective, Index &index, int64_t me, int64_t members) {
  uint32_t dim = collective.dim, dim2 = collective.dim2;
  int64_t member = -1;
  switch (collective.kind) {
  case CollectiveKind::AllReduce:
    break;
  case CollectiveKind::AllGather:
    member = index[dim] / collective.shape[dim];
    index[dim] %= collective.shape[dim];
    break;
  case CollectiveKind::ReduceScatter:
    index[dim] += me * (collective.shape[dim] / members);
    break;
  case CollectiveKind::AllToAll: {
    int64_t shard = collective.shape[dim] / members;
    int64_t shard2 = dim2 == dim ? shard : collective.shape[dim2];
    member = index[dim2] / shard2;
    index[dim2] %= shard2;
    index[dim] += me * shard;
    break;
  }
  case CollectiveKind::Permute:
    member = collective.sources[size_t(me)];
    break;
  case CollectiveKind::Transfer:
    member = 0;
    break;
  }
  return member;
}

/// A bf16. It is independent of the runtime's, so that errors there show.
struct Half {
  uint16_t bits = 0;

  Half() = default;
  explicit Half(double value) {
    // Compare the cut-off bits with half of the last bit that stays.
    auto narrow = float(value);
    uint32_t whole;
    std::memcpy(&whole, &narrow, sizeof whole);
    uint32_t rest = whole & 0xFFFF;
    bool up = rest > 0x8000 || (rest == 0x8000 && (whole & 0x10000));
    bits = uint16_t((whole >> 16) + up);
  }
  operator float() const {
    uint32_t whole = uint32_t(bits) << 16;
    float value;
    std::memcpy(&value, &whole, sizeof value);
    return value;
  }
};

/// The type of the C++ compiler.
__extension__ typedef _Float16 Float16;

template <typename T> T elementOf(const std::vector<char> &bytes, uint64_t position) {
  T value;
  std::memcpy(&value, bytes.data() + position * sizeof(T), sizeof(T));
  return value;
}

/// `Sum` is the type of sums.
template <typename T, typename Sum = T>
Buffers expectedTyped(const Collective &collective, std::span<const Axis> mesh,
                      const Buffers &operands, RankRange ranks) {
  Buffers results(operands.size());
  Index index;
  for (int64_t rank = ranks.first; rank < ranks.first + ranks.count; ++rank) {
    RankGroup of = groupOver(collective.axes, rank, mesh);
    const std::vector<int64_t> &group = of.ranks;
    auto members = int64_t(group.size()), me = int64_t(of.indexOf(rank));
    Index shape = resultShape(collective, members);
    std::vector<char> &result = results[size_t(rank)];
    uint64_t count = countOf(shape);
    result.resize(count * sizeof(T));
    for (uint64_t position = 0; position < count; ++position) {
      setIndex(index, position, shape);
      int64_t member = moveToOrigin(collective, index, me, members);
      uint64_t source = positionOf(index, collective.shape);
      int64_t first = std::max<int64_t>(member, 0);
      Sum sum = elementOf<T>(operands[size_t(group[size_t(first)])], source);
      for (int64_t other = 1; member < 0 && other < members; ++other) {
        Sum next = elementOf<T>(operands[size_t(group[size_t(other)])], source);
        sum = collective.reduction == ReductionKind::Sum ? Sum(sum + next) : std::max(sum, next);
      }
      auto value = T(sum);
      std::memcpy(result.data() + position * sizeof(T), &value, sizeof(T));
    }
  }
  return results;
}

template <typename T> std::vector<char> makeTyped(uint64_t elements, int64_t rank) {
  std::vector<char> bytes(elements * sizeof(T));
  for (uint64_t i = 0; i < elements; ++i) {
    T value = T(std::sin(double(i * 31 + uint64_t(rank) * 17 + 1)) * 1e4);
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
  }
  return bytes;
}

} // namespace

std::vector<char> conformance::makeOperand(ElementType type, uint64_t elements, int64_t rank) {
  switch (type) {
  case ElementType::F64:
    return makeTyped<double>(elements, rank);
  case ElementType::F32:
    return makeTyped<float>(elements, rank);
  case ElementType::I64:
    return makeTyped<int64_t>(elements, rank);
  case ElementType::I32:
    return makeTyped<int32_t>(elements, rank);
  case ElementType::BF16:
    return makeTyped<Half>(elements, rank);
  case ElementType::F16:
    return makeTyped<Float16>(elements, rank);
  case ElementType::F8E4M3:
  case ElementType::F8E5M2:
    break;
  }
  return {};
}

Buffers conformance::expectedResults(const Collective &collective, std::span<const Axis> mesh,
                                     const Buffers &operands, RankRange ranks) {
  switch (collective.type) {
  case ElementType::F64:
    return expectedTyped<double>(collective, mesh, operands, ranks);
  case ElementType::F32:
    return expectedTyped<float>(collective, mesh, operands, ranks);
  case ElementType::I64:
    return expectedTyped<int64_t>(collective, mesh, operands, ranks);
  case ElementType::I32:
    return expectedTyped<int32_t>(collective, mesh, operands, ranks);
  case ElementType::BF16:
    return expectedTyped<Half, float>(collective, mesh, operands, ranks);
  case ElementType::F16:
    return expectedTyped<Float16, float>(collective, mesh, operands, ranks);
  case ElementType::F8E4M3:
  case ElementType::F8E5M2:
    break;
  }
  return {};
}

/// Returns the unit roundoff of sums of `type`.
static double roundoffOf(ElementType type) {
  switch (type) {
  case ElementType::F64:
    return 0x1p-53;
  case ElementType::F32:
    return 0x1p-24;
  case ElementType::BF16:
    return 0x1p-8;
  case ElementType::F16:
    return 0x1p-11;
  case ElementType::I64:
  case ElementType::I32:
  case ElementType::F8E4M3: // No collective has these.
  case ElementType::F8E5M2:
    break;
  }
  return 0;
}

static double valueOf(ElementType type, const std::vector<char> &bytes, uint64_t position) {
  switch (type) {
  case ElementType::F64:
    return elementOf<double>(bytes, position);
  case ElementType::F32:
    return elementOf<float>(bytes, position);
  case ElementType::I64:
    return double(elementOf<int64_t>(bytes, position));
  case ElementType::I32:
    return elementOf<int32_t>(bytes, position);
  case ElementType::BF16:
    return elementOf<Half>(bytes, position);
  case ElementType::F16:
    return double(elementOf<Float16>(bytes, position));
  case ElementType::F8E4M3:
  case ElementType::F8E5M2:
    break;
  }
  return 0;
}

/// N. Higham, Accuracy and Stability of Numerical Algorithms, 4.2: the error of a sum of n numbers
/// in any order is at most (n - 1) times the unit roundoff times the sum of their magnitudes. The
/// expected result was rounded too.
std::vector<std::vector<double>> conformance::marginsOf(const Collective &collective,
                                                        std::span<const Axis> mesh,
                                                        const Buffers &operands, RankRange ranks) {
  auto members = double(groupOver(collective.axes, 0, mesh).ranks.size());
  double each = 1.01 * members * roundoffOf(collective.type); // Beyond the first order.
  Buffers magnitudes;
  for (const std::vector<char> &operand : operands) {
    std::vector<char> &wide = magnitudes.emplace_back(countOf(collective.shape) * sizeof(double));
    for (uint64_t i = 0; i < countOf(collective.shape); ++i) {
      double magnitude = std::abs(valueOf(collective.type, operand, i));
      std::memcpy(wide.data() + i * sizeof magnitude, &magnitude, sizeof magnitude);
    }
  }
  Collective ofMagnitudes = collective;
  ofMagnitudes.type = ElementType::F64;
  std::vector<std::vector<double>> margins;
  for (const std::vector<char> &sums : expectedResults(ofMagnitudes, mesh, magnitudes, ranks)) {
    std::vector<double> &ofRank = margins.emplace_back(sums.size() / sizeof(double));
    for (uint64_t i = 0; i < ofRank.size(); ++i) {
      auto sum = elementOf<double>(sums, i);
      // Partial sums may exceed the range of the format.
      bool mayOverflow = collective.type == ElementType::F16 && sum > 65504;
      ofRank[i] = mayOverflow ? std::numeric_limits<double>::infinity() : each * sum;
    }
  }
  return margins;
}

bool conformance::isNear(ElementType type, const std::vector<char> &expected,
                         const std::vector<char> &result, std::span<const double> margins) {
  if (result.size() != expected.size() || result.size() != margins.size() * sizeOf(type)) {
    return false;
  }
  for (uint64_t i = 0; i < margins.size(); ++i) {
    double wanted = valueOf(type, expected, i), got = valueOf(type, result, i);
    // Not `>`, which NaN would pass. Margins are infinite where narrow sums may overflow.
    if (wanted != got && !(std::abs(wanted - got) <= margins[i])) {
      return false;
    }
  }
  return true;
}

uint64_t conformance::resultElements(const Collective &collective, size_t members) {
  return countOf(resultShape(collective, int64_t(members)));
}
