//===- ScalarOps.cpp - scalar code inside a map -------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/ScalarOps.h"

#include "weft/Dialect/Weft/IR/ElementTypes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

#include "weft/Dialect/Weft/IR/WeftScalarInterfaces.cpp.inc"

namespace weft {

Linearity joinNonlinear(ArrayRef<Linearity> operands) {
  bool constant =
      llvm::all_of(operands, [](Linearity operand) { return operand == Linearity::Constant; });
  return constant ? Linearity::Constant : Linearity::Nonlinear;
}

SmallVector<Linearity> analyzeLinearity(Block &block, ArrayRef<unsigned> chosen) {
  DenseMap<Value, Linearity> known;
  for (BlockArgument argument : block.getArguments()) {
    known[argument] = llvm::is_contained(chosen, argument.getArgNumber()) ? Linearity::Additive
                                                                          : Linearity::Constant;
  }
  auto lookUp = [&](ValueRange values) {
    return llvm::map_to_vector(values, [&](Value value) { return known.lookup(value); });
  };
  for (Operation &op : block.without_terminator()) {
    known[op.getResult(0)] = cast<ScalarOpInterface>(op).getLinearity(lookUp(op.getOperands()));
  }
  return lookUp(block.getTerminator()->getOperands());
}

SmallVector<bool> findZeros(Block &block, ArrayRef<unsigned> zeros) {
  DenseMap<Value, bool> known;
  for (BlockArgument argument : block.getArguments()) {
    known[argument] = llvm::is_contained(zeros, argument.getArgNumber());
  }
  auto lookUp = [&](ValueRange values) {
    return llvm::map_to_vector(values, [&](Value value) { return known.lookup(value); });
  };
  for (Operation &op : block.without_terminator()) {
    known[op.getResult(0)] = cast<ScalarOpInterface>(op).isZero(lookUp(op.getOperands()));
  }
  return lookUp(block.getTerminator()->getOperands());
}

namespace {
/// Gradients of scalar values, with their terms added in order.
class ScalarGradients {
public:
  void add(OpBuilder &builder, Value value, Value gradient) {
    if (!gradient) {
      return;
    }
    Value &sum = of[value];
    sum = sum ? addScalars(builder, gradient.getLoc(), sum, gradient) : gradient;
  }
  Value get(Value value) const { return of.lookup(value); }

private:
  DenseMap<Value, Value> of;
};
} // namespace

SmallVector<Value> buildBlockGradient(OpBuilder &builder, Block &block, ValueRange arguments,
                                      ValueRange yieldedGradients) {
  IRMapping mapping;
  mapping.map(block.getArguments(), arguments);
  SmallVector<Operation *> clones;
  for (Operation &op : block.without_terminator()) {
    clones.push_back(builder.clone(op, mapping));
  }
  ScalarGradients gradients;
  for (auto [value, gradient] :
       llvm::zip_equal(block.getTerminator()->getOperands(), yieldedGradients)) {
    Value own = mapping.lookup(value);
    // Operands of casts accept gradients of any type; those of other ops need the value's type.
    bool isRounded = isa_and_present<arith::TruncFOp>(own.getDefiningOp());
    gradients.add(builder, own,
                  gradient && !isRounded
                      ? castScalar(builder, gradient.getLoc(), gradient, own.getType())
                      : gradient);
  }
  for (Operation *op : llvm::reverse(clones)) {
    Value gradient = gradients.get(op->getResult(0));
    if (!gradient) {
      continue;
    }
    SmallVector<Value> operandGradients(op->getNumOperands());
    cast<ScalarOpInterface>(op).buildScalarGradient(builder, gradient, operandGradients);
    for (auto [operand, operandGradient] : llvm::zip(op->getOperands(), operandGradients)) {
      gradients.add(builder, operand, operandGradient);
    }
  }
  return llvm::map_to_vector(arguments, [&](Value argument) { return gradients.get(argument); });
}

} // namespace weft
