//===- Interpreter.h - a program's functions and what it gives ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_MEANING_INTERPRETER_H
#define WEFT_LIB_MEANING_INTERPRETER_H

#include "Evaluation.h"

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
  Evaluation::Ids call(mlir::func::FuncOp function, llvm::ArrayRef<uint32_t> arguments,
                       llvm::StringRef label);
  /// The results of the last of `calls`, if they are calls of a function for one micro-batch after
  /// the other, each of which adds to the totals of the one before. None if it must be evaluated
  /// call by call.
  std::optional<Evaluation::Ids>
  callMicroBatches(llvm::ArrayRef<CallOp> calls,
                   const llvm::DenseMap<mlir::Value, uint32_t> &values, llvm::StringRef label);
  Evaluation::Ids run(mlir::func::FuncOp function, llvm::DenseMap<mlir::Value, uint32_t> &values,
                      llvm::StringRef label);
  void give(mlir::Operation *op, llvm::StringRef name, uint32_t value, llvm::StringRef label);

  using Key = std::pair<mlir::Operation *, std::vector<uint32_t>>;

  mlir::ModuleOp module;
  Evaluation &evaluation;
  mlir::SymbolTable symbols;
  std::vector<Given> given;
  std::map<Key, Evaluation::Ids> known;
  /// Functions that give something, or call such functions.
  llvm::DenseMap<mlir::Operation *, bool> giving;
  bool gives(mlir::func::FuncOp function);
};

} // namespace weft::meaning

#endif // WEFT_LIB_MEANING_INTERPRETER_H
