//===- LowerRandom.cpp - dropout and initial values ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include <numbers>

#include "Models.h"
#include "Order.h"
#include "Random.h"

namespace weft::lower {

using namespace mlir;

namespace {

/// A shard of a tensor in as few dimensions as possible: a dimension that is whole is merged with
/// the one before it, unless either is stored in another order.
struct Shard {
  Shard(Code &code, ArrayRef<int64_t> localShape, ValueRange given,
        std::optional<ArrayRef<int64_t>> givenGlobal, ZigzagAttr order = {}, size_t orderedDim = 0)
      : order(order) {
    ArrayRef<int64_t> whole = givenGlobal.value_or(localShape);
    for (auto [dim, size] : llvm::enumerate(localShape)) {
      bool isAlone = order && (dim == orderedDim || dim == orderedDim + 1);
      if (order && dim == orderedDim) {
        ordered = shape.size();
      }
      if (dim != 0 && size == whole[dim] && !isAlone) {
        shape.back() *= size;
        globalShape.back() *= size;
        offsets.back() = offsets.back() * size;
      } else {
        shape.push_back(size);
        globalShape.push_back(whole[dim]);
        offsets.push_back(dim < given.size() ? code.num(given[dim]) : code.index(0));
      }
    }
  }

  llvm::SmallVector<int64_t> shape, globalShape;
  Nums offsets;
  /// The order of dimension `ordered`; null if positions are stored in order.
  ZigzagAttr order;
  size_t ordered = 0;
};

/// The time that an element takes.
enum class Work { Little, Much };

/// Runs `body(indices, i)` over all elements of `shard`; i is the index in the whole tensor.
void forEachPlaced(Code &code, const Shard &shard, Work work,
                   function_ref<void(ArrayRef<Num>, Num)> body) {
  llvm::SmallVector<Value> offsets(shard.offsets.begin(), shard.offsets.end());
  if (shard.order) {
    offsets[shard.ordered] = code.index(0);
  }
  Placement placement(code, shard.shape, offsets, ArrayRef<int64_t>(shard.globalShape));
  auto run = [&](ArrayRef<Num> indices) {
    Nums places(indices);
    if (shard.order) {
      Num &place = places[shard.ordered];
      place = positionAt(code, shard.order, place + shard.offsets[shard.ordered]);
    }
    body(indices, placement.globalIndex(places));
  };
  if (work == Work::Little) {
    code.elements(shard.shape, run);
  } else {
    code.parallelNest(shard.shape, run);
  }
}

struct LowerDropout : HostModel<LowerDropout, DropoutOp> {
  static void lower(Code &code, DropoutOp op, DropoutOp::Adaptor operands, ValueRange results) {
    Buffer whole = code.buffer(operands.getInput());
    Shard shard(code, whole.getShape(), operands.getOffsets(), op.getGlobalShape(),
                op.getOrderAttr(), op.getOrderedDim().value_or(0));
    Buffer x = whole.view(shard.shape), y = code.buffer(results[0]).view(shard.shape);
    double rate = op.getRate().convertToDouble();
    Generator generator = Generator::forDropout(
        code, code.buffer(operands.getSeed())(), code.buffer(operands.getStep())(),
        code.toInteger(code.num(operands.getLayer())), op.getSite());
    Num zero = code.real(x.getElementType(), 0);
    forEachPlaced(code, shard, Work::Little, [&](ArrayRef<Num> indices, Num i) {
      Num scaled = x.load(indices) * (1 / (1 - rate));
      y.store(code.select(generator.isKept(i, rate), scaled, zero), indices);
    });
  }

  bool mayReuse(Operation *, unsigned operand, unsigned) const { return operand == 0; }
};

struct LowerFill : HostModel<LowerFill, FillOp> {
  static void lower(Code &code, FillOp op, FillOp::Adaptor operands, ValueRange results) {
    Buffer y = code.buffer(results[0]);
    double value = op.getValue().convertToDouble();
    if (op.getDistribution() == Distribution::Constant) {
      code.fillParallel(y, value);
      return;
    }
    Type f64 = code.getBuilder().getF64Type();
    Num deviation = code.real(f64, value);
    if (Value given = operands.getDeviation()) {
      deviation = code.num(arith::BitcastOp::create(code.getBuilder(), code.getLoc(), f64,
                                                    code.toInteger(code.num(given))));
    }
    Generator generator(code, code.buffer(operands.getSeed())(),
                        code.toInteger(code.num(operands.getStream())));
    Shard shard(code, y.getShape(), operands.getOffsets(), op.getGlobalShape());
    y = y.view(shard.shape);
    forEachPlaced(code, shard, Work::Much, [&](ArrayRef<Num> indices, Num i) {
      // The Box-Muller method. u1 is never zero.
      Num u1 = code.unsignedToReal((generator.bits(i * 2) >> 11) + 1, f64) * 0x1p-53;
      Num u2 = code.unsignedToReal(generator.bits(i * 2 + 1) >> 11, f64) * 0x1p-53;
      Num normal = code.sqrt(code.log(u1) * -2.0) * code.cos(u2 * (2 * std::numbers::pi));
      y.store(code.toReal(normal * deviation, y.getElementType()), indices);
    });
  }
};

} // namespace

void attachRandomModels(MLIRContext &context) {
  DropoutOp::attachInterface<LowerDropout>(context);
  FillOp::attachInterface<LowerFill>(context);
}

} // namespace weft::lower
