//===- LowerExperts.cpp - tokens on their way to experts and back --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockSums.h"
#include "Models.h"
#include "Tiles.h"

#include "weft-rt/DeviceImage.h"

namespace weft::lower {

using namespace mlir;

namespace {

//===----------------------------------------------------------------------===//
// Slots
//===----------------------------------------------------------------------===//

/// Visits the tokens of a group in order. Calls `visit` for each token that has a slot at the
/// expert, with that slot, and `pass`, if given, for the others. Returns the number of used slots.
Num forTokens(Code &code, Buffer mask, Num group, Num expert, int64_t slots,
              llvm::function_ref<void(Num, Num)> visit, llvm::function_ref<void(Num)> pass = {}) {
  Num zero = code.real(mask.getElementType(), 0), none = code.index(0), one = code.index(1);
  Nums used =
      code.carry(none, code.index(mask.getSize(1)), 1, {none}, [&](Num token, ArrayRef<Num> next) {
        Num slot = next.front();
        Num goes = code.select(zero < mask(group, token, expert), one, none);
        Num hasSlot = none < code.select(slot < slots, goes, none);
        code.when(
            hasSlot, [&] { visit(token, slot); },
            pass ? llvm::function_ref<void()>([&] { pass(token); }) : llvm::function_ref<void()>());
        return Nums{code.select(hasSlot, slot + 1, slot)};
      });
  return used.front();
}

/// The results of forTokens in a kernel's memory, for devices: each thread takes one expert and a
/// chunk of a group's tokens, so that neighbors read neighboring elements of the mask. Chunks are
/// short, since a thread waits for memory several times for each; blocks add up their counts.
class SlotTable {
public:
  SlotTable(Code &code, Buffer mask, int64_t slots)
      : code(code), mask(mask), slots(slots), groups(mask.getSize(0)), tokens(mask.getSize(1)),
        experts(mask.getSize(2)), chunks(llvm::divideCeil(tokens, kChunk)),
        none(code.real(mask.getElementType(), 0)) {
    Type i32 = code.getBuilder().getI32Type();
    counts = code.lasting(i32, {groups, chunks, experts});
    totals = code.lasting(i32, {groups, experts});
    code.parallelAll({groups, chunks, experts}, [&](ArrayRef<Num> at) {
      Num count = forChunk(at, code.index(0), [](Num, Num, Num) {});
      counts.store(code.toInt32(count), at);
    });
    addChunks();
  }

  /// Returns the number of tokens of each group for each expert.
  Buffer getTotals() const { return totals; }
  /// Returns the slot of each token at each expert, or -1.
  Buffer makeSlots() {
    Buffer table = code.lasting(code.getBuilder().getI32Type(), {groups, tokens, experts});
    forAll([&](Num group, Num token, Num expert, Num slot, Num isHere) {
      slot = code.select(isHere, slot, code.index(-1));
      table.store(code.toInt32(slot), group, token, expert);
    });
    return table;
  }
  /// Returns the token in each used slot of each expert.
  Buffer makeTokens() {
    Buffer table = code.lasting(code.getBuilder().getI32Type(), {experts, groups, slots});
    forAll([&](Num group, Num token, Num expert, Num slot, Num isHere) {
      code.when(isHere, [&] { table.store(code.toInt32(token), expert, group, slot); });
    });
    return table;
  }

private:
  /// The tokens of a chunk, and the experts of a block that adds up counts: those of one transfer.
  static constexpr int64_t kChunk = 16, kExperts = 8;

  /// Runs `visit(group, token, expert, slot, isHere)` for all tokens and experts, in a phase;
  /// `slot` is that of forTokens if `isHere`.
  void forAll(llvm::function_ref<void(Num, Num, Num, Num, Num)> visit) {
    code.parallelAll({groups, chunks, experts}, [&](ArrayRef<Num> at) {
      forChunk(at, code.toIndex(counts.load(at)), [&](Num token, Num goes, Num slot) {
        Num isHere = code.lessUnsigned(slot, code.select(goes, code.index(slots), code.index(0)));
        visit(at[0], token, at[2], slot, isHere);
      });
    });
  }

  /// Makes of the count of each chunk that of the chunks before it, and the totals. A block takes a
  /// group and kExperts experts; some threads share the chunks of each expert.
  void addChunks() {
    int64_t shares = rt::kBlockThreads / kExperts, share = llvm::divideCeil(chunks, shares);
    SmallVector<int64_t> sizes = {groups, int64_t(llvm::divideCeil(experts, kExperts))};
    Type i32 = code.getBuilder().getI32Type();
    code.blocks(Code::countOf(sizes), rt::kBlockThreads * code.countLanes(), [&](Num block) {
      Nums place = code.placeOf(block, sizes);
      Num column = code.remainder(code.thread(), kExperts), number = code.thread() / kExperts;
      Num group = place[0], expert = place[1] * kExperts + column, isExpert = expert < experts;
      expert = code.select(isExpert, expert, code.index(experts - 1));
      Num from = number * share, end = from + share, last = code.index(chunks);
      from = code.select(from < last, from, last), end = code.select(end < last, end, last);
      auto add = [&](Num start, function_ref<void(Num, Num)> visit) {
        auto next = [&](Num i, ArrayRef<Num> sum) {
          Num own = counts(group, i, expert);
          visit(i, sum[0]);
          return Nums{sum[0] + own};
        };
        return code.carryByFours(from, end, 1, {start}, next).front();
      };
      Num own = add(code.constant(i32, code.getBuilder().getI32IntegerAttr(0)), [](Num, Num) {});
      Buffer slots = slotsForSums(code, i32, kExperts);
      auto [before, total] = sumsBefore(code, own, kExperts, slots, code.index(0));
      code.when(isExpert, [&, before = before, total = total] {
        add(before, [&](Num i, Num sum) { counts.store(sum, group, i, expert); });
        code.when(number == int64_t(0), [&] { totals.store(total, group, expert); });
      });
      // The next round may use the slots.
      code.barrier();
    });
  }

  /// Visits the tokens of a chunk, with `first` slots used before; returns how many are used then.
  Num forChunk(ArrayRef<Num> at, Num first, llvm::function_ref<void(Num, Num, Num)> visit) {
    Num from = at[1] * kChunk, end = from + kChunk;
    end = code.select(end < tokens, end, code.index(tokens));
    return code
        .carryByFours(from, end, 1, {first},
                      [&](Num token, ArrayRef<Num> slot) {
                        Num goes = none < mask(at[0], token, at[2]);
                        visit(token, goes, slot[0]);
                        return Nums{code.select(goes, slot[0] + 1, slot[0])};
                      })
        .front();
  }

  Code &code;
  Buffer mask, counts, totals;
  int64_t slots, groups, tokens, experts, chunks;
  Num none;
};

struct LowerDispatch : HostModel<LowerDispatch, DispatchOp> {
  static void lower(Code &code, DispatchOp, DispatchOp::Adaptor operands, ValueRange results) {
    Buffer x = code.buffer(operands.getInput()), weights = code.buffer(operands.getWeights());
    Buffer mask = code.buffer(operands.getMask()), y = code.buffer(results[0]);
    int64_t slots = y.getSize(2), hidden = y.getSize(3);
    Num zero = code.real(y.getElementType(), 0);
    if (code.isForDevice()) {
      lowerForDevice(code, x, weights, mask, y);
      return;
    }
    code.parallelAll({y.getSize(0), y.getSize(1)}, [&](ArrayRef<Num> place) {
      Num expert = place[0], group = place[1];
      Num used = forTokens(code, mask, group, expert, slots, [&](Num token, Num slot) {
        Num weight = weights(group, token, expert);
        code.loop(0, hidden,
                  [&](Num h) { y.store(x(group, token, h) * weight, expert, group, slot, h); });
      });
      code.loop(used, code.index(slots), [&](Num slot) {
        code.loop(0, hidden, [&](Num h) { y.store(zero, expert, group, slot, h); });
      });
    });
  }

  /// Each slot has a warp or a block.
  static void lowerForDevice(Code &code, Buffer x, Buffer weights, Buffer mask, Buffer y) {
    int64_t slots = y.getSize(2), hidden = y.getSize(3);
    SlotTable table(code, mask, slots);
    Buffer tokens = table.makeTokens(), totals = table.getTotals();
    Num zero = code.real(y.getElementType(), 0);
    auto fillSlot = [&](Num row) {
      Nums at = code.placeOf(row, y.getShape().drop_back());
      Num expert = at[0], group = at[1], slot = at[2];
      auto take = [&] {
        Num token = code.toIndex(tokens(expert, group, slot));
        Num weight = weights(group, token, expert);
        code.across(hidden,
                    [&](Num h) { y.store(x(group, token, h) * weight, expert, group, slot, h); });
      };
      code.when(slot < code.toIndex(totals(group, expert)), take, [&] {
        code.across(hidden, [&](Num h) { y.store(zero, expert, group, slot, h); });
      });
    };
    code.blocks(y.rows().getSize(0), hidden, fillSlot, {.fitWarps = true});
  }
};

/// Runs `body` in a warp or a block for each token of `tokens` [group, token, hidden]; for devices.
void forTokenRounds(Code &code, Buffer tokens, llvm::function_ref<void(Num, Num)> body) {
  auto run = [&](Num row) {
    Nums at = code.placeOf(row, tokens.getShape().drop_back());
    body(at[0], at[1]);
  };
  code.blocks(tokens.rows().getSize(0), tokens.getSize(2), run, {.fitWarps = true});
}

/// Runs `body(expert, slot)` for each expert that has the token, in order, with the slots of
/// SlotTable::makeSlots. Loads those of some experts together.
void forExperts(Code &code, Buffer slots, Num group, Num token,
                llvm::function_ref<void(Num, Num)> body) {
  constexpr int64_t kTogether = 8;
  int64_t experts = slots.getSize(2), whole = experts / kTogether * kTogether;
  auto visit = [&](Num first, int64_t count) {
    Nums found;
    for (int64_t i = 0; i < count; ++i) {
      found.push_back(slots(group, token, first + i));
    }
    for (int64_t i = 0; i < count; ++i) {
      Num slot = code.toIndex(found[i]);
      code.when(code.index(-1) < slot, [&] { body(first + i, slot); });
    }
  };
  code.loop(code.index(0), code.index(whole), kTogether,
            [&](Num first) { visit(first, kTogether); });
  visit(code.index(whole), experts - whole);
}

/// Two experts may have the same token, so threads of a host share the columns.
struct LowerCombine : HostModel<LowerCombine, CombineOp> {
  static void lower(Code &code, CombineOp, CombineOp::Adaptor operands, ValueRange results) {
    Buffer x = code.buffer(operands.getInput()), weights = code.buffer(operands.getWeights());
    Buffer mask = code.buffer(operands.getMask()), y = code.buffer(results[0]);
    int64_t experts = x.getSize(0), slots = x.getSize(2);
    if (code.isForDevice()) {
      lowerForDevice(code, x, weights, mask, y);
      return;
    }
    code.fillParallel(y, 0);
    forColumns(code, y.getSize(2), [&](Num from, Num to) {
      code.nest({y.getSize(0), experts}, [&](ArrayRef<Num> place) {
        Num group = place[0], expert = place[1];
        forTokens(code, mask, group, expert, slots, [&](Num token, Num slot) {
          Num weight = weights(group, token, expert);
          code.loop(from, to, 1, [&](Num h) {
            Num sum = y(group, token, h) + weight * x(expert, group, slot, h);
            y.store(sum, group, token, h);
          });
        });
      });
    });
  }

  /// Each token sums up its experts' results.
  static void lowerForDevice(Code &code, Buffer x, Buffer weights, Buffer mask, Buffer y) {
    int64_t hidden = y.getSize(2);
    Buffer slots = SlotTable(code, mask, x.getSize(2)).makeSlots();
    Num zero = code.real(y.getElementType(), 0);
    forTokenRounds(code, y, [&](Num group, Num token) {
      Kept sums = code.keep(y.getElementType(), hidden);
      code.across(hidden, [&](Num) { code.setKept(sums, zero); });
      forExperts(code, slots, group, token, [&](Num expert, Num slot) {
        Num weight = weights(group, token, expert);
        code.across(hidden, [&](Num h) {
          code.setKept(sums, code.kept(sums) + weight * x(expert, group, slot, h));
        });
      });
      code.across(hidden, [&](Num h) { y.store(code.kept(sums), group, token, h); });
    });
  }
};

struct LowerSlotProducts : HostModel<LowerSlotProducts, SlotProductsOp> {
  static void lower(Code &code, SlotProductsOp, SlotProductsOp::Adaptor operands,
                    ValueRange results) {
    Buffer x = code.buffer(operands.getTokens()), slots = code.buffer(operands.getSlots());
    Buffer mask = code.buffer(operands.getMask()), y = code.buffer(results[0]);
    int64_t hidden = x.getSize(2);
    Num zero = code.real(y.getElementType(), 0);
    if (code.isForDevice()) {
      lowerForDevice(code, x, slots, mask, y);
      return;
    }
    code.parallelAll({slots.getSize(0), slots.getSize(1)}, [&](ArrayRef<Num> place) {
      Num expert = place[0], group = place[1];
      auto multiply = [&](Num token, Num slot) {
        Num sum = code.sum(y.getElementType(), 0, hidden, [&](Num h) {
          return x(group, token, h) * slots(expert, group, slot, h);
        });
        y.store(sum, group, token, expert);
      };
      forTokens(code, mask, group, expert, slots.getSize(2), multiply,
                [&](Num token) { y.store(zero, group, token, expert); });
    });
  }

  static void lowerForDevice(Code &code, Buffer x, Buffer slots, Buffer mask, Buffer y) {
    int64_t hidden = x.getSize(2);
    Buffer table = SlotTable(code, mask, slots.getSize(2)).makeSlots();
    Num zero = code.real(y.getElementType(), 0);
    forTokenRounds(code, x, [&](Num group, Num token) {
      code.across(y.getSize(2), [&](Num expert) { y.store(zero, group, token, expert); });
      forExperts(code, table, group, token, [&](Num expert, Num slot) {
        Num sum = code.sum(y.getElementType(), 0, hidden, [&](Num h) {
          return x(group, token, h) * slots(expert, group, slot, h);
        });
        code.once([&] { y.store(sum, group, token, expert); });
      });
    });
  }
};

} // namespace

void attachExpertModels(MLIRContext &context) {
  DispatchOp::attachInterface<LowerDispatch>(context);
  CombineOp::attachInterface<LowerCombine>(context);
  SlotProductsOp::attachInterface<LowerSlotProducts>(context);
}

} // namespace weft::lower
