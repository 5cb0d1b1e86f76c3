//===- ObserveValues.h - makes every value of a step observable -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two programs of one model with different shardings or pipeline stages compute the same values,
// apart from what reshards, collectives and transfers only move. If every value is observed, the
// first difference shows which op or movement is wrong. A value is named by what it is computed
// from, as stages have other orders, and copies of what each of them computes for itself.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_VERIFY_OBSERVEVALUES_H
#define WEFT_VERIFY_OBSERVEVALUES_H

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace weft::verify {

/// An observed value of a program.
struct ObservedValue {
  /// The value's name in the program's file of gradients.
  std::string name;
  /// The name, in any program of the model, of the value that it must be equal to: its own, or, for
  /// a copy or what a reshard, collective or transfer moved, that of the value itself.
  std::string original;
  /// The op that made it: "layers.0/mlp.down (contract)", or "all-reduce sum over tp of
  /// layers.0/mlp.down (contract)"; with stages also its own: "… in stage 1".
  std::string maker;
  /// True if it is rounded to so few bits that tiny differences before rounding may become large
  /// ones.
  bool isCoarse = false;
  /// True if a program without stages need not have the original: a sum, as each stage may add up
  /// its own terms of it.
  bool mayBeOfStage = false;
};

/// Makes the step of `module` observe all its floating-point values, and returns them in the order
/// of the step. Layers and the functions of micro-batches are inlined, so that each use has its own
/// values; stages then work on one micro-batch after another. Reshards reduce pending sums before
/// they are observed. The step no longer ends if its loss or gradient norm is not finite.
///
/// REQUIRES: every tensor has a sharding.
std::vector<ObservedValue> observeValues(mlir::ModuleOp module);

} // namespace weft::verify

#endif // WEFT_VERIFY_OBSERVEVALUES_H
