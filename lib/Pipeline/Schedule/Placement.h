//===- Placement.h - places of assigned values ----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A variable keeps one place for the whole run, and the value that it is assigned
// must be there when the step ends. Let D be the op that computes the value:
//
//   Direct   all reads of the old value come before D: D writes to the place.
//   Tied     D itself is the last that reads the old value, and a kernel that may
//            write over what it reads, as a map does: D works in place.
//   Kept     the value assigned is the variable's old value: nothing to do.
//   Copy     otherwise.
//
// The same holds for what calls of a repeat pass on: the next call expects it in the place of what
// this one got.
//
// The decision is made on the list of all uses of ops, with all calls inlined. An op is tied
// in all its uses or in none. A kernel whose result is not assigned may work in place of any
// operand that is not read afterwards: that saves memory and its traffic. Logits and their
// gradient, the largest of all values, share one place in this way.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_SCHEDULE_PLACEMENT_H
#define WEFT_LIB_PIPELINE_SCHEDULE_PLACEMENT_H

#include "Linearize.h"

namespace weft {

enum class Placing { Direct, Tied, Kept, Copy };

/// For each result of an op, the number of the operand whose storage it takes over, or -1.
using Ties = llvm::DenseMap<mlir::Operation *, llvm::SmallVector<int64_t>>;

/// Returns one entry for each assignment of the section, in order. `ties` names the ties of ops;
/// launches have their own.
std::vector<Placing> placeAssignments(const FlatSection &section, const Ties &ties);
/// The same for each carry of the section, in order.
std::vector<Placing> placeCarries(const FlatSection &section, const Ties &ties);

/// Returns the operand that an op for a library may compute `result` in place of, or -1: what an
/// all-reduce sums, and what a matmul adds its product to.
int64_t inPlaceOperand(mlir::Operation *op, size_t result);

/// Returns the ops that can be tied in all their uses in all sections, and their ties. Never ties a
/// result to an operand that an op has twice, or to a variable other than the assigned one.
Ties decideTies(llvm::ArrayRef<FlatSection> sections);

/// Linearizes `@init`, `@step` and, if present, `@evaluate`. Fails with an error if one of the
/// first two is missing, or one cannot be linearized.
mlir::FailureOr<llvm::SmallVector<FlatSection, 3>> linearizeSections(mlir::ModuleOp module,
                                                                     const ModuleSymbols &symbols);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_SCHEDULE_PLACEMENT_H
