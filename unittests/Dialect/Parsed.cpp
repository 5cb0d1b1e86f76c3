//===- Parsed.cpp - ops from text, for tests -------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Parsed.h"

#include "weft/Dialect/Weft/IR/ScalarOps.h"

#include "mlir/Parser/Parser.h"

#include <cstdlib>

using namespace mlir;

namespace weft::test {

MLIRContext &context() {
  static MLIRContext *context = [] {
    DialectRegistry registry;
    registry.insert<WeftDialect, func::FuncDialect, arith::ArithDialect, math::MathDialect>();
    registerScalarOpModels(registry);
    auto *made = new MLIRContext(registry);
    made->loadAllAvailableDialects();
    return made;
  }();
  return *context;
}

Parsed::Parsed(const std::string &arguments, const std::string &op) {
  std::string text = "#mesh = #weft.mesh<\"dp\"=2, \"tp\"=4>\nfunc.func private @f(" + arguments +
                     ") {\n" + op + "\nreturn\n}\n";
  module = parseSourceString<ModuleOp>(text, &context());
  if (!module) {
    llvm::errs() << text;
    std::abort();
  }
}

Parsed parseMap(unsigned arguments, const std::string &body) {
  std::string head, operands, types, maps, scalars;
  for (unsigned i = 0; i < arguments; ++i) {
    std::string comma = i == 0 ? "" : ", ", number = std::to_string(i);
    head += comma + "%x" + number + ": tensor<f64>";
    operands += comma + "%x" + number;
    types += comma + "tensor<f64>";
    maps += comma + "affine_map<() -> ()>";
    scalars += comma + "%" + number + ": f64";
  }
  return Parsed(head, "%y = weft.map ins(" + operands + " : " + types + ") maps [" + maps +
                          "] -> tensor<f64> {\n^bb0(" + scalars + "):\n" + body + "\n}");
}

} // namespace weft::test
