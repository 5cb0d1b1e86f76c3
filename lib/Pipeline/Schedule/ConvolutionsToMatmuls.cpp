//===- ConvolutionsToMatmuls.cpp - convolutions for the library -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/ElementTypes.h"
#include "weft/Dialect/Weft/IR/Windows.h"
#include "weft/Pipeline/Schedule/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_CONVOLUTIONSTOMATMULSPASS
#include "weft/Pipeline/Schedule/Passes.h.inc"

namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Builds the matmuls of one convolution.
class MatmulBuilder {
public:
  template <typename OpTy>
  explicit MatmulBuilder(OpTy op) : builder(op), loc(op.getLoc()), isTF32(op.getTf32()) {}

  /// Returns `value` with the dimensions from `first` on merged into one.
  Value merge(Value value, int64_t first) {
    RankedTensorType type = typeOf(value);
    if (type.getRank() == first + 1) {
      return value;
    }
    SmallVector<int64_t> shape(type.getShape().take_front(first));
    shape.push_back(type.getNumElements() / type.clone(shape).getNumElements());
    return ReshapeOp::create(builder, loc, type.clone(shape), value, groupsOf(type, first));
  }

  /// The inverse: returns a value of `type`.
  Value split(Value value, RankedTensorType type, int64_t first) {
    if (type.getRank() == first + 1) {
      return value;
    }
    return ReshapeOp::create(builder, loc, type, value, groupsOf(type, first));
  }

  /// Returns the inputs of each output: the image itself for a window of one place that moves by
  /// one.
  template <typename OpTy> Value unfold(OpTy op, Value image, RankedTensorType kernel) {
    if (isTrivial(op, kernel)) {
      return merge(image, 2);
    }
    ArrayRef<int64_t> sizes = kernel.getShape().drop_front(2);
    return UnfoldOp::create(builder, loc, columnsOf(op, typeOf(image), kernel), image, sizes,
                            op.getStrides(), op.getLow(), op.getHigh(), op.getDilations());
  }

  template <typename OpTy>
  Value fold(OpTy op, Value columns, RankedTensorType image, RankedTensorType kernel) {
    if (isTrivial(op, kernel)) {
      return split(columns, image, 2);
    }
    ArrayRef<int64_t> sizes = kernel.getShape().drop_front(2);
    return FoldOp::create(builder, loc, image, columns, sizes, op.getStrides(), op.getLow(),
                          op.getHigh(), op.getDilations());
  }

  /// The type of `weft.unfold` of an image.
  template <typename OpTy>
  RankedTensorType columnsOf(OpTy op, RankedTensorType image, RankedTensorType kernel) {
    ArrayRef<int64_t> sizes = kernel.getShape().drop_front(2);
    int64_t rows = image.getDimSize(1), places = 1;
    for (auto [number, window] : llvm::enumerate(windowsOf(op, sizes))) {
      rows *= window.size;
      places *= window.countOutputs(image.getDimSize(number + 2));
    }
    return image.clone({image.getDimSize(0), rows, places});
  }

  /// Builds a contraction with a result of a wide type.
  Value contract(StringRef equation, ArrayRef<int64_t> shape, Value a, Value b) {
    Type element = wideTypeOf(typeOf(a).getElementType());
    auto matmul = ContractOp::create(builder, loc, RankedTensorType::get(shape, element), equation,
                                     ValueRange{a, b});
    matmul.setTf32(isTF32);
    return matmul;
  }

private:
  ArrayAttr groupsOf(RankedTensorType type, int64_t first) {
    SmallVector<Attribute> groups;
    for (int64_t dim = 0; dim < first; ++dim) {
      groups.push_back(builder.getI64ArrayAttr({dim}));
    }
    groups.push_back(
        builder.getI64ArrayAttr(llvm::to_vector(llvm::seq<int64_t>(first, type.getRank()))));
    return builder.getArrayAttr(groups);
  }

  template <typename OpTy> static bool isTrivial(OpTy op, RankedTensorType kernel) {
    return llvm::all_of(windowsOf(op, kernel.getShape().drop_front(2)), [](const Window &window) {
      return window.size == 1 && window.stride == 1 && window.low == 0 && window.high == 0;
    });
  }

  OpBuilder builder;
  Location loc;
  bool isTF32;
};

/// Returns true if a library has matmuls for a convolution of these tensors.
bool isForLibrary(Value operand, RankedTensorType input, RankedTensorType kernel) {
  Type element = getElementTypeOrSelf(operand);
  return (element.isF32() || isNarrow(element)) && input.getDimSize(1) == kernel.getDimSize(1);
}

/// Builds the value that replaces the result, or returns null. Letters: sample n, output channel o,
/// channel and place of the window k, output place p.
Value convert(ConvolutionOp op) {
  RankedTensorType kernel = typeOf(op.getKernel()), output = typeOf(op.getOutput());
  if (!isForLibrary(op.getInput(), typeOf(op.getInput()), kernel)) {
    return {};
  }
  MatmulBuilder build(op);
  Value columns = build.unfold(op, op.getInput(), kernel);
  Value weights = build.merge(op.getKernel(), 1);
  int64_t places = typeOf(columns).getDimSize(2);
  Value matmul = build.contract("ok,nkp->nop", {output.getDimSize(0), output.getDimSize(1), places},
                                weights, columns);
  return build.split(matmul, output, 2);
}

Value convert(ConvolutionInputGradOp op) {
  RankedTensorType kernel = typeOf(op.getKernel()), image = typeOf(op.getOutput());
  if (!isForLibrary(op.getGradient(), image, kernel)) {
    return {};
  }
  MatmulBuilder build(op);
  Value columns = build.contract("ok,nop->nkp", build.columnsOf(op, image, kernel).getShape(),
                                 build.merge(op.getKernel(), 1), build.merge(op.getGradient(), 2));
  return build.fold(op, columns, image, kernel);
}

Value convert(ConvolutionKernelGradOp op) {
  RankedTensorType kernel = typeOf(op.getOutput());
  if (!isForLibrary(op.getInput(), typeOf(op.getInput()), kernel)) {
    return {};
  }
  MatmulBuilder build(op);
  Value columns = build.unfold(op, op.getInput(), kernel);
  Value matmul =
      build.contract("nop,nkp->ok", {kernel.getDimSize(0), typeOf(columns).getDimSize(1)},
                     build.merge(op.getGradient(), 2), columns);
  return build.split(matmul, kernel, 1);
}

struct ConvolutionsToMatmulsPass : impl::ConvolutionsToMatmulsPassBase<ConvolutionsToMatmulsPass> {
  void runOnOperation() override {
    convertAll<ConvolutionOp>();
    convertAll<ConvolutionInputGradOp>();
    convertAll<ConvolutionKernelGradOp>();
  }

  template <typename OpTy> void convertAll() {
    getOperation().walk([&](OpTy op) {
      if (Value value = convert(op)) {
        op.getOutput().replaceAllUsesWith(value);
        op.erase();
        ++converted;
      }
    });
  }
};

} // namespace
} // namespace weft
