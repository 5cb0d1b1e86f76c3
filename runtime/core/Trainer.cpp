//===- Trainer.cpp - a training run -----------------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/Trainer.h"

#include "backends/local/LocalBackend.h"
#include "core/Books.h"
#include "core/CheckedMath.h"
#include "core/Checkpoint.h"
#include "core/Checkpoints.h"
#include "core/Executor.h"
#include "core/NonFinite.h"
#include "core/ObservedTensors.h"
#include "core/OutputFile.h"
#include "core/Prefetcher.h"
#include "core/Profile.h"
#include "core/Text.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <unistd.h>

using namespace weft::rt;

namespace {

/// What one rank's thread has for itself.
struct alignas(64) RankState {
  std::unique_ptr<Executor> executor;
  std::unique_ptr<StepTimes> times;
  /// The input that counts steps; null if the program has none.
  int64_t *stepNumber = nullptr;
  /// Steps that are done.
  int64_t step = 0;
  /// Of the validation that goes on.
  std::optional<int64_t> validationBatch;
  bool notFinite = false;
  std::optional<Finding> finding;
};

/// One run. While ranks run, each thread writes only its own RankState, rank 0's thread
/// also the books, and all of them their pieces of the gradients.
class Trainer : public Observer {
public:
  Trainer(const Program &program, const KernelCode *kernels, const Options &options)
      : program(program), options(options), books(program, options), checkpoints(program, options),
        prefetcher(program, Prefetcher::Seconds(options.timeoutSeconds)),
        ranks(size_t(program.rankCount())) {
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      ranks[rank].executor =
          std::make_unique<Executor>(program, kernels, int64_t(rank), threadsOf(program, options));
      // A read of the clock for each instruction: even small steps take a thousand times as long.
      ranks[rank].times =
          std::make_unique<StepTimes>(program.step.size(), !options.profile.empty());
      ranks[rank].executor->measure(ranks[rank].times.get());
    }
  }

  ExitCode run();

  void observe(int64_t rank, uint32_t observation, const void *data) override;

private:
  bool prepare(std::string &error);
  bool prepareLoad(std::string &error);
  bool prepareOutputs(std::string &error);
  bool checkMemory(std::string &error) const;

  bool runRank(RankState &state, Communicator &communicator);
  bool runStep(RankState &state, Communicator &communicator);
  bool validate(RankState &state, Communicator &communicator);
  bool keepCheckpoint(RankState &state, Communicator &communicator);
  void setCounters(RankState &state) const;
  bool takeBatch(RankState &state);

  void reportNotFinite() const;
  bool finish(std::string &error);

  const Program &program;
  const Options &options;
  Books books;
  RunData data;
  /// What --load names.
  Checkpoint checkpoint;
  Checkpoints checkpoints;
  Prefetcher prefetcher;
  ObservedTensors gradients{"gradient/"}, logits{"logits"};
  std::vector<RankState> ranks;
  int64_t firstStep = 0, endStep = 0;
};

bool Trainer::prepare(std::string &error) {
  return prepareLoad(error) && data.open(program, options, firstStep, endStep, error) &&
         checkMemory(error) && prepareOutputs(error) && books.tell(data.note(), error);
}

bool Trainer::prepareLoad(std::string &error) {
  if (!checkpoints.open(error)) {
    return false;
  }
  if (checkpoints.resumes()) {
    firstStep = checkpoints.firstStep();
  } else if (!options.load.empty()) {
    if (!checkpoint.open(options.load, program, error) || !books.tell(checkpoint.note(), error)) {
      return false;
    }
    firstStep = checkpoint.firstStep();
  }
  endStep = std::max(options.steps, firstStep);
  if (firstStep > options.steps) {
    return fail(error, "'", checkpoints.resumes() ? checkpoints.source() : options.load,
                "' has seen ", firstStep, " steps, --steps is ", options.steps);
  }
  uint64_t samples = saturatingMul(uint64_t(endStep), uint64_t(program.globalBatch));
  if (samples > uint64_t(std::numeric_limits<int64_t>::max())) {
    return fail(error, "--steps is ", endStep, ", which is too many to count the samples");
  }
  return true;
}

bool Trainer::checkMemory(std::string &error) const {
  uint64_t needed = saturatingAdd(saturatingMul(program.arenaBytes, uint64_t(program.rankCount())),
                                  prefetcher.bytes());
  uint64_t present = uint64_t(sysconf(_SC_PHYS_PAGES)) * uint64_t(sysconf(_SC_PAGESIZE));
  if (needed > present) {
    return fail(error, meshText(program), " need ", bytesText(needed),
                " of memory, this machine has ", bytesText(present));
  }
  return true;
}

bool Trainer::prepareOutputs(std::string &error) {
  if (!options.saveGradients.empty()) {
    if (options.gradientsStep < firstStep || options.gradientsStep >= endStep) {
      return fail(error, "--gradients-step is ", options.gradientsStep,
                  ", this run does the steps from ", firstStep, " to before ", endStep);
    }
    if (!gradients.allocate(program)) {
      return fail(error, "the program does not let its gradients be seen");
    }
  }
  if (!options.profile.empty() && firstStep == endStep) {
    return fail(error, "--profile has nothing to measure, since this run does no step");
  }
  if (!options.saveLogits.empty() && !logits.allocate(program)) {
    return fail(error, "--save-logits is given, but the program was compiled without "
                       "--observe-logits");
  }
  for (const std::string *path :
       {&options.save, &options.saveGradients, &options.saveLogits, &options.profile}) {
    if (!path->empty() && !checkWritable(*path, error)) {
      return false;
    }
  }
  std::optional<DataIdentity> identity;
  if (const char *format = data.trainingFormat()) {
    identity = {format, data.trainingSamples()};
  }
  return checkpoints.begin(identity, error) && books.tell(checkpoints.note(), error) &&
         books.open(firstStep, endStep,
                    checkpoints.resumes() ? Books::MetricsFile::Continued
                                          : Books::MetricsFile::Anew,
                    error);
}

void Trainer::setCounters(RankState &state) const {
  for (const NamedTensor &input : program.inputs) {
    void *address = state.executor->address(input.buffer);
    if (input.name == "step_number") {
      state.stepNumber = static_cast<int64_t *>(address);
      *state.stepNumber = state.step;
    } else if (input.name == "seed") {
      *static_cast<uint64_t *>(address) = options.seed;
    }
  }
}

bool Trainer::takeBatch(RankState &state) {
  std::string error;
  return prefetcher.take(*state.executor, error) ||
         (!error.empty() && state.executor->communicator().fail(error));
}

/// Returns false if the rank ends before its time; the others then must not wait for tokens.
bool Trainer::runRank(RankState &state, Communicator &communicator) {
  state.step = firstStep;
  if (!state.executor->prepare(communicator, *this)) {
    return false;
  }
  setCounters(state);
  if (state.executor->runInit() != Outcome::Done) {
    return false;
  }
  if (!options.load.empty() && !checkpoints.resumes()) {
    checkpoint.load(program, *state.executor);
  }
  checkpoints.prepareRank(*state.executor);
  bool goesOn = !data.validatesAt(firstStep) || validate(state, communicator);
  while (goesOn && state.step < endStep) {
    goesOn = runStep(state, communicator);
    state.step += goesOn;
    // A run that goes on from the checkpoint validates before its first step.
    goesOn = goesOn && (!data.validatesAt(state.step) || validate(state, communicator)) &&
             (!checkpoints.isDue(state.step, endStep) || keepCheckpoint(state, communicator));
  }
  return goesOn;
}

bool Trainer::runStep(RankState &state, Communicator &communicator) {
  bool keepsBooks = communicator.rank() == 0;
  if (keepsBooks) {
    books.beginStep();
  }
  if (state.stepNumber) {
    *state.stepNumber = state.step;
  }
  if (!takeBatch(state)) {
    return false;
  }
  Outcome outcome = state.executor->runStep();
  if (outcome == Outcome::NotFinite) {
    state.notFinite = true;
    state.finding = replayStep(program, *state.executor);
  }
  if (outcome != Outcome::Done) {
    return false;
  }
  std::string error;
  return !keepsBooks || books.endStep(error) || communicator.fail(error);
}

bool Trainer::validate(RankState &state, Communicator &communicator) {
  bool keepsBooks = communicator.rank() == 0;
  if (keepsBooks) {
    books.beginValidation();
  }
  for (int64_t number = 0; number < data.validationBatches(); ++number) {
    state.validationBatch = number;
    if (!takeBatch(state)) {
      return false;
    }
    Outcome outcome = state.executor->runEvaluate();
    if (outcome != Outcome::Done) {
      state.notFinite = outcome == Outcome::NotFinite;
      return false;
    }
  }
  state.validationBatch.reset();
  std::string error;
  return !keepsBooks || books.endValidation(error) || communicator.fail(error);
}

bool Trainer::keepCheckpoint(RankState &state, Communicator &communicator) {
  bool keepsBooks = communicator.rank() == 0;
  std::string error;
  // What the metrics tell of these steps will not be told again.
  if (keepsBooks && !books.sync(error)) {
    return communicator.fail(error);
  }
  if (!checkpoints.write(*state.executor, state.step)) {
    return false;
  }
  return !keepsBooks || books.tell(checkpoints.writtenText(state.step), error) ||
         communicator.fail(error);
}

void Trainer::observe(int64_t rank, uint32_t observation, const void *data) {
  const Observation &observed = program.observations[observation];
  const RankState &state = ranks[size_t(rank)];
  if (!options.saveGradients.empty() && state.step == options.gradientsStep) {
    gradients.take(program, observation, state.executor->coordinates(), data);
  }
  if (!options.saveLogits.empty() && state.step == endStep && state.validationBatch == 0) {
    logits.take(program, observation, state.executor->coordinates(), data);
  }
  if (rank == 0 && observed.layout.globalShape.empty()) {
    double value = observed.layout.type == ElementType::F64 ? *static_cast<const double *>(data)
                                                            : *static_cast<const float *>(data);
    if (observed.name == "loss") {
      books.setLoss(value);
    } else if (observed.name == "gradient_norm") {
      books.setGradientNorm(value);
    } else if (observed.name == "validation_loss") {
      books.addValidationLoss(value);
    } else {
      books.setDropped(observation, value);
    }
  }
}

void Trainer::reportNotFinite() const {
  if (ranks[0].validationBatch) {
    std::fprintf(stderr, "error: validation step %lld: the loss is not finite\n",
                 static_cast<long long>(books.currentStep()));
    return;
  }
  std::vector<std::optional<Finding>> findings;
  for (const RankState &state : ranks) {
    findings.push_back(state.finding);
  }
  std::optional<Finding> first = earliest(findings);
  std::fprintf(stderr, "error: step %lld: %s; %s\n", static_cast<long long>(books.currentStep()),
               books.notFiniteText().c_str(),
               first ? describe(program, *first).c_str()
                     : "when the step was run again, every value was finite");
}

bool Trainer::finish(std::string &error) {
  if (!books.close(error)) {
    return false;
  }
  std::string saved;
  if (endStep > firstStep) {
    std::vector<const StepTimes *> times;
    for (const RankState &state : ranks) {
      times.push_back(state.times.get());
    }
    Profile profile(program, times, threadsOf(program, options));
    if (!options.profile.empty() && !writeFile(options.profile, profile.json(), error)) {
      return false;
    }
    saved += profile.table();
  }
  if (!options.saveGradients.empty()) {
    if (!gradients.save(options.saveGradients, program, options.gradientsStep, error)) {
      return false;
    }
    saved += concat("gradients of step ", options.gradientsStep, " are in '", options.saveGradients,
                    "'\n");
  }
  if (!options.saveLogits.empty()) {
    if (!logits.save(options.saveLogits, program, endStep, error)) {
      return false;
    }
    saved += concat("logits after ", endStep, " steps are in '", options.saveLogits, "'\n");
  }
  if (!options.save.empty()) {
    std::vector<const Executor *> executors;
    for (const RankState &state : ranks) {
      executors.push_back(state.executor.get());
    }
    if (!saveCheckpoint(options.save, program, executors, endStep, error)) {
      return false;
    }
    saved += concat("parameters and optimizer state are in '", options.save, "'\n");
  }
  return books.tell(books.summary() + saved, error);
}

ExitCode Trainer::run() {
  std::string error;
  if (!prepare(error)) {
    std::fprintf(stderr, "error: %s\n", error.c_str());
    return ExitCode::Error;
  }
  LocalOptions local;
  local.timeout = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(options.timeoutSeconds));
  prefetcher.start(BatchOrder(data));
  RunResult result = makeLocalBackend(program.mesh, local)->run([this](Communicator &communicator) {
    if (!runRank(ranks[size_t(communicator.rank())], communicator)) {
      prefetcher.stop();
    }
  });
  if (result.failure) {
    std::fprintf(stderr, "error: %s\n", result.failure->message.c_str());
    checkpoints.cleanUp();
    if (result.abandoned || !prefetcher.endsWithin(local.grace)) {
      std::fflush(nullptr);
      std::_Exit(int(ExitCode::Error));
    }
    return ExitCode::Error;
  }
  if (ranks[0].notFinite) {
    reportNotFinite();
    return ExitCode::NotFinite;
  }
  if (!finish(error)) {
    std::fprintf(stderr, "error: %s\n", error.c_str());
    return ExitCode::Error;
  }
  return ExitCode::Success;
}

} // namespace

ExitCode weft::rt::train(const Program &program, const KernelCode *kernels,
                         const Options &options) {
  return Trainer(program, kernels, options).run();
}
