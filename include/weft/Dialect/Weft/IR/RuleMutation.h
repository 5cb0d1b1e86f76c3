//===- RuleMutation.h - plants a mistake in a factor rule, to test the tests -===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All passes and verifiers trust the factor rule of an op, so none of them finds a wrong rule: only
// tests that run the shardings do. To check that these tests find it, a mistake can be planted:
//
//   swap      two dimensions of a tensor carry each other's factors
//   factor    a dimension carries the next factor
//   forget    a dimension carries a factor of its own
//   free      a factor that must be replicated may be cut
//   join      the partial values of a result are joined by another operator
//   additive  the op claims to be additive in any operands
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DIALECT_WEFT_IR_RULEMUTATION_H
#define WEFT_DIALECT_WEFT_IR_RULEMUTATION_H

#include "weft/Dialect/Weft/IR/Weft.h"

namespace weft {

/// A mistake in the factor rules of all ops of one name.
struct RuleMutation {
  std::string op, kind;
  /// Which of the possible mistakes of this kind in a rule to make. A rule that has no mistake of
  /// that number is unchanged.
  unsigned site = 0;

  /// Parses NAME:KIND:SITE; returns nothing if `text` has another form.
  static std::optional<RuleMutation> parse(llvm::StringRef text);
};

/// The help text of options that plant a mistake.
extern const char *const kRuleMutationHelp;

/// Plants the mistake for the rest of this process.
/// REQUIRES: there are no ops yet, and no earlier call.
void plant(RuleMutation mutation);

/// Returns true if `plant` was called.
bool isMistakePlanted();

/// Makes the planted mistake, if any, in `rule`, which was just built for `op`.
void mutateRule(mlir::Operation *op, FactorRule &rule);

/// Returns true if `op` claims to be additive in `operands`, see ShardableOpInterface.
bool isAdditive(ShardableOpInterface op, llvm::ArrayRef<unsigned> operands);

} // namespace weft

#endif // WEFT_DIALECT_WEFT_IR_RULEMUTATION_H
