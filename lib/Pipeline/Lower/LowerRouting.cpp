//===- LowerRouting.cpp - which experts tokens go to, and in which order ---===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockSums.h"
#include "Models.h"

#include "weft-rt/DeviceImage.h"

#include <limits>

namespace weft::lower {

using namespace mlir;

namespace {

//===----------------------------------------------------------------------===//
// TopK
//===----------------------------------------------------------------------===//

// While a row is worked on, the elements of its output are marks.
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
  /// Returns the columns without padding, which is never picked.
  int64_t size() { return op.getColumns() ? op.getColumns()->front() : input.getSize(1); }
  Num constant(double value) { return code.real(output.getElementType(), value); }
  Num least() { return constant(-std::numeric_limits<double>::infinity()); }

  Num score(Num i) {
    Num value = input(row, i);
    return bias ? value + bias(i) : value;
  }

  /// Returns `value` if element `i` has the mark `marked`, else minus infinity.
  Num state(Num i, double marked, Num value) {
    return code.select(output(row, i) == marked, value, least());
  }

  void mark(Num from, Num to, double value) {
    Num element = constant(value);
    code.loop(from, to, [&](Num i) { output.store(element, row, i); });
  }

  /// Returns the lowest index below `count` of a greatest value; 0 if there is none.
  Num findGreatest(int64_t count, llvm::function_ref<Num(Num)> value) {
    Nums found = code.carry(code.index(0), code.index(count), 1, {least(), code.index(0)},
                            [&](Num i, ArrayRef<Num> best) {
                              Num candidate = value(i), isGreater = best[0] < candidate;
                              return Nums{code.select(isGreater, candidate, best[0]),
                                          code.select(isGreater, i, best[1])};
                            });
    return found[1];
  }

  /// Marks the elements of the kept groups as open.
  void openGroups() {
    int64_t length = size() / op.getGroups();
    code.loop(0, op.getKeptGroups(), [&](Num) {
      Num group = findGreatest(op.getGroups(), [&](Num g) {
        return state(g * length, kRefused, sumOfTwo(g * length, length));
      });
      mark(group * length, group * length + length, kOpen);
    });
  }

  /// Returns the sum of the two greatest of `length` scores from `first` on; of one score, that.
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

/// One row of a top-k on a device: threads keep the scores and marks of their columns. Picks the
/// same elements as on the host.
class TopKBlock {
public:
  TopKBlock(Code &code, TopKOp op, TopKOp::Adaptor operands, Buffer output, Num row)
      : code(code), op(op), input(code.buffer(operands.getInput()).rows()),
        bias(code.buffer(operands.getBias())), output(output), row(row),
        size(op.getColumns() ? op.getColumns()->front() : input.getSize(1)),
        groups(static_cast<int64_t>(op.getGroups())), type(output.getElementType()),
        scores(code.keep(type, size)), marks(code.keep(type, size)), zero(code.real(type, 0)),
        one(code.real(type, 1)), least(code.real(type, -std::numeric_limits<double>::infinity())) {}

  void run() {
    code.across(size, [&](Num i) {
      Num score = bias ? input(row, i) + bias(i) : input(row, i);
      // NaN becomes the least, which is never greater than another score.
      code.setKept(scores, code.select(score == score, score, least));
      code.setKept(marks, zero);
    });
    if (op.getKeptGroups() < op.getGroups()) {
      openGroups();
    }
    code.loop(0, op.getCount(), [&](Num) {
      Num place = findGreatest([&](Num) { return code.kept(scores); }).second;
      code.across(size, [&](Num i) {
        Num isIt = numberOf(i) == place;
        code.setKept(scores, code.select(isIt, least, code.kept(scores)));
        code.setKept(marks, code.select(isIt, one, code.kept(marks)));
      });
    });
    code.across(size, [&](Num i) { output.store(code.kept(marks), row, i); });
    if (size < input.getSize(1)) {
      code.across(code.index(size), code.index(input.getSize(1)),
                  [&](Num i) { output.store(zero, row, i); });
    }
  }

private:
  Num numberOf(Num i) { return code.unsignedToReal(code.toInt32(i), type); }

  /// Returns the greatest of `value`, and the number of its first element.
  std::pair<Num, Num> findGreatest(llvm::function_ref<Num(Num)> value) {
    Num none = code.index(0), all = code.index(size);
    Num greatest = code.maximum(least, none, all, value);
    Num behind = code.maximum(least, none, all, [&](Num i) {
      return code.select(value(i) == greatest, -numberOf(i), least);
    });
    return {greatest, -behind};
  }

  Num isOf(int64_t group, Num i) {
    int64_t length = size / groups;
    return code.lessUnsigned(i - group * length, code.index(length));
  }

  /// Returns the sum of the two greatest scores of a group; for a group of one, its score.
  Num sumOfTwo(int64_t group) {
    auto ofGroup = [&](Num i) { return code.select(isOf(group, i), code.kept(scores), least); };
    auto [greatest, place] = findGreatest(ofGroup);
    if (groups == size) {
      return greatest;
    }
    Num number = place;
    Num second = code.maximum(least, code.index(0), code.index(size), [&](Num i) {
      return code.select(numberOf(i) == number, least, ofGroup(i));
    });
    return greatest + second;
  }

  /// Keeps the scores of the kept groups only; there are few groups.
  void openGroups() {
    Nums sums, isOpen(groups, zero);
    for (int64_t group = 0; group < groups; ++group) {
      sums.push_back(sumOfTwo(group));
    }
    for (uint64_t round = 0; round < op.getKeptGroups(); ++round) {
      Num best = least, place = code.index(0);
      for (int64_t group = 0; group < groups; ++group) {
        Num candidate = code.select(isOpen[group] == one, least, sums[group]);
        Num isGreater = best < candidate;
        best = code.select(isGreater, candidate, best);
        place = code.select(isGreater, code.index(group), place);
      }
      for (int64_t group = 0; group < groups; ++group) {
        isOpen[group] = code.select(place == group, one, isOpen[group]);
      }
    }
    code.across(size, [&](Num i) {
      Num taken = zero;
      for (int64_t group = 0; group < groups; ++group) {
        taken = code.select(isOf(group, i), isOpen[group], taken);
      }
      code.setKept(scores, code.select(taken == one, code.kept(scores), least));
    });
  }

  Code &code;
  TopKOp op;
  Buffer input, bias, output;
  Num row;
  int64_t size, groups;
  Type type;
  Kept scores, marks;
  Num zero, one, least;
};

struct LowerTopK : HostModel<LowerTopK, TopKOp> {
  static void lower(Code &code, TopKOp op, TopKOp::Adaptor operands, ValueRange results) {
    Buffer output = code.buffer(results[0]).rows();
    if (code.isForDevice()) {
      int64_t width = op.getColumns() ? op.getColumns()->front() : output.getSize(1);
      code.blocks(output.getSize(0), width,
                  [&](Num row) { TopKBlock(code, op, operands, output, row).run(); },
                  {.areAlike = true});
      return;
    }
    code.parallel(output.getSize(0),
                  [&](Num row) { TopKRow(code, op, operands, output, row).run(); });
  }
};

//===----------------------------------------------------------------------===//
// CumulativeSum
//===----------------------------------------------------------------------===//

/// Cumulative sums in one pass over memory, for devices: a block takes some neighboring columns,
/// and in each turn its threads load kRows elements each, exchange their sums, and write the
/// results. `x` and `y` are [outer, count, inner], and may be the same memory.
class ColumnScan {
public:
  ColumnScan(Code &code, Buffer x, Buffer y, bool isReverse)
      : code(code), x(x), y(y), isReverse(isReverse), count(x.getSize(1)), inner(x.getSize(2)),
        columns(std::min<int64_t>(kColumns, int64_t(llvm::PowerOf2Ceil(uint64_t(inner))))),
        groups(llvm::divideCeil(inner, columns)), turn(kThreads / columns * kRows) {}

  /// Returns true if blocks keep most multiprocessors of a large device busy, or need few turns.
  bool hasEnoughBlocks() const { return x.getSize(0) * groups >= 132 || count <= 4 * turn; }

  void run() {
    Type type = x.getElementType();
    code.blocks(x.getSize(0) * groups, kThreads * code.countLanes(), [&](Num block) {
      outer = block / groups;
      column = code.remainder(code.thread(), columns);
      place = code.remainder(block, groups) * columns + column;
      // Turns use the slots alternately, so that one barrier is enough.
      Buffer slots = slotsForSums(code, type, columns, 2);
      code.carry(code.index(0), code.index(llvm::divideCeil(count, turn)), 1, {code.real(type, 0)},
                 [&](Num number, ArrayRef<Num> total) {
                   return Nums{takeTurn(number, total.front(), slots)};
                 });
      // The next round may use the slots again.
      code.barrier();
    });
  }

private:
  static constexpr int64_t kThreads = rt::kBlockThreads;
  /// The elements of a thread in a turn, and the columns of a block, which memory transfers at
  /// once.
  static constexpr int64_t kRows = 16, kColumns = 8;

  /// Returns the sum of all elements up to this turn's last; `total` is that of the turns before.
  Num takeTurn(Num number, Num total, Buffer slots) {
    Num share = code.thread() / columns, first = number * turn + share * kRows;
    Num zero = code.real(x.getElementType(), 0), own = zero;
    Nums values;
    for (int64_t i = 0; i < kRows; ++i) {
      Num value = x(outer, rowOf(first + i), inside());
      values.push_back(fits() ? value : code.select(isHere(first + i), value, zero));
      own = own + values.back();
    }
    auto [before, all] = sumsBefore(code, own, columns, slots, code.remainder(number, 2));
    Num sum = total + before;
    for (int64_t i = 0; i < kRows; ++i) {
      auto store = [&] { y.store(sum, outer, rowOf(first + i), place); };
      fits() ? store() : code.when(isHere(first + i), store);
      sum = sum + values[i];
    }
    return total + all;
  }

  /// Returns true if all threads have elements in all turns.
  bool fits() const { return count % turn == 0 && inner % columns == 0; }
  Num isHere(Num row) { return (row < count) & (place < inner); }
  /// Addresses of loads are valid even where there is no element.
  Num rowOf(Num row) {
    row = fits() ? row : code.select(row < count, row, code.index(count - 1));
    return isReverse ? code.index(count - 1) - row : row;
  }
  Num inside() { return fits() ? place : code.select(place < inner, place, code.index(inner - 1)); }

  Code &code;
  Buffer x, y;
  bool isReverse;
  int64_t count, inner, columns, groups, turn;
  /// Those of this thread: the first index, the column in the block, and the last index.
  Num outer, column, place;
};

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
    if (code.isForDevice() && count > kLeastChunk) {
      ColumnScan scan(code, x, y, op.getReverse());
      scan.hasEnoughBlocks() ? scan.run() : sumChunks(code, x, y, op.getReverse());
      return;
    }
    Num last = code.index(count - 1);
    code.parallelNest({outer, inner}, [&](ArrayRef<Num> place) {
      code.carry(code.index(0), code.index(count), 1, {code.real(x.getElementType(), 0)},
                 [&](Num i, ArrayRef<Num> sum) {
                   Num at = op.getReverse() ? last - i : i;
                   // Reads before it writes, as both may be the same place.
                   Num next = sum[0] + x(place[0], at, place[1]);
                   y.store(sum[0], place[0], at, place[1]);
                   return Nums{next};
                 });
    });
  }

  /// For few columns of many elements: threads take chunks of the summed dimension. First they sum
  /// up all chunks, then each continues from the sums of the chunks before its own. `x` and `y` are
  /// [outer, count, inner].
  static void sumChunks(Code &code, Buffer x, Buffer y, bool isReverse) {
    int64_t count = x.getSize(1), chunk = kLeastChunk;
    while (chunk * chunk < count) {
      chunk *= 2;
    }
    int64_t chunks = llvm::divideCeil(count, chunk);
    SmallVector<int64_t> sizes = {x.getSize(0), chunks, x.getSize(2)};
    Type type = x.getElementType();
    Buffer parts = code.lasting(type, sizes);
    auto sumChunk = [&](ArrayRef<Num> at, Num start, llvm::function_ref<void(Num, Num)> visit) {
      Num from = at[1] * chunk, end = from + chunk;
      end = code.select(end < count, end, code.index(count));
      return code.carryByFours(from, end, 1, {start}, [&](Num i, ArrayRef<Num> sum) {
        Num place = isReverse ? code.index(count - 1) - i : i;
        // Reads before it writes, as both may be the same place.
        Num next = sum[0] + x(at[0], place, at[2]);
        visit(place, sum[0]);
        return Nums{next};
      });
    };
    Num zero = code.real(type, 0);
    code.parallelAll(sizes, [&](ArrayRef<Num> at) {
      parts.store(sumChunk(at, zero, [](Num, Num) {}).front(), at);
    });
    code.parallelAll(sizes, [&](ArrayRef<Num> at) {
      Nums before =
          code.carryByFours(code.index(0), at[1], 1, {zero}, [&](Num i, ArrayRef<Num> sum) {
            return Nums{sum[0] + parts(at[0], i, at[2])};
          });
      sumChunk(at, before.front(), [&](Num i, Num sum) { y.store(sum, at[0], i, at[2]); });
    });
  }

  bool mayReuse(Operation *, unsigned, unsigned) const { return true; }

private:
  /// The elements of the smallest chunk.
  static constexpr int64_t kLeastChunk = 64;
};

} // namespace

void attachRoutingModels(MLIRContext &context) {
  TopKOp::attachInterface<LowerTopK>(context);
  CumulativeSumOp::attachInterface<LowerCumulativeSum>(context);
}

} // namespace weft::lower
