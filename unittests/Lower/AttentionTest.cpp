//===- AttentionTest.cpp - attention and its derivative ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include <cmath>

#include "KernelRunner.h"
#include "Numerics.h"

namespace weft::test {
namespace {

constexpr int64_t kSeed = 7, kStep = 5, kLayer = 2;

struct Shape {
  int64_t batch, positions, kvHeads, group, features;
  /// 0 for no dropout.
  double rate = 0;
  /// Sizes and offsets of batch and KV heads in the whole; none: this is the whole.
  int64_t globalBatch = 0, globalHeads = 0, batchOffset = 0, headOffset = 0;
  /// 0 for none.
  int64_t window = 0;
  bool isBidirectional = false;
  /// Lengths that documents have in turn; sequence b begins with that of number b. None: there are
  /// no documents.
  std::vector<int64_t> documents = {};

  int64_t startOf(int64_t b, int64_t query) const {
    int64_t start = 0;
    for (size_t i = size_t(b); !documents.empty(); ++i) {
      int64_t next = start + documents[i % documents.size()];
      if (next > query) {
        break;
      }
      start = next;
    }
    return start;
  }
  int64_t firstKey(int64_t b, int64_t query) const {
    return std::max(window ? query - window + 1 : 0, startOf(b, query));
  }
  int64_t lastKey(int64_t query) const { return isBidirectional ? positions - 1 : query; }
};

struct AttentionTest : KernelTest {
  AttentionTest() = default;

  /// The factor of the weight.
  static double keepFactor(const Shape &shape, int64_t b, int64_t h, int64_t g, int64_t q,
                           int64_t k) {
    if (shape.rate == 0) {
      return 1;
    }
    int64_t heads = shape.globalHeads ? shape.globalHeads : shape.kvHeads;
    int64_t i = (b + shape.batchOffset) * heads + h + shape.headOffset;
    i = ((i * shape.group + g) * shape.positions + q) * shape.positions + k;
    double u = uniform(kSeed, dropoutStream(kStep, kLayer, 3), i);
    return u >= shape.rate ? 1 / (1 - shape.rate) : 0;
  }

  /// Arguments and text after the operands that the generator needs.
  static void addDropout(const Shape &shape, KernelCall &call, std::string &arguments,
                         std::string &text) {
    if (shape.rate == 0) {
      return;
    }
    call.operands.push_back(counter(kSeed));
    call.operands.push_back(counter(kStep));
    call.immediates = {kLayer, shape.batchOffset, shape.headOffset, 0};
    arguments += ", %seed: tensor<i64>, %step: tensor<i64>, %layer: index, %ob: index, %oh: index, "
                 "%none: index";
    text += " key(%seed, %step, %layer : tensor<i64>, tensor<i64>)";
    if (shape.globalBatch) {
      text += " offsets(%ob, %oh, %none, %none, %none) of [";
      for (int64_t size : {shape.globalBatch, shape.globalHeads, shape.group, shape.positions}) {
        text += std::to_string(size) + ", ";
      }
      text += std::to_string(shape.positions) + "]";
    }
  }

  /// Adds the operand of documents; returns its text, which follows that of dropout.
  static std::string addDocuments(const Shape &shape, KernelCall &call, std::string &arguments) {
    if (shape.documents.empty()) {
      return "";
    }
    Array starts({shape.batch, shape.positions}, Kind::Int32);
    forEach(starts.shape, [&](const std::vector<int64_t> &at) {
      starts({at[0], at[1]}) = double(shape.startOf(at[0], at[1]));
    });
    std::string type = starts.type("$f");
    call.operands.push_back(starts);
    arguments += ", %starts: " + type;
    return " starts(%starts : " + type + ")";
  }

  void check(const Shape &shape);
  void checkForward(const Shape &shape, bool inPlace);
  void checkGradient(const Shape &shape);

  /// Fills weights[k] and returns lse, for one query.
  double softmax(const Shape &shape, int64_t b, int64_t h, int64_t g, int64_t q,
                 std::vector<double> &weights) {
    double greatest = -INFINITY, total = 0;
    for (int64_t k = shape.firstKey(b, q); k <= shape.lastKey(q); ++k) {
      weights[k] = 0;
      for (int64_t f = 0; f < shape.features; ++f) {
        weights[k] += scale(shape) * query({b, q, h, g, f}) * key({b, k, h, f});
      }
      greatest = std::max(greatest, weights[k]);
    }
    for (int64_t k = shape.firstKey(b, q); k <= shape.lastKey(q); ++k) {
      total += std::exp(weights[k] - greatest);
    }
    for (int64_t k = shape.firstKey(b, q); k <= shape.lastKey(q); ++k) {
      weights[k] = std::exp(weights[k] - greatest) / total;
    }
    return greatest + std::log(total);
  }
  static double scale(const Shape &shape) {
    return 4 / std::sqrt(static_cast<double>(shape.features));
  }
  std::string attributes(const Shape &shape) {
    char text[96];
    std::snprintf(text, sizeof(text), " scale = %.17e dropout = %.17e", scale(shape), shape.rate);
    return text + (shape.window ? " window = " + std::to_string(shape.window) : std::string()) +
           (shape.isBidirectional ? " bidirectional" : "");
  }

  Array query{{}}, key{{}}, value{{}}, gradient{{}}, output{{}}, lse{{}};
  std::string q, kv, l;
};

/// Computes the expected output into `output` and `lse`, and compares both ops.
void AttentionTest::check(const Shape &shape) {
  auto [batch, positions, kvHeads, group, features, rate, gb, gh, ob, oh, window, all, some] =
      shape;
  query = randomArray({batch, positions, kvHeads, group, features}, 1);
  key = randomArray({batch, positions, kvHeads, features}, 2);
  value = randomArray({batch, positions, kvHeads, features}, 3);
  gradient = randomArray(query.shape, 4);
  output = Array(query.shape);
  lse = Array({batch, kvHeads, group, positions});
  q = query.type("$f"), kv = key.type("$f"), l = lse.type("$f");
  std::vector<double> weights(positions);
  forEach(lse.shape, [&](const std::vector<int64_t> &at) {
    int64_t b = at[0], h = at[1], g = at[2], i = at[3];
    lse({b, h, g, i}) = softmax(shape, b, h, g, i, weights);
    for (int64_t k = shape.firstKey(b, i); k <= shape.lastKey(i); ++k) {
      for (int64_t f = 0; f < shape.features; ++f) {
        output({b, i, h, g, f}) +=
            weights[k] * keepFactor(shape, b, h, g, i, k) * value({b, k, h, f});
      }
    }
  });
  checkForward(shape, /*inPlace=*/false);
  checkForward(shape, /*inPlace=*/true);
  checkGradient(shape);
}

/// In place, the output takes over the query.
void AttentionTest::checkForward(const Shape &shape, bool inPlace) {
  KernelCall call;
  call.operands = {query, key, value};
  call.results = {Array(lse.shape)};
  if (!inPlace) {
    call.results.insert(call.results.begin(), Array(query.shape));
  }
  std::string arguments = "%q: " + q + ", %k: " + kv + ", %v: " + kv, text;
  std::string starts = addDocuments(shape, call, arguments);
  addDropout(shape, call, arguments, text);
  text += starts;
  call.text = "func.func private @kernel(" + arguments + ") -> (" + q + ", " + l +
              ") attributes {weft.tied = array<i64: " + (inPlace ? "0" : "-1") +
              ", -1>} {\n%o, %lse = weft.attention (%q, %k, %v)" + attributes(shape) + text +
              " : " + q + ", " + kv + ", " + kv + " -> " + q + ", " + l +
              "\nreturn %o, %lse : " + q + ", " + l + "\n}";
  Outcome outcome = run(call);
  expectClose(inPlace ? outcome.operands[0] : outcome.results[0], output, 4);
  expectClose(outcome.results.back(), lse, 4);
}

void AttentionTest::checkGradient(const Shape &shape) {
  Array queryGradient(query.shape), keyGradient(key.shape), valueGradient(key.shape);
  std::vector<double> weights(shape.positions);
  forEach(lse.shape, [&](const std::vector<int64_t> &at) {
    int64_t b = at[0], h = at[1], g = at[2], i = at[3];
    softmax(shape, b, h, g, i, weights);
    double product = 0;
    for (int64_t f = 0; f < shape.features; ++f) {
      product += gradient({b, i, h, g, f}) * output({b, i, h, g, f});
    }
    for (int64_t k = shape.firstKey(b, i); k <= shape.lastKey(i); ++k) {
      double factor = keepFactor(shape, b, h, g, i, k), weightGradient = 0;
      for (int64_t f = 0; f < shape.features; ++f) {
        weightGradient += factor * gradient({b, i, h, g, f}) * value({b, k, h, f});
        valueGradient({b, k, h, f}) += weights[k] * factor * gradient({b, i, h, g, f});
      }
      double scoreGradient = weights[k] * (weightGradient - product) * scale(shape);
      for (int64_t f = 0; f < shape.features; ++f) {
        queryGradient({b, i, h, g, f}) += scoreGradient * key({b, k, h, f});
        keyGradient({b, k, h, f}) += scoreGradient * query({b, i, h, g, f});
      }
    }
  });

  KernelCall call;
  call.operands = {query, key, value, output, lse, gradient};
  call.results = {Array(query.shape), Array(key.shape), Array(key.shape)};
  std::string arguments =
      "%q: " + q + ", %k: " + kv + ", %v: " + kv + ", %o: " + q + ", %lse: " + l + ", %g: " + q;
  std::string text, results = q + ", " + kv + ", " + kv;
  std::string starts = addDocuments(shape, call, arguments);
  addDropout(shape, call, arguments, text);
  text += starts;
  call.text = "func.func private @kernel(" + arguments + ") -> (" + results +
              ") attributes {weft.tied = array<i64: -1, -1, -1>} {\n%y:3 = weft.attention_grad"
              " (%q, %k, %v) output(%o, %lse) gradient(%g)" +
              attributes(shape) + text + " : " + q + ", " + kv + ", " + kv + ", " + q + ", " + l +
              ", " + q + " -> " + results + "\nreturn %y#0, %y#1, %y#2 : " + results + "\n}";
  Outcome outcome = run(call);
  expectClose(outcome.results[0], queryGradient, 16);
  expectClose(outcome.results[1], keyGradient, 16);
  expectClose(outcome.results[2], valueGradient, 16);
}
WEFT_INSTANTIATE_FOR_FLOATS(AttentionTest);

TEST_P(AttentionTest, SmallestShapes) {
  check({1, 1, 1, 1, 1});
  check({2, 3, 1, 2, 5});
}

TEST_P(AttentionTest, OddShapes) { check({2, 37, 2, 3, 20}); }

TEST_P(AttentionTest, SeveralTiles) {
  check({1, 150, 1, 1, 16});
  check({1, 128, 2, 1, 64});
}

TEST_P(AttentionTest, ManyFeatures) { check({1, 70, 1, 2, 300}); }

TEST_P(AttentionTest, Windows) {
  for (int64_t window : {2, 64, 65, 149, 1000}) {
    check(
        {.batch = 1, .positions = 150, .kvHeads = 1, .group = 2, .features = 8, .window = window});
  }
  check({.batch = 2, .positions = 37, .kvHeads = 2, .group = 1, .features = 20, .window = 9});
  check({.batch = 1, .positions = 70, .kvHeads = 2, .group = 1, .features = 300, .window = 10});
}

TEST_P(AttentionTest, Bidirectional) {
  for (int64_t positions : {2, 3, 64, 150, 197}) {
    check({.batch = 1,
           .positions = positions,
           .kvHeads = 1,
           .group = 2,
           .features = 8,
           .isBidirectional = true});
  }
  check({.batch = 2,
         .positions = 37,
         .kvHeads = 2,
         .group = 1,
         .features = 20,
         .rate = 0.3,
         .isBidirectional = true});
  check({.batch = 1,
         .positions = 70,
         .kvHeads = 2,
         .group = 1,
         .features = 300,
         .isBidirectional = true});
}

TEST_P(AttentionTest, WindowWithDropout) {
  check({.batch = 1,
         .positions = 100,
         .kvHeads = 1,
         .group = 2,
         .features = 8,
         .rate = 0.3,
         .window = 20});
}

TEST_P(AttentionTest, Documents) {
  // Several in a block, some of one position, some longer than a block and its neighbors.
  for (const std::vector<int64_t> &lengths :
       {std::vector<int64_t>{3, 1, 9}, std::vector<int64_t>{70, 130, 1, 7}}) {
    check({.batch = 2,
           .positions = 197,
           .kvHeads = 1,
           .group = 2,
           .features = 8,
           .documents = lengths});
  }
  check({.batch = 1,
         .positions = 70,
         .kvHeads = 2,
         .group = 1,
         .features = 20,
         .documents = {17, 2}});
}

TEST_P(AttentionTest, DocumentsWithWindowsAndDropout) {
  for (int64_t window : {20, 100}) {
    check({.batch = 2,
           .positions = 150,
           .kvHeads = 1,
           .group = 1,
           .features = 8,
           .rate = window == 20 ? 0.3 : 0,
           .window = window,
           .documents = {40, 90, 3}});
  }
}

TEST_P(AttentionTest, Dropout) {
  check({2, 37, 2, 3, 20, 0.3});
  check({2, 70, 2, 1, 8, 0.5, 6, 4, 2, 1});
}

/// Two shards of a ring, each with a part of its positions early and one late: queries of one, and
/// keys of its own or the other. What is tested is that blocks of threads do what a host does,
/// whose results test/Execution/attention.py compares.
struct AttentionShardsTest : KernelTest {
  struct Shards {
    int64_t length;
    /// Their text before the offsets.
    std::string attributes = "dropout = 0.0";
    /// Positions of a document; 0 if there are none.
    int64_t document = 0;
    bool isBF16 = false;
  };

  /// The position in the whole of the query `i` of the shard at `offset`.
  static int64_t positionOf(const Shards &shards, int64_t offset, int64_t i) {
    constexpr int64_t kChunks[] = {0, 3, 1, 2};
    int64_t stored = offset + i;
    return kChunks[stored / shards.length] * shards.length + stored % shards.length;
  }

  static Array startsOf(const Shards &shards, int64_t offset) {
    Array starts({1, 2 * shards.length}, Kind::Int32);
    for (int64_t i = 0; i < starts.size(); ++i) {
      int64_t position = positionOf(shards, offset, i);
      starts.data[size_t(i)] = double(position - position % shards.document);
    }
    return starts;
  }

  Outcome runOp(const std::string &op, const Shards &shards, int64_t offset, int64_t turn,
                std::vector<Array> operands, std::vector<Array> results);
  void check(const Shards &shards);
  /// A query that sees none of these keys has a zero output and an lse by which it counts nothing,
  /// and in the gradient the lse of all keys.
  static void settle(Outcome &outcome);
};
WEFT_INSTANTIATE_FOR_FLOATS(AttentionShardsTest);

void AttentionShardsTest::settle(Outcome &outcome) {
  auto &output = outcome.results.front(), &lse = outcome.results.back();
  forEach(lse.shape, [&](const std::vector<int64_t> &at) {
    if (!(lse({0, at[1], 0, at[3]}) <= -1e20)) { // A NaN is left to be seen.
      return;
    }
    lse({0, at[1], 0, at[3]}) = 1;
    for (int64_t f = 0; f < output.shape.back(); ++f) {
      EXPECT_EQ(output({0, at[3], at[1], 0, f}), 0);
    }
  });
}

/// `op` with names for the operands, of which the last are starts if there are documents.
Outcome AttentionShardsTest::runOp(const std::string &op, const Shards &shards, int64_t offset,
                                   int64_t turn, std::vector<Array> operands,
                                   std::vector<Array> results) {
  std::string arguments, types, resultTypes, names, tied, length = std::to_string(shards.length);
  for (size_t i = 0; i < operands.size(); ++i) {
    std::string type = operands[i].type("$f");
    arguments += "%" + std::to_string(i) + ": " + type + ", ";
    types += (i ? ", " : "") + type;
  }
  for (size_t i = 0; i < results.size(); ++i) {
    std::string comma = i ? ", " : "";
    resultTypes += comma + results[i].type("$f");
    names += comma + "%r#" + std::to_string(i);
    tied += comma + "-1";
  }
  std::string starts, whole = std::to_string(4 * shards.length);
  KernelCall call;
  if (shards.document) {
    Array array = startsOf(shards, offset);
    starts = " starts(%starts : " + array.type("$f") + ")";
    arguments += "%starts: " + array.type("$f") + ", ";
    operands.push_back(std::move(array));
  }
  call.operands = std::move(operands), call.results = std::move(results);
  call.immediates = {offset, turn};
  if (op.starts_with("attention (")) {
    call.settle = settle;
  }
  call.text = "func.func private @kernel(" + arguments + "%i: index, %t: index) -> (" +
              resultTypes + ") attributes {weft.tied = array<i64: " + tied +
              ">} {\n%r:" + std::to_string(call.results.size()) + " = weft." + op +
              " scale = 0.5 " + shards.attributes + starts + " offsets(%i, %i) of [" + whole +
              ", " + whole + "] order <4 x " + length + "> turn %t : " + types + " -> " +
              resultTypes + "\nreturn " + names + " : " + resultTypes + "\n}";
  return run(call);
}

void AttentionShardsTest::check(const Shards &shards) {
  int64_t shard = 2 * shards.length;
  Array query = randomArray({1, shard, 2, 1, 8}, 1), key = randomArray({1, shard, 2, 8}, 2);
  Array value = randomArray(key.shape, 3), lse({1, 2, 1, shard});
  for (Array *array : {&query, &key, &value}) {
    array->kind = shards.isBF16 ? Kind::BFloat16 : Kind::Float;
  }
  Array output(query.shape, query.kind), ofQueries(query.shape), ofKeys(key.shape);
  for (auto [offset, turn] : {std::pair<int64_t, int64_t>(0, 0), {shard, 0}, {shard, 1}}) {
    if (shards.document && offset == 0) {
      continue; // Its parts are far apart, those of the other meet.
    }
    SCOPED_TRACE("offset " + std::to_string(offset) + ", turn " + std::to_string(turn));
    Outcome outcome =
        runOp("attention (%0, %1, %2)", shards, offset, turn, {query, key, value}, {output, lse});
    runOp("attention_grad (%0, %1, %2) output(%3, %4) gradient(%5)", shards, offset, turn,
          {query, key, value, outcome.results[0], outcome.results[1], query},
          {ofQueries, ofKeys, ofKeys});
  }
}

TEST_P(AttentionShardsTest, InZigzagOrder) { check({.length = 20}); }

/// Documents end within a shard, between its two parts, and in the other one.
TEST_P(AttentionShardsTest, Documents) {
  if (!isF64()) { // Each takes seconds.
    check({.length = 36, .document = 25});
    check({.length = 20, .attributes = "dropout = 0.0 window = 9", .document = 27});
  }
}

TEST_P(AttentionShardsTest, InBF16) {
  if (!isF64()) { // Whose wide type is float32.
    check({.length = 20, .document = 7, .isBF16 = true});
  }
}

} // namespace
} // namespace weft::test
