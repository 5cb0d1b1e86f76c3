//===- LowerExperts.cpp - tokens on their way to experts and back --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Models.h"
#include "Tiles.h"

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
/// chunk of a group's tokens, so that neighbors read neighboring elements of the mask.
class SlotTable {
public:
  SlotTable(Code &code, Buffer mask, int64_t slots)
      : code(code), mask(mask), slots(slots), groups(mask.getSize(0)), tokens(mask.getSize(1)),
        experts(mask.getSize(2)), chunks(llvm::divideCeil(tokens, kChunk)),
        none(code.real(mask.getElementType(), 0)) {
    Type i32 = code.getBuilder().getI32Type();
    counts = code.lasting(i32, {groups, chunks, experts});
    code.parallelAll({groups, chunks, experts}, [&](ArrayRef<Num> at) {
      Num count = forChunk(at, code.index(0), [](Num, Num, Num) {});
      counts.store(code.toInt32(count), at);
    });
  }

  /// Runs `visit(group, token, expert, slot, isHere)` for all tokens and experts, in a phase;
  /// `slot` is that of forTokens if `isHere`.
  void forAll(llvm::function_ref<void(Num, Num, Num, Num, Num)> visit) {
    code.parallelAll({groups, chunks, experts}, [&](ArrayRef<Num> at) {
      forChunk(at, countBefore(at[0], at[1], at[2]), [&](Num token, Num goes, Num slot) {
        Num isHere = code.lessUnsigned(slot, code.select(goes, code.index(slots), code.index(0)));
        visit(at[0], token, at[2], slot, isHere);
      });
    });
  }

  /// Counts a group's tokens for an expert in the chunks before `chunk`.
  Num countBefore(Num group, Num chunk, Num expert) {
    return code
        .carryByFours(code.index(0), chunk, 1, {code.index(0)},
                      [&](Num i, ArrayRef<Num> sum) {
                        return Nums{sum[0] + code.toIndex(counts(group, i, expert))};
                      })
        .front();
  }
  /// Returns the number of tokens of each group for each expert.
  Buffer makeTotals() {
    Buffer totals = code.lasting(code.getBuilder().getI32Type(), {groups, experts});
    code.parallelAll({groups, experts}, [&](ArrayRef<Num> at) {
      totals.store(code.toInt32(countBefore(at[0], code.index(chunks), at[1])), at);
    });
    return totals;
  }
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
  static constexpr int64_t kChunk = 64;

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
  Buffer mask, counts;
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

  /// Each slot has a block.
  static void lowerForDevice(Code &code, Buffer x, Buffer weights, Buffer mask, Buffer y) {
    int64_t slots = y.getSize(2), hidden = y.getSize(3);
    SlotTable table(code, mask, slots);
    Buffer tokens = table.makeTokens(), totals = table.makeTotals();
    Num zero = code.real(y.getElementType(), 0);
    code.blocks(y.rows().getSize(0), hidden, [&](Num row) {
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
    });
  }
};

/// Runs `body` in a block for each token of `tokens` [group, token, hidden]; for devices.
void forTokenBlocks(Code &code, Buffer tokens, llvm::function_ref<void(Num, Num)> body) {
  code.blocks(tokens.rows().getSize(0), tokens.getSize(2), [&](Num row) {
    Nums at = code.placeOf(row, tokens.getShape().drop_back());
    body(at[0], at[1]);
  });
}

/// Runs `body(expert, slot, hasSlot)` for each expert in order, with a token's slots of
/// SlotTable::makeSlots.
void forExperts(Code &code, Buffer slots, Num group, Num token,
                llvm::function_ref<void(Num, Num, Num)> body) {
  code.loop(0, slots.getSize(2), [&](Num expert) {
    Num slot = code.toIndex(slots(group, token, expert));
    body(expert, slot, code.index(-1) < slot);
  });
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
    forTokenBlocks(code, y, [&](Num group, Num token) {
      Kept sums = code.keep(y.getElementType(), hidden);
      code.across(hidden, [&](Num) { code.setKept(sums, zero); });
      forExperts(code, slots, group, token, [&](Num expert, Num slot, Num hasSlot) {
        code.when(hasSlot, [&] {
          Num weight = weights(group, token, expert);
          code.across(hidden, [&](Num h) {
            code.setKept(sums, code.kept(sums) + weight * x(expert, group, slot, h));
          });
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
    forTokenBlocks(code, x, [&](Num group, Num token) {
      forExperts(code, table, group, token, [&](Num expert, Num slot, Num hasSlot) {
        auto multiply = [&] {
          Num sum = code.sum(y.getElementType(), 0, hidden, [&](Num h) {
            return x(group, token, h) * slots(expert, group, slot, h);
          });
          code.once([&] { y.store(sum, group, token, expert); });
        };
        code.when(hasSlot, multiply,
                  [&] { code.once([&] { y.store(zero, group, token, expert); }); });
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
