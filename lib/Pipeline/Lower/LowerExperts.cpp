//===- LowerExperts.cpp - tokens on their way to experts and back --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Models.h"
#include "Tiles.h"

#include <limits>

namespace weft::lower {

using namespace mlir;

namespace {

//===----------------------------------------------------------------------===//
// TopK
//===----------------------------------------------------------------------===//

// While a row is worked on, its output says of each element what became of it.
constexpr double kRefused = -1, kOpen = 0, kPicked = 1;

/// One row of a top-k.
struct TopKRow {
  TopKRow(Code &code, TopKOp op, TopKOp::Adaptor operands, Buffer output, Num row)
      : code(code), op(op), input(code.buffer(operands.getInput()).rows()),
        bias(code.buffer(operands.getBias())), output(output), row(row) {}

  void run() {
    bool hasGroups = op.getKeptGroups() < op.getGroups();
    mark(code.index(0), code.index(size()), hasGroups ? kRefused : kOpen);
    if (op.getColumns()) {
      mark(code.index(size()), code.index(input.getSize(1)), kOpen);
    }
    if (hasGroups) {
      openGroups();
    }
    code.loop(0, op.getCount(), [&](Num) {
      Num place = findGreatest(size(), [&](Num i) { return state(i, kOpen, score(i)); });
      output.store(constant(kPicked), row, place);
    });
    if (hasGroups) {
      Num zero = constant(0);
      code.loop(0, size(), [&](Num i) {
        Num mark = output(row, i);
        output.store(code.select(mark < zero, zero, mark), row, i);
      });
    }
  }

private:
  /// Without padding, of which nothing is picked.
  int64_t size() { return op.getColumns() ? op.getColumns()->front() : input.getSize(1); }
  Num constant(double value) { return code.real(output.getElementType(), value); }
  Num least() { return constant(-std::numeric_limits<double>::infinity()); }

  Num score(Num i) {
    Num value = input(row, i);
    return bias ? value + bias(i) : value;
  }

  /// `value` where element `i` is marked so, else less than anything.
  Num state(Num i, double marked, Num value) {
    return code.select(output(row, i) == marked, value, least());
  }

  void mark(Num from, Num to, double value) {
    Num element = constant(value);
    code.loop(from, to, [&](Num i) { output.store(element, row, i); });
  }

  /// The lowest index below `count` of a greatest value; 0 if there is none.
  Num findGreatest(int64_t count, llvm::function_ref<Num(Num)> value) {
    Nums found = code.carry(code.index(0), code.index(count), 1, {least(), code.index(0)},
                            [&](Num i, ArrayRef<Num> best) {
                              Num candidate = value(i), isGreater = best[0] < candidate;
                              return Nums{code.select(isGreater, candidate, best[0]),
                                          code.select(isGreater, i, best[1])};
                            });
    return found[1];
  }

  /// Opens the elements of the groups that are kept.
  void openGroups() {
    int64_t length = size() / op.getGroups();
    code.loop(0, op.getKeptGroups(), [&](Num) {
      Num group = findGreatest(op.getGroups(), [&](Num g) {
        return state(g * length, kRefused, sumOfTwo(g * length, length));
      });
      mark(group * length, group * length + length, kOpen);
    });
  }

  /// The sum of the two greatest scores from `first` on; of a group of one, its score.
  Num sumOfTwo(Num first, int64_t length) {
    if (length == 1) {
      return score(first);
    }
    Nums two =
        code.carry(first, first + length, 1, {least(), least()}, [&](Num i, ArrayRef<Num> best) {
          Num value = score(i), isFirst = best[0] < value;
          Num rest = code.select(isFirst, best[0], value);
          return Nums{code.select(isFirst, value, best[0]),
                      code.select(best[1] < rest, rest, best[1])};
        });
    return two[0] + two[1];
  }

  Code &code;
  TopKOp op;
  Buffer input, bias, output;
  Num row;
};

struct LowerTopK : HostModel<LowerTopK, TopKOp> {
  static void lower(Code &code, TopKOp op, TopKOp::Adaptor operands, ValueRange results) {
    Buffer output = code.buffer(results[0]).rows();
    code.parallel(output.getSize(0),
                  [&](Num row) { TopKRow(code, op, operands, output, row).run(); });
  }
};

//===----------------------------------------------------------------------===//
// CumulativeSum
//===----------------------------------------------------------------------===//

struct LowerCumulativeSum : HostModel<LowerCumulativeSum, CumulativeSumOp> {
  static void lower(Code &code, CumulativeSumOp op, CumulativeSumOp::Adaptor operands,
                    ValueRange results) {
    Buffer whole = code.buffer(operands.getInput());
    ArrayRef<int64_t> shape = whole.getShape();
    int64_t count = shape[op.getDimension()], inner = 1;
    for (int64_t size : shape.drop_front(op.getDimension() + 1)) {
      inner *= size;
    }
    int64_t outer = whole.getElementCount() / (count * inner);
    Buffer x = whole.view({outer, count, inner});
    Buffer y = code.buffer(results[0]).view({outer, count, inner});
    Num last = code.index(count - 1);
    code.parallelNest({outer, inner}, [&](ArrayRef<Num> place) {
      code.carry(code.index(0), code.index(count), 1, {code.real(x.getElementType(), 0)},
                 [&](Num i, ArrayRef<Num> sum) {
                   Num at = op.getReverse() ? last - i : i;
                   // Read before it is written, for it may be the same place.
                   Num next = sum[0] + x(place[0], at, place[1]);
                   y.store(sum[0], place[0], at, place[1]);
                   return Nums{next};
                 });
    });
  }

  bool mayReuse(Operation *, unsigned, unsigned) const { return true; }
};

//===----------------------------------------------------------------------===//
// Slots
//===----------------------------------------------------------------------===//

/// Visits the tokens of a group in order. `visit` gets a token that has a slot at the expert and
/// that slot; `pass`, if it is given, each of the others. Returns how many slots there are for.
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

struct LowerDispatch : HostModel<LowerDispatch, DispatchOp> {
  static void lower(Code &code, DispatchOp, DispatchOp::Adaptor operands, ValueRange results) {
    Buffer x = code.buffer(operands.getInput()), weights = code.buffer(operands.getWeights());
    Buffer mask = code.buffer(operands.getMask()), y = code.buffer(results[0]);
    int64_t slots = y.getSize(2), hidden = y.getSize(3);
    Num zero = code.real(y.getElementType(), 0);
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
};

/// Two experts may have one token, so threads share the columns.
struct LowerCombine : HostModel<LowerCombine, CombineOp> {
  static void lower(Code &code, CombineOp, CombineOp::Adaptor operands, ValueRange results) {
    Buffer x = code.buffer(operands.getInput()), weights = code.buffer(operands.getWeights());
    Buffer mask = code.buffer(operands.getMask()), y = code.buffer(results[0]);
    int64_t experts = x.getSize(0), slots = x.getSize(2);
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
};

struct LowerSlotProducts : HostModel<LowerSlotProducts, SlotProductsOp> {
  static void lower(Code &code, SlotProductsOp, SlotProductsOp::Adaptor operands,
                    ValueRange results) {
    Buffer x = code.buffer(operands.getTokens()), slots = code.buffer(operands.getSlots());
    Buffer mask = code.buffer(operands.getMask()), y = code.buffer(results[0]);
    int64_t hidden = x.getSize(2);
    Num zero = code.real(y.getElementType(), 0);
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
};

} // namespace

void attachExpertModels(MLIRContext &context) {
  TopKOp::attachInterface<LowerTopK>(context);
  CumulativeSumOp::attachInterface<LowerCumulativeSum>(context);
  DispatchOp::attachInterface<LowerDispatch>(context);
  CombineOp::attachInterface<LowerCombine>(context);
  SlotProductsOp::attachInterface<LowerSlotProducts>(context);
}

} // namespace weft::lower
