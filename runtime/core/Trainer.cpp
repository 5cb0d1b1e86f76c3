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
#include "core/Dataset.h"
#include "core/Executor.h"
#include "core/Gradients.h"
#include "core/NonFinite.h"
#include "core/OutputFile.h"
#include "core/Products.h"
#include "core/Text.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <unistd.h>

using namespace weft::rt;

namespace {

/// An input and one rank's piece of it.
struct Feed {
  enum class Kind : uint8_t { Tokens, Targets, Step, Seed } kind;
  void *address = nullptr;
  std::vector<int64_t> shape, offset;
};

/// What one rank's thread has for itself.
struct alignas(64) RankState {
  std::unique_ptr<Executor> executor;
  std::vector<Feed> feeds;
  int64_t step = 0;
  bool notFinite = false;
  std::optional<Finding> finding;
};

/// One run. While ranks run, each thread writes only its own RankState, rank 0's thread
/// also the books, and all of them their pieces of the gradients.
class Trainer : public Observer {
public:
  Trainer(const Program &program, const KernelFunction *kernels, const Options &options)
      : program(program), options(options), books(program, options), checkpoints(program, options),
        ranks(size_t(program.rankCount())) {
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      ranks[rank].executor = std::make_unique<Executor>(program, kernels, int64_t(rank));
    }
  }

  ExitCode run();

  void observe(int64_t rank, uint32_t observation, const void *data) override;

private:
  bool prepare(std::string &error);
  bool prepareLoad(std::string &error);
  bool prepareData(std::string &error);
  bool prepareOutputs(std::string &error);
  bool checkMemory(std::string &error) const;

  void runRank(Communicator &communicator);
  bool runStep(RankState &state, Communicator &communicator);
  bool keepCheckpoint(RankState &state, Communicator &communicator);
  void findFeeds(RankState &state) const;
  void feed(RankState &state) const;

  void reportNotFinite() const;
  bool finish(std::string &error);

  const Program &program;
  const Options &options;
  Books books;
  Dataset data;
  /// What --load names.
  Checkpoint checkpoint;
  Checkpoints checkpoints;
  Gradients gradients;
  std::vector<RankState> ranks;
  int64_t firstStep = 0, endStep = 0;
};

bool Trainer::prepare(std::string &error) {
  return prepareLoad(error) && prepareData(error) && checkMemory(error) && prepareOutputs(error);
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

bool Trainer::prepareData(std::string &error) {
  bool readsData = std::any_of(program.inputs.begin(), program.inputs.end(), [](const auto &input) {
    return input.name == "tokens" || input.name == "targets";
  });
  if (!readsData || firstStep == endStep) {
    return true;
  }
  if (options.data.empty()) {
    return fail(error, "--data is missing: the program reads tokens from a file");
  }
  return data.open(options.data, program.sequenceLength, program.vocabulary, options.seed, error);
}

bool Trainer::checkMemory(std::string &error) const {
  uint64_t needed = saturatingMul(program.arenaBytes, uint64_t(program.rankCount()));
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
    if (!gradients.allocate(program, error)) {
      return false;
    }
  }
  for (const std::string *path : {&options.save, &options.saveGradients}) {
    if (!path->empty() && !checkWritable(*path, error)) {
      return false;
    }
  }
  std::optional<DataIdentity> identity;
  if (data.sampleCount() > 0) {
    identity = {data.format(), data.fileBytes()};
  }
  return checkpoints.begin(identity, error) && books.tell(checkpoints.note(), error) &&
         books.open(firstStep, endStep,
                    checkpoints.resumes() ? Books::MetricsFile::Continued
                                          : Books::MetricsFile::Anew,
                    error);
}

void Trainer::findFeeds(RankState &state) const {
  for (const NamedTensor &input : program.inputs) {
    Feed::Kind kind = input.name == "tokens"        ? Feed::Kind::Tokens
                      : input.name == "targets"     ? Feed::Kind::Targets
                      : input.name == "step_number" ? Feed::Kind::Step
                                                    : Feed::Kind::Seed;
    state.feeds.push_back({kind, state.executor->address(input.buffer),
                           localShape(input.layout, program.mesh),
                           localOffset(input.layout, program.mesh, state.executor->coordinates())});
  }
}

void Trainer::feed(RankState &state) const {
  for (const Feed &feed : state.feeds) {
    switch (feed.kind) {
    case Feed::Kind::Tokens:
    case Feed::Kind::Targets:
      if (state.step < endStep) { // A run of no steps has no data either.
        data.fill(state.step, program.globalBatch, feed.shape, feed.offset,
                  feed.kind == Feed::Kind::Targets, static_cast<int32_t *>(feed.address));
      }
      break;
    case Feed::Kind::Step:
      *static_cast<int64_t *>(feed.address) = state.step;
      break;
    case Feed::Kind::Seed:
      *static_cast<uint64_t *>(feed.address) = options.seed;
      break;
    }
  }
}

void Trainer::runRank(Communicator &communicator) {
  RankState &state = ranks[size_t(communicator.rank())];
  state.step = firstStep;
  if (!state.executor->prepare(communicator, *this)) {
    return;
  }
  findFeeds(state);
  feed(state);
  if (state.executor->runInit() != Outcome::Done) {
    return;
  }
  if (!options.load.empty() && !checkpoints.resumes()) {
    checkpoint.load(program, *state.executor);
  }
  checkpoints.prepareRank(*state.executor);
  while (state.step < endStep && runStep(state, communicator)) {
    ++state.step;
    if (checkpoints.isDue(state.step, endStep) && !keepCheckpoint(state, communicator)) {
      return;
    }
  }
}

bool Trainer::runStep(RankState &state, Communicator &communicator) {
  bool keepsBooks = communicator.rank() == 0;
  if (keepsBooks) {
    books.beginStep();
  }
  feed(state);
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
  if (!options.saveGradients.empty() && ranks[size_t(rank)].step == options.gradientsStep) {
    gradients.take(program, observation, ranks[size_t(rank)].executor->coordinates(), data);
  }
  if (rank == 0 && observed.layout.globalShape.empty()) {
    double value = observed.layout.type == ElementType::F64 ? *static_cast<const double *>(data)
                                                            : *static_cast<const float *>(data);
    if (observed.name == "loss") {
      books.setLoss(value);
    } else if (observed.name == "gradient_norm") {
      books.setGradientNorm(value);
    }
  }
}

void Trainer::reportNotFinite() const {
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
  if (!options.saveGradients.empty()) {
    if (!gradients.save(options.saveGradients, program, options.gradientsStep, error)) {
      return false;
    }
    saved += concat("gradients of step ", options.gradientsStep, " are in '", options.saveGradients,
                    "'\n");
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
  prepareProducts();
  LocalOptions local;
  local.timeout = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(options.timeoutSeconds));
  RunResult result = makeLocalBackend(program.mesh, local)->run([this](Communicator &communicator) {
    runRank(communicator);
  });
  if (result.failure) {
    std::fprintf(stderr, "error: %s\n", result.failure->message.c_str());
    checkpoints.cleanUp();
    if (result.abandoned) {
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

ExitCode weft::rt::train(const Program &program, const KernelFunction *kernels,
                         const Options &options) {
  return Trainer(program, kernels, options).run();
}
