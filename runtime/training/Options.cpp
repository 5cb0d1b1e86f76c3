//===- Options.cpp - the command line of an executable ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "training/Options.h"

#include "data/RunData.h"
#include "execution/Team.h"
#include "support/OutputFile.h"
#include "support/ParseNumber.h"
#include "support/Text.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

using namespace weft::rt;

namespace {

/// One option. The help text, the parser and the search for the nearest name all read this table.
struct Entry {
  const char *group;
  const char *name;
  /// The name of the value in the help text; null if the option takes no value.
  const char *value;
  const char *help;
  /// The default as text; null if the help shows none.
  std::string (*defaultText)(const Program &);
  /// Parses the value into the options; on failure returns the expected value.
  const char *(*apply)(Options &, std::string_view value);
};

template <auto field> const char *applyFile(Options &options, std::string_view value) {
  options.*field = value;
  return value.empty() ? "the name of a file" : nullptr;
}

const char *applyFolder(Options &options, std::string_view value) {
  options.checkpointDir = value;
  return value.empty() ? "the name of a folder" : nullptr;
}

template <int64_t Options::*field>
const char *applyCount(Options &options, std::string_view value) {
  bool ok = parseNumber(value, options.*field) && options.*field >= 0;
  return ok ? nullptr : "a whole number, 0 or more";
}

template <auto field> const char *applyNumber(Options &options, std::string_view value) {
  int64_t &number = (options.*field).emplace();
  return parseNumber(value, number) && number > 0 ? nullptr : "a whole number, 1 or more";
}

template <auto field> const char *applyFlag(Options &options, std::string_view) {
  options.*field = true;
  return nullptr;
}

template <Options::Action action> const char *applyAction(Options &options, std::string_view) {
  options.action = action;
  return nullptr;
}

const char *applySeed(Options &options, std::string_view value) {
  return parseNumber(value, options.seed) ? nullptr : "a whole number from 0 to 2^64 - 1";
}

const char *applyThreads(Options &options, std::string_view value) {
  options.threads = 0;
  bool ok =
      parseNumber(value, *options.threads) && *options.threads > 0 && *options.threads <= 1024;
  return ok ? nullptr : "a whole number, 1 to 1024";
}

const char *applyBackend(Options &options, std::string_view value) {
  if (value == "local") {
    options.backend = Options::Backend::Local;
  } else if (value == "mpi") {
    options.backend = Options::Backend::Mpi;
  } else if (value == "tcp") {
    options.backend = Options::Backend::Tcp;
  }
  return options.backend ? nullptr : "local, mpi or tcp";
}

const char *applyTimeout(Options &options, std::string_view value) {
  // A year, so that nanoseconds fit into 64 bits.
  bool ok = parseNumber(value, options.timeoutSeconds) && options.timeoutSeconds > 0 &&
            options.timeoutSeconds <= 3.2e7;
  return ok ? nullptr : "seconds, more than 0 and at most a year";
}

const char *applySplit(Options &options, std::string_view value) {
  bool ok = parseNumber(value, options.validationSplit) && options.validationSplit > 0 &&
            options.validationSplit < 1;
  return ok ? nullptr : "a number above 0 and below 1";
}

const char *applyDataFormat(Options &options, std::string_view value) {
  options.dataFormat = parseDataFormat(value);
  return options.dataFormat ? nullptr : "bytes, nanogpt, llmc or megatron";
}

const char *applyTimeLineSteps(Options &options, std::string_view value) {
  auto range = parseRange(value);
  if (!range) {
    return "a step or the first and last of several, as 10 or 10-12";
  }
  options.timeLineSteps = {range->first, range->second};
  return nullptr;
}

const char *applyTimeLineRanks(Options &options, std::string_view value) {
  options.timeLineRanks = value;
  return value.empty() ? "ranks, as 0,4-7" : nullptr;
}

const char *applyTimeLineDetail(Options &options, std::string_view value) {
  options.timeLineHasInstructions = value == "instructions";
  return options.timeLineHasInstructions || value == "actions" ? nullptr
                                                               : "instructions or actions";
}

using Action = Options::Action;

const Entry kTable[] = {
    {"Training", "--data", "FILE",
     "training data: text with one token per byte, tokens of nanoGPT, llm.c or "
     "Megatron-LM, or images in safetensors",
     nullptr, applyFile<&Options::data>},
    {"Training", "--data-format", "FORMAT",
     "format of data files: bytes, nanogpt, llmc or megatron (default: detected from their "
     "names and first bytes)",
     nullptr, applyDataFormat},
    {"Training", "--steps", "N", "train up to this step; steps count from 0",
     [](const Program &program) { return std::to_string(program.defaultSteps); },
     applyCount<&Options::steps>},
    {"Training", "--seed", "N", "seed of initial weights, dropout and data order",
     [](const Program &program) { return std::to_string(program.defaultSeed); }, applySeed},
    {"Training", "--ranks", "N", "refuse to run unless the plan has N ranks",
     [](const Program &program) { return std::to_string(program.rankCount()); },
     applyNumber<&Options::ranks>},
    {"Training", "--backend", "NAME",
     "how ranks run: local, as threads of this process; mpi, as processes started by mpirun, srun "
     "or weft run; tcp, as processes started by torchrun or by any launcher that sets RANK, "
     "WORLD_SIZE, MASTER_ADDR and MASTER_PORT. With WEFT_SECRET or WEFT_SECRET_FILE set to the "
     "same "
     "secret in all processes, they refuse others",
     [](const Program &) { return std::string("chosen by the launcher"); }, applyBackend},
    {"Training", "--threads", "N", "threads that share the work of one rank",
     [](const Program &program) {
       return std::to_string(threadsOf(program, {}, program.rankCount()));
     },
     applyThreads},
    {"Training", "--no-overlap", nullptr,
     "run all collectives in line with computation, none beside it; the bits are the same", nullptr,
     applyFlag<&Options::isInLine>},
    {"Training", "--deterministic", nullptr,
     "on CUDA devices: get the same bits in every run, even where libraries are slower then",
     nullptr, applyFlag<&Options::isDeterministic>},
    {"Training", "--graphs", nullptr,
     "on CUDA devices: launch all instructions between two reads by the host as one graph", nullptr,
     applyFlag<&Options::usesGraphs>},
    {"Training", "--algorithm-cache", "FILE",
     "on CUDA devices: file that keeps the fastest algorithms of matmuls, found by trials "
     "(default: in the user's cache folder)",
     nullptr, applyFile<&Options::algorithmCache>},
    {"Training", "--timeout", "SECONDS",
     "longest time that a rank waits for others before the run fails",
     [](const Program &) { return std::string("60"); }, applyTimeout},

    {"Validation", "--validation-data", "FILE",
     "validate: compute the loss on this file, without training on it", nullptr,
     applyFile<&Options::validationData>},
    {"Validation", "--validation-split", "F",
     "validate on the last share F of the samples of --data, excluded from training", nullptr,
     applySplit},
    {"Validation", "--validation-every", "K",
     "validate whenever the number of steps done is a multiple of K, and at the end",
     [](const Program &) { return std::string("only at the end"); },
     applyNumber<&Options::validationEvery>},
    {"Validation", "--validation-steps", "N",
     "validate on the first N batches of the validation data",
     [](const Program &) {
       return concat("all full batches, at most ", RunData::kDefaultValidationBatches);
     },
     applyNumber<&Options::validationSteps>},

    {"Files", "--load", "FILE",
     "start from these parameters (safetensors); with optimizer state, continue at the file's step",
     nullptr, applyFile<&Options::load>},
    {"Files", "--save", "FILE",
     "write parameters and optimizer state (safetensors) after the last step", nullptr,
     applyFile<&Options::save>},
    {"Files", "--metrics", "FILE",
     "write a JSON object at the end of each step: step, loss, gradient_norm, ms, "
     "tokens_per_second, peak_share; and for each validation: step, validation_loss, ms",
     nullptr, applyFile<&Options::metrics>},
    {"Files", "--profile", "FILE",
     "write the predicted costs and measured times of the parts of a step (JSON), after the last "
     "step",
     nullptr, applyFile<&Options::profile>},
    {"Files", "--timeline", "FILE",
     "write when ranks ran which instructions, as a trace that Perfetto (ui.perfetto.dev) shows",
     nullptr, applyFile<&Options::timeLine>},
    {"Files", "--timeline-steps", "K", "the steps for --timeline: one, or several as 10-12",
     [](const Program &) { return std::string("the last"); }, applyTimeLineSteps},
    {"Files", "--timeline-ranks", "RANKS", "the ranks for --timeline, as 0,4-7",
     [](const Program &program) {
       return std::string(program.rankClasses > 1 ? "the first of each stage" : "0");
     },
     applyTimeLineRanks},
    {"Files", "--timeline-detail", "DETAIL",
     "what --timeline shows: instructions, or only actions and where ranks wait",
     [](const Program &) { return std::string("instructions"); }, applyTimeLineDetail},
    {"Files", "--save-gradients", "FILE",
     "write all gradients of one step, before clipping (safetensors)", nullptr,
     applyFile<&Options::saveGradients>},
    {"Files", "--gradients-step", "K", "the step for --save-gradients",
     [](const Program &) { return std::string("0"); }, applyCount<&Options::gradientsStep>},
    {"Files", "--save-logits", "FILE",
     "write the logits of the first batch of the validation after the last step (safetensors); the "
     "program must have been compiled with --observe-logits",
     nullptr, applyFile<&Options::saveLogits>},

    {"Checkpoints", "--checkpoint-dir", "DIR",
     "write a checkpoint after the last step; resume from the newest complete one in DIR, if any",
     nullptr, applyFolder},
    {"Checkpoints", "--checkpoint-every", "K", "also write a checkpoint after every K steps",
     nullptr, applyNumber<&Options::checkpointEvery>},
    {"Checkpoints", "--checkpoint-keep", "N", "remove all but the newest N checkpoints",
     [](const Program &) { return std::string("keep all"); },
     applyNumber<&Options::checkpointKeep>},
    {"Checkpoints", "--allow-changes", nullptr,
     "resume even if the model's name, seed, data, batch or sequence length differs from the "
     "checkpoint's",
     nullptr, applyFlag<&Options::allowChanges>},

    {"Output", "--no-progress", nullptr, "print no line for each step", nullptr,
     applyFlag<&Options::noProgress>},
    {"Output", "--quiet", nullptr, "print nothing on standard output", nullptr,
     applyFlag<&Options::quiet>},
    {"Output", "--curve", nullptr,
     "draw the loss curve at the end; always done if standard output is a terminal", nullptr,
     applyFlag<&Options::curve>},

    {"Instead of training", "--print-plan", nullptr, "print the plan and exit", nullptr,
     applyAction<Action::PrintPlan>},
    {"Instead of training", "--print-program", nullptr, "print all instructions and exit", nullptr,
     applyAction<Action::PrintProgram>},
    {"Instead of training", "--print-times", nullptr,
     "print the predicted time of each instruction and exit", nullptr,
     applyAction<Action::PrintTimes>},
    {"Instead of training", "--version", nullptr, "print versions, model and plan, and exit",
     nullptr, applyAction<Action::Version>},
    {"Instead of training", "--help", nullptr, "print this help and exit", nullptr,
     applyAction<Action::Help>},
};

const Entry *find(std::string_view name) {
  for (const Entry &entry : kTable) {
    if (name == entry.name) {
      return &entry;
    }
  }
  return nullptr;
}

std::string nearest(std::string_view name) {
  const Entry *best = nullptr;
  size_t distance = name.size(); // Farther names are not similar.
  for (const Entry &entry : kTable) {
    size_t candidate = editDistance(name, entry.name);
    if (candidate < distance) {
      best = &entry;
      distance = candidate;
    }
  }
  return best && distance <= 4 ? concat("; the nearest is ", best->name) : "; --help lists all";
}

Status checkFiles(const Options &options) {
  const std::pair<const char *, const std::string *> outputs[] = {
      {"--save", &options.save},
      {"--save-gradients", &options.saveGradients},
      {"--save-logits", &options.saveLogits},
      {"--metrics", &options.metrics},
      {"--profile", &options.profile},
      {"--timeline", &options.timeLine},
      {"--checkpoint-dir", &options.checkpointDir}};
  std::vector<std::pair<const char *, std::string>> inputs = {{"--load", options.load}};
  for (auto [name, path] : {std::pair("--data", &options.data),
                            std::pair("--validation-data", &options.validationData)}) {
    for (std::string &file : filesOf(*path, options.dataFormat)) {
      inputs.push_back({name, std::move(file)});
    }
  }
  for (size_t i = 0; i < std::size(outputs); ++i) {
    const auto &[name, file] = outputs[i];
    for (size_t j = i + 1; j < std::size(outputs); ++j) {
      const auto &[otherName, other] = outputs[j];
      if (!file->empty() && !other->empty() && isSameFile(*file, *other)) {
        return makeError(name, " and ", otherName, " name the same file, '", *file, "'");
      }
    }
    for (const auto &[otherName, other] : inputs) {
      // --save may replace the file of --load: it does so only at the end.
      bool replaces = otherName == inputs[0].first && file == &options.save;
      if (!file->empty() && !other.empty() && !replaces && isSameFile(*file, other)) {
        return makeError(name, " would overwrite '", other, "', which ", otherName, " reads");
      }
    }
  }
  return {};
}

Status checkTimeLine(const Options &options) {
  const std::pair<const char *, bool> companions[] = {
      {"--timeline-steps", options.timeLineSteps.has_value()},
      {"--timeline-ranks", !options.timeLineRanks.empty()},
      {"--timeline-detail", !options.timeLineHasInstructions}};
  for (const auto &[name, given] : companions) {
    if (given && options.timeLine.empty()) {
      return makeError(name, " has no effect without --timeline");
    }
  }
  return {};
}

Status checkCheckpoints(const Options &options) {
  const std::pair<const char *, bool> companions[] = {
      {"--checkpoint-every", options.checkpointEvery.has_value()},
      {"--checkpoint-keep", options.checkpointKeep.has_value()},
      {"--allow-changes", options.allowChanges}};
  for (const auto &[name, given] : companions) {
    if (given && options.checkpointDir.empty()) {
      return makeError(name, " has no effect without --checkpoint-dir");
    }
  }
  return {};
}

Status checkValidation(const Options &options) {
  bool hasFile = !options.validationData.empty(), splits = options.validationSplit > 0;
  if (hasFile && splits) {
    return makeError("--validation-data and --validation-split exclude each other");
  }
  const char *needless = options.validationEvery       ? "--validation-every"
                         : options.validationSteps     ? "--validation-steps"
                         : !options.saveLogits.empty() ? "--save-logits"
                                                       : nullptr;
  if (needless && !hasFile && !splits) {
    return makeError(needless, " needs --validation-data or --validation-split");
  }
  return {};
}

} // namespace

int64_t weft::rt::threadsOf(const Program &program, const Options &options, int64_t ranksOnHost) {
  int64_t share = countProcessors() / ranksOnHost;
  return options.threads.value_or(std::clamp<int64_t>(share, 1, program.threadsPerRank));
}

std::string weft::rt::meshText(const Program &program) {
  std::string text = concat(program.rankCount(), program.rankCount() == 1 ? " rank" : " ranks");
  if (program.rankClasses > 1) { // Each has axes of its own.
    return concat(text, " (", program.rankClasses, " classes)");
  }
  std::string axes;
  for (const Axis &axis : program.mesh) {
    axes += concat(axes.empty() ? "" : ", ", axis.name, "=", axis.size);
  }
  return axes.empty() ? text : text + " (" + axes + ")";
}

Result<Options> weft::rt::parseOptions(const Program &program,
                                       std::span<const char *const> arguments) {
  Options options;
  options.steps = program.defaultSteps;
  options.seed = program.defaultSeed;
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string_view argument = arguments[i];
    options.words += concat(argument, '\0');
    if (argument.substr(0, 2) != "--") {
      return makeError("unexpected argument '", argument, "'; options begin with --");
    }
    size_t equals = argument.find('=');
    std::string_view name = argument.substr(0, equals);
    const Entry *entry = find(name);
    if (!entry) {
      return makeError("unknown option ", name, nearest(name));
    }
    std::string_view value;
    if (!entry->value) {
      if (equals != std::string_view::npos) {
        return makeError(name, " takes no value, got '", argument.substr(equals + 1), "'");
      }
    } else if (equals != std::string_view::npos) {
      value = argument.substr(equals + 1);
    } else if (i + 1 == arguments.size()) {
      return makeError(name, " needs a value, ", entry->value);
    } else {
      value = arguments[++i];
      options.words += concat(value, '\0');
    }
    if (const char *expected = entry->apply(options, value)) {
      return makeError(name, " is '", value, "', expected ", expected);
    }
  }
  if (options.ranks && *options.ranks != program.rankCount()) {
    return makeError("--ranks is ", *options.ranks, ", but the plan of this program is for ",
                     meshText(program), "; compile again for another number of ranks");
  }
  if (options.threads && *options.threads > program.threadsPerRank) {
    return makeError("--threads is ", *options.threads, ", but the work of a rank is cut for ",
                     program.threadsPerRank, program.threadsPerRank == 1 ? " core" : " cores",
                     "; compile again for a machine whose devices have more");
  }
  for (auto check : {checkFiles, checkTimeLine, checkCheckpoints, checkValidation}) {
    if (Status status = check(options); !status) {
      return status.error();
    }
  }
  Result<TestDelays> delays = TestDelays::read();
  if (!delays) {
    return delays.error();
  }
  options.testDelays = *delays;
  return options;
}

/// Returns " sequences of 8 tokens" or " images".
static std::string samplesText(const Program &program) {
  return program.sequenceLength == 0 ? " images"
                                     : concat(" sequences of ", program.sequenceLength, " tokens");
}

std::string weft::rt::helpText(const Program &program, const std::string &name) {
  std::ostringstream out;
  out << "usage: " << name << " --data FILE [OPTION]...\n\n"
      << "Trains " << program.modelName << " on " << meshText(program) << ", batches of "
      << program.globalBatch << samplesText(program) << ".\n";
  std::string group;
  for (const Entry &entry : kTable) {
    if (group != entry.group) {
      group = entry.group;
      out << "\n" << group << ":\n";
    }
    std::string head =
        concat("  ", entry.name, entry.value ? " " : "", entry.value ? entry.value : "");
    head.resize(std::max<size_t>(head.size() + 1, 26), ' ');
    out << head << entry.help;
    if (entry.defaultText) {
      out << " (default " << entry.defaultText(program) << ")";
    }
    out << "\n";
  }
  out << "\nValues may also be written as --option=value. Steps count from 0.\n"
      << "Exit status: 0 after success, 1 after an error, 3 if a training or validation loss, the "
         "gradient norm or a number to save is not finite, 4 if memory is short, 5 if a rank has "
         "died, 6 if a rank is stuck, 7 if a rank is slow: late, but still making progress.\n";
  return out.str();
}
