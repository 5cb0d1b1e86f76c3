//===- UpdateRule.h - how an optimizer updates a parameter ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_DIFFERENTIATE_UPDATERULE_H
#define WEFT_LIB_PIPELINE_DIFFERENTIATE_UPDATERULE_H

#include "weft/Dialect/Weft/IR/Weft.h"

namespace weft {
class Arithmetic;

/// The effects of the norm of all gradients on an update; each may be null.
struct ByNorm {
  /// A factor on gradients.
  mlir::Value scale;
  /// A norm. If it is not finite, the update keeps the old values.
  mlir::Value finite;
};

/// One kind of optimizer: the states that it keeps, and the formula of its update.
class UpdateRule {
public:
  UpdateRule(mlir::OpBuilder &builder, mlir::Location loc, OptimizerOp optimizer)
      : builder(builder), loc(loc), optimizer(optimizer) {}
  virtual ~UpdateRule() = default;

  /// Returns the names of a parameter's states: "adam_m", "momentum". Each has the parameter's type
  /// and is zero at first.
  virtual llvm::SmallVector<llvm::StringRef> getStates(VariableOp variable) = 0;

  /// Returns the scalars that all updates of a step share, besides the learning rate. `step` is the
  /// number of the step, an i64 from 0.
  virtual llvm::SmallVector<mlir::Value> corrections(mlir::Value /*step*/) { return {}; }

  /// Returns the type of the direction in which a joint parameter moves, or null for parameters
  /// that are not joint. `begin`, `join` and `end` build the updates of joint parameters, and
  /// `update` those of others.
  virtual mlir::RankedTensorType getDirectionType(VariableOp /*variable*/) { return {}; }

  /// Returns the direction of a joint parameter before it is joined with others, and then the new
  /// values of its states.
  virtual llvm::SmallVector<mlir::Value> begin(const ByNorm & /*byNorm*/, mlir::Value /*gradient*/,
                                               mlir::ValueRange /*states*/,
                                               VariableOp /*variable*/) {
    llvm_unreachable("no parameter is joint");
  }

  /// Computes the directions of all parameters with the type and the matrix of `like` together.
  virtual llvm::SmallVector<mlir::Value> join(mlir::ValueRange /*directions*/,
                                              VariableOp /*like*/) {
    llvm_unreachable("no parameter is joint");
  }

  /// Returns the new value of a joint parameter.
  virtual mlir::Value end(mlir::ValueRange /*schedule*/, const ByNorm & /*byNorm*/,
                          mlir::Value /*parameter*/, mlir::Value /*direction*/,
                          VariableOp /*variable*/) {
    llvm_unreachable("no parameter is joint");
  }

  /// Returns the new values of a parameter and its states. `schedule` has the learning rate and the
  /// corrections. Reads only the decay and the matrix of `variable`.
  virtual llvm::SmallVector<mlir::Value> update(mlir::ValueRange schedule, const ByNorm &byNorm,
                                                mlir::Value parameter, mlir::Value gradient,
                                                mlir::ValueRange states, VariableOp variable) = 0;

protected:
  /// Returns the weight decay of a parameter.
  double decayOf(VariableOp variable);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  OptimizerOp optimizer;
};

/// A rule by which each element is updated by itself: its update is one map.
class ElementwiseRule : public UpdateRule {
public:
  using UpdateRule::UpdateRule;

  llvm::SmallVector<mlir::Value> update(mlir::ValueRange schedule, const ByNorm &byNorm,
                                        mlir::Value parameter, mlir::Value gradient,
                                        mlir::ValueRange states, VariableOp variable) final;

protected:
  /// Returns the new weight and then the new states of one element. `rates` is the schedule.
  virtual llvm::SmallVector<mlir::Value>
  updateElement(Arithmetic &a, mlir::Value weight, mlir::Value gradient, mlir::ValueRange states,
                llvm::ArrayRef<mlir::Value> rates, double weightDecay) = 0;
};

/// Adds the values of `byNorm` that are not null to a map's operands: the scale, then the norm that
/// has to be finite.
void addPresent(llvm::SmallVector<mlir::Value> &inputs, const ByNorm &byNorm);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_DIFFERENTIATE_UPDATERULE_H
