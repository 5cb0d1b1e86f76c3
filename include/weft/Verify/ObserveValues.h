//===- ObserveValues.h - every value of a step, for the outside to see ----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two programs of one model, split in different ways, compute the same values in the same order,
// and one of them moves values between ranks besides. With every value observed, the first that
// differs names the op that made it, and where a value is right before it is moved and wrong after,
// the movement.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_VERIFY_OBSERVEVALUES_H
#define WEFT_VERIFY_OBSERVEVALUES_H

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace weft::verify {

/// A value that a program shows.
struct ObservedValue {
  /// What the program calls it: a name in the file of its gradients.
  std::string name;
  /// What any program of the model calls the value that it must be: the same, or if something has
  /// moved it, that before.
  std::string original;
  /// "layers.0/mlp.down (contract)", or "all-reduce sum over tp of layers.0/mlp.down (contract)".
  std::string maker;
  /// Whether it is rounded to so few bits that a number between two of them may become either.
  bool isCoarse = false;
};

/// Lets the step of `module` show all its values of floating-point numbers, and lists them in the
/// order of the step. Layers become part of the step: each use has its own values. What is a
/// pending sum is summed for this, by a reshard. The step no longer ends where its loss or gradient
/// norm is not finite.
///
/// REQUIRES: every tensor has a sharding.
std::vector<ObservedValue> observeValues(mlir::ModuleOp module);

} // namespace weft::verify

#endif // WEFT_VERIFY_OBSERVEVALUES_H
