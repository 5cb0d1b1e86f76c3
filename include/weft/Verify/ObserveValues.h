//===- ObserveValues.h - makes every value of a step observable -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two programs of one model with different shardings compute the same values in the same order,
// apart from reshards and collectives. If every value is observed, the first difference shows which
// op, reshard or collective is wrong.
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
  /// the result of a reshard or collective, that of the value before the movement.
  std::string original;
  /// The op that made it: "layers.0/mlp.down (contract)", or "all-reduce sum over tp of
  /// layers.0/mlp.down (contract)".
  std::string maker;
  /// True if it is rounded to so few bits that tiny differences before rounding may become large
  /// ones.
  bool isCoarse = false;
};

/// Makes the step of `module` observe all its floating-point values, and returns them in the order
/// of the step. Layers are inlined, so that each use has its own values. Reshards reduce pending
/// sums before they are observed. The step no longer ends if its loss or gradient norm is not
/// finite.
///
/// REQUIRES: every tensor has a sharding.
std::vector<ObservedValue> observeValues(mlir::ModuleOp module);

} // namespace weft::verify

#endif // WEFT_VERIFY_OBSERVEVALUES_H
