//===- SmallPrograms.cpp - the programs that weft verify compares --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Driver/SmallPrograms.h"

#include "weft/Driver/Compilation.h"

#include "weft/Dialect/Weft/IR/AttributeNames.h"
#include "weft/Pipeline/Dimensions.h"
#include "weft/Pipeline/Partition/CollectiveMistake.h"
#include "weft/Pipeline/Plan/Passes.h"
#include "weft/Planner/ReviewPlan.h"
#include "weft/Verify/CollectiveKinds.h"
#include "weft/Verify/FollowPlan.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FileUtilities.h"

using namespace mlir;
using namespace weft;

namespace {

/// Returns a machine with a core for each rank: models for all machines are verified on a host.
desc::MachineSpec hostFor(int64_t ranks) {
  std::string text = "version: 1 name: \"verify\" devices_per_node: " + std::to_string(ranks) + R"(
    device {
      name: "core"
      peak_flops { precision: F64 flops: 1e10 }
      memory_bytes: 17179869184
      memory_bandwidth_bytes_per_second: 1e10
    })";
  if (ranks > 1) {
    text += "links { name: \"memory\" scope: NODE latency_seconds: 1e-6 "
            "bandwidth_bytes_per_second: 5e9 }";
  }
  return *desc::parseMachine(text);
}

LogicalResult toCollectives(ModuleOp module, const desc::MachineSpec &machine) {
  PassManager manager(module.getContext());
  ReshardToCollectivesPassOptions options;
  options.machine = machine.text;
  manager.addPass(createReshardToCollectivesPass(options));
  return manager.run(module);
}

/// Gives `module` the plan's mesh and the shardings of the original. Returns the reason if that is
/// impossible, else nothing.
std::string takePlan(ModuleOp module, const SmallProgramRequest &request) {
  std::string reason;
  ScopedDiagnosticHandler handler(module.getContext(), [&](Diagnostic &diagnostic) {
    bool isFirstError = reason.empty() && diagnostic.getSeverity() == DiagnosticSeverity::Error;
    reason += isFirstError ? diagnostic.str() : "";
    return success();
  });
  OwningOpRef<ModuleOp> planned =
      parseSourceString<ModuleOp>(request.plan->text, module.getContext());
  if (!planned) {
    return reason.empty() ? "unknown reason" : reason;
  }
  const verify::Shrunk &shrunk = *request.shrunk;
  desc::PlanSpec plan = shrunk.plan;
  verify::addHomes(plan, module, *planned, shrunk.layers);
  StepParts parts =
      makeStepParts(shrunk.recipe.globalBatch, shrunk.plan.accumulation, shrunk.plan.pipeline);
  // Narrow sums, which the small model does not have, are not separated by stages.
  parts.stages.ownSums = request.original->recipe.gradientAccumulation != desc::Precision::BF16;
  ApplyPlanPassOptions options;
  options.plan = desc::printPlan(plan);
  PassManager manager(module.getContext());
  // Entries of a file for the large model need not match anything in the small one.
  for (std::vector<desc::ShardingSpec> *entries : {&plan.shardings, &plan.homes}) {
    for (desc::ShardingSpec &entry : *entries) {
      entry.location = {};
    }
  }
  buildApplyPlanPipeline(manager, parts, options, {&plan});
  if (failed(manager.run(module)) || failed(verify::followPlan(module, *planned, shrunk.layers)) ||
      failed(mlir::verify(module))) {
    return reason.empty() ? "unknown reason" : reason;
  }
  return "";
}

/// Marks collective number `index`, for mutate-collective to break.
llvm::Error markMutation(ModuleOp module, int64_t index) {
  int64_t count = 0;
  module.walk([&](Operation *op) {
    if (mayMutate(op) && count++ == index) {
      op->setAttr(kMutatedAttrName, UnitAttr::get(op->getContext()));
    }
  });
  return index < count ? llvm::Error::success()
                       : makeError("no collective number " + llvm::Twine(index) + ", there are " +
                                   llvm::Twine(count));
}

/// One compilation of the small model.
class SmallCompilation {
public:
  explicit SmallCompilation(const SmallProgramRequest &request)
      : request(request), descriptions(describe(request)) {
    if (request.plan) {
      options.mutation = request.mutation;
    }
  }

  llvm::Expected<SmallProgram> run(const std::string &path) {
    if (llvm::Error error = check()) {
      return error;
    }
    SmallProgram result;
    result.path = path;
    Compilation compilation(options, descriptions);
    if (failed(compilation.begin()) || failed(differentiate(compilation))) {
      return makeSilentError();
    }
    if (request.plan) {
      std::string reason = takePlan(compilation.getModule(), request);
      if (!reason.empty()) {
        return makeError("the small model cannot be split as the original is: " + reason);
      }
    } else if (failed(compilation.runPhase(Phase::Plan))) {
      return makeSilentError();
    }
    if (llvm::Error error = finish(compilation, result)) {
      return error;
    }
    return result;
  }

private:
  static Descriptions describe(const SmallProgramRequest &request) {
    desc::PlanSpec plan;
    if (request.plan) {
      plan = request.shrunk->plan;
    } else if (request.accumulates) {
      plan.accumulation = request.shrunk->plan.accumulation;
    }
    plan.activations = request.shrunk->plan.activations;
    // As for shardings: in float64 there are no casts, for example.
    for (desc::ActivationSpec &entry : plan.activations) {
      entry.location = {};
    }
    return {request.shrunk->model, request.original->graph, hostFor(plan.ranks()),
            request.shrunk->recipe, plan};
  }

  /// Returns an error if the small model is invalid, with the rule that it breaks.
  llvm::Error check() const {
    planner::PlanReview review = planner::reviewPlan(*descriptions.model, descriptions.recipe,
                                                     descriptions.machine, descriptions.plan);
    if (review.errors.empty()) {
      return llvm::Error::success();
    }
    const desc::Diagnostic &first = review.errors.front();
    return makeError("the model cannot be made smaller under this plan, by " + first.rule + ": " +
                     first.message);
  }

  LogicalResult differentiate(Compilation &compilation) const {
    ModuleOp module = compilation.getModule();
    module->setAttr(kRecomputesAttrName,
                    Builder(module.getContext())
                        .getStrArrayAttr(llvm::to_vector_of<StringRef>(request.recomputed)));
    LogicalResult done = compilation.runPhase(Phase::Differentiate);
    module->removeAttr(kRecomputesAttrName);
    return done;
  }

  llvm::Error finish(Compilation &compilation, SmallProgram &result) {
    ModuleOp module = compilation.getModule();
    // Observed values and broken collectives must exist before Partition, and then sequences keep
    // their order: balance-sequences reorders no values that move already.
    bool picksOut = options.mutation || request.observes;
    if (picksOut && failed(toCollectives(module, descriptions.machine))) {
      return makeSilentError();
    }
    if (options.mutation) {
      if (llvm::Error error = markMutation(module, options.mutation->index)) {
        return error;
      }
    }
    if (request.observes) {
      result.values = verify::observeValues(module);
    }
    if (failed(compilation.runPhase(Phase::Partition))) {
      return makeSilentError();
    }
    result.collectives = verify::collectiveKinds(module, request.plan ? request.plan->mesh
                                                                      : descriptions.plan.parts());
    llvm::FileRemover object(path(result, ".a"));
    if (failed(compilation.runPhase(Phase::Schedule)) ||
        failed(compilation.runPhase(Phase::Lower)) ||
        failed(compilation.emit(path(result, ".a"), result.path))) {
      return makeSilentError();
    }
    result.programs = compilation.getPrograms();
    return llvm::Error::success();
  }

  static std::string path(const SmallProgram &result, llvm::StringRef suffix) {
    return result.path + suffix.str();
  }

  const SmallProgramRequest &request;
  const Descriptions descriptions;
  CompileOptions options;
};

} // namespace

/// Returns the sizes of dimensions that are padded in matmuls, by name.
static std::map<std::string, int64_t> paddedSizesOf(ModuleOp module) {
  Dimensions dimensions(module);
  llvm::DenseSet<uint32_t> padded;
  for (auto variable : module.getOps<VariableOp>()) {
    ArrayRef<int64_t> shape = variable.getTensorType().getShape();
    for (auto [dim, size] : llvm::enumerate(variable.getUnpadded().value_or(shape))) {
      if (size != shape[dim]) {
        padded.insert(dimensions.classOf(variable, int64_t(dim)));
      }
    }
  }
  std::map<std::string, int64_t> sizes;
  module.walk([&](ContractOp op) {
    auto shardable = cast<ShardableOpInterface>(op.getOperation());
    FactorRule rule = shardable.getFactorRule();
    for (auto [number, factor] : llvm::enumerate(rule.factors)) {
      auto [carrier, dim] = carriersOf(op, rule, unsigned(number)).front();
      if (padded.contains(dimensions.classOf(carrier, dim))) {
        for (StringRef name : dimensions.namesOf(shardable, rule, unsigned(number))) {
          sizes[name.str()] = factor.size;
        }
      }
    }
  });
  return sizes;
}

llvm::Expected<OriginalPlan> weft::planOriginal(const CompileOptions &options,
                                                const Descriptions &descriptions, int64_t reserve) {
  CompileOptions whole = options;
  whole.mutation = std::nullopt;
  Compilation compilation(whole, descriptions);
  compilation.leave(reserve);
  if (failed(compilation.begin()) || failed(compilation.runPhase(Phase::Differentiate)) ||
      failed(compilation.runPhase(Phase::Plan)) ||
      failed(toCollectives(compilation.getModule(), descriptions.machine))) {
    return makeSilentError();
  }
  OriginalPlan plan;
  compilation.getModule().walk([&](Operation *op) {
    if (auto name = op->getAttrOfType<StringAttr>(kRecomputedAttrName)) {
      plan.recomputed.push_back(name.str());
    }
  });
  if (options.target == TargetKind::Cuda) {
    plan.paddedSizes = paddedSizesOf(compilation.getModule());
  }
  llvm::raw_string_ostream stream(plan.text);
  compilation.getModule().print(stream, OpPrintingFlags().enableDebugInfo());
  if (failed(compilation.runPhase(Phase::Partition))) {
    return makeSilentError();
  }
  plan.mesh = descriptions.plan.parts();
  plan.collectives = verify::collectiveKinds(compilation.getModule(), plan.mesh);
  return plan;
}

llvm::Expected<SmallProgram> weft::compileSmall(const SmallProgramRequest &request,
                                                const std::string &path) {
  return SmallCompilation(request).run(path);
}
