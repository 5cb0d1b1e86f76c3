//===- Attention.cpp - attention that a library may compute ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft-rt/Attention.h"

#include "support/CheckedMath.h"
#include "support/Text.h"

#include <algorithm>
#include <array>

using namespace weft::rt;

size_t Attention::operandCount() const {
  auto last = std::max_element(operands.begin(), operands.end());
  return last == operands.end() ? 0 : size_t(std::max(*last, starts.value_or(0))) + 1;
}

std::vector<int64_t> Attention::shapeOf(size_t role) const {
  switch (role) {
  case Query:
  case QueryGradient:
    return {batch, queries, keyHeads, group, features};
  case Key:
  case KeyGradient:
    return {batch, keys, keyHeads, features};
  case Value:
  case ValueGradient:
    return {batch, keys, keyHeads, valueFeatures};
  case Lse:
    return {batch, keyHeads, group, queries};
  default: // Output and its gradient.
    return {batch, queries, keyHeads, group, valueFeatures};
  }
}

bool Attention::isWide(size_t role) const {
  return role == Lse || (areResultsWide && isResult(role));
}

bool Attention::isStaged(size_t role) const {
  bool isOutput = !isBackward && role == Output;
  return (areResultsWide && (isOutput || role >= QueryGradient)) ||
         (isOutput && operands[Output] == operands[Query]);
}

namespace {

/// The keys `begin` to `end - 1` of a shard.
struct Seen {
  int64_t begin = 0, end = 0;
  bool isEmpty() const { return begin >= end; }
  bool operator==(const Seen &) const = default;
};

int64_t offsetOf(const AttentionOffset &offset, std::span<const int64_t> coordinates,
                 std::span<const int64_t> immediates) {
  int64_t sum = 0;
  for (size_t axis = 0; axis < offset.strides.size(); ++axis) {
    sum += offset.strides[axis] * coordinates[axis];
  }
  for (uint32_t number : offset.immediates) {
    sum += immediates[number];
  }
  return sum;
}

int64_t positionAt(const Attention &attention, int64_t stored) {
  if (attention.chunks == 0) {
    return stored;
  }
  int64_t chunk = stored / attention.chunkLength, half = chunk / 2;
  int64_t moved = half * 2 == chunk ? half : attention.chunks - 1 - half;
  return stored + (moved - chunk) * attention.chunkLength;
}

/// The keys that each query sees.
class Sight {
public:
  Sight(const Attention &attention, int64_t firstQuery, int64_t firstKey)
      : attention(attention), firstQuery(firstQuery), firstKey(firstKey),
        length(attention.chunks == 0 ? std::max<int64_t>(attention.keys, 1)
                                     : attention.chunkLength) {}

  /// Returns the keys of one query; nothing if they are not consecutive.
  std::optional<Seen> keysOf(int64_t query) const {
    Seen all;
    int64_t position = positionAt(attention, firstQuery + query);
    for (int64_t begin = 0, end = 0; begin < attention.keys; begin = end) {
      // Chunks begin at multiples of their length, shards anywhere.
      end = attention.chunks == 0
                ? attention.keys
                : std::min(attention.keys, begin + length - (firstKey + begin) % length);
      // The number of a key at the query's position.
      int64_t own = position - positionAt(attention, firstKey + begin) + begin;
      Seen here = {begin, std::min(end, own + 1)};
      here.begin = attention.window > 0 ? std::max(begin, own + 1 - attention.window) : begin;
      if (here.isEmpty()) {
        continue;
      }
      if (!all.isEmpty() && all.end != here.begin) {
        return std::nullopt;
      }
      all = {all.isEmpty() ? here.begin : all.begin, here.end};
    }
    return all;
  }

private:
  const Attention &attention;
  int64_t firstQuery, firstKey, length;
};

/// Sets the keys of queries `part.firstQuery` and following; the first query sees `first`, the last
/// `last`.
void setKeys(AttentionPart &part, const Seen &first, const Seen &last) {
  part.isCausal = first.end != last.end;
  part.firstKey = first.begin;
  part.keys = last.end - first.begin;
}

/// Sets the part's keys by position; returns false if they form more than two runs, or do not
/// ascend.
bool setRuns(AttentionPart &part, const Attention &attention, int64_t firstKey) {
  int64_t stored = firstKey + part.firstKey, end = stored + part.keys;
  for (KeyRun &run : part.runs) {
    int64_t chunk = attention.chunks == 0 ? end : attention.chunkLength;
    run = {positionAt(attention, stored), std::min(end - stored, chunk - stored % chunk)};
    stored += run.keys;
    if (stored == end) {
      break;
    }
  }
  const auto &[first, second] = part.runs;
  return stored == end && (second.keys == 0 || first.position + first.keys <= second.position);
}

Seen expected(const AttentionPart &part, int64_t query) {
  if (!part.isCausal) {
    return {part.firstKey, part.firstKey + part.keys};
  }
  int64_t end = query - part.firstQuery + 1 + part.keys - part.queries;
  int64_t begin = part.window > 0 ? std::max<int64_t>(end - part.window, 0) : 0;
  return {part.firstKey + begin, part.firstKey + end};
}

} // namespace

std::optional<AttentionPart> weft::rt::attentionPart(const Attention &attention,
                                                     std::span<const int64_t> coordinates,
                                                     std::span<const int64_t> immediates) {
  AttentionPart part;
  if (!attention.isCausal) {
    part.queries = attention.queries;
    part.keys = attention.keys;
    return part;
  }
  int64_t firstQuery = offsetOf(attention.firstQuery, coordinates, immediates);
  int64_t firstKey = offsetOf(attention.firstKey, coordinates, immediates);
  if (attention.turn) {
    firstKey -= immediates[*attention.turn] * attention.keys;
    firstKey += firstKey < 0 ? attention.turns * attention.keys : 0;
  }
  if (firstQuery < 0 || firstKey < 0) {
    return std::nullopt;
  }
  Sight sight(attention, firstQuery, firstKey);
  std::vector<Seen> seen;
  for (int64_t query = 0; query < attention.queries; ++query) {
    std::optional<Seen> keys = sight.keysOf(query);
    if (!keys) {
      return std::nullopt;
    }
    seen.push_back(*keys);
  }
  auto first = std::find_if(seen.begin(), seen.end(), [](Seen one) { return !one.isEmpty(); });
  part.firstQuery = first - seen.begin();
  part.queries = seen.end() - first;
  if (part.queries == 0) {
    return part;
  }
  setKeys(part, *first, seen.back());
  part.window = part.isCausal && attention.window < part.keys ? attention.window : 0;
  for (int64_t query = part.firstQuery; query < attention.queries; ++query) {
    if (seen[size_t(query)] != expected(part, query)) {
      return std::nullopt;
    }
  }
  return attention.starts && !setRuns(part, attention, firstKey) ? std::nullopt
                                                                 : std::optional(part);
}

uint64_t weft::rt::attentionWorkspace(const Attention &attention) {
  // Scratch memory of the library itself, as for counters of tiles.
  constexpr uint64_t kMore = uint64_t(4) << 20;
  // The alignment of each part.
  constexpr uint64_t kPart = 256;
  uint64_t bytes = kMore;
  auto add = [&](uint64_t elements, uint64_t size) {
    bytes = saturatingAdd(bytes, saturatingAdd(saturatingMul(elements, size), kPart));
  };
  // The dense lse of those queries that take part.
  add(elementCount(attention.shapeOf(Attention::Lse)), 4);
  for (size_t role = 0; role < attention.roles(); ++role) {
    if (attention.isResult(role) && attention.isStaged(role)) {
      add(elementCount(attention.shapeOf(role)), 2);
    }
  }
  if (!attention.isBackward) {
    return bytes;
  }
  // cudnn_frontend 1.32, scaled_dot_product_flash_attention.h: for each query, the sum of gradient
  // times output; the gradients of queries in f32, for which cuDNN 9.19 takes twice the memory on
  // sm_80 (CudnnPlansTest); and if heads share keys, the gradients of keys and values of each head
  // in bf16.
  add(elementCount(attention.shapeOf(Attention::Lse)), 4);
  add(elementCount(attention.shapeOf(Attention::Query)), 8);
  for (auto role : {Attention::Key, Attention::Value}) {
    uint64_t shared = attention.group > 1 ? uint64_t(attention.group) : 0;
    add(saturatingMul(elementCount(attention.shapeOf(role)), shared), 2);
  }
  return bytes;
}

std::string weft::rt::textOf(const Attention &attention) {
  std::string text = concat(attention.isBackward ? "attention-gradient" : "attention", " bf16",
                            attention.areResultsWide ? " to f32" : "", " ", attention.batch, "x",
                            attention.queries, "x", attention.keys, " heads ",
                            attention.keyHeads * attention.group, "/", attention.keyHeads, " of ",
                            attention.features);
  text += attention.valueFeatures == attention.features ? "" : concat("/", attention.valueFeatures);
  text += attention.isCausal ? " causal" : "";
  text += attention.window > 0 ? concat(" window ", attention.window) : "";
  text += attention.starts ? " documents" : "";
  text += attention.chunks > 0 ? concat(" zigzag ", attention.chunks) : "";
  return text + (attention.turn ? concat(" turns ", attention.turns) : "");
}
