//===- VerifyImport.cpp - checks the result of Import ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Pipeline/Import/Passes.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_VERIFYIMPORTPASS
#include "weft/Pipeline/Import/Passes.h.inc"

namespace {

LogicalResult checkInputs(ModuleOp module) {
  bool hasImages = module.lookupSymbol<VariableOp>("images") != nullptr;
  llvm::StringRef data = hasImages ? "images" : "tokens";
  llvm::StringRef expected = hasImages ? "labels" : "targets";
  for (llvm::StringRef name :
       {data, expected, llvm::StringRef("seed"), llvm::StringRef("step_number")}) {
    auto variable = module.lookupSymbol<VariableOp>(name);
    if (!variable || variable.getRole() != VariableRole::Input) {
      return module.emitError("verify-import: expected an input called '") << name << "'";
    }
  }
  return success();
}

LogicalResult checkOptimizer(ModuleOp module) {
  size_t count = llvm::range_size(module.getOps<OptimizerOp>());
  if (count != 1) {
    return module.emitError("verify-import: expected one optimizer, got ") << count;
  }
  return success();
}

/// Checks that the function assigns to no variable or, if `allowStatistics` is true, to statistics
/// only.
LogicalResult checkAssignments(func::FuncOp function, bool allowStatistics) {
  WalkResult walk = function.walk([&](AssignOp assign) {
    auto variable =
        SymbolTable::lookupNearestSymbolFrom<VariableOp>(assign, assign.getVariableAttr());
    if (allowStatistics && variable.getRole() == VariableRole::Statistic) {
      return WalkResult::advance();
    }
    assign.emitError("verify-import: expected no assignment in @")
        << function.getSymName() << (allowStatistics ? " but to statistics" : "");
    return WalkResult::interrupt();
  });
  return failure(walk.wasInterrupted());
}

LogicalResult checkLoss(ModuleOp module) {
  auto loss = module.lookupSymbol<func::FuncOp>("loss");
  if (!loss) {
    return module.emitError("verify-import: expected a function @loss");
  }
  FunctionType type = loss.getFunctionType();
  auto result = type.getNumResults() == 1 ? llvm::dyn_cast<RankedTensorType>(type.getResult(0))
                                          : RankedTensorType();
  if (type.getNumInputs() != 0 || !result || result.getRank() != 0 ||
      !llvm::isa<FloatType>(result.getElementType())) {
    return loss.emitError("verify-import: expected @loss to have no arguments and one "
                          "floating-point number as result, got ")
           << type;
  }
  return checkAssignments(loss, /*allowStatistics=*/true);
}

LogicalResult checkEvaluate(ModuleOp module) {
  auto evaluate = module.lookupSymbol<func::FuncOp>("evaluate");
  if (!evaluate) {
    return success(); // Modules written by hand may lack validation.
  }
  FunctionType type = evaluate.getFunctionType();
  if (type.getNumInputs() != 0 || type.getNumResults() != 0) {
    return evaluate.emitError(
               "verify-import: expected @evaluate to have no arguments and no results, got ")
           << type;
  }
  return checkAssignments(evaluate, /*allowStatistics=*/false);
}

LogicalResult checkInit(ModuleOp module) {
  auto init = module.lookupSymbol<func::FuncOp>("init");
  if (!init) {
    return module.emitError("verify-import: expected a function @init");
  }
  FunctionType type = init.getFunctionType();
  if (type.getNumInputs() != 0 || type.getNumResults() != 0) {
    return init.emitError("verify-import: expected @init to have no arguments and no results, got ")
           << type;
  }
  llvm::StringMap<int> assignments;
  init.walk([&](AssignOp assign) { ++assignments[assign.getVariable()]; });
  for (VariableOp variable : module.getOps<VariableOp>()) {
    int count = assignments.lookup(variable.getSymName());
    VariableRole role = variable.getRole();
    bool isOfModel = role == VariableRole::Parameter || role == VariableRole::Statistic;
    if (isOfModel && count != 1) {
      return variable.emitError("verify-import: ")
             << stringifyVariableRole(role) << " '" << variable.getSymName() << "' is assigned "
             << count << " times in @init, expected once";
    }
  }
  return success();
}

LogicalResult checkLayers(ModuleOp module) {
  for (auto function : module.getOps<func::FuncOp>()) {
    FunctionType type = function.getFunctionType();
    if (function.isPrivate() &&
        (type.getNumInputs() == 0 || !llvm::isa<IndexType>(type.getInput(0)))) {
      return function.emitError("verify-import: expected the first argument of layer function @")
             << function.getSymName() << " to be the layer's number, of type index";
    }
  }
  return success();
}

bool hasEncoding(Type type) {
  auto tensor = llvm::dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getEncoding();
}

LogicalResult checkEncodings(ModuleOp module) {
  WalkResult walk = module.walk([](Operation *op) {
    auto variable = llvm::dyn_cast<VariableOp>(op);
    if (llvm::any_of(op->getResultTypes(), hasEncoding) ||
        (variable && hasEncoding(variable.getTensorType()))) {
      op->emitError("verify-import: expected no sharding before Plan");
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

struct VerifyImportPass : impl::VerifyImportPassBase<VerifyImportPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (auto check : {checkInputs, checkOptimizer, checkLoss, checkInit, checkEvaluate,
                       checkLayers, checkEncodings}) {
      if (failed(check(module))) {
        return signalPassFailure();
      }
    }
    markAllAnalysesPreserved();
  }
};

} // namespace

void buildImportPipeline(OpPassManager &manager) { manager.addPass(createVerifyImportPass()); }

} // namespace weft
