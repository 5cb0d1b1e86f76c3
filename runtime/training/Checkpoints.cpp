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

static RunIdentity identify(const Program &program, const Options &options) {
  return {program.modelName,      options.seed,        program.globalBatch,
          program.sequenceLength, program.documentEnd, {}};
}

Checkpoints::Checkpoints(std::span<const Program> programs, const Options &options, RankRange ranks)
    : programs(programs), options(options), leads(ranks.has(0)),
      run(identify(programs.front(), options)), readers(ranks.count),
      writers(size_t(programs.front().rankCount())) {}

Status Checkpoints::open(Backend &backend) {
  if (options.checkpointDir.empty()) {
    return {};
  }
  Status looked;
  if (leads) {
    looked = look();
  } else {
    folder.name(options.checkpointDir);
  }
  std::string step = found ? std::to_string(first) : "";
  Result<std::string> agreed = backend.agree(looked ? Result(step) : looked.error());
  if (!agreed) {
    return agreed.error();
  }
  if (!leads && !agreed->empty()) {
    if (Status status = follow(*agreed); !status) {
      agreed = status.error();
    }
  }
  agreed = backend.agree(agreed);
  return agreed ? Status() : agreed.error();
}

/// Rank 0's process checks every byte; the others check only sizes and headers.
Status Checkpoints::follow(const std::string &step) {
  first = std::stoll(step);
  found = true;
  reader = std::make_unique<CheckpointReader>();
  if (Status status = reader->open(folder.pathOf(first), first, CheckpointReader::Check::Form);
      !status) {
    return status;
  }
  return reader->checkFits(programs);
}

Status Checkpoints::look() {
  if (Status status = folder.open(options.checkpointDir); !status) {
    return status;
  }
  Result<std::vector<int64_t>> steps = folder.list();
  if (!steps) {
    return steps.error();
  }
  std::optional<std::string> latest = folder.latest();
  if (steps->empty() && !latest) {
    return {};
  }
  std::optional<int64_t> named = latest ? CheckpointFolder::stepOf(*latest) : std::nullopt;
  if (latest && !named) {
    warn(concat("'", options.checkpointDir, "/LATEST' does not name a checkpoint"));
  } else if (named && std::find(steps->begin(), steps->end(), *named) == steps->end()) {
    warn(concat("'", options.checkpointDir, "/LATEST' names '", *latest, "', which is not there"));
  }
  if (Status status = findWhole(*steps); !status) {
    return status;
  }
  Status fits = reader->checkFits(programs);
  found = bool(fits);
  return fits;
}

Status Checkpoints::findWhole(const std::vector<int64_t> &steps) {
  for (int64_t step : steps) {
    reader = std::make_unique<CheckpointReader>();
    Status status = reader->open(folder.pathOf(step), step, CheckpointReader::Check::Bytes);
    if (status) {
      first = step;
      return {};
    }
    warn(concat("passed over a checkpoint: ", status.error().message));
    damaged.push_back(step);
  }
  reader.reset();
  return makeError("'", options.checkpointDir,
                   "' has had checkpoints, but none is whole; to start anew, name another folder");
}

Status Checkpoints::begin(const std::optional<DataIdentity> &data) {
  run.data = data;
  if (options.checkpointDir.empty()) {
    return {};
  }
  if (!found) {
    return leads ? folder.create() : Status();
  }
  std::string changes = differences(reader->manifest().run, run);
  if (!changes.empty() && !options.allowChanges) {
    return makeError("'", source(), "' was made by another run: ", changes,
                     "; --allow-changes goes on nevertheless");
  }
  remark = concat("going on at step ", first, " from '", source(), "'");
  if (reader->manifest().planHash != programs.front().planHash) {
    remark += concat(", made under another plan, ", reader->manifest().planHash);
  }
  remark += concat(changes.empty() ? "" : "; changed: ", changes,
                   options.load.empty() ? "" : "; --load is for the start and is not used", "\n");
  return {};
}

void Checkpoints::prepareRank(Executor &executor) {
  if (options.checkpointDir.empty()) {
    return;
  }
  writers[size_t(executor.rank())] =
      std::make_unique<CheckpointWriter>(programs, run, folder, executor);
  if (resumes()) {
    reader->load(programOf(programs, executor.rank()), executor);
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
  return !options.checkpointKeep ||
         executor.communicator().check(folder.prune(step, *options.checkpointKeep, damaged));
}

std::string Checkpoints::writtenText(int64_t step) const {
  return concat("checkpoint of step ", step, " is in '", folder.pathOf(step), "'\n");
}

void Checkpoints::cleanUp() {
  if (!leads || options.checkpointDir.empty()) {
    return;
  }
  if (Status status = folder.removeLeftovers(); !status) {
    warn(status.error().message);
  }
}
