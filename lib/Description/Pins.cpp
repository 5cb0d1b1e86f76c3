//===- Pins.cpp - short forms of known strategies -------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Description/Pins.h"

#include "Pipeline.h"
#include "Text.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

namespace weft::desc {

namespace {

constexpr int64_t maximumSize = 1 << 20;

/// A pin's value as written, "4", "2:ring", "true" or "full"; a switch is 0 or 1, a word a mode.
struct Value {
  int64_t number = 1;
  std::string mode;
};
using Values = std::map<std::string_view, Value>;

int64_t sizeOf(const Values &values, std::string_view name) {
  auto found = values.find(name);
  return found == values.end() ? 1 : found->second.number;
}

struct PinKind {
  std::string_view name;
  enum { Axis, Stages, Level, Switch, Word } form;
  /// Its range of numbers; a switch has false and true.
  int64_t least, most;
  /// Modes that may follow the number, or a word's values, separated by spaces.
  std::string_view modes;
  /// Pins of which it needs one, separated by spaces, or none.
  std::string_view needs;
  /// Returns true if its number is a factor of the number of ranks.
  bool countsRanks() const { return form == Axis || form == Stages; }
  /// Writes its entries of the plan.
  void (*apply)(PlanSpec &plan, const Value &value, const Values &all);
};

using Axes = std::vector<std::string>;
const Location pinned = {"--pin", 0, 0};

void shard(PlanSpec &plan, std::string value, std::string dimension, Axes axes) {
  plan.shardings.push_back({std::move(value), std::move(dimension), std::move(axes), pinned});
}

/// Returns those of `names` that are axes of more than one rank.
Axes present(const Values &values, std::initializer_list<const char *> names) {
  Axes axes;
  for (const char *name : names) {
    if (sizeOf(values, name) > 1) {
      axes.push_back(name);
    }
  }
  return axes;
}

void applyDataParallel(PlanSpec &plan, const Value &value, const Values &) {
  plan.mesh.push_back({"dp", value.number, pinned});
}

/// Zhao et al., PyTorch FSDP, arXiv 2304.11277, section 3.2.2: variables between steps are cut
/// within groups of neighbours, and beside dp each group has a copy. Gradients are reduce-scattered
/// within groups, and the shards are all-reduced across groups.
void applyShardedData(PlanSpec &plan, const Value &value, const Values &) {
  plan.mesh.push_back({"fsdp", value.number, pinned});
}

/// Returns the axes that cut variables between steps.
Axes shardAxes(const Values &values) {
  return sizeOf(values, "fsdp") > 1 ? present(values, {"fsdp", "cp"})
                                    : present(values, {"dp", "cp"});
}

/// Lepikhin et al., GShard, arXiv 2006.16668: the batch is cut by all ranks, and tokens go to the
/// experts by an all-to-all, and back by another.
void applyExpertParallel(PlanSpec &plan, const Value &value, const Values &) {
  plan.mesh.push_back({"ep", value.number, pinned});
  shard(plan, "*experts.*", "experts", {"ep"});
}

/// Liu et al., Ring attention with blockwise transformers, arXiv 2310.01889; Jacobs et al.,
/// DeepSpeed Ulysses, arXiv 2309.14509, exchanges the sequence for heads; Dubey et al., The Llama 3
/// herd of models, arXiv 2407.21783, gather keys.
void applyContextParallel(PlanSpec &plan, const Value &value, const Values &all) {
  plan.mesh.insert(plan.mesh.end() - std::ptrdiff_t(sizeOf(all, "tp") > 1),
                   {"cp", value.number, pinned});
  shard(plan, "*", "sequence", {"cp"});
  if (value.mode == "ring") {
    shard(plan, "attention", "keys", {"cp"});
  } else if (!value.mode.empty()) {
    shard(plan, "attention", "keys", {});
  }
  if (value.mode == "all-to-all") {
    shard(plan, "attention", "sequence", {});
    // The heads that tp gives to a rank are cut further.
    shard(plan, "attention", "kv_heads", present(all, {"tp", "cp"}));
  }
}

void applyTensorParallel(PlanSpec &plan, const Value &value, const Values &) {
  plan.mesh.push_back({"tp", value.number, pinned});
  for (const char *dimension : {"kv_heads", "ffn", "vocab"}) {
    shard(plan, "*", dimension, {"tp"});
  }
}

/// Korthikanti et al., Reducing activation recomputation in large transformer models, arXiv
/// 2205.05198: the ops between the matmuls that tp cuts are cut by tokens, or else whole.
void applySequenceParallel(PlanSpec &plan, const Value &value, const Values &all) {
  for (const char *between : {"*norm", "*residual"}) {
    if (value.number) {
      shard(plan, between, "sequence", present(all, {"cp", "tp"}));
    } else {
      shard(plan, between, "sequence", present(all, {"cp"}));
      shard(plan, between, "hidden", {});
    }
  }
}

/// Rajbhandari et al., ZeRO: memory optimizations toward training trillion parameter models, arXiv
/// 1910.02054, by cutting every matrix along the dimension that all of them have. From stage 1 on
/// masters of rounded parameters are cut like states, from stage 2 on sums of gradients too.
/// Before, each rank has a partial, and sums are reduced once a step.
void applyZero(PlanSpec &plan, const Value &value, const Values &all) {
  int64_t stage = value.number;
  for (std::string_view dimension : dimensionNames()) {
    // Parameters that matmuls cut stay cut, those of experts too. Inputs are not affected.
    bool isCut = axesFor(plan.shardings, "experts.", dimension).has_value();
    bool isOfParameters = dimension != "batch" && dimension != "sequence" && dimension != "keys";
    if (!isCut && isOfParameters && !(stage == 3 && dimension == "hidden")) {
      plan.homes.push_back({"*", std::string(dimension), {}, pinned});
    }
  }
  if (stage > 0) {
    plan.homes.push_back({stage == 3 ? "*" : "*/*", "hidden", shardAxes(all), pinned});
  }
  if (stage < 2) {
    plan.homes.push_back({"gradient/*", "hidden", {}, pinned});
    plan.homes.push_back({"gradient/*", "terms", present(all, {"dp", "fsdp", "cp"}), pinned});
  }
}

/// Micro-batches, one after the other, whose gradients are added up: Goyal et al., Accurate, large
/// minibatch SGD, arXiv 1706.02677, use them for the batch of more ranks.
void applyAccumulation(PlanSpec &plan, const Value &value, const Values &) {
  plan.accumulation = value.number;
  plan.accumulationLocation = pinned;
}

/// Chen et al., Training deep nets with sublinear memory cost, arXiv 1604.06174, keep the inputs of
/// layers and recompute the rest. Korthikanti et al., arXiv 2205.05198, recompute attention alone:
/// much memory for few operations.
void applyRecompute(PlanSpec &plan, const Value &value, const Values &) {
  ActivationSpec entry;
  entry.location = pinned;
  if (value.mode != "none") {
    entry.saving = Saving::Recomputed;
    // Backward begins with what is in no layer, and would recompute it at once.
    entry.layers.first = 0;
  }
  plan.activations.push_back(entry);
  if (value.mode == "attention") {
    plan.activations.back().value = "attention*";
    // What attention adds to the layer needs the all-reduce of tensor parallelism.
    entry.saving = Saving::Kept;
    for (const char *kept : {"attention.output*", "attention.residual*"}) {
      entry.value = kept;
      plan.activations.push_back(entry);
    }
  }
}

/// Huang et al., GPipe, arXiv 1811.06965; Narayanan et al., PipeDream, arXiv 1806.03377, and
/// Megatron-LM, arXiv 2104.04473, for the order 1F1B without versions of weights; Qi et al., Zero
/// Bubble Pipeline Parallelism, arXiv 2401.10241, for ZB-H1 and ZB-V.
void applyPipeline(PlanSpec &plan, const Value &value, const Values &) {
  plan.pipeline.stages = value.number;
  plan.pipeline.location = pinned;
}

void applySchedule(PlanSpec &plan, const Value &value, const Values &) {
  plan.pipeline.schedule = *scheduleOfName(value.mode);
  plan.pipeline.chunks = detail::chunksOf(plan.pipeline.schedule).value_or(1);
}

void applyChunks(PlanSpec &plan, const Value &value, const Values &) {
  plan.pipeline.chunks = value.number;
}

/// Zhao et al., as above, section 4.1: what is gathered again for backward need not be kept.
void applyGather(PlanSpec &plan, const Value &value, const Values &) {
  plan.pipeline.gather = *makeGatherPeriod(value.mode);
}

/// The kinds of pins, in the order of their entries in a plan: later entries may override earlier
/// ones. The mesh has dp, fsdp, ep, cp, tp, major to minor, for each of the stages of pp:
/// tensor-parallel ranks communicate most, so they are nearest to each other.
constexpr PinKind kinds[] = {
    {"dp", PinKind::Axis, 1, maximumSize, "", "", applyDataParallel},
    {"fsdp", PinKind::Axis, 1, maximumSize, "", "", applyShardedData},
    {"ep", PinKind::Axis, 1, maximumSize, "", "", applyExpertParallel},
    {"tp", PinKind::Axis, 1, maximumSize, "", "", applyTensorParallel},
    {"cp", PinKind::Axis, 1, maximumSize, "ring gather all-to-all", "", applyContextParallel},
    {"sp", PinKind::Switch, 0, 1, "", "tp", applySequenceParallel},
    {"zero", PinKind::Level, 0, 3, "", "dp fsdp cp", applyZero},
    {"accumulation", PinKind::Level, 1, maximumSize, "", "", applyAccumulation},
    {"recompute", PinKind::Word, 0, 0, "none attention full", "", applyRecompute},
    {"pp", PinKind::Stages, 1, mostStages, "", "", applyPipeline},
    {"schedule", PinKind::Word, 0, 0, "1f1b gpipe zbh1 zbv", "pp", applySchedule},
    {"chunks", PinKind::Level, 1, mostStages / 2, "", "pp", applyChunks},
    {"gather", PinKind::Word, 0, 0, "step run micro-batch", "pp", applyGather},
};

/// Returns true if the pin chooses no shardings, so that it may stand beside a mesh.
bool isBesideMesh(const PinKind &kind) {
  return kind.form == PinKind::Stages || kind.apply == applyAccumulation ||
         kind.apply == applyRecompute || kind.apply == applySchedule || kind.apply == applyChunks ||
         kind.apply == applyGather;
}

std::vector<std::string> split(std::string_view words) {
  std::vector<std::string> list;
  for (size_t begin = 0; begin < words.size();) {
    size_t end = std::min(words.find(' ', begin), words.size());
    list.emplace_back(words.substr(begin, end - begin));
    begin = end + 1;
  }
  return list;
}

/// Reads pins one after the other.
class PinReader {
public:
  void read(std::string_view pin);
  void checkTogether();
  void checkBesideMesh();

  Values values;
  Diagnostics diagnostics;

private:
  void error(std::string_view field, const char *rule, std::string message) {
    diagnostics.push_back({pinned, std::string(field), rule, std::move(message)});
  }
  void readValue(const PinKind &kind, std::string_view text);
  static std::optional<Value> parse(const PinKind &kind, std::string_view text);
  /// What a pin may be, for messages, and what it is.
  static std::string rangeOf(const PinKind &kind);
  static std::string textOf(const PinKind &kind, const Value &value);
};

std::optional<Value> PinReader::parse(const PinKind &kind, std::string_view text) {
  if (kind.form == PinKind::Switch) {
    bool valid = text == "true" || text == "false";
    return valid ? std::optional<Value>({text == "true", ""}) : std::nullopt;
  }
  if (kind.form == PinKind::Word) {
    std::vector<std::string> words = split(kind.modes);
    bool valid = std::find(words.begin(), words.end(), text) != words.end();
    return valid ? std::optional<Value>({1, std::string(text)}) : std::nullopt;
  }
  Value value;
  size_t colon = std::min(text.find(':'), text.size());
  std::from_chars_result read = std::from_chars(text.data(), text.data() + colon, value.number);
  bool valid = read.ptr == text.data() + colon && colon > 0 && read.ec == std::errc() &&
               value.number >= kind.least && value.number <= kind.most;
  if (colon < text.size()) {
    value.mode = text.substr(colon + 1);
    std::vector<std::string> modes = split(kind.modes);
    valid &= std::find(modes.begin(), modes.end(), value.mode) != modes.end();
  }
  return valid ? std::optional(value) : std::nullopt;
}

std::string PinReader::rangeOf(const PinKind &kind) {
  std::vector<std::string> modes = split(kind.modes);
  if (kind.form == PinKind::Switch) {
    return "true or false";
  }
  if (kind.form == PinKind::Word) {
    return detail::join(modes);
  }
  std::string range =
      "a number from " + detail::text(kind.least) + " to " + detail::text(kind.most);
  for (const std::string &mode : modes) {
    range += (mode == modes.front() ? ", then nothing or :" : ", :") + mode;
  }
  return range;
}

std::string PinReader::textOf(const PinKind &kind, const Value &value) {
  return kind.form == PinKind::Word ? value.mode : detail::text(value.number);
}

void PinReader::readValue(const PinKind &kind, std::string_view text) {
  // pin_r3. A number too large to parse has the same message as one out of range.
  std::optional<Value> value = parse(kind, text);
  if (!value) {
    error(kind.name, "pin_r3", "expected " + rangeOf(kind) + ", got " + detail::quote(text));
    return;
  }
  // pin_r2
  if (auto [known, isNew] = values.try_emplace(kind.name, *value); !isNew) {
    error(kind.name, "pin_r2",
          "expected at most once, got " + textOf(kind, known->second) + " and " +
              textOf(kind, *value));
  }
}

void PinReader::read(std::string_view pin) {
  // pin_r1
  size_t equals = pin.find('=');
  if (equals == std::string_view::npos) {
    error("", "pin_r1", "expected name=value as in dp=2, got " + detail::quote(pin));
    return;
  }
  std::string_view name = pin.substr(0, equals);
  std::vector<std::string> names;
  for (const PinKind &kind : kinds) {
    if (kind.name == name) {
      readValue(kind, pin.substr(equals + 1));
      return;
    }
    names.emplace_back(kind.name);
  }
  error("", "pin_r1",
        "unknown name " + detail::quote(name) + detail::suggestion(name, names, "names"));
}

void PinReader::checkTogether() {
  // pin_r4. Sizes of 20 bits each cannot overflow the product of two.
  int64_t ranks = 1;
  for (const PinKind &kind : kinds) {
    if (kind.countsRanks() && ranks <= maximumSize) {
      ranks *= sizeOf(values, kind.name);
    }
  }
  if (ranks > maximumSize) {
    error("", "pin_r4",
          "expected at most " + detail::text(maximumSize) + " ranks in all, got at least " +
              detail::text(ranks));
  }
  // pin_r7
  auto schedule = values.find("schedule"), chunks = values.find("chunks");
  if (schedule != values.end() && chunks != values.end()) {
    const auto needed = detail::chunksOf(*scheduleOfName(schedule->second.mode));
    if (needed && chunks->second.number != *needed) {
      error("chunks", "pin_r7",
            "expected " + detail::text(*needed) + " with schedule=" + schedule->second.mode +
                ", got " + detail::text(chunks->second.number));
    }
  }
  // pin_r5
  for (const PinKind &kind : kinds) {
    std::vector<std::string> needs = split(kind.needs);
    bool asks = values.contains(kind.name) && values[kind.name].number > 0 && !needs.empty();
    auto isThere = [&](const std::string &name) { return sizeOf(values, name) > 1; };
    if (asks && std::none_of(needs.begin(), needs.end(), isThere)) {
      std::string any;
      for (const std::string &name : needs) {
        any += (any.empty() ? "" : " or ") + name;
      }
      error(kind.name, "pin_r5", "expected " + any + " of at least 2 as well, got none");
    }
  }
}

void PinReader::checkBesideMesh() {
  for (const PinKind &kind : kinds) {
    if (!isBesideMesh(kind) && values.contains(kind.name)) { // pin_r6
      error(
          kind.name, "pin_r6",
          "expected no pins but accumulation, recompute, pp, schedule, chunks and gather together "
          "with a mesh, for which the search chooses shardings");
    }
  }
}

} // namespace

std::string_view pinsHelp() {
  return "a known strategy: dp=N splits the batch, tp=N the layers, sp=true or sp=false\n"
         "with tp the sequence, zero=0 to 3 with dp variables between steps, fsdp=N the\n"
         "batch and these variables; accumulation=N takes the batch in N micro-batches,\n"
         "recompute=full, attention or none says what backward computes again, pp=N makes\n"
         "N pipeline stages, each with a mesh of ranks, schedule=1f1b, gpipe, zbh1 or zbv\n"
         "orders their work, chunks=N gives each N parts of the model, and gather=step, run or\n"
         "micro-batch says how long they keep gathered parameters, all six also with --mesh;\n"
         "the search chooses the rest (may repeat; default: one rank)";
}

Result<PlanSpec> applyPins(const std::vector<std::string> &pins, std::string_view mesh) {
  PinReader reader;
  for (std::string_view list : pins) {
    for (size_t begin = 0; begin <= list.size();) {
      size_t end = std::min(list.find(',', begin), list.size());
      reader.read(list.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  reader.checkTogether();
  Result<PlanSpec> plan = mesh.empty() ? PlanSpec() : parseMesh(mesh);
  if (!mesh.empty()) {
    reader.checkBesideMesh();
  }
  reader.diagnostics.insert(reader.diagnostics.end(), plan.diagnostics().begin(),
                            plan.diagnostics().end());
  if (!reader.diagnostics.empty()) {
    return reader.diagnostics;
  }
  if (sizeOf(reader.values, "fsdp") > 1) {
    reader.values.try_emplace("zero", Value{3, ""}); // What the axis is named for.
  }
  if (std::any_of(std::begin(kinds), std::end(kinds), [&](const PinKind &kind) {
        return kind.form == PinKind::Axis && sizeOf(reader.values, kind.name) > 1;
      })) {
    // Dimensions that no pin splits are whole: an axis splits only what its name stands for.
    shard(*plan, "*", "batch", present(reader.values, {"dp", "fsdp", "ep"}));
  }
  for (const PinKind &kind : kinds) {
    auto value = reader.values.find(kind.name);
    bool isOfOne = kind.countsRanks() && sizeOf(reader.values, kind.name) == 1;
    if (value != reader.values.end() && !isOfOne) {
      kind.apply(*plan, value->second, reader.values);
    }
  }
  return plan;
}

} // namespace weft::desc
