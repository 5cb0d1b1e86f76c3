//===- VerifyDifferentiate.cpp - checks the result of Differentiate -----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Pipeline/Differentiate/Passes.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_VERIFYDIFFERENTIATEPASS
#include "weft/Pipeline/Differentiate/Passes.h.inc"

namespace {

/// Number of assignments to each variable in `function`.
llvm::StringMap<int> countAssignments(func::FuncOp function) {
  llvm::StringMap<int> count;
  function.walk([&](AssignOp assign) { ++count[assign.getVariable()]; });
  return count;
}

LogicalResult checkFunctions(ModuleOp module) {
  for (StringRef name : {"init", "step"}) {
    auto function = module.lookupSymbol<func::FuncOp>(name);
    if (!function) {
      return module.emitError("verify-differentiate: expected a function @") << name;
    }
    if (function.getNumArguments() != 0 || function.getNumResults() != 0) {
      return function.emitError("verify-differentiate: expected @")
             << name << " to have no arguments and no results, got " << function.getFunctionType();
    }
  }
  if (module.lookupSymbol("loss")) {
    return module.emitError("verify-differentiate: @loss is left, expected @step instead");
  }
  for (OptimizerOp optimizer : module.getOps<OptimizerOp>()) {
    return optimizer.emitError(
        "verify-differentiate: the optimizer is left, expected build-updates to replace it");
  }
  return success();
}

LogicalResult checkAssignments(ModuleOp module) {
  llvm::StringMap<int> inInit = countAssignments(module.lookupSymbol<func::FuncOp>("init"));
  llvm::StringMap<int> inStep = countAssignments(module.lookupSymbol<func::FuncOp>("step"));
  for (VariableOp variable : module.getOps<VariableOp>()) {
    StringRef name = variable.getSymName();
    if (variable.getRole() != VariableRole::Input && inInit.lookup(name) != 1) {
      return variable.emitError("verify-differentiate: '")
             << name << "' is assigned " << inInit.lookup(name) << " times in @init, expected once";
    }
    if (inStep.lookup(name) > 1) {
      return variable.emitError("verify-differentiate: '")
             << name << "' is assigned " << inStep.lookup(name)
             << " times in @step, expected once at most";
    }
  }
  return success();
}

LogicalResult checkEvaluate(ModuleOp module) {
  auto evaluate = module.lookupSymbol<func::FuncOp>("evaluate");
  if (!evaluate) {
    return success(); // Modules written by hand may lack validation.
  }
  if (evaluate.getNumArguments() != 0 || evaluate.getNumResults() != 0) {
    return evaluate.emitError(
               "verify-differentiate: expected @evaluate to have no arguments and no results, "
               "got ")
           << evaluate.getFunctionType();
  }
  for (AssignOp assign : evaluate.getOps<AssignOp>()) {
    return assign.emitError("verify-differentiate: expected no assignment in @evaluate");
  }
  llvm::StringMap<int> observed;
  evaluate.walk([&](ObserveOp observe) {
    if (!observe.getLimit()) {
      ++observed[observe.getName()];
    }
  });
  bool seesLogits = observed.contains("logits");
  if (observed.lookup("validation_loss") != 1 || observed.size() != 1u + seesLogits ||
      observed.lookup("logits") > 1) {
    return evaluate.emitError("verify-differentiate: expected @evaluate to observe "
                              "'validation_loss' once, 'logits' at most once, and nothing else "
                              "without a limit");
  }
  return success();
}

LogicalResult checkObservations(ModuleOp module) {
  auto step = module.lookupSymbol<func::FuncOp>("step");
  llvm::StringSet<> observed;
  step.walk([&](ObserveOp observe) { observed.insert(observe.getName()); });
  for (StringRef name : {"loss", "gradient_norm"}) {
    if (!observed.contains(name)) {
      return step.emitError("verify-differentiate: expected @step to observe '") << name << "'";
    }
  }
  llvm::StringMap<int> assigned = countAssignments(step);
  for (VariableOp variable : module.getOps<VariableOp>()) {
    std::string name = ("gradient/" + variable.getSymName()).str();
    if (variable.getRole() == VariableRole::Parameter && assigned.contains(variable.getSymName()) &&
        !observed.contains(name)) {
      return variable.emitError("verify-differentiate: expected @step to observe '") << name << "'";
    }
  }
  return success();
}

struct VerifyDifferentiatePass : impl::VerifyDifferentiatePassBase<VerifyDifferentiatePass> {
  void runOnOperation() override {
    for (auto check : {checkFunctions, checkAssignments, checkEvaluate, checkObservations}) {
      if (failed(check(getOperation()))) {
        return signalPassFailure();
      }
    }
    markAllAnalysesPreserved();
  }
};

} // namespace

void buildDifferentiatePipeline(OpPassManager &manager, const desc::PlanSpec *plan) {
  // The step up to the gradients. This pass decides which values a layer keeps for backward.
  manager.addPass(createBuildGradientsPass({}, plan));
  // After gradients exist, as they have scales too.
  manager.addPass(createDelayScalingPass());
  // Last, as the norm is over all gradients.
  manager.addPass(createBuildUpdatesPass({}, plan));
  manager.addPass(createVerifyDifferentiatePass());
}

} // namespace weft
