//===- ExpertsTest.cpp - tokens on their way to experts and back -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include <algorithm>

#include "KernelRunner.h"

namespace weft::test {
namespace {

/// Tokens on their way to experts, and back.
struct Route {
  int64_t groups, tokenCount, experts, slotCount, hidden;

  /// Some experts have more tokens than slots, one has none.
  Array makeMask() const {
    Array made({groups, tokenCount, experts});
    Array dice = randomIds(made.shape, 0, 3, 1);
    forEach(made.shape, [&](const std::vector<int64_t> &at) {
      bool goes = dice({at[0], at[1], at[2]}) < (at[0] == 0 ? 2 : 1);
      made({at[0], at[1], at[2]}) = goes && at[2] != at[0];
    });
    return made;
  }

  /// Calls `visit(group, token, expert, slot)` for the tokens that have a slot, in order.
  template <typename Visit> void forTaken(Visit visit) const {
    for (int64_t group = 0; group < groups; ++group) {
      for (int64_t expert = 0; expert < experts; ++expert) {
        int64_t slot = 0;
        for (int64_t token = 0; token < tokenCount; ++token) {
          if (mask({group, token, expert}) > 0 && slot < slotCount) {
            visit(group, token, expert, slot++);
          }
        }
      }
    }
  }

  Array mask = makeMask(), weights = randomArray({groups, tokenCount, experts}, 2);
  Array tokens = randomArray({groups, tokenCount, hidden}, 3);
  Array slots = randomArray({experts, groups, slotCount, hidden}, 4);
};

struct ExpertsTest : KernelTest {
  /// The second is so large that a warp of a device takes a token or a slot.
  static std::vector<Route> makeRoutes() { return {{2, 150, 3, 40, 20}, {1, 2120, 9, 300, 132}}; }

  /// Returns the results of `op`, whose text names the operands' types.
  Array runOp(const std::string &op, std::vector<Array> operands, Array result) {
    KernelCall call;
    std::string arguments, types;
    for (size_t i = 0; i < operands.size(); ++i) {
      std::string type = operands[i].type("$f"), comma = i ? ", " : "";
      arguments += comma + "%" + std::string(1, char('a' + i)) + ": " + type;
      types += comma + type;
    }
    std::string type = result.type("$f");
    call.operands = std::move(operands);
    call.results = {std::move(result)};
    call.text = "func.func private @kernel(" + arguments + ") -> " + type +
                " attributes {weft.tied = array<i64: -1>} {\n%y = " + op + " : " + types + " -> " +
                type + "\nreturn %y : " + type + "\n}";
    return run(call).results[0];
  }
};
WEFT_INSTANTIATE_FOR_FLOATS(ExpertsTest);

TEST_P(ExpertsTest, Dispatches) {
  for (const Route &route : makeRoutes()) {
    Array expected(route.slots.shape);
    route.forTaken([&](int64_t g, int64_t t, int64_t e, int64_t s) {
      for (int64_t h = 0; h < route.hidden; ++h) {
        expected({e, g, s, h}) = route.tokens({g, t, h}) * route.weights({g, t, e});
      }
    });
    expectClose(runOp("weft.dispatch %a by %b at %c", {route.tokens, route.weights, route.mask},
                      Array(expected.shape)),
                expected);
  }
}

TEST_P(ExpertsTest, Combines) {
  for (const Route &route : makeRoutes()) {
    Array expected(route.tokens.shape);
    route.forTaken([&](int64_t g, int64_t t, int64_t e, int64_t s) {
      for (int64_t h = 0; h < route.hidden; ++h) {
        expected({g, t, h}) += route.slots({e, g, s, h}) * route.weights({g, t, e});
      }
    });
    expectClose(runOp("weft.combine %a by %b at %c", {route.slots, route.weights, route.mask},
                      Array(expected.shape)),
                expected);
  }
}

TEST_P(ExpertsTest, MultipliesSlots) {
  for (const Route &route : makeRoutes()) {
    Array expected(route.mask.shape);
    route.forTaken([&](int64_t g, int64_t t, int64_t e, int64_t s) {
      for (int64_t h = 0; h < route.hidden; ++h) {
        expected({g, t, e}) += route.tokens({g, t, h}) * route.slots({e, g, s, h});
      }
    });
    expectClose(runOp("weft.slot_products %a, %b at %c", {route.tokens, route.slots, route.mask},
                      Array(expected.shape)),
                expected, 4);
  }
}

/// Some numbers twice, so that the order of equal ones counts.
Array scoresOf(std::vector<int64_t> shape) {
  Array scores = randomIds(std::move(shape), -8, 8, 5);
  scores.kind = Kind::Float;
  return scores;
}

/// Marks the `count` greatest of the elements that `isCandidate` names, of equal
/// ones the first.
void markGreatest(Array &marks, const Array &scores, int64_t row, int64_t columns, int64_t count,
                  const std::function<bool(int64_t)> &isCandidate) {
  for (int64_t round = 0; round < count; ++round) {
    int64_t best = -1;
    for (int64_t i = 0; i < columns; ++i) {
      bool isOpen = isCandidate(i) && marks({row, i}) == 0;
      if (isOpen && (best < 0 || scores({row, best}) < scores({row, i}))) {
        best = i;
      }
    }
    marks({row, best}) = 1;
  }
}

TEST_P(ExpertsTest, PicksTheGreatest) {
  for (int64_t columns : {3, 8, 40, 300}) {
    Array scores = scoresOf({5, columns}), expected(scores.shape);
    for (int64_t row = 0; row < 5; ++row) {
      markGreatest(expected, scores, row, columns, 3, [](int64_t) { return true; });
    }
    expectClose(runOp("weft.top_k 3 of %a", {scores}, Array(scores.shape)), expected);
  }
}

/// Of 18 elements the last two are padding; the groups of four whose two greatest have the greatest
/// sums take part.
TEST_P(ExpertsTest, PicksFromTheBestGroups) {
  Array scores = scoresOf({6, 18}), expected(scores.shape);
  for (int64_t row = 0; row < 6; ++row) {
    Array sums({6, 4}), kept(sums.shape);
    for (int64_t group = 0; group < 4; ++group) {
      std::vector<double> own(&scores({row, group * 4}), &scores({row, group * 4}) + 4);
      std::sort(own.begin(), own.end());
      sums({row, group}) = own[3] + own[2];
    }
    markGreatest(kept, sums, row, 4, 2, [](int64_t) { return true; });
    markGreatest(expected, scores, row, 16, 5, [&](int64_t i) { return kept({row, i / 4}) != 0; });
  }
  std::string op = "weft.top_k 5 of %a columns [16] {groups = 4 : i64, kept_groups = 2 : i64}";
  expectClose(runOp(op, {scores}, Array(scores.shape)), expected);
}

/// With one bias for all rows, and padding that is greater than all else.
TEST_P(ExpertsTest, PicksTheGreatestWithBias) {
  using Sizes = std::pair<int64_t, int64_t>;
  for (auto [columns, padded] : {Sizes{3, 3}, {16, 18}, {40, 40}, {100, 128}, {300, 301}}) {
    Array scores = scoresOf({5, padded}), sums = scores, expected(scores.shape);
    Array bias = randomIds({padded}, -3, 3, 6);
    bias.kind = Kind::Float;
    forEach(scores.shape, [&](const std::vector<int64_t> &at) {
      scores({at[0], at[1]}) = at[1] < columns ? scores({at[0], at[1]}) : 100;
      sums({at[0], at[1]}) = scores({at[0], at[1]}) + bias({at[1]});
    });
    for (int64_t row = 0; row < 5; ++row) {
      markGreatest(expected, sums, row, columns, 3, [](int64_t) { return true; });
    }
    std::string op = "weft.top_k 3 of %a";
    op += columns < padded ? " columns [" + std::to_string(columns) + "]" : "";
    KernelCall call;
    call.operands = {scores, bias}, call.results = {Array(scores.shape)};
    std::string x = scores.type("$f"), b = bias.type("$f");
    call.text = "func.func private @kernel(%a: " + x + ", %b: " + b + ") -> " + x +
                " attributes {weft.tied = array<i64: -1>} {\n%y = " + op + " bias(%b : " + b +
                ") : " + x + " -> " + x + "\nreturn %y : " + x + "\n}";
    expectClose(run(call).results[0], expected);
  }
}

TEST_P(ExpertsTest, AddsUpWhatIsBefore) {
  auto check = [&](int64_t outer, int64_t count, int64_t inner) {
    SCOPED_TRACE(count);
    Array x = randomArray({outer, count, inner}, 7), before(x.shape), behind(x.shape);
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t j = 0; j < inner; ++j) {
        for (int64_t i = 1; i < count; ++i) {
          before({o, i, j}) = before({o, i - 1, j}) + x({o, i - 1, j});
          int64_t at = count - 1 - i;
          behind({o, at, j}) = behind({o, at + 1, j}) + x({o, at + 1, j});
        }
      }
    }
    expectClose(runOp("weft.cumulative_sum %a along 1", {x}, Array(x.shape)), before, 32);
    expectClose(runOp("weft.cumulative_sum reverse %a along 1", {x}, Array(x.shape)), behind, 32);
  };
  check(2, 5, 3);
  // By blocks of a device, in one turn and several, with and without a rest; and by chunks.
  check(2, 150, 3);
  check(1, 1024, 16);
  check(2, 1500, 9);
  check(1, 600, 1);
  check(1, 2100, 8);
}

} // namespace
} // namespace weft::test
