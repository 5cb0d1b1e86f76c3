//===- Route.cpp - the messages of each collective -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/processes/Route.h"

#include "program/Box.h"
#include "support/CheckedMath.h"

#include <algorithm>
#include <cstring>

using namespace weft::rt;
using namespace weft::rt::mpi;

Strip::Strip(std::vector<int64_t> shape, const std::vector<int64_t> &strides, size_t elementBytes)
    : bytes(int64_t(elementBytes)) {
  // Contiguous dimensions are merged.
  for (size_t dim = shape.size(); dim-- > 0;) {
    if (shape[dim] == 1) {
      continue;
    }
    if (outer.empty() && strides[dim] == run) {
      run *= shape[dim];
    } else if (!outer.empty() && strides[dim] == outer.front().stride * outer.front().count) {
      outer.front().count *= shape[dim];
    } else {
      outer.insert(outer.begin(), {shape[dim], strides[dim]});
    }
  }
}

/// Calls `visit(offset, length)`, in bytes, for each run or part of a run, in order.
template <typename Visit>
void Strip::forEachRun(int64_t first, int64_t count, const Visit &visit) const {
  while (count > 0) {
    int64_t index = first / run, within = first % run, offset = within;
    for (size_t loop = outer.size(); loop-- > 0;) {
      offset += index % outer[loop].count * outer[loop].stride;
      index /= outer[loop].count;
    }
    int64_t length = std::min(count, run - within);
    visit(offset * bytes, size_t(length * bytes));
    first += length;
    count -= length;
  }
}

void Strip::pack(const char *part, int64_t first, int64_t count, char *packed) const {
  forEachRun(first, count, [&](int64_t offset, size_t length) {
    std::memcpy(packed, part + offset, length);
    packed += length;
  });
}

void Strip::unpack(const char *packed, int64_t first, int64_t count, char *part) const {
  forEachRun(first, count, [&](int64_t offset, size_t length) {
    std::memcpy(part + offset, packed, length);
    packed += length;
  });
}

int64_t Exchange::longest() const {
  int64_t most = 0;
  for (const auto *parts : {&sends, &comes}) {
    for (const Part &part : *parts) {
      most = std::max(most, part.count);
    }
  }
  return most;
}

namespace {

using Parts = std::vector<Exchange::Part>;

/// Returns the exchanges of an all-reduce: either every member reduces all elements, or each
/// reduces a slice and then sends it to all.
std::vector<Exchange> routeAllReduce(int64_t count, size_t bytes, int64_t members, int64_t me) {
  Strip dense(count, bytes);
  if (count * int64_t(bytes) * (members - 1) <= kFewBytes) {
    Parts all(size_t(members), {0, count});
    return {{dense, dense, all, all, true, false}};
  }
  // Equal slices in whole cache lines, but for the last ones.
  int64_t line = 64 / int64_t(bytes);
  int64_t slice = ((count + members - 1) / members + line - 1) / line * line;
  Parts slices;
  for (int64_t member = 0; member < members; ++member) {
    int64_t begin = std::min(count, member * slice), end = std::min(count, begin + slice);
    slices.push_back({begin * int64_t(bytes), end - begin});
  }
  Parts own(size_t(members), slices[size_t(me)]);
  return {{dense, dense, slices, own, true, false}, {dense, dense, own, slices, false, true}};
}

Exchange routePermute(const Collective &collective, int64_t count, size_t bytes, int64_t members,
                      int64_t me) {
  Parts sends(size_t(members), {0, 0}), comes = sends;
  for (int64_t member = 0; member < members; ++member) {
    sends[size_t(member)].count = collective.sources[size_t(member)] == uint32_t(me) ? count : 0;
  }
  comes[collective.sources[size_t(me)]].count = count;
  Strip dense(count, bytes);
  return {dense, dense, sends, comes, false, false};
}

/// Member 0 sends its operand to member 1.
Exchange routeTransfer(int64_t count, size_t bytes, int64_t members, int64_t me) {
  Parts sends(size_t(members), {0, 0}), comes = sends;
  sends[1].count = me == 0 ? count : 0;
  comes[0].count = me == 1 ? count : 0;
  Strip dense(count, bytes);
  return {dense, dense, sends, comes, false, false};
}

/// Returns the exchange of a collective that cuts or joins along a dimension.
Exchange routeParts(const Collective &collective, size_t bytes, int64_t members) {
  bool cuts = collective.kind != CollectiveKind::AllGather;
  bool joins = collective.kind != CollectiveKind::ReduceScatter;
  uint32_t joined = collective.kind == CollectiveKind::AllToAll ? collective.dim2 : collective.dim;
  std::vector<int64_t> part = collective.shape;
  std::vector<int64_t> sourceStrides = rowMajorStrides(part);
  int64_t sourceStep = 0, targetStep = 0;
  if (cuts) {
    part[collective.dim] /= members;
    sourceStep = part[collective.dim] * sourceStrides[collective.dim] * int64_t(bytes);
  }
  std::vector<int64_t> result = part;
  if (joins) {
    result[joined] *= members;
  }
  std::vector<int64_t> targetStrides = rowMajorStrides(result);
  if (joins) {
    targetStep = part[joined] * targetStrides[joined] * int64_t(bytes);
  }
  auto count = int64_t(elementCount(part));
  Parts sends, comes;
  for (int64_t member = 0; member < members; ++member) {
    sends.push_back({member * sourceStep, count});
    comes.push_back({member * targetStep, count});
  }
  return {Strip(part, sourceStrides, bytes),
          Strip(part, targetStrides, bytes),
          sends,
          comes,
          isReduction(collective.kind),
          false};
}

} // namespace

std::vector<Exchange> weft::rt::mpi::routeOf(const Collective &collective, int64_t members,
                                             int64_t me) {
  size_t bytes = sizeOf(collective.type);
  auto count = int64_t(elementCount(collective.shape));
  switch (collective.kind) {
  case CollectiveKind::AllReduce:
    return routeAllReduce(count, bytes, members, me);
  case CollectiveKind::Permute:
    return {routePermute(collective, count, bytes, members, me)};
  case CollectiveKind::Transfer:
    return {routeTransfer(count, bytes, members, me)};
  case CollectiveKind::AllGather:
  case CollectiveKind::ReduceScatter:
  case CollectiveKind::AllToAll:
    return {routeParts(collective, bytes, members)};
  }
  return {};
}
