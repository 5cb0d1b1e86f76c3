//===- LowerPool.cpp - pools, means over groups, and softmax -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Exponential.h"
#include "Models.h"
#include "WindowLoops.h"

#include <limits>

namespace weft::lower {

using namespace mlir;

namespace {

/// An image as planes, one for each sample and channel.
Buffer planes(Buffer image) {
  llvm::SmallVector<int64_t> shape = {image.getSize(0) * image.getSize(1)};
  llvm::append_range(shape, image.getShape().drop_front(2));
  return image.view(shape);
}

Nums at(Num plane, ArrayRef<Num> places) {
  Nums indices = {plane};
  indices.append(places.begin(), places.end());
  return indices;
}

/// A pool or its derivative, plane by plane.
struct PoolLoops {
  template <typename OpTy>
  PoolLoops(Code &code, OpTy op, Buffer input, Buffer output)
      : windows(windowsOf(op, op.getSizes())), input(planes(input)), output(planes(output)),
        loops(code, windows, input.getShape().drop_front(2), output.getShape().drop_front(2)) {}

  llvm::SmallVector<Window> windows;
  Buffer input, output;
  WindowLoops loops;
};

/// Returns a number less than every element.
Num leastOf(Code &code, Buffer buffer) {
  return code.real(buffer.getElementType(), -std::numeric_limits<double>::infinity());
}

struct LowerPoolOp : HostModel<LowerPoolOp, PoolOp> {
  static void lower(Code &code, PoolOp op, PoolOp::Adaptor operands, ValueRange results) {
    PoolLoops of(code, op, code.buffer(operands.getInput()), code.buffer(results[0]));
    bool isMax = op.getKind() == PoolKind::Max;
    Num start = isMax ? leastOf(code, of.output) : code.real(of.output.getElementType(), 0);
    code.parallelNest(of.output.getShape(), [&](ArrayRef<Num> place) {
      Num plane = place[0];
      Nums result = of.loops.carryWindow(
          place.drop_front(), {start}, [&](ArrayRef<Num> x, ArrayRef<Num> carried) {
            Num value = of.input.load(at(plane, x));
            return Nums{isMax ? code.max(carried.front(), value) : carried.front() + value};
          });
      of.output.store(result.front(), place);
    });
  }
};

/// Windows overlap, so one thread computes a plane.
struct LowerPoolGrad : HostModel<LowerPoolGrad, PoolGradOp> {
  static void lower(Code &code, PoolGradOp op, PoolGradOp::Adaptor operands, ValueRange results) {
    PoolLoops of(code, op, code.buffer(results[0]), code.buffer(operands.getGradient()));
    Buffer values = op.getInput() ? planes(code.buffer(operands.getInput())) : Buffer();
    Num zero = code.real(of.input.getElementType(), 0);
    code.parallel(of.input.getSize(0), [&](Num plane) {
      code.nest(of.input.getShape().drop_front(),
                [&](ArrayRef<Num> x) { of.input.store(zero, at(plane, x)); });
      code.nest(of.output.getShape().drop_front(), [&](ArrayRef<Num> p) {
        Num gradient = of.output.load(at(plane, p));
        auto add = [&](ArrayRef<Num> x) {
          of.input.store(of.input.load(at(plane, x)) + gradient, at(plane, x));
        };
        if (op.getKind() == PoolKind::Max) {
          add(findGreatest(code, of, values, plane, p));
          return;
        }
        of.loops.carryWindow(p, {}, [&](ArrayRef<Num> x, ArrayRef<Num>) {
          add(x);
          return Nums();
        });
      });
    });
  }

  /// Returns the place of the first greatest element in the window of output `p`.
  static Nums findGreatest(Code &code, PoolLoops &of, Buffer values, Num plane, ArrayRef<Num> p) {
    Nums start = {leastOf(code, values)};
    // If all are minus infinity or NaN: the window's first place inside of the image.
    Nums first = of.loops.firstPlace(p);
    start.append(first.begin(), first.end());
    Nums found = of.loops.carryWindow(p, start, [&](ArrayRef<Num> x, ArrayRef<Num> carried) {
      Num value = values.load(at(plane, x));
      Num isGreater = carried.front() < value;
      Nums next = {code.select(isGreater, value, carried.front())};
      for (auto [place, known] : llvm::zip_equal(x, carried.drop_front())) {
        next.push_back(code.select(isGreater, place, known));
      }
      return next;
    });
    return Nums(llvm::drop_begin(found));
  }
};

struct LowerGroupMean : HostModel<LowerGroupMean, GroupMeanOp> {
  static void lower(Code &code, GroupMeanOp op, GroupMeanOp::Adaptor operands, ValueRange results) {
    int64_t count = op.getCount();
    Buffer whole = code.buffer(operands.getInput());
    int64_t samples = whole.getSize(0), rest = whole.getElementCount() / samples;
    Buffer x = whole.view({samples / count, count, rest});
    Buffer y = code.buffer(results[0]).view({samples / count, count, rest});
    code.parallelNest({samples / count, rest}, [&](ArrayRef<Num> place) {
      Num group = place[0], element = place[1];
      Num sum = code.sum(x.getElementType(), 0, count, [&](Num i) { return x(group, i, element); });
      Num mean = sum / count;
      code.loop(0, count, [&](Num i) { y.store(mean, group, i, element); });
    });
  }

  /// The code reads a group before it writes it.
  bool mayReuse(Operation *, unsigned, unsigned) const { return true; }
};

struct LowerSoftmax : HostModel<LowerSoftmax, SoftmaxOp> {
  static void lower(Code &code, SoftmaxOp op, SoftmaxOp::Adaptor operands, ValueRange results) {
    Buffer x = code.buffer(operands.getInput()).rows(), y = code.buffer(results[0]).rows();
    Type type = x.getElementType();
    int64_t count = op.getColumns() ? op.getColumns()->front() : x.getSize(1);
    if (code.isForDevice()) {
      lowerForDevice(code, x, y, count);
      return;
    }
    code.parallel(x.getSize(0), [&](Num i) {
      Num none = code.index(0), columns = code.index(count);
      Num greatest = code.maximum(leastOf(code, x), none, columns, [&](Num j) { return x(i, j); });
      code.loop(none, columns, [&](Num j) { y.store(code.exp(x(i, j) - greatest), i, j); });
      Num factor =
          code.real(type, 1) / code.sum(type, none, columns, [&](Num j) { return y(i, j); });
      code.loop(none, columns, [&](Num j) { y.store(y(i, j) * factor, i, j); });
      if (op.getColumns()) {
        Num zero = code.real(type, 0);
        code.loop(columns, code.index(x.getSize(1)), [&](Num j) { y.store(zero, i, j); });
      }
    });
  }

  /// A block computes one row, or several; `count` of the columns have probabilities.
  static void lowerForDevice(Code &code, Buffer x, Buffer y, int64_t count) {
    Type type = x.getElementType();
    Num none = code.index(0), columns = code.index(count), zero = code.real(type, 0);
    code.blocks(
        x.getSize(0), count,
        [&](Num i) {
          auto [greatest, total] =
              code.exponentials(leastOf(code, x), none, columns, [&](Num j) { return x(i, j); });
          Num most = greatest, factor = code.real(type, 1) / total;
          code.across(none, columns,
                      [&](Num j) { y.store(expOfNegative(x(i, j) - most) * factor, i, j); });
          if (count < x.getSize(1)) {
            code.across(columns, code.index(x.getSize(1)), [&](Num j) { y.store(zero, i, j); });
          }
        },
        {.areAlike = true});
  }

  /// The code reads an element before it writes it.
  bool mayReuse(Operation *, unsigned, unsigned) const { return true; }
};

} // namespace

void attachPoolModels(MLIRContext &context) {
  PoolOp::attachInterface<LowerPoolOp>(context);
  PoolGradOp::attachInterface<LowerPoolGrad>(context);
  GroupMeanOp::attachInterface<LowerGroupMean>(context);
  SoftmaxOp::attachInterface<LowerSoftmax>(context);
}

} // namespace weft::lower
