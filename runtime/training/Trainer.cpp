//===- Trainer.cpp - a training run -----------------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "training/Trainer.h"

#include "checkpoint/Checkpoint.h"
#include "checkpoint/ObservedTensors.h"
#include "data/Prefetcher.h"
#include "execution/CollectedBytes.h"
#include "execution/NonFinite.h"
#include "report/MemoryReport.h"
#include "report/RunLog.h"
#include "support/CheckedMath.h"
#include "support/Elements.h"
#include "support/ErrorOutput.h"
#include "support/OutputFile.h"
#include "support/Text.h"
#include "training/Checkpoints.h"
#include "training/CollectProfiles.h"
#include "training/TimeLineRecorder.h"
#include "weft-rt/Expansion.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <unistd.h>

using namespace weft::rt;

namespace {

/// The state of one rank's thread.
struct alignas(64) RankState {
  /// That of the rank's class.
  const Program *program = nullptr;
  std::unique_ptr<Executor> executor;
  ObservedTensors gradients{"gradient/"}, logits{"logits"};
  std::unique_ptr<StepTimes> times;
  /// The number of steps done.
  int64_t step = 0;
  /// The current batch of the running validation, if any.
  std::optional<int64_t> validationBatch;
  bool notFinite = false, overflowed = false;
};

/// Returns the options for this process: only that of rank 0 prints and writes reports.
Options partOf(Options options, const Backend &backend) {
  if (!backend.ranksHere().has(0)) {
    options.quiet = true;
    options.metrics.clear();
  }
  return options;
}

size_t instructionsOf(const Program &program) { return Expansion(program, program.step).size(); }

/// The time without progress after which a device is late. It is shorter than the timeout with
/// which other ranks wait for its rank, so that the rank whose device is stuck reports first.
Monitor::Clock::duration patienceWithDevices(const Options &options) {
  return std::chrono::duration_cast<Monitor::Clock::duration>(
      std::chrono::duration<double>(0.75 * options.timeoutSeconds));
}

/// The part of a run in this process. While ranks run, each thread writes only its own RankState;
/// rank 0's thread also writes the run log and the output before the report on a non-finite value.
class Trainer : public Observer {
public:
  Trainer(std::span<const Program> programs, const KernelCode *kernels, const Options &options,
          const MakeExecutor &makeExecutor, Backend &backend)
      : programs(programs), program(programs.front()), options(partOf(options, backend)),
        backend(backend), here(backend.ranksHere()),
        threads(threadsOf(program, options, backend.ranksOnHost())), runLog(program, this->options),
        checkpoints(programs, this->options, here), timeLine(programs, this->options),
        prefetcher(programs, here, Prefetcher::Seconds(options.timeoutSeconds)),
        ranks(size_t(here.count)) {
    for (const Program &each : programs) {
      monitors.push_back(std::make_unique<Monitor>(each, patienceWithDevices(options)));
    }
    for (int64_t rank = here.first; here.has(rank); ++rank) {
      RankState &state = stateOf(rank);
      state.program = &programOf(programs, rank);
      state.executor = makeExecutor(*state.program, kernels, rank, threads);
      state.times =
          std::make_unique<StepTimes>(makeStepTimes(*state.program, profileSettings().keepsCalls));
      state.executor->measure(state.times.get());
      state.executor->watch(&monitorOf(rank));
      if (options.isInLine || options.takesTimes()) { // Calls are timed one by one.
        state.executor->keepInLine();
      }
      if (options.testDelays.shakeSeconds > 0) {
        state.executor->shake(options.testDelays);
      }
    }
  }

  ExitCode run();

  bool wants(int64_t rank, uint32_t observation) override;
  void observe(int64_t rank, uint32_t observation, const void *data) override;

private:
  Status prepare();
  Status prepareHere();
  Status prepareLoad();
  Status prepareOutputs();
  Status checkMemory();

  RankState &stateOf(int64_t rank) { return ranks[size_t(rank - here.first)]; }
  Monitor &monitorOf(int64_t rank) { return *monitors[programOf(programs, rank).rankClass]; }
  ProfileSettings profileSettings() const { return {threads, !options.profile.empty()}; }
  void runRank(RankState &state, Communicator &communicator);
  bool runSteps(RankState &state, Communicator &communicator);
  bool runStep(RankState &state, Communicator &communicator);
  bool validate(RankState &state, Communicator &communicator);
  bool keepCheckpoint(RankState &state, Communicator &communicator);
  void setCounter(RankState &state, std::string_view name, uint64_t value) const;
  bool takeBatch(RankState &state);

  bool keepsGradients(const RankState &state) const;
  bool keepsLogits(const RankState &state) const;
  void note(RankState &state, Outcome outcome) const;
  void findNotFinite(RankState &state);
  void reportNotFinite() const;
  void findOverflow(RankState &state);
  void reportOverflow() const;
  bool writeOutputs(RankState &state);
  bool writeProfile(RankState &state, std::string &told);
  ExitCode endAfter(const RunResult &result);

  const std::span<const Program> programs;
  /// That of class 0: what describes the run is the same in all.
  const Program &program;
  const Options options;
  Backend &backend;
  const RankRange here;
  const int64_t threads;
  RunLog runLog;
  RunData data;
  /// The file of --load.
  Checkpoint checkpoint;
  Checkpoints checkpoints;
  TimeLineRecorder timeLine;
  Prefetcher prefetcher;
  /// By rank class.
  std::vector<std::unique_ptr<Monitor>> monitors;
  /// The ranks of this process.
  std::vector<RankState> ranks;
  int64_t firstStep = 0, endStep = 0;
  bool hasMemory = true;
  /// The earliest finding of all ranks, in rank 0's process.
  std::optional<Finding> finding;
  /// The worst overflow of all ranks and the program of its rank, in rank 0's process.
  std::optional<std::pair<Overflow, const Program *>> overflow;
};

Status Trainer::prepare() {
  // This fails in all processes or in none.
  if (Status status = checkpoints.open(backend); !status) {
    return status;
  }
  Status own = prepareHere();
  Result<std::string> agreed = backend.agree(own ? Result(std::string()) : own.error());
  return agreed ? Status() : agreed.error();
}

/// May fail in some processes only.
Status Trainer::prepareHere() {
  if (Status status = prepareLoad(); !status) {
    return status;
  }
  if (Status status = data.open(programs, options, firstStep, endStep); !status) {
    return status;
  }
  if (Status status = timeLine.open(firstStep, endStep, here); !status) {
    return status;
  }
  if (Status status = checkMemory(); !status) {
    return status;
  }
  timeLine.allocate();
  if (Status status = prepareOutputs(); !status) {
    return status;
  }
  return runLog.tell(data.note());
}

Status Trainer::prepareLoad() {
  if (checkpoints.resumes()) {
    firstStep = checkpoints.firstStep();
  } else if (!options.load.empty()) {
    if (Status status = checkpoint.open(options.load, programs); !status) {
      return status;
    }
    if (Status status = runLog.tell(checkpoint.note()); !status) {
      return status;
    }
    firstStep = checkpoint.firstStep();
  }
  endStep = std::max(options.steps, firstStep);
  if (firstStep > options.steps) {
    return makeError("'", checkpoints.resumes() ? checkpoints.source() : options.load,
                     "' has seen ", firstStep, " steps, --steps is ", options.steps);
  }
  uint64_t samples = saturatingMul(uint64_t(endStep), uint64_t(program.globalBatch));
  if (samples > uint64_t(std::numeric_limits<int64_t>::max())) {
    return makeError("--steps is ", endStep, ", too many for the samples to be counted in 64 bits");
  }
  return {};
}

Status Trainer::checkMemory() {
  int64_t onHost = backend.ranksOnHost(), processes = onHost / std::max<int64_t>(here.count, 1);
  uint64_t own = prefetcher.bytes() + timeLine.bytes();
  for (const RankState &rank : ranks) {
    own = saturatingAdd(own, rank.executor->hostBytes());
  }
  uint64_t needed = saturatingMul(own, uint64_t(processes));
  uint64_t present = uint64_t(sysconf(_SC_PHYS_PAGES)) * uint64_t(sysconf(_SC_PAGESIZE));
  hasMemory = needed <= present;
  if (!hasMemory) {
    std::string some = onHost == program.rankCount() ? "" : concat(onHost, " of ");
    return makeError(some, meshText(program), " need ", bytesText(needed),
                     " of memory, this machine has ", bytesText(present));
  }
  return {};
}

Status Trainer::prepareOutputs() {
  if (!options.saveGradients.empty()) {
    if (options.gradientsStep < firstStep || options.gradientsStep >= endStep) {
      return makeError("--gradients-step is ", options.gradientsStep,
                       ", expected a step of this run, from ", firstStep, " to before ", endStep);
    }
    if (!ObservedTensors("gradient/").isAny(programs)) {
      return makeError("--save-gradients is given, but the program does not observe its gradients");
    }
  }
  if (!options.profile.empty() && firstStep == endStep) {
    return makeError("--profile has nothing to measure, since this run does no step");
  }
  if (!options.saveLogits.empty() && !ObservedTensors("logits").isAny(programs)) {
    return makeError("--save-logits is given, but the program was compiled without "
                     "--observe-logits");
  }
  for (const std::string *path :
       {&options.save, &options.saveGradients, &options.saveLogits, &options.profile}) {
    if (!here.has(0) || path->empty()) {
      continue;
    }
    if (Status status = checkWritable(*path); !status) {
      return status;
    }
  }
  std::optional<DataIdentity> identity;
  if (const char *format = data.trainingFormat()) {
    identity = {format, data.trainingSamples()};
  }
  if (Status status = checkpoints.begin(identity); !status) {
    return status;
  }
  if (Status status = runLog.tell(checkpoints.note()); !status) {
    return status;
  }
  return runLog.open(firstStep, endStep,
                     checkpoints.resumes() ? RunLog::MetricsFile::Continued
                                           : RunLog::MetricsFile::Anew);
}

/// Ignores inputs that the program does not have.
void Trainer::setCounter(RankState &state, std::string_view name, uint64_t value) const {
  for (const NamedTensor &input : state.program->inputs) {
    if (input.name == name) {
      state.executor->write(input.buffer, 0,
                            {reinterpret_cast<const char *>(&value), sizeof value});
    }
  }
}

bool Trainer::takeBatch(RankState &state) {
  Result<bool> taken = prefetcher.take(*state.executor);
  return taken ? *taken : state.executor->communicator().fail(taken.error().message);
}

/// Runs a rank from start to end.
void Trainer::runRank(RankState &state, Communicator &communicator) {
  if (runSteps(state, communicator)) {
    writeOutputs(state);
  } else {
    prefetcher.stop(); // The other ranks here must not wait for tokens.
    if (state.notFinite && !communicator.stopped()) {
      findNotFinite(state);
    }
    if (state.overflowed && !communicator.stopped()) {
      findOverflow(state);
    }
  }
  // The device belongs to its rank's thread. After a failure, others may still read data that this
  // rank has sent, so its memory stays until all ranks have ended.
  if (!communicator.stopped()) {
    state.executor->end();
  }
  monitorOf(communicator.rank()).end(communicator.rank()); // What ends is watched, too.
  if (!communicator.stopped()) {
    state.executor.reset();
  }
}

/// Runs the rank; returns false if it ends early.
bool Trainer::runSteps(RankState &state, Communicator &communicator) {
  state.step = firstStep;
  if (!state.executor->prepare(communicator, *this)) {
    return false;
  }
  timeLine.prepareRank(communicator);
  setCounter(state, "seed", options.seed);
  setCounter(state, "step_number", uint64_t(state.step));
  if (state.executor->runInit() != Outcome::Done) {
    return false;
  }
  if (!options.load.empty() && !checkpoints.resumes()) {
    checkpoint.load(*state.program, *state.executor);
  }
  checkpoints.prepareRank(*state.executor);
  bool goesOn = !data.validatesAt(firstStep) || validate(state, communicator);
  while (goesOn && state.step < endStep) {
    goesOn = runStep(state, communicator);
    state.step += goesOn;
    // A run that resumes from the checkpoint validates before its first step.
    goesOn = goesOn && (!data.validatesAt(state.step) || validate(state, communicator)) &&
             (!checkpoints.isDue(state.step, endStep) || keepCheckpoint(state, communicator));
  }
  return goesOn;
}

bool Trainer::runStep(RankState &state, Communicator &communicator) {
  bool keepsRunLog = communicator.rank() == 0;
  if (keepsRunLog) {
    runLog.beginStep();
  }
  setCounter(state, "step_number", uint64_t(state.step));
  if (!takeBatch(state)) {
    return false;
  }
  timeLine.beginStep(communicator.rank(), state.step, *state.times);
  Outcome outcome = state.executor->runStep();
  note(state, outcome);
  if (outcome != Outcome::Done || !timeLine.endStep(state.step, communicator)) {
    return false;
  }
  return !keepsRunLog || communicator.check(runLog.endStep());
}

bool Trainer::validate(RankState &state, Communicator &communicator) {
  bool keepsRunLog = communicator.rank() == 0;
  if (keepsRunLog) {
    runLog.beginValidation();
  }
  for (int64_t number = 0; number < data.validationBatches(); ++number) {
    state.validationBatch = number;
    if (!takeBatch(state)) {
      return false;
    }
    Outcome outcome = state.executor->runEvaluate();
    note(state, outcome);
    if (outcome != Outcome::Done) {
      return false;
    }
  }
  state.validationBatch.reset();
  return !keepsRunLog || communicator.check(runLog.endValidation());
}

bool Trainer::keepCheckpoint(RankState &state, Communicator &communicator) {
  bool keepsRunLog = communicator.rank() == 0;
  // A resumed run does not write the metrics of these steps again.
  if (keepsRunLog && !communicator.check(runLog.sync())) {
    return false;
  }
  if (!checkpoints.write(*state.executor, state.step)) {
    return false;
  }
  return !keepsRunLog || communicator.check(runLog.tell(checkpoints.writtenText(state.step)));
}

bool Trainer::keepsGradients(const RankState &state) const {
  return !options.saveGradients.empty() && state.step == options.gradientsStep;
}

bool Trainer::keepsLogits(const RankState &state) const {
  return !options.saveLogits.empty() && state.step == endStep && state.validationBatch == 0;
}

bool Trainer::wants(int64_t rank, uint32_t observation) {
  const RankState &state = stateOf(rank);
  return keepsGradients(state) || keepsLogits(state) ||
         (rank == 0 && state.program->observations[observation].layout.globalShape.empty());
}

void Trainer::observe(int64_t rank, uint32_t observation, const void *data) {
  RankState &state = stateOf(rank);
  const Observation &observed = state.program->observations[observation];
  if (keepsGradients(state)) {
    state.gradients.take(*state.program, observation, state.executor->coordinates(), data);
  }
  if (keepsLogits(state)) {
    state.logits.take(*state.program, observation, state.executor->coordinates(), data);
  }
  if (rank == 0 && observed.layout.globalShape.empty()) {
    double value = elementAt(observed.layout.type, data, 0);
    if (observed.name == "loss") {
      runLog.setLoss(value);
    } else if (observed.name == "gradient_norm") {
      runLog.setGradientNorm(value);
    } else if (observed.name == "loss_scale") {
      runLog.setLossScale(value);
    } else if (observed.name == "validation_loss") {
      runLog.addValidationLoss(value);
    } else {
      runLog.setDropped(observation, value);
    }
  }
}

void Trainer::note(RankState &state, Outcome outcome) const {
  state.notFinite = outcome == Outcome::NotFinite;
  state.overflowed = outcome == Outcome::Overflow;
}

/// Searches each rank for the first non-finite value. All ranks have stopped at the same
/// instruction.
void Trainer::findNotFinite(RankState &state) {
  std::optional<Finding> own;
  if (!state.validationBatch) {
    own = replayStep(*state.program, *state.executor);
  }
  std::vector<std::optional<Finding>> findings;
  std::span<const char> bytes;
  if (own) {
    bytes = {reinterpret_cast<const char *>(&*own), sizeof(Finding)};
  }
  Communicator &link = state.executor->communicator();
  link.collect(bytes, [&](int64_t rank, std::span<const char> other) {
    Finding found;
    bool isOne = !other.empty() && readValue(link, rank, other, found) && found.rank == rank &&
                 found.instruction < int64_t(instructionsOf(programOf(programs, rank)));
    findings.push_back(isOne ? std::optional(found) : std::nullopt);
  });
  if (state.executor->rank() == 0) {
    finding = earliest(findings);
  }
}

void Trainer::reportNotFinite() const {
  if (ranks[0].validationBatch) {
    printError(concat("validation step ", runLog.currentStep(), ": the loss is not finite"));
    return;
  }
  printError(concat("step ", runLog.currentStep(), ": ", runLog.notFiniteText(), "; ",
                    finding ? describe(programOf(programs, finding->rank), *finding)
                            : "when the step was run again, every value was finite"));
}

/// Sends the overflow of each rank to rank 0. All ranks have stopped at the same instruction.
void Trainer::findOverflow(RankState &state) {
  const std::optional<Overflow> &own = state.executor->overflow();
  std::span<const char> bytes;
  if (own) {
    bytes = {reinterpret_cast<const char *>(&*own), sizeof(Overflow)};
  }
  std::optional<std::pair<Overflow, const Program *>> first;
  Communicator &link = state.executor->communicator();
  link.collect(bytes, [&](int64_t rank, std::span<const char> other) {
    Overflow found;
    if (!other.empty() && readValue(link, rank, other, found) &&
        found.observation < programOf(programs, rank).observations.size() &&
        (!first || goesBefore(found, first->first))) {
      first = {found, &programOf(programs, rank)};
    }
  });
  if (state.executor->rank() == 0) {
    overflow = first;
  }
}

void Trainer::reportOverflow() const {
  printError(concat(
      ranks[0].validationBatch ? "validation " : "", "step ", runLog.currentStep(), ": ",
      overflow ? describe(*overflow->second, overflow->first) : "an expert's buffer is too small"));
}

/// Writes the measurements of all ranks to a file and a table for the user, for each rank class.
bool Trainer::writeProfile(RankState &state, std::string &told) {
  const Executor &executor = *state.executor;
  auto profiles = collectProfiles(programs, executor, *state.times, executor.rank() == here.first,
                                  profileSettings());
  if (!profiles || executor.rank() != 0) {
    return profiles.has_value();
  }
  std::string json;
  for (size_t number = 0; number < profiles->size(); ++number) {
    told += programs.size() > 1 ? concat("rank class ", number, ": ") : "";
    told += (*profiles)[number].table(executor.noteOfTimes());
    json += concat(json.empty() ? "" : ",\n", (*profiles)[number].json());
  }
  told += executor.noteOfMemory();
  json = programs.size() > 1 ? "[" + json + "]\n" : json;
  return options.profile.empty() || executor.communicator().check(writeFile(options.profile, json));
}

/// Finishes the run on all ranks. Rank 0 writes files and prints messages.
bool Trainer::writeOutputs(RankState &state) {
  const Executor &executor = *state.executor;
  Communicator &link = executor.communicator();
  bool leads = executor.rank() == 0;
  std::string told;
  if (leads && !link.check(runLog.close())) {
    return false;
  }
  if (endStep > firstStep && !(writeProfile(state, told) && timeLine.write(link, told))) {
    return false;
  }
  if (!options.saveGradients.empty()) {
    if (!state.gradients.save(options.saveGradients, programs, executor, options.gradientsStep)) {
      return false;
    }
    told += concat("gradients of step ", options.gradientsStep, " are in '", options.saveGradients,
                   "'\n");
  }
  if (!options.saveLogits.empty()) {
    if (!state.logits.save(options.saveLogits, programs, executor, endStep)) {
      return false;
    }
    told += concat("logits after ", endStep, " steps are in '", options.saveLogits, "'\n");
  }
  if (!options.save.empty()) {
    if (!saveCheckpoint(options.save, programs, executor, endStep)) {
      return false;
    }
    told += concat("parameters and optimizer state are in '", options.save, "'\n");
  }
  return !leads || link.check(runLog.tell(runLog.summary() + told));
}

ExitCode Trainer::endAfter(const RunResult &result) {
  if (result.failure) {
    if (backend.reportsErrors()) {
      std::string table = "";
      if (result.failure->code == ExitCode::OutOfMemory) {
        table = "\n" + memoryReport(programOf(programs, result.failure->rank));
        table.pop_back(); // Who prints it ends the line.
      }
      printError(result.failure->message + table);
    }
    checkpoints.cleanUp();
    if (result.abandoned || !prefetcher.endsWithin(kGrace) ||
        !std::ranges::all_of(monitors, [](auto &each) { return each->endsWithin(kGrace); })) {
      std::fflush(nullptr);
      std::_Exit(int(result.failure->code));
    }
    return result.failure->code;
  }
  if (ranks[0].overflowed) {
    if (here.has(0)) {
      reportOverflow();
    }
    return ExitCode::Error;
  }
  if (ranks[0].notFinite) {
    if (here.has(0)) {
      reportNotFinite();
    }
    return ExitCode::NotFinite;
  }
  return ExitCode::Success;
}

ExitCode Trainer::run() {
  if (Status status = prepare(); !status) {
    if (backend.reportsErrors()) {
      printError(status.error().message);
    }
    return hasMemory ? ExitCode::Error : ExitCode::OutOfMemory;
  }
  prefetcher.start(BatchOrder(data));
  return endAfter(backend.run(
      [this](Communicator &communicator) { runRank(stateOf(communicator.rank()), communicator); }));
}

} // namespace

ExitCode weft::rt::train(std::span<const Program> programs, const KernelCode *kernels,
                         const Options &options, const MakeExecutor &makeExecutor,
                         Backend &backend) {
  return Trainer(programs, kernels, options, makeExecutor, backend).run();
}
