//===- Linearize.h - a section with its calls inlined ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Walks `@init`, `@step` or `@evaluate` through all calls and lists every use of an op in the
// order of execution. An op of a layer function is listed once for each call of the
// function. Values are numbered: each use of an op gives new numbers, and all reads of a
// variable give the one number of its old value. A reshape gives the number of its operand.
//
// Work on micro-batches that repeats (Repeats.h) is listed once, for all: that of the first of
// them. A result of it has one number, whatever the micro-batch. What the first call gets and what
// the last one leaves are values of the section; `FlatCarry` says which of them belong in one
// place. Functions that gather parameters, called between, are listed once before it, and those
// that reduce gradients behind it.
//
// Changes nothing; refers to the module's ops, and is valid as long as they are.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_SCHEDULE_LINEARIZE_H
#define WEFT_LIB_PIPELINE_SCHEDULE_LINEARIZE_H

#include "weft/Dialect/Weft/IR/Weft.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

#include <optional>
#include <string>
#include <vector>

namespace weft {

/// A module's variables, numbered in order, and its functions by name.
struct ModuleSymbols {
  explicit ModuleSymbols(mlir::ModuleOp module);

  std::vector<VariableOp> variables;
  llvm::DenseMap<mlir::StringAttr, uint32_t> numberOfVariable;
  llvm::DenseMap<mlir::StringAttr, mlir::func::FuncOp> functions;
};

/// Ops that several actions run, each for its micro-batch, if they are of one.
struct FlatBody {
  std::string name;
  /// The first of the ops. They end where the next body begins, or the repeat ends.
  int32_t begin = 0;
};

struct FlatAction {
  uint32_t body = 0;
  std::optional<int64_t> microBatch;
};

/// The work on micro-batches that repeats: ops `begin` to `end - 1`. What gathers for it are ops
/// `first` to `begin - 1`, what reduces its sums ops `end` to `last - 1`.
struct FlatRepeat {
  int32_t first = 0, begin = 0, end = 0, last = 0;
  /// Of all three, in this order.
  std::vector<FlatBody> bodies;
  std::vector<FlatAction> actions;

  bool contains(int32_t time) const { return begin <= time && time < end; }
  int32_t endOf(size_t body) const {
    return body + 1 < bodies.size() ? bodies[body + 1].begin : last;
  }
};

struct FlatValue {
  /// The type of the defining op's result, before any reshape.
  mlir::Type type;
  /// The variable whose old value this is, or -1.
  int32_t variable = -1;
  /// Number of the defining op, or -1.
  int32_t definedAt = -1;
  /// Number of the last op that reads it, or -1; assignments do not count. Of a value from before
  /// the repeat that all micro-batches read: the number of the op after it.
  int32_t lastRead = -1;
  /// Several bodies of the repeat read it last, some micro-batches in another order than that of
  /// the list.
  bool isReadInOtherOrders = false;
  /// The value of an index, if known.
  std::optional<int64_t> constant;
  /// An index that is the number of the micro-batch, in a repeat.
  bool isMicroBatch = false;

  /// Returns true if the op of that number reads it, and nothing does later.
  bool endsAt(int32_t time) const { return lastRead == time && !isReadInOtherOrders; }
};

/// One use of an op that has tensors as operands or results, or at which ranks agree.
struct FlatOp {
  mlir::Operation *op;
  /// Number of the path of call labels that leads to it.
  uint32_t path;
  /// The index in `FlatSection::numbers` of its operands' numbers; its results' numbers follow.
  uint32_t begin;
};

struct FlatAssign {
  AssignOp op;
  uint32_t variable, value;
};

/// Result number `result` of the function of body `body`, `after`, which the call for the next
/// micro-batch gets instead of `before`: it belongs in its place.
struct FlatCarry {
  uint32_t body;
  mlir::func::ReturnOp op;
  unsigned result;
  uint32_t before, after;
};

struct FlatSection {
  std::vector<FlatOp> ops;
  std::vector<FlatValue> values;
  std::vector<FlatAssign> assigns;
  std::optional<FlatRepeat> repeat;
  std::vector<FlatCarry> carries;
  /// Labels of nested calls joined by '/'; path 0 is the section itself, "".
  std::vector<std::string> paths;
  std::vector<uint32_t> numbers;
  /// The number of the op at which ranks agree to go on, or -1. Variables keep their old values
  /// until then.
  int32_t agreedAt = -1;

  llvm::ArrayRef<uint32_t> operandsOf(const FlatOp &op) const {
    return llvm::ArrayRef(numbers).slice(op.begin, op.op->getNumOperands());
  }
  llvm::ArrayRef<uint32_t> resultsOf(const FlatOp &op) const {
    return llvm::ArrayRef(numbers).slice(op.begin + op.op->getNumOperands(),
                                         op.op->getNumResults());
  }
  /// Returns true if a body of the repeat leaves the value to a later one for each micro-batch.
  bool isOfMicroBatch(const FlatValue &value) const;
  /// Returns true if the value is gathered for work on micro-batches, perhaps several times.
  bool isGathered(const FlatValue &value) const;
};

/// Linear in the length of the list. Fails, with an error at the op, if a function calls itself
/// or has no single block, or a variable is assigned twice or not in the section itself.
mlir::FailureOr<FlatSection> linearize(mlir::func::FuncOp section, const ModuleSymbols &symbols);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_SCHEDULE_LINEARIZE_H
