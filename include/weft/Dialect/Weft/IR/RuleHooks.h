//===- RuleHooks.h - where a test plants mistakes in factor rules ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What an op says of how it may be sharded is believed: whoever asks, the verifier included, gets
// the same answer, so no verifier finds a wrong one. Whether tests do is tested by mistakes that
// weft-opt plants here. No other tool sets a hook.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DIALECT_WEFT_IR_RULEHOOKS_H
#define WEFT_DIALECT_WEFT_IR_RULEHOOKS_H

#include "weft/Dialect/Weft/IR/Weft.h"

namespace weft {

/// Null where nothing is planted. Set before the first op is made, and not changed after: any
/// thread may call them.
struct RuleHooks {
  /// Changes a rule that was just made.
  void (*changeRule)(mlir::Operation *op, FactorRule &rule) = nullptr;
  /// Whether `op` says that it is additive in operands that it is not additive in.
  bool (*claimsAdditive)(mlir::Operation *op) = nullptr;
};
extern RuleHooks ruleHooks;

/// Whether `op` says that it is additive in `operands`, see ShardableOpInterface.
bool isAdditive(ShardableOpInterface op, llvm::ArrayRef<unsigned> operands);

} // namespace weft

#endif // WEFT_DIALECT_WEFT_IR_RULEHOOKS_H
