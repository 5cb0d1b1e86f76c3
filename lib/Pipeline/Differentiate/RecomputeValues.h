//===- RecomputeValues.h - values that backward recomputes ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A layer keeps the values that backward needs from forward to backward, and all layers keep theirs
// at once: most of a step's activations. Backward can compute them again instead, from values that
// are kept: each has a copy of its op before its first use. A plan's `activation` entries say which
// values are recomputed and which are kept.
//
// Values that no entry names are recomputed if that takes hardly longer than reading them, as for
// results of an activation function or a norm. An op is cheap to recompute if backward has its
// operands anyway, or if they do not grow with the batch. So is a chain of such ops in which each
// op has only one large operand. A chain ends at an op of several large values, as a residual sum:
// otherwise backward would recompute everything from the model's input.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_DIFFERENTIATE_RECOMPUTEVALUES_H
#define WEFT_LIB_PIPELINE_DIFFERENTIATE_RECOMPUTEVALUES_H

#include "weft/Description/Plan.h"

#include "mlir/IR/BuiltinOps.h"

#include <set>

namespace weft {

/// The `activation` entries of a plan.
class ActivationEntries {
public:
  /// The entries for ops of one layer, or of no layer, by number. Layers with the same entries may
  /// share functions.
  using OfLayer = llvm::SmallVector<unsigned>;

  explicit ActivationEntries(std::vector<desc::ActivationSpec> entries)
      : entries(std::move(entries)), isMatched(this->entries.size()) {}

  OfLayer of(std::optional<int64_t> layer) const;
  /// Returns what an op's entry says; nothing if it has none. `part` is its part of the model,
  /// "mlp.up", and `name` its own name, "mlp.up/contract/1".
  std::optional<desc::Saving> choose(const OfLayer &ofLayer, std::string part, std::string name);
  /// Fails, with an error for each, if entries of a file have matched no op of those that were
  /// asked for (legal_r11).
  llvm::LogicalResult check(mlir::MLIRContext *context) const;

private:
  std::vector<desc::ActivationSpec> entries;
  std::vector<bool> isMatched;
  /// Of the ops asked for.
  std::set<std::string> names;
};

/// Copies into `backward` those ops of `forward` whose results `backward` uses, where `entries`
/// says so, or where no entry says anything and they are cheap and need no further value that grows
/// with the batch. The copies have the attribute `kRecomputedAttrName`. If the module has
/// `kRecomputesAttrName`, its names decide which ops are cheap. `backward` may use values of
/// `forward`; the caller turns the remaining ones into arguments later.
void recomputeValues(mlir::Block &forward, mlir::Block &backward, ActivationEntries &entries,
                     const ActivationEntries::OfLayer &ofLayer);

/// Does the same in one block, of no layer, whose forward part ends with `end`; without `cheap`
/// only where `entries` says so.
void recomputeValues(mlir::Operation *end, ActivationEntries &entries, bool cheap);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_DIFFERENTIATE_RECOMPUTEVALUES_H
