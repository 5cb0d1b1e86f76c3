//===- ExpertsTest.cpp - tokens on their way to experts and back -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

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

  /// What `op` makes of the operands, of which it names the types.
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

TEST_P(ExpertsTest, PicksTheGreatest) {
  Array expected(mask.shape);
  forEach({kGroups, kTokens}, [&](const std::vector<int64_t> &at) {
    for (int64_t e = 0; e < kExperts; ++e) {
      int64_t before = 0;
      for (int64_t other = 0; other < kExperts; ++other) {
        double here = weights({at[0], at[1], e}), there = weights({at[0], at[1], other});
        before += there > here || (there == here && other < e);
      }
      expected({at[0], at[1], e}) = before < 2;
    }
  });
  expectClose(runOp("weft.top_k 2 of %a", {weights}, Array(mask.shape)), expected);
}

TEST_P(ExpertsTest, SumsWhatIsBefore) {
  Array before(mask.shape), behind(mask.shape);
  forEach({kGroups, kExperts}, [&](const std::vector<int64_t> &at) {
    for (int64_t t = 1; t < kTokens; ++t) {
      before({at[0], t, at[1]}) = before({at[0], t - 1, at[1]}) + weights({at[0], t - 1, at[1]});
      int64_t last = kTokens - 1 - t;
      behind({at[0], last, at[1]}) =
          behind({at[0], last + 1, at[1]}) + weights({at[0], last + 1, at[1]});
    }
  });
  expectClose(runOp("weft.cumulative_sum %a along 1", {weights}, Array(mask.shape)), before, 8);
  expectClose(runOp("weft.cumulative_sum reverse %a along 1", {weights}, Array(mask.shape)), behind,
              8);
}

} // namespace
} // namespace weft::test
