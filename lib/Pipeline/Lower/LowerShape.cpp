//===- LowerShape.cpp - parts of tensors, joined and taken apart ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reshapes are not here: the result of one is its input's buffer, see Linearize.
//
//===----------------------------------------------------------------------===//

#include "Models.h"

namespace weft::lower {

using namespace mlir;

namespace {

/// Returns the indices `place * stride + offset` of each dimension.
Nums placesAt(ArrayRef<Num> place, ArrayRef<int64_t> offsets, ArrayRef<int64_t> strides) {
  Nums moved;
  for (auto [index, offset, stride] : llvm::zip_equal(place, offsets, strides)) {
    moved.push_back(index * stride + offset);
  }
  return moved;
}

struct LowerConcat : HostModel<LowerConcat, ConcatOp> {
  static void lower(Code &code, ConcatOp op, ConcatOp::Adaptor operands, ValueRange results) {
    Buffer whole = code.buffer(results[0]);
    int64_t dim = op.getDim(), length = whole.getSize(dim), outer = 1, done = 0;
    for (int64_t size : whole.getShape().take_front(dim)) {
      outer *= size;
    }
    int64_t inner = whole.getElementCount() / (outer * length);
    Buffer to = whole.view({outer, length * inner});
    for (Value operand : operands.getInputs()) {
      Buffer part = code.buffer(operand);
      int64_t row = part.getSize(dim) * inner, offset = done * inner;
      Buffer from = part.view({outer, row});
      code.elements({outer, row}, [&](ArrayRef<Num> place) {
        to.storeStored(from.loadStored(place), {place[0], place[1] + offset});
      });
      code.writesApart();
      done += part.getSize(dim);
    }
  }
};

struct LowerSplit : HostModel<LowerSplit, SplitOp> {
  static void lower(Code &code, SplitOp op, SplitOp::Adaptor operands, ValueRange results) {
    Buffer whole = code.buffer(operands.getInput());
    int64_t dim = op.getDim(), done = 0;
    for (Value result : results) {
      Buffer to = code.buffer(result);
      SmallVector<int64_t> offsets(to.getShape().size(), 0), strides(offsets.size(), 1);
      offsets[dim] = done;
      code.elements(to.getShape(), [&](ArrayRef<Num> place) {
        to.storeStored(whole.loadStored(placesAt(place, offsets, strides)), place);
      });
      done += to.getSize(dim);
    }
  }
};

struct LowerExtract : HostModel<LowerExtract, ExtractOp> {
  static void lower(Code &code, ExtractOp op, ExtractOp::Adaptor operands, ValueRange results) {
    Buffer from = code.buffer(operands.getInput()), to = code.buffer(results[0]);
    code.elements(to.getShape(), [&](ArrayRef<Num> place) {
      to.storeStored(from.loadStored(placesAt(place, op.getOffsets(), op.getStrides())), place);
    });
  }
};

struct LowerPad : HostModel<LowerPad, PadOp> {
  static void lower(Code &code, PadOp op, PadOp::Adaptor operands, ValueRange results) {
    Buffer from = code.buffer(operands.getInput()), to = code.buffer(results[0]);
    SmallVector<int64_t> strides;
    for (int64_t interior : op.getInterior()) {
      strides.push_back(interior + 1);
    }
    code.fillParallel(to, op.getValue().convertToDouble());
    code.elements(from.getShape(), [&](ArrayRef<Num> place) {
      to.storeStored(from.loadStored(place), placesAt(place, op.getLow(), strides));
    });
  }
};

struct LowerSelect : HostModel<LowerSelect, SelectOp> {
  static void lower(Code &code, SelectOp, SelectOp::Adaptor operands, ValueRange results) {
    Buffer from = code.buffer(operands.getInput()), to = code.buffer(results[0]);
    Num index = code.num(operands.getIndex());
    code.elements(to.getShape(), [&](ArrayRef<Num> place) {
      Nums whole = {index};
      llvm::append_range(whole, place);
      to.storeStored(from.loadStored(whole), place);
    });
  }
};

} // namespace

void attachShapeModels(MLIRContext &context) {
  ConcatOp::attachInterface<LowerConcat>(context);
  SplitOp::attachInterface<LowerSplit>(context);
  ExtractOp::attachInterface<LowerExtract>(context);
  PadOp::attachInterface<LowerPad>(context);
  SelectOp::attachInterface<LowerSelect>(context);
}

} // namespace weft::lower
