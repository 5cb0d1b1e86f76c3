//===- Checkpoints.cpp - writes and resumes from checkpoints --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "training/Checkpoints.h"

#include "support/Text.h"

#include <algorithm>
#include <cstdio>

using namespace weft::rt;

/// Warns even with --quiet, because the user must learn of lost data.
static void warn(const std::string &text) { std::fprintf(stderr, "warning: %s\n", text.c_str()); }

Checkpoints::Checkpoints(const Program &program, const Options &options, RankRange ranks)
    : program(program), options(options), leads(ranks.has(0)),
      run{program.modelName,      options.seed,        program.globalBatch,
          program.sequenceLength, program.documentEnd, {}},
      readers(ranks.count), writers(size_t(program.rankCount())) {}

bool Checkpoints::open(Backend &backend, std::string &error) {
  if (options.checkpointDir.empty()) {
    return true;
  }
  std::string step;
  if (!leads) {
    folder.name(options.checkpointDir);
  } else if (look(error)) {
    error.clear(); // What is passed over is no error.
    step = found ? std::to_string(first) : "";
  }
  Result<std::string> agreed =
      backend.agree(error.empty() ? Result<std::string>(step) : makeError(error));
  if (!agreed) {
    return fail(error, agreed.error().message);
  }
  if (!leads && !agreed->empty()) {
    follow(*agreed, error);
  }
  agreed = backend.agree(error.empty() ? agreed : makeError(error));
  return agreed || fail(error, agreed.error().message);
}

/// Rank 0's process checks every byte; the others check only sizes and headers.
bool Checkpoints::follow(const std::string &step, std::string &error) {
  first = std::stoll(step);
  found = true;
  reader = std::make_unique<CheckpointReader>();
  return succeeds(reader->open(folder.pathOf(first), first, CheckpointReader::Check::Form),
                  error) &&
         succeeds(reader->checkFits(program), error);
}

bool Checkpoints::look(std::string &error) {
  if (!succeeds(folder.open(options.checkpointDir), error)) {
    return false;
  }
  Result<std::vector<int64_t>> listed = folder.list();
  if (!listed) {
    return fail(error, listed.error().message);
  }
  const std::vector<int64_t> &steps = *listed;
  std::optional<std::string> latest = folder.latest();
  if (steps.empty() && !latest) {
    return true;
  }
  std::optional<int64_t> named = latest ? CheckpointFolder::stepOf(*latest) : std::nullopt;
  if (latest && !named) {
    warn(concat("'", options.checkpointDir, "/LATEST' does not name a checkpoint"));
  } else if (named && std::find(steps.begin(), steps.end(), *named) == steps.end()) {
    warn(concat("'", options.checkpointDir, "/LATEST' names '", *latest, "', which is not there"));
  }
  found = findWhole(steps, error) && succeeds(reader->checkFits(program), error);
  return found;
}

bool Checkpoints::findWhole(const std::vector<int64_t> &steps, std::string &error) {
  for (int64_t step : steps) {
    reader = std::make_unique<CheckpointReader>();
    if (succeeds(reader->open(folder.pathOf(step), step, CheckpointReader::Check::Bytes), error)) {
      first = step;
      return true;
    }
    warn(concat("passed over a checkpoint: ", error));
    damaged.push_back(step);
  }
  reader.reset();
  return fail(error, "'", options.checkpointDir,
              "' has had checkpoints, but none is whole; to start anew, name another folder");
}

bool Checkpoints::begin(const std::optional<DataIdentity> &data, std::string &error) {
  run.data = data;
  if (options.checkpointDir.empty()) {
    return true;
  }
  if (!found) {
    return !leads || succeeds(folder.create(), error);
  }
  std::string changes = differences(reader->manifest().run, run);
  if (!changes.empty() && !options.allowChanges) {
    return fail(error, "'", source(), "' was made by another run: ", changes,
                "; --allow-changes goes on nevertheless");
  }
  remark = concat("going on at step ", first, " from '", source(), "'");
  if (reader->manifest().planHash != program.planHash) {
    remark += concat(", made under another plan, ", reader->manifest().planHash);
  }
  remark += concat(changes.empty() ? "" : "; changed: ", changes,
                   options.load.empty() ? "" : "; --load is for the start and is not used", "\n");
  return true;
}

void Checkpoints::prepareRank(Executor &executor) {
  if (options.checkpointDir.empty()) {
    return;
  }
  writers[size_t(executor.rank())] =
      std::make_unique<CheckpointWriter>(program, run, folder, executor);
  if (resumes()) {
    reader->load(program, executor);
    if (--readers == 0) {
      reader.reset();
    }
  }
}

bool Checkpoints::isDue(int64_t step, int64_t end) const {
  return !options.checkpointDir.empty() &&
         (step == end || (options.checkpointEvery && step % *options.checkpointEvery == 0));
}

bool Checkpoints::write(Executor &executor, int64_t step) {
  if (!writers[size_t(executor.rank())]->write(step)) {
    return false;
  }
  if (executor.rank() != 0) {
    return true;
  }
  std::erase(damaged, step); // It has been replaced.
  std::string error;
  return !options.checkpointKeep ||
         succeeds(folder.prune(step, *options.checkpointKeep, damaged), error) ||
         executor.communicator().fail(error);
}

std::string Checkpoints::writtenText(int64_t step) const {
  return concat("checkpoint of step ", step, " is in '", folder.pathOf(step), "'\n");
}

void Checkpoints::cleanUp() {
  std::string error;
  if (leads && !options.checkpointDir.empty() && !succeeds(folder.removeLeftovers(), error)) {
    warn(error);
  }
}
