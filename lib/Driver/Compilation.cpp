//===- Compilation.cpp - from descriptions to a program -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Driver/Compilation.h"

#include "CheckModule.h"

#include "weft/Driver/PassDiagnostics.h"
#include "weft/Driver/Progress.h"

#include "support/Text.h"
#include "weft/Cost/PredictProgram.h"
#include "weft/Dialect/Weft/IR/StageMarks.h"
#include "weft/InitAll.h"
#include "weft/Meaning/ProveMeaning.h"
#include "weft/Meaning/ProveTable.h"
#include "weft/Pipeline/Import/Import.h"
#include "weft/Pipeline/Import/ImportGraph.h"
#include "weft/Pipeline/ModuleSizes.h"
#include "weft/Pipeline/ModuleText.h"
#include "weft/Pipeline/Pipeline.h"
#include "weft/Pipeline/Plan/PadVariables.h"
#include "weft/Pipeline/Plan/Passes.h"
#include "weft/Pipeline/Plan/WritePlan.h"
#include "weft/Pipeline/Schedule/BuildProgram.h"
#include "weft/Pipeline/StepCost.h"
#include "weft/Planner/ReviewPlan.h"

#include "weft/Dialect/Weft/IR/Sharding.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace weft;

namespace {

DialectRegistry allDialects() {
  DialectRegistry registry;
  registerAllWeft(registry);
  return registry;
}

/// The largest number of plans for less and less memory, if programs do not fit.
constexpr int kRounds = 5;

/// The runtime library of the build or installation that this program belongs to.
std::string ownRuntimeLibrary() {
  int anchor = 0; // Any address inside of this program.
  std::string self = llvm::sys::fs::getMainExecutable("weft", &anchor);
  llvm::SmallString<256> path = llvm::sys::path::parent_path(llvm::sys::path::parent_path(self));
  llvm::sys::path::append(path, "lib", "libweft-rt.a");
  return path.str().str();
}

} // namespace

Compilation::Compilation(const CompileOptions &options, const Descriptions &descriptions)
    : options(options), descriptions(descriptions), request(descriptions.plan),
      context(allDialects()) {
  follow(request);
  context.printOpOnDiagnostic(false);
  context.getDiagEngine().registerHandler(printPassDiagnostic);
  if (!options.dumpFolder.empty()) {
    // The printer prints whole modules, which no other thread may change meanwhile.
    context.disableMultithreading();
  }
}

void Compilation::print(const llvm::Twine &message) const {
  llvm::errs() << "weft " << options.command << ": " << message << '\n';
}

LogicalResult Compilation::fail(const llvm::Twine &message) const {
  print(message);
  return failure();
}

LogicalResult Compilation::begin() {
  if (!options.dumpFolder.empty()) {
    if (std::error_code code = llvm::sys::fs::create_directories(options.dumpFolder)) {
      return fail("cannot write into '" + options.dumpFolder + "': " + code.message());
    }
  }
  if (options.startAfter) {
    bool isScheduled = *options.startAfter == Phase::Schedule;
    return failure(failed(parseModule()) ||
                   (isScheduled && (failed(makePrograms()) || failed(checkMemory()))));
  }
  Progress progress(Phase::Import, wantsProgress(options.verbose));
  if (failed(import()) || failed(runPasses(Phase::Import))) {
    return failure();
  }
  progress.finish();
  return success();
}

LogicalResult Compilation::import() {
  if (options.import.observesLogits && request.accumulation > 1) {
    return fail(
        "--observe-logits gives those of a whole batch, expected an accumulation of 1, got " +
        llvm::Twine(request.accumulation));
  }
  if (!descriptions.graph) {
    module = importModel(context, *descriptions.model, descriptions.recipe, options.import);
    return success();
  }
  desc::Diagnostics problems;
  module = importGraph(context, *descriptions.graph, *descriptions.model, descriptions.recipe,
                       options.import, problems);
  llvm::errs() << desc::str(problems);
  if (!problems.empty()) {
    return failure();
  }
  std::string fault = idleAxisOf(*module, request); // Dimensions of a graph are known only now.
  return fault.empty() ? success() : fail(fault);
}

LogicalResult Compilation::parseModule() {
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> buffer = openInputFile(options.input, &error);
  if (!buffer) {
    return fail(error);
  }
  if (std::optional<std::string> refusal = checkModuleText(buffer->getBuffer())) {
    return fail("'" + options.input + "': " + *refusal);
  }
  auto sources = std::make_shared<llvm::SourceMgr>();
  sources->AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  SourceMgrDiagnosticHandler handler(*sources, &context);
  module = parseSourceFile<ModuleOp>(sources, &context);
  if (!module) {
    return failure();
  }
  std::string fault = mismatchOf(*module, options.input, descriptions.recipe, request);
  return fault.empty() ? success() : fail(fault);
}

LogicalResult Compilation::runPasses(Phase phase) {
  PassManager manager(&context);
  if (!options.dumpFolder.empty()) {
    llvm::SmallString<256> folder(options.dumpFolder);
    llvm::sys::path::append(folder, llvm::Twine(static_cast<int>(phase)) + "-" + nameOf(phase));
    manager.enableIRPrintingToFileTree(
        /*shouldPrintBeforePass=*/nullptr,
        /*shouldPrintAfterPass=*/[](Pass *, Operation *) { return true; },
        /*printModuleScope=*/true, /*printAfterOnlyOnChange=*/true,
        /*printAfterOnlyOnFailure=*/false, folder);
  }
  PipelineOptions pipelineOptions;
  pipelineOptions.plan = planText;
  pipelineOptions.machine = descriptions.machine.text;
  pipelineOptions.batch = descriptions.recipe.globalBatch;
  pipelineOptions.accumulation = request.accumulation;
  pipelineOptions.pipeline = request.pipeline;
  const desc::RecipeSpec &recipe = descriptions.recipe;
  pipelineOptions.narrowReductions =
      recipe.precision == desc::Precision::BF16 && recipe.reduction == desc::Precision::BF16;
  pipelineOptions.target = options.target;
  pipelineOptions.fusesEpilogues = !options.separateEpilogues;
  pipelineOptions.encodesMatmuls = !options.wideMatmuls;
  pipelineOptions.mutation = options.mutation;
  pipelineOptions.reserve = reserve;
  pipelineOptions.padsOpenVariables = padsOpenVariables;
  pipelineOptions.writtenPlan = settled ? &*settled : &request;
  pipelineOptions.question = question;
  if (phase == Phase::Schedule && options.target == TargetKind::Cuda) {
    (*module)->setAttr(kTargetAttrName, StringAttr::get(module->getContext(), "cuda"));
  }
  PlanResults results = buildPhase(manager, phase, pipelineOptions);
  // Verifies once per phase; weft-opt, which tests run, verifies after each pass.
  manager.enableVerifier(false);
  LogicalResult ran = manager.run(*module);
  if (phase == Phase::Plan) {
    facts.search = results.search->report;
    facts.answer = results.search->answer;
    facts.price = *results.price;
  }
  return failure(failed(ran) || failed(verify(*module)));
}

LogicalResult Compilation::runPhases() {
  Phase first = options.startAfter.value_or(Phase::Import);
  Phase last = std::min(options.stopAfter.value_or(Phase::Lower), Phase::Lower);
  for (Phase phase : allPhases()) {
    if (phase <= first || phase > last) {
      continue;
    }
    if (phase == Phase::Plan) {
      unplanned = module->clone();
      stepFlops = countStepFlops(*module, descriptions.recipe.globalBatch); // Not of padding.
    }
    if (failed(runPhase(phase))) {
      return failure();
    }
    if (phase == Phase::Schedule && (failed(planSmaller()) || failed(findAccumulation()) ||
                                     failed(findUnevenHomes()) || failed(settlePadding()))) {
      return failure();
    }
    if (phase == Phase::Schedule) {
      llvm::for_each(remarks, [&](const std::string &remark) { print(remark); });
      if (!options.isPlanning && failed(checkMemory())) {
        return failure();
      }
    }
  }
  return success();
}

bool Compilation::mayPlanSmaller() const {
  return unplanned && facts.search.fits && facts.search.decisions > 0 && !fits();
}

LogicalResult Compilation::planAgain() {
  module = unplanned->clone();
  follow(settled ? *settled : request);
  facts = {};
  for (Phase phase : {Phase::Plan, Phase::Partition, Phase::Schedule}) {
    if (failed(runPhase(phase))) {
      return failure();
    }
  }
  return success();
}

LogicalResult Compilation::planSmaller() {
  // Some buffers that the search counts are dead at the program's peak, so a reserve that grows by
  // the missing bytes may not suffice: each round doubles the addition.
  const auto room = double(descriptions.machine.device.memoryBytes);
  int64_t more = 0;
  for (int round = 0; round < kRounds && mayPlanSmaller(); ++round) {
    std::string before = planHash;
    double missing = double(deviceBytes()) - room;
    more = std::max(2 * more, int64_t(missing));
    reserve = std::max(reserve, int64_t(double(deviceBytes()) - facts.search.bytes)) + more;
    if (failed(planAgain())) {
      return failure();
    }
    if (planHash == before) {
      break; // It is pinned.
    }
  }
  return success();
}

std::vector<int64_t> Compilation::laterAccumulations() const {
  std::vector<int64_t> counts;
  desc::PlanSpec parts = request;
  for (int64_t &count = ++parts.accumulation; count <= descriptions.recipe.globalBatch; ++count) {
    int64_t last = counts.empty() ? request.accumulation : counts.back();
    if (count >= 2 * last && descriptions.recipe.globalBatch % count == 0 &&
        planner::reviewPlan(*descriptions.model, descriptions.recipe, descriptions.machine, parts)
            .errors.empty()) {
      counts.push_back(count);
    }
  }
  return counts;
}

LogicalResult Compilation::tryAccumulation(int64_t count) {
  request.accumulation = count;
  reserve = 0;
  return success(succeeded(planAgain()) && succeeded(planSmaller()));
}

bool Compilation::mayRecompute() const {
  return request.activations.empty() && descriptions.model && !descriptions.model->graph;
}

LogicalResult Compilation::findAccumulation() {
  bool isGiven = request.accumulation > 1 || !request.accumulationLocation.file.empty();
  std::vector<int64_t> counts;
  if (unplanned && !fits() && !isGiven && !options.import.observesLogits) {
    counts = laterAccumulations();
  }
  if (counts.empty()) {
    return success();
  }
  const double room = double(descriptions.machine.device.memoryBytes);
  const std::string whole = rt::bytesText(deviceBytes());
  for (int64_t count : counts) {
    double before = double(deviceBytes());
    bool isTaken = false;
    {
      // Some graphs need all samples of a step at once, and AccumulateMicroBatches says why: such a
      // graph stays one that does not fit.
      ScopedDiagnosticHandler handler(&context, [](Diagnostic &) { return success(); });
      isTaken = succeeded(tryAccumulation(count));
    }
    if (!isTaken) {
      return tryAccumulation(1);
    }
    if (fits()) {
      remarks.push_back("a batch at once needs " + whole +
                        " per rank, more than a device has: it is taken in " +
                        std::to_string(count) + " micro-batches" +
                        (mayRecompute() ? ", of which recompute=full may need fewer" : ""));
      return success();
    }
    // Twice as many halve what depends on a micro-batch. The rest alone may be too much.
    double after = double(deviceBytes());
    if (count > counts.front() && after - (before - after) > room) {
      return success();
    }
  }
  return success();
}

LogicalResult Compilation::planUnevenHomes() {
  request = descriptions.plan;
  reserve = 0;
  remarks.clear();
  padsOpenVariables = true;
  LogicalResult isPlanned = planAgain();
  isPlanned =
      success(succeeded(isPlanned) && succeeded(planSmaller()) && succeeded(findAccumulation()));
  padsOpenVariables = false;
  if (failed(isPlanned)) {
    return failure();
  }
  // Again, without padding of variables that the plan cuts evenly.
  double leastSeconds = facts.search.leastSeconds;
  request.homes = facts.plan.homes;
  reserve = 0;
  if (failed(planAgain()) || failed(planSmaller())) {
    return failure();
  }
  facts.search.leastSeconds = std::min(facts.search.leastSeconds, leastSeconds);
  return success();
}

LogicalResult Compilation::findUnevenHomes() {
  if (!unplanned || facts.search.decisions == 0 || options.import.observesLogits ||
      !hasOpenUnevenVariables(*unplanned, descriptions.plan)) {
    return success();
  }
  PlanAttempt even{std::move(module),
                   std::move(partitioned),
                   std::move(facts),
                   std::move(programs),
                   request,
                   reserve,
                   remarks};
  std::string reason;
  bool isPlanned;
  {
    // Some graph's op may depend on padding. The plan without it stays.
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      bool isError = diagnostic.getSeverity() == DiagnosticSeverity::Error;
      reason = isError && reason.empty() ? diagnostic.str() : reason;
      return success(isError);
    });
    isPlanned = succeeded(planUnevenHomes());
  }
  auto rank = [&](const rt::Programs &of) {
    uint64_t bytes = cost::largestOf(of).deviceBytes();
    bool isTooLarge = bytes > uint64_t(descriptions.machine.device.memoryBytes);
    return std::pair(isTooLarge, isTooLarge ? double(bytes) : cost::stepSeconds(of));
  };
  double leastSeconds = even.facts.search.leastSeconds;
  leastSeconds = isPlanned ? std::min(facts.search.leastSeconds, leastSeconds) : leastSeconds;
  if (isPlanned && rank(programs) < rank(even.programs)) {
    remarks.push_back("the mesh divides no dimension of some variables: they are padded between "
                      "steps");
  } else {
    module = std::move(even.module);
    partitioned = std::move(even.partitioned);
    facts = std::move(even.facts);
    programs = std::move(even.programs);
    request = std::move(even.request);
    reserve = even.reserve;
    remarks = std::move(even.remarks);
    follow(facts.plan);
    if (!isPlanned) {
      remarks.push_back("variables that the mesh does not divide cannot be padded: " + reason);
    }
  }
  facts.search.leastSeconds = leastSeconds;
  return success();
}

LogicalResult Compilation::settlePadding() {
  // Pins may pad dimensions that the search then leaves whole, and devices want longer rows for
  // the shards that it found.
  for (int round = 0; unplanned && round < kRounds; ++round) {
    if (givesPadding(facts.plan, *unplanned, *module, descriptions.recipe.globalBatch,
                     options.target == TargetKind::Cuda)) {
      break;
    }
    SearchReport before = facts.search;
    settled = facts.plan;
    if (failed(planAgain())) {
      return failure();
    }
    facts.search.leastSeconds = std::min(facts.search.leastSeconds, before.leastSeconds);
    facts.search.gap = std::max(facts.search.gap, before.gap);
  }
  return success();
}

LogicalResult Compilation::runPhase(Phase phase) {
  // Lower changes the module that has the code of the program's kernels.
  if (phase == Phase::Lower && failed(prove(phase))) {
    return failure();
  }
  Progress progress(phase, wantsProgress(options.verbose));
  if (failed(runPasses(phase))) {
    return failure();
  }
  if (phase == Phase::Plan) {
    facts.plan = writePlan(*module);
    facts.plan.accumulation = request.accumulation;
    facts.plan.activations = request.activations;
    facts.plan.pipeline = request.pipeline;
    facts.plan.mayPad &= settled ? settled->mayPad : request.mayPad;
    follow(facts.plan);
    readFacts();
  }
  if ((phase == Phase::Partition && failed(prove(phase))) ||
      (phase == Phase::Schedule && failed(makePrograms()))) {
    return failure();
  }
  progress.finish();
  return success();
}

LogicalResult Compilation::prove(Phase phase) {
  OwningOpRef<ModuleOp> before = std::move(partitioned);
  if (options.mutation || isMistakePlanted()) {
    return success();
  }
  if (phase == Phase::Partition) {
    partitioned = module->clone();
  }
  if (phase == Phase::Partition ? !unplanned : !before) {
    return success(); // There is nothing to compare with.
  }
  Progress progress("meaning", wantsProgress(options.verbose));
  if (failed(phase == Phase::Partition ? proveMeaning(*unplanned, *module)
                                       : proveTable(*before, stageModulesOf(*module), programs))) {
    return failure();
  }
  progress.finish();
  return success();
}

void Compilation::follow(const desc::PlanSpec &plan) {
  planText = desc::printPlan(plan);
  planHash = desc::hashPlan(plan);
}

void Compilation::readFacts() {
  if (!options.isPlanning) {
    return;
  }
  facts.variables = listHomes(*module);
}

LogicalResult Compilation::makePrograms() {
  const desc::RecipeSpec &recipe = descriptions.recipe;
  ProgramInfo info;
  info.modelName = module->getSymName().value_or("").str();
  info.planText = planText;
  info.planHash = planHash;
  info.globalBatch = recipe.globalBatch;
  info.microBatches = request.accumulation;
  info.sequenceLength = recipe.sequenceLength;
  info.vocabulary = sizesOf(*module).vocabulary;
  info.documentEnd = recipe.documentEnd;
  info.defaultSteps = recipe.steps;
  info.defaultSeed = recipe.seed;
  info.stepFlops = stepFlops;
  ProgramContext context{*module, descriptions.machine, recipe.precision};
  FailureOr<rt::Programs> built = buildPrograms(info, context, options.target);
  if (failed(built)) {
    return failure();
  }
  programs = std::move(*built);
  return success();
}

uint64_t Compilation::deviceBytes() const { return cost::largestOf(programs).deviceBytes(); }

bool Compilation::fits() const {
  return deviceBytes() <= static_cast<uint64_t>(descriptions.machine.device.memoryBytes);
}

LogicalResult Compilation::checkMemory() const {
  if (fits()) {
    return success();
  }
  const desc::DeviceSpec &device = descriptions.machine.device;
  std::string parts = request.accumulation > 1
                          ? ", in " + std::to_string(request.accumulation) + " micro-batches"
                          : "";
  const rt::Program &largest = cost::largestOf(programs);
  if (!largest.deviceUses.empty()) {
    parts += ", " + rt::bytesText(largest.arenaBytes) + " of it for its arena";
  }
  std::vector<std::string> remedies = {"split it over more ranks", "make the batch smaller"};
  if (unplanned && !options.import.observesLogits && !laterAccumulations().empty()) {
    remedies.push_back("take it in more micro-batches (accumulation)");
  }
  if (mayRecompute()) {
    remedies.push_back("recompute activations (recompute=full)");
  }
  std::string last = remedies.back();
  remedies.pop_back();
  std::string remedy = "; " + llvm::join(remedies, ", ") + ", or " + last;
  std::string who = programs.size() > 1 ? " per rank of stage " + std::to_string(largest.rankClass)
                                        : std::string(" per rank");
  return fail("the program needs " + rt::bytesText(largest.deviceBytes()) + who + parts +
              ", but a device '" + device.name + "' of machine '" + descriptions.machine.name +
              "' has " + rt::bytesText(device.memoryBytes) + remedy);
}

LogicalResult Compilation::emit(const std::string &archivePath, const std::string &programPath,
                                const std::string &objectPath) {
  Progress progress(Phase::Emit, wantsProgress(options.verbose));
  EmitOptions emitOptions;
  emitOptions.target = options.target;
  emitOptions.cpu = options.cpu;
  emitOptions.sanitize = options.sanitize;
  emitOptions.multiprocessors = descriptions.machine.device.cuda.multiprocessors;
  emitOptions.cacheFolder = options.cacheFolder;
  FailureOr<EmitReport> report = emitArchive(*module, programs, emitOptions, archivePath);
  if (failed(report) || failed(checkMemory())) {
    return failure();
  }
  emitReport = *report;
  LinkOptions link;
  link.archivePath = archivePath;
  link.runtimeLibraryPath =
      options.runtimeLibrary.empty() ? ownRuntimeLibrary() : options.runtimeLibrary;
  link.outputPath = programPath;
  link.sanitize = options.sanitize;
  auto emitError = [&] { return module->emitError(); };
  if (failed(linkExecutable(link, emitError)) ||
      (options.keepObject && failed(mergeObjects(link, objectPath, emitError)))) {
    return failure();
  }
  progress.finish();
  return success();
}
