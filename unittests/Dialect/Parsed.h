//===- Parsed.h - ops from text, for tests ---------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_UNITTESTS_DIALECT_PARSED_H
#define WEFT_UNITTESTS_DIALECT_PARSED_H

#include "weft/Dialect/Weft/IR/Weft.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>

namespace weft::test {

/// Returns the context of all tests, with the dialects that they parse.
mlir::MLIRContext &context();

/// A function whose one op is under test.
class Parsed {
public:
  /// `arguments` is the text of the function's arguments, `op` a line of its body. Ends the test
  /// program if they do not parse.
  Parsed(const std::string &arguments, const std::string &op);

  template <typename OpTy> OpTy get() {
    return *module->lookupSymbol<mlir::func::FuncOp>("f").getOps<OpTy>().begin();
  }
  ShardableOpInterface shardable() { return get<ShardableOpInterface>(); }

private:
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

/// A map of as many f64 scalars as `body` has arguments; `body` names them %0, %1, … and yields.
Parsed parseMap(unsigned arguments, const std::string &body);

} // namespace weft::test

#endif // WEFT_UNITTESTS_DIALECT_PARSED_H
