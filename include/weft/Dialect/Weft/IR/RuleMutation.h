//===- RuleMutation.h - plants a mistake in a factor rule, to test the tests -===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What an op says of how it may be sharded is believed: whoever asks gets the same answer, so no
// verifier finds a wrong one. Whether the tests do is tested by mistakes that are planted here:
//
//   swap      two dimensions of a tensor carry each other's factors
//   factor    a dimension carries the next factor
//   forget    a dimension carries a factor of its own
//   free      a factor that must be replicated may be cut
//   join      the partial values of a result are joined by another operator
//   additive  the op is additive in whatever operands
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DIALECT_WEFT_IR_RULEMUTATION_H
#define WEFT_DIALECT_WEFT_IR_RULEMUTATION_H

#include "weft/Dialect/Weft/IR/Weft.h"

namespace weft {

/// A mistake in what all ops of one name say.
struct RuleMutation {
  std::string op, kind;
  /// Numbers the mistakes of the kind that can be made in a rule. An op whose rule has no such one
  /// stays as it is.
  unsigned site = 0;

  /// Reads NAME:KIND:SITE; nothing if `text` is something else.
  static std::optional<RuleMutation> parse(llvm::StringRef text);
};

/// What options that plant one say of themselves.
extern const char *const kRuleMutationHelp;

/// From now on the mistake is made, in this process.
/// REQUIRES: there are no ops yet. Not to be called again.
void plant(RuleMutation mutation);

/// Changes `rule`, which was just made for `op`, if a mistake in it is planted.
void mutateRule(mlir::Operation *op, FactorRule &rule);

/// Whether `op` says that it is additive in `operands`, see ShardableOpInterface.
bool isAdditive(ShardableOpInterface op, llvm::ArrayRef<unsigned> operands);

} // namespace weft

#endif // WEFT_DIALECT_WEFT_IR_RULEMUTATION_H
