//===- Modules.cpp - modules of the weft dialect as text ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fuzz.h"

#include "weft/Dialect/Weft/IR/ScalarOps.h"
#include "weft/Dialect/Weft/IR/Weft.h"
#include "weft/Pipeline/ModuleText.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;

static std::unique_ptr<MLIRContext> makeContext() {
  DialectRegistry registry;
  registry.insert<weft::WeftDialect, func::FuncDialect, arith::ArithDialect, math::MathDialect>();
  weft::registerScalarOpModels(registry);
  auto context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  return context;
}

/// Reads the text as the compiler does.
static OwningOpRef<ModuleOp> parse(llvm::StringRef text, MLIRContext *context) {
  if (std::optional<std::string> refusal = weft::checkModuleText(text)) {
    require(!refusal->empty(), "an error says something");
    return nullptr;
  }
  return parseSourceString<ModuleOp>(text, context);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  // A context keeps every type and attribute that it has seen.
  static std::unique_ptr<MLIRContext> context;
  static int inputs = 0;
  if (inputs++ % 1000 == 0) {
    context = makeContext();
  }
  ScopedDiagnosticHandler silence(context.get(), [](Diagnostic &) { return success(); });
  // MLIR reads one byte beyond a text, which must be the zero behind that of a string.
  std::string text(reinterpret_cast<const char *>(data), size);
  OwningOpRef<ModuleOp> module = parse(text, context.get());
  if (module) {
    std::string printed;
    llvm::raw_string_ostream stream(printed);
    module->print(stream);
    require(bool(parse(printed, context.get())), "a module that is printed can be read");
  }
  return 0;
}
