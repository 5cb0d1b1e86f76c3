//===- SimulatorAttention.cpp - attention of a simulated device -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Computes attention by its formulas, in float32, from bf16. Results that a library writes
// as bf16 are rounded to bf16, even if they are then widened to float32.
//
//===----------------------------------------------------------------------===//

#include "support/BFloat16.h"
#include "support/CheckedMath.h"
#include "testing/SimulatorDevice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

using namespace weft::rt;
using namespace weft::rt::cuda;

/// The lse of a query that sees no key.
static constexpr float kUnseen = -1e30f;

namespace {

/// The addresses of operands, by role.
using Places = std::array<char *, Attention::ValueGradient + 3>;

uint64_t bytesOf(const Attention &attention, size_t role) {
  return elementCount(attention.shapeOf(role)) * (attention.isWide(role) ? 4 : 2);
}

class Computation {
public:
  Computation(const Attention &a, const AttentionPart &part, const Places &places)
      : a(a), part(part), places(places), weights(size_t(a.keys)) {}

  void run() {
    clear();
    for (int64_t b = 0; b < a.batch; ++b) {
      for (int64_t h = 0; h < a.keyHeads * a.group; ++h) {
        for (int64_t query = part.firstQuery; query < part.firstQuery + part.queries; ++query) {
          a.isBackward ? backward(b, h, query) : forward(b, h, query);
        }
      }
    }
    finish();
  }

private:
  /// Sets all results to zero, and the lse to `kUnseen`.
  void clear() {
    for (size_t role = 0; role < a.roles(); ++role) {
      if (a.isResult(role)) {
        results[role].assign(elementCount(a.shapeOf(role)),
                             role == Attention::Lse ? kUnseen : 0.0f);
      }
    }
  }

  int64_t queryRow(int64_t b, int64_t h, int64_t query) const {
    return (b * a.queries + query) * a.keyHeads * a.group + h;
  }
  int64_t keyRow(int64_t b, int64_t h, int64_t key) const {
    return (b * a.keys + key) * a.keyHeads + h / a.group;
  }
  int64_t lseAt(int64_t b, int64_t h, int64_t query) const {
    return (b * a.keyHeads * a.group + h) * a.queries + query;
  }
  float narrow(size_t role, int64_t at) const {
    BFloat16 value;
    std::memcpy(&value, places[role] + at * 2, 2);
    return float(value);
  }
  float dot(size_t x, int64_t rowOfX, size_t y, int64_t rowOfY, int64_t length) const {
    float sum = 0;
    for (int64_t i = 0; i < length; ++i) {
      sum += narrow(x, rowOfX * length + i) * narrow(y, rowOfY * length + i);
    }
    return sum;
  }

  /// Returns the number of the part's keys before the query's document.
  int64_t unseenKeys(int64_t b, int64_t query) const {
    int32_t start = 0;
    std::memcpy(&start, places[a.roles()] + (b * a.queries + query) * 4, 4);
    int64_t count = 0;
    for (const KeyRun &run : part.runs) {
      count += std::clamp<int64_t>(start - run.position, 0, run.keys);
    }
    return count;
  }

  /// Calls `visit` with each key that the query sees.
  template <typename Visit> void forEachKey(int64_t b, int64_t query, const Visit &visit) const {
    int64_t last = query - part.firstQuery + part.keys - part.queries;
    for (int64_t key = a.starts ? unseenKeys(b, query) : 0; key < part.keys; ++key) {
      bool isInWindow = part.window == 0 || key > last - part.window;
      if (!part.isCausal || (key <= last && isInWindow)) {
        visit(part.firstKey + key);
      }
    }
  }
  float score(int64_t b, int64_t h, int64_t query, int64_t key) const {
    return float(a.scale) * dot(Attention::Query, queryRow(b, h, query), Attention::Key,
                                keyRow(b, h, key), a.features);
  }

  void forward(int64_t b, int64_t h, int64_t query) {
    float greatest = kUnseen, total = 0;
    forEachKey(b, query, [&](int64_t key) {
      weights[size_t(key)] = score(b, h, query, key);
      greatest = std::max(greatest, weights[size_t(key)]);
    });
    forEachKey(b, query, [&](int64_t key) { total += std::exp(weights[size_t(key)] - greatest); });
    if (total == 0) { // None is in the query's document.
      return;
    }
    float *row = &results[Attention::Output][size_t(queryRow(b, h, query) * a.valueFeatures)];
    forEachKey(b, query, [&](int64_t key) {
      float weight = std::exp(weights[size_t(key)] - greatest) / total;
      for (int64_t f = 0; f < a.valueFeatures; ++f) {
        row[f] += weight * narrow(Attention::Value, keyRow(b, h, key) * a.valueFeatures + f);
      }
    });
    results[Attention::Lse][size_t(lseAt(b, h, query))] = greatest + std::log(total);
  }

  void backward(int64_t b, int64_t h, int64_t query) {
    float lse = 0;
    std::memcpy(&lse, places[Attention::Lse] + lseAt(b, h, query) * 4, 4);
    int64_t own = queryRow(b, h, query);
    float mean = dot(Attention::Gradient, own, Attention::Output, own, a.valueFeatures);
    auto add = [&](size_t role, int64_t row, size_t from, int64_t rowFrom, int64_t length,
                   float factor) {
      for (int64_t i = 0; i < length; ++i) {
        results[role][size_t(row * length + i)] += factor * narrow(from, rowFrom * length + i);
      }
    };
    forEachKey(b, query, [&](int64_t key) {
      int64_t other = keyRow(b, h, key);
      float weight = std::exp(score(b, h, query, key) - lse);
      float slope = dot(Attention::Gradient, own, Attention::Value, other, a.valueFeatures);
      float step = float(a.scale) * weight * (slope - mean);
      add(Attention::ValueGradient, other, Attention::Gradient, own, a.valueFeatures, weight);
      add(Attention::QueryGradient, own, Attention::Key, other, a.features, step);
      add(Attention::KeyGradient, other, Attention::Query, own, a.features, step);
    });
  }

  void finish() {
    for (size_t role = 0; role < a.roles(); ++role) {
      for (size_t i = 0; i < results[role].size(); ++i) {
        BFloat16 rounded(results[role][i]);
        float value = role == Attention::Lse ? results[role][i] : float(rounded);
        if (a.isWide(role)) {
          std::memcpy(places[role] + i * 4, &value, 4);
        } else {
          std::memcpy(places[role] + i * 2, &rounded, 2);
        }
      }
    }
  }

  const Attention &a;
  const AttentionPart &part;
  const Places &places;
  std::vector<float> weights;
  std::array<std::vector<float>, Attention::ValueGradient + 1> results;
};

} // namespace

void Device::prepareAttention(const Attention *attention, const AttentionPart *part, bool,
                              Handle *prepared, const char **refusal) {
  checkOpen("prepared");
  *prepared = 0;
  *refusal = nullptr;
  auto isIn = [](int64_t first, int64_t count, int64_t all) {
    return first >= 0 && count >= 1 && first + count <= all;
  };
  if (!isIn(part->firstQuery, part->queries, attention->queries) ||
      !isIn(part->firstKey, part->keys, attention->keys)) {
    misuse("expected a part of ", attention->queries, " queries and ", attention->keys,
           " keys, got ", part->queries, " from ", part->firstQuery, " and ", part->keys, " from ",
           part->firstKey);
  }
  if (!settings.refusesAttention.empty()) {
    *refusal = settings.refusesAttention.c_str();
    return;
  }
  *prepared = attentions.add({call, *attention, *part});
}

void Device::freeAttention(Handle prepared) {
  checkOpen("freed");
  checkIdle("the attention", attentions.find(prepared).uses);
  attentions.remove(prepared);
}

void Device::runAttention(Handle stream, Handle prepared, const Address *operands, size_t count) {
  if (captures(stream, [=, this, given = std::vector(operands, operands + count)](Handle on) {
        runAttention(on, prepared, given.data(), count);
      })) {
    return;
  }
  LoadedAttention &run = attentions.find(prepared);
  const Attention &a = run.attention;
  size_t inputs = a.roles() + size_t(a.starts.has_value());
  size_t expected = inputs + size_t(a.workspaceBytes > 0);
  if (count != expected) {
    misuse("expected ", expected, " operands, got ", count);
  }
  std::vector<Touch> touches;
  for (size_t role = 0; role < a.roles(); ++role) {
    bool isReplaced = !a.isBackward && role == Attention::Output &&
                      operands[Attention::Output] == operands[Attention::Query];
    if (isReplaced && a.operands[Attention::Output] == a.operands[Attention::Query]) {
      touches[Attention::Query].access = Access::ReadWrite;
      continue;
    }
    Access access = a.isResult(role) ? Access::Write : Access::Read;
    touches.push_back(
        touchDevice(operands[role], bytesOf(a, role), access, concat("operand ", role)));
    if (access == Access::Read) {
      checkWritten(touches.back());
    }
  }
  if (a.starts) {
    touches.push_back(touchDevice(operands[a.roles()], uint64_t(a.batch * a.queries) * 4,
                                  Access::Read, "the starts of documents"));
    checkWritten(touches.back());
  }
  if (a.workspaceBytes > 0) {
    touches.push_back(
        touchDevice(operands[inputs], a.workspaceBytes, Access::Write, "the workspace"));
    checkAlignment(touches.back(), kWorkspaceAlignment);
  }
  for (const Touch &touch : touches) {
    checkAlignment(touch, kAlignment);
  }
  std::vector<Address> given(operands, operands + count);
  Place place = enqueue(stream, "runAttention", touches, [this, given, &run] {
    Places places = {};
    for (size_t i = 0; i < given.size(); ++i) {
      places[i] = memory.place(given[i]);
    }
    if (run.attention.workspaceBytes > 0) {
      std::memset(places[given.size() - 1], kPoison, run.attention.workspaceBytes);
    }
    Computation(run.attention, run.part, places).run();
  });
  run.uses.join(place);
}
