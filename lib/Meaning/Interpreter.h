//===- Interpreter.h - a program's functions and what it gives ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_MEANING_INTERPRETER_H
#define WEFT_LIB_MEANING_INTERPRETER_H

#include "AlikeMicroBatches.h"
#include "Evaluation.h"

#include "llvm/ADT/DenseSet.h"

namespace weft::meaning {

/// A value that the program gives: a variable's new value, or an observed one.
struct Given {
  mlir::Operation *op;
  /// "@name" or "name", with the use of the layer that observes it.
  std::string name;
  uint32_t value;
};

/// Evaluates the functions of a program that a run calls, with the functions that they call.
class Interpreter {
public:
  Interpreter(mlir::ModuleOp module, Evaluation &evaluation)
      : module(module), evaluation(evaluation), symbols(module) {}
  Interpreter(const Interpreter &) = delete;

  /// What `root` gives, in order.
  std::vector<Given> run(mlir::func::FuncOp root);

private:
  using Values = llvm::DenseMap<mlir::Value, uint32_t>;

  Evaluation::Ids call(CallOp op, llvm::ArrayRef<uint32_t> arguments, llvm::StringRef label);
  /// Evaluates the ops of micro-batches that begin with `first`, and adds them to `done`. Returns
  /// false if they must be evaluated one by one.
  bool runMicroBatches(CallOp first, Values &values, llvm::DenseSet<mlir::Operation *> &done,
                       llvm::StringRef label);
  /// Evaluates all micro-batches at once, each of which adds to the totals of the one before, and
  /// adds the last totals to `values`. Returns false if that is not all that they do.
  bool runTogether(const AlikeMicroBatches &found, Values &values, llvm::StringRef label);
  /// Adds the results of `op` to `values`.
  void run(mlir::Operation *op, Values &values, llvm::StringRef label);
  /// Returns what `function` returns. `values` has its arguments.
  Evaluation::Ids run(mlir::func::FuncOp function, Values &values, llvm::StringRef label);
  void give(mlir::Operation *op, llvm::StringRef name, uint32_t value, llvm::StringRef label);

  using Key = std::pair<mlir::Operation *, std::vector<uint32_t>>;

  mlir::ModuleOp module;
  Evaluation &evaluation;
  mlir::SymbolTable symbols;
  std::vector<Given> given;
  std::map<Key, Evaluation::Ids> known;
  /// Functions that give something, or call such functions.
  llvm::DenseMap<mlir::Operation *, bool> giving;
  bool gives(mlir::Operation *op);
};

} // namespace weft::meaning

#endif // WEFT_LIB_MEANING_INTERPRETER_H
