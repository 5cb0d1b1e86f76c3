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

constexpr int64_t kGroups = 2, kTokens = 150, kExperts = 3, kSlots = 40, kHidden = 20;

struct ExpertsTest : KernelTest {
  /// Some experts have more tokens than slots, one has none.
  static Array makeMask() {
    Array mask({kGroups, kTokens, kExperts});
    Array dice = randomIds(mask.shape, 0, 3, 1);
    forEach(mask.shape, [&](const std::vector<int64_t> &at) {
      bool goes = dice({at[0], at[1], at[2]}) < (at[0] == 0 ? 2 : 1);
      mask({at[0], at[1], at[2]}) = goes && at[2] != at[0];
    });
    return mask;
  }

  /// Calls `visit(group, token, expert, slot)` for the tokens that have a slot, in order.
  template <typename Visit> static void forTaken(const Array &mask, Visit visit) {
    for (int64_t group = 0; group < kGroups; ++group) {
      for (int64_t expert = 0; expert < kExperts; ++expert) {
        int64_t slot = 0;
        for (int64_t token = 0; token < kTokens; ++token) {
          if (mask({group, token, expert}) > 0 && slot < kSlots) {
            visit(group, token, expert, slot++);
          }
        }
      }
    }
  }

  Array mask = makeMask(), weights = randomArray({kGroups, kTokens, kExperts}, 2);
  Array tokens = randomArray({kGroups, kTokens, kHidden}, 3);
  Array slots = randomArray({kExperts, kGroups, kSlots, kHidden}, 4);

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
  Array expected(slots.shape);
  forTaken(mask, [&](int64_t g, int64_t t, int64_t e, int64_t s) {
    for (int64_t h = 0; h < kHidden; ++h) {
      expected({e, g, s, h}) = tokens({g, t, h}) * weights({g, t, e});
    }
  });
  expectClose(runOp("weft.dispatch %a by %b at %c", {tokens, weights, mask}, Array(slots.shape)),
              expected);
}

TEST_P(ExpertsTest, Combines) {
  Array expected(tokens.shape);
  forTaken(mask, [&](int64_t g, int64_t t, int64_t e, int64_t s) {
    for (int64_t h = 0; h < kHidden; ++h) {
      expected({g, t, h}) += slots({e, g, s, h}) * weights({g, t, e});
    }
  });
  expectClose(runOp("weft.combine %a by %b at %c", {slots, weights, mask}, Array(tokens.shape)),
              expected);
}

TEST_P(ExpertsTest, MultipliesSlots) {
  Array expected(mask.shape);
  forTaken(mask, [&](int64_t g, int64_t t, int64_t e, int64_t s) {
    for (int64_t h = 0; h < kHidden; ++h) {
      expected({g, t, e}) += tokens({g, t, h}) * slots({e, g, s, h});
    }
  });
  expectClose(runOp("weft.slot_products %a, %b at %c", {tokens, slots, mask}, Array(mask.shape)),
              expected);
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
  for (int64_t count : {5, 150}) {
    Array x = randomArray({2, count, 3}, 7), before(x.shape), behind(x.shape);
    for (int64_t outer = 0; outer < 2; ++outer) {
      for (int64_t inner = 0; inner < 3; ++inner) {
        for (int64_t i = 1; i < count; ++i) {
          before({outer, i, inner}) = before({outer, i - 1, inner}) + x({outer, i - 1, inner});
          int64_t at = count - 1 - i;
          behind({outer, at, inner}) = behind({outer, at + 1, inner}) + x({outer, at + 1, inner});
        }
      }
    }
    expectClose(runOp("weft.cumulative_sum %a along 1", {x}, Array(x.shape)), before, 8);
    expectClose(runOp("weft.cumulative_sum reverse %a along 1", {x}, Array(x.shape)), behind, 8);
  }
}

} // namespace
} // namespace weft::test
