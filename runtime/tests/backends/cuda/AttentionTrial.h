//===- AttentionTrial.h - compares a library's attention with formulas ----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_TESTS_BACKENDS_CUDA_ATTENTIONTRIAL_H
#define WEFT_RT_TESTS_BACKENDS_CUDA_ATTENTIONTRIAL_H

#include "backends/cuda/DriverTable.h"
#include "support/BFloat16.h"
#include "support/CheckedMath.h"
#include "tests/backends/cuda/DeviceStream.h"
#include "weft-rt/Attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

namespace weft::rt::cuda {

/// A case, for forward and backward; `starts` of documents are [batch, queries], or empty.
struct AttentionCase {
  const char *name;
  Attention attention;
  AttentionPart part;
  std::vector<int32_t> starts = {};
};

/// Returns small cases that differ in many ways.
inline std::vector<AttentionCase> attentionCases() {
  auto sized = [](int64_t queries, int64_t keys) {
    Attention a;
    a.batch = a.keyHeads = a.group = 2;
    a.queries = queries;
    a.keys = keys;
    a.features = a.valueFeatures = 64;
    a.scale = 0.125;
    a.isCausal = true;
    return a;
  };
  // Documents of 37 positions, of the second sample later; queries lie from `first` on.
  auto startsFrom = [](int64_t first, int64_t queries) {
    std::vector<int32_t> starts;
    for (int64_t i = 0; i < 2 * queries; ++i) {
      int64_t position = first + i % queries, offset = i < queries ? 0 : 11;
      starts.push_back(int32_t(std::max<int64_t>((position - offset) / 37 * 37 + offset, 0)));
    }
    return starts;
  };
  Attention one = sized(128, 128), sharp = sized(192, 192);
  one.keyHeads = 1;
  one.group = 4;
  sharp.scale = 16; // Scores are as low as -120.
  Attention whole = sized(128, 128), last = sized(96, 160), wide = sized(128, 128);
  wide.valueFeatures = 32;
  wide.areResultsWide = true;
  return {
      {"causal", whole, {true, 0, 0, 128, 0, 128}},
      {"with a window", whole, {true, 40, 0, 128, 0, 128}},
      {"of all keys", whole, {false, 0, 0, 128, 0, 128}},
      {"of the last queries", last, {true, 0, 0, 96, 0, 160}},
      {"of some queries and keys", whole, {false, 0, 32, 96, 0, 128}},
      {"to f32", wide, {true, 0, 0, 128, 0, 128}},
      {"documents", whole, {true, 0, 0, 128, 0, 128, {{{0, 128}}}}, startsFrom(0, 128)},
      {"documents with a window",
       whole,
       {true, 20, 0, 128, 0, 128, {{{0, 128}}}},
       startsFrom(0, 128)},
      {"documents of the last queries",
       last,
       {true, 0, 0, 96, 0, 160, {{{0, 160}}}},
       startsFrom(64, 96)},
      {"documents, which some keys are in",
       whole,
       {false, 0, 0, 128, 0, 128, {{{96, 128}}}},
       startsFrom(224, 128)},
      {"documents of two runs of keys",
       whole,
       {false, 0, 64, 64, 0, 128, {{{96, 64}, {192, 64}}}},
       startsFrom(192, 128)},
      {"documents of some queries, of one key head",
       one,
       {true, 0, 31, 97, 0, 97, {{{0, 97}}}},
       startsFrom(0, 128)},
      {"low scores", sharp, {true, 0, 0, 192, 0, 192}},
      {"documents with low scores",
       sharp,
       {true, 0, 0, 192, 0, 192, {{{0, 192}}}},
       startsFrom(0, 192)},
      {"documents to f32", wide, {true, 0, 0, 128, 0, 128, {{{0, 128}}}}, startsFrom(0, 128)},
  };
}

/// One case in one direction.
class AttentionTrial {
public:
  AttentionTrial(const DriverTable &cuda, DriverTable::Handle device, const AttentionCase &tried,
                 bool isBackward)
      : on(cuda), device(device), a(tried.attention), part(tried.part), starts(tried.starts) {
    a.isBackward = isBackward;
    for (uint32_t role = 0; role < a.roles(); ++role) {
      a.operands.push_back(role);
    }
    if (!starts.empty()) {
      a.starts = uint32_t(a.roles());
    }
    a.workspaceBytes = attentionWorkspace(a);
    fill();
    compute();
  }

  /// Compares the library's results with the formulas'. Returns the reason if it refuses, else "".
  std::string run(bool isDeterministic) {
    DriverTable::Handle prepared = 0;
    const char *refusal = nullptr;
    on.begin(device);
    DeviceStream::ok(
        on.cuda.prepareAttention(device, &a, &part, isDeterministic, &prepared, &refusal));
    std::string said = refusal ? refusal : "";
    if (prepared) {
      enqueue(prepared);
      DeviceStream::ok(on.cuda.freeAttention(device, prepared));
    }
    on.end();
    return said;
  }

private:
  size_t count(size_t role) const { return elementCount(a.shapeOf(role)); }
  size_t bytesOf(size_t role) const { return count(role) * (a.isWide(role) ? 4 : 2); }

  void fill() {
    for (size_t role = 0; role < a.roles(); ++role) {
      wanted[role].assign(count(role), 0);
      if (!a.isResult(role)) {
        for (size_t i = 0; i < count(role); ++i) {
          wanted[role][i] = float(BFloat16(float((i * 7919 + role * 104729) % 257) / 128 - 1));
        }
      }
    }
  }

  bool sees(int64_t b, int64_t query, int64_t key) const {
    int64_t i = query - part.firstQuery, j = key - part.firstKey;
    if (i < 0 || i >= part.queries || j < 0 || j >= part.keys) {
      return false;
    }
    int64_t last = i + part.keys - part.queries;
    bool isInBand = !part.isCausal || (j <= last && (part.window == 0 || j > last - part.window));
    const auto &[first, second] = part.runs;
    int64_t position = j < first.keys ? first.position + j : second.position + j - first.keys;
    return isInBand && (starts.empty() || position >= starts[size_t(b * a.queries + query)]);
  }

  double dot(size_t x, int64_t rowOfX, size_t y, int64_t rowOfY, int64_t length) const {
    double sum = 0;
    for (int64_t i = 0; i < length; ++i) {
      sum += wanted[x][size_t(rowOfX * length + i)] * wanted[y][size_t(rowOfY * length + i)];
    }
    return sum;
  }

  /// Computes the formulas, query by query.
  void compute() {
    int64_t heads = a.keyHeads * a.group;
    for (int64_t b = 0; b < a.batch; ++b) {
      for (int64_t h = 0; h < heads; ++h) {
        for (int64_t query = 0; query < a.queries; ++query) {
          computeRow(b, h, query, (b * a.queries + query) * heads + h,
                     size_t((b * heads + h) * a.queries + query));
        }
      }
    }
  }

  void computeRow(int64_t b, int64_t h, int64_t query, int64_t row, size_t lseAt) {
    auto keyRow = [&](int64_t key) { return (b * a.keys + key) * a.keyHeads + h / a.group; };
    std::vector<std::pair<int64_t, double>> scores;
    double total = 0;
    for (int64_t key = 0; key < a.keys; ++key) {
      if (sees(b, query, key)) {
        int64_t other = keyRow(key);
        scores.emplace_back(
            other, a.scale * dot(Attention::Query, row, Attention::Key, other, a.features));
        total += std::exp(scores.back().second);
      }
    }
    auto add = [&](size_t role, int64_t to, double factor, size_t from, int64_t at,
                   int64_t length) {
      for (int64_t i = 0; i < length; ++i) {
        wanted[role][size_t(to * length + i)] += factor * wanted[from][size_t(at * length + i)];
      }
    };
    // For gradients, the lse also counts keys of other parts.
    double lse = a.isBackward ? std::log(total + 1) : total > 0 ? std::log(total) : -1e30;
    wanted[Attention::Lse][lseAt] = lse;
    double mean =
        a.isBackward ? dot(Attention::Gradient, row, Attention::Output, row, a.valueFeatures) : 0;
    for (auto [other, score] : scores) {
      double weight = std::exp(score - lse);
      if (!a.isBackward) {
        add(Attention::Output, row, weight, Attention::Value, other, a.valueFeatures);
        continue;
      }
      double step =
          a.scale * weight *
          (dot(Attention::Gradient, row, Attention::Value, other, a.valueFeatures) - mean);
      add(Attention::ValueGradient, other, weight, Attention::Gradient, row, a.valueFeatures);
      add(Attention::QueryGradient, row, step, Attention::Key, other, a.features);
      add(Attention::KeyGradient, other, step, Attention::Query, row, a.features);
    }
  }

  template <typename T> DriverTable::Address send(size_t role) {
    std::vector<T> values;
    for (double value : wanted[role]) {
      values.push_back(T(float(value)));
    }
    return on.send(values);
  }

  void enqueue(DriverTable::Handle prepared) {
    std::vector<DriverTable::Address> places;
    for (size_t role = 0; role < a.roles(); ++role) {
      places.push_back(a.isResult(role) ? on.allocate(bytesOf(role))
                       : a.isWide(role) ? send<float>(role)
                                        : send<BFloat16>(role));
    }
    if (a.starts) {
      places.push_back(on.send(starts));
    }
    places.push_back(on.allocate(a.workspaceBytes));
    DeviceStream::ok(
        on.cuda.runAttention(on.device, on.stream, prepared, places.data(), places.size()));
    for (size_t role = 0; role < a.roles(); ++role) {
      if (a.isResult(role)) {
        compare(role, on.fetch<char>(places[role], bytesOf(role)));
      }
    }
    for (DriverTable::Address address : places) {
      DeviceStream::ok(on.cuda.free(on.device, address));
    }
  }

  /// Returns true if element `i` of an output belongs to a query that sees no key.
  bool isUnseen(size_t i) const {
    size_t heads = size_t(a.keyHeads * a.group), row = i / size_t(a.valueFeatures);
    size_t query = row / heads % size_t(a.queries), b = row / heads / size_t(a.queries);
    return wanted[Attention::Lse][(b * heads + row % heads) * size_t(a.queries) + query] < -1e29;
  }

  /// Compares a result within the rounding of bf16: of weights, results and operands.
  void compare(size_t role, const std::vector<char> &bytes) const {
    double greatest = 0, off = 0;
    for (size_t i = 0; i < count(role); ++i) {
      float got = 0;
      BFloat16 narrow;
      a.isWide(role) ? std::memcpy(&got, &bytes[i * 4], 4) : std::memcpy(&narrow, &bytes[i * 2], 2);
      got = a.isWide(role) ? got : float(narrow);
      double want = wanted[role][i];
      if (role == Attention::Lse && want < -1e29) {
        EXPECT_LT(got, -1e29f) << "lse " << i;
        continue;
      }
      if (role == Attention::Output && isUnseen(i)) {
        EXPECT_TRUE(std::isfinite(got)) << "of nothing: " << i;
        continue;
      }
      greatest = std::max(greatest, std::abs(want));
      off = std::isfinite(got) ? std::max(off, std::abs(got - want)) : HUGE_VAL;
    }
    EXPECT_LE(off, 0.02 * greatest) << "role " << role;
  }

  DeviceStream on;
  DriverTable::Handle device;
  Attention a;
  AttentionPart part;
  std::vector<int32_t> starts;
  /// The operands and the expected results, by role.
  std::array<std::vector<double>, Attention::ValueGradient + 1> wanted;
};

} // namespace weft::rt::cuda

#endif // WEFT_RT_TESTS_BACKENDS_CUDA_ATTENTIONTRIAL_H
