//===- Plan.h - how a program is split over a mesh of ranks ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A plan is a mesh of ranks with named axes, and for logical dimensions of values the axes that
// split them; the search decides the shardings that a plan leaves open. A plan names no strategy
// such as data or tensor parallelism: these follow from its axes. Its text form is short and can be
// edited by hand. Plans have equal hashes if they have equal texts.
//
// The functions keep no state: any number of threads may call them.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DESCRIPTION_PLAN_H
#define WEFT_DESCRIPTION_PLAN_H

#include "weft/Description/Diagnostic.h"
#include "weft/Description/StageOrder.h"
#include "weft/Mesh/MeshParts.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft::desc {

/// One mesh axis, or one part of an axis that is split; its size is at least 2.
struct AxisSpec {
  /// A part is called as in weft/Mesh/MeshParts.h.
  std::string name;
  int64_t size = 0;
  /// Where it was written; not part of the plan's identity.
  Location location;
};

/// The layers that an entry is for, counted from 0.
struct LayerRange {
  /// Null for the model's first layer, or its last.
  std::optional<int64_t> first, last;

  /// Returns true if the range has `layer`, null for what is of no layer.
  bool has(std::optional<int64_t> layer) const;
  /// Returns true if neither end is given: such an entry is also for what is of no layer.
  bool isOpen() const { return !first && !last; }
  /// The fields as a plan has them, with a space before each; empty if none is given.
  std::string text() const;

  bool operator==(const LayerRange &) const = default;
};

/// Splits one logical dimension of some values.
struct ShardingSpec {
  /// Names of values; `*` stands for any run of characters, also for none.
  std::string value = "*";
  /// A name that isDimensionName or isOpDimension accepts.
  std::string dimension;
  /// Axes of the mesh, or parts of axes, that split the dimension, major to minor. With none, it is
  /// whole.
  std::vector<std::string> axes;
  /// Where it was written; not part of the plan's identity.
  Location location;
  /// Of two entries that exclude each other, the one with the lower priority holds. At least 0.
  int64_t priority = 0;
  LayerRange layers = {};
};

enum class Saving { Kept, Recomputed };

/// What becomes of results of the forward pass that backward needs.
struct ActivationSpec {
  /// Names of operations of the forward pass; `*` stands for any run of characters.
  std::string value = "*";
  LayerRange layers;
  Saving saving = Saving::Kept;
  /// Where it was written; not part of the plan's identity.
  Location location;

  /// The entry as a plan has it, without the field's name and its place.
  std::string text() const;
};

/// Returns true if both are equal in everything but locations.
bool operator==(const ActivationSpec &a, const ActivationSpec &b);

/// The most stages of a pipeline, and the most chunks of all of them together.
inline constexpr int64_t mostStages = 1024;

enum class PipelineSchedule { OneFOneB, GPipe, ZeroBubbleH1, ZeroBubbleV };

/// Returns the schedule of that name in pins: "1f1b", "gpipe", "zbh1" or "zbv"; nothing for
/// other names.
std::optional<PipelineSchedule> scheduleOfName(std::string_view name);
/// Returns the name of a schedule in pins.
std::string_view nameOf(PipelineSchedule schedule);

/// Pipeline stages; see the message of plan.proto.
struct PipelineSpec {
  /// 1 if there are none.
  int64_t stages = 1;
  /// The chunks of each stage, unless `order` says which stage has which.
  int64_t chunks = 1;
  /// The layers of each chunk, in the order of the model; empty if they are split as equally as
  /// possible.
  std::vector<int64_t> layers;
  PipelineSchedule schedule = PipelineSchedule::OneFOneB;
  GatherPeriod gather = GatherPeriod::Step;
  /// The actions of each stage, in place of `schedule` and `gather`; empty if these hold.
  StageSchedule order;
  /// Where it was written; not part of the plan's identity.
  Location location;

  /// Returns the stage of each chunk, in the order of the model.
  std::vector<int64_t> stagesOfChunks() const;
  /// Returns the layers of each chunk of a model with `count` layers.
  std::vector<int64_t> layersOfChunks(int64_t count) const;
  /// Returns the chunks of which the schedule has gradients of inputs and weights by themselves.
  std::vector<int64_t> chunksWithParts() const;
  /// Returns the schedule as the pass order-stages reads it: "1f1b", "gpipe", or
  /// another name, or the rows of `order`, separated by semicolons.
  std::string scheduleText() const;
};

/// Returns true if both are equal in everything but locations.
bool operator==(const PipelineSpec &a, const PipelineSpec &b);

/// Mesh axes are major to minor, and so are the parts of an axis: ranks are numbered row-major, the
/// last axis varies fastest. No axis means one rank of each stage. If several shardings match a
/// value and dimension, the one of the lowest priority holds, and of equal ones the last. The same
/// rule applies to homes, which take precedence over shardings.
struct PlanSpec {
  std::vector<AxisSpec> mesh;
  /// For operations, and for variables of these names.
  std::vector<ShardingSpec> shardings;
  /// For variables between steps.
  std::vector<ShardingSpec> homes;
  /// If true, dimensions that axes do not divide are padded; else they are refused.
  bool mayPad = true;
  /// Micro-batches in a step, at least 1.
  int64_t accumulation = 1;
  /// The place of `accumulation`, no file if it is not given; not part of the plan's identity.
  Location accumulationLocation;
  /// Of several that match an operation, the last holds.
  std::vector<ActivationSpec> activations;
  /// Each of its stages has a mesh of ranks.
  PipelineSpec pipeline;

  /// Number of ranks of all stages: the product of the axis sizes for each.
  int64_t ranks() const;
  /// Returns what `ranks` multiplies, "2 stages * dp=2 * tp=4"; empty for one rank.
  std::string ranksText() const;
  /// Returns the axis or part of that name, or null.
  const AxisSpec *axis(std::string_view name) const;
  /// Returns the parts of the mesh's axes.
  MeshParts parts() const;
};

/// Returns true if both are equal in everything but locations.
bool operator==(const PlanSpec &a, const PlanSpec &b);

/// Returns the logical dimensions that a plan may split: batch, sequence, kv_heads, group, head,
/// ffn, vocab, hidden, positions, experts, and keys, the sequence of attention's keys and values.
std::span<const std::string_view> dimensionNames();

/// Returns true if `name` is one of dimensionNames(); or micro_batch, channel, height, width,
/// depth, classes, latent, query_latent, plain, rotary, value or history, which variables of some
/// modules have; or d0 to d99, the names of a graph's dimensions that have no other name.
bool isDimensionName(std::string_view name);

/// Returns true if `name` is a dimension that only operations have: factorN, factor number N of the
/// operation's rule, for factors without another name; or terms and termsN, whose axes are those
/// over which all operands, or operand N, are pending sums.
bool isOpDimension(std::string_view name);

/// Returns true if `name` matches `pattern`, in which `*` stands for any run of characters. Takes
/// time linear in the product of the lengths.
bool matchesPattern(std::string_view pattern, std::string_view name);

/// Returns N for the name of a variable of layer N, or of a home with its shape, such as
/// "layers.N.mlp.up.weight" or "adam_m/layers.N.mlp.up.weight"; else nothing.
std::optional<int64_t> layerOfName(std::string_view name);

/// Returns the name that plans can give to a part of the model: with '_' for characters that they
/// cannot contain, and at most 200 of them, which leaves room for what follows (plan_r5).
std::string planNameOf(std::string_view part);

/// Returns the one of `names` that has `pattern`, or nearly, as a part: for messages about a
/// pattern that matches none. Names that are empty do not count; of equally near ones, the first in
/// alphabetical order. Returns "" if there is none.
std::string nearestName(std::string_view pattern, const std::vector<std::string> &names);

/// Returns the entry of `shardings` that holds for `dimension` of `value`, or null if none matches.
/// Of entries for some layers, only those for the layer in the value's name match.
const ShardingSpec *entryFor(const std::vector<ShardingSpec> &shardings, std::string_view value,
                             std::string_view dimension);

/// Returns the layers at which a sharding or home of `plan` begins to hold or ends to, ascending,
/// without 0. Layers between two of them have the same entries.
std::vector<int64_t> layerBorders(const PlanSpec &plan);

/// Returns the axes of the entry that entryFor returns, or nothing if there is none.
std::optional<std::vector<std::string>> axesFor(const std::vector<ShardingSpec> &shardings,
                                                std::string_view value, std::string_view dimension);

/// Reads a text file of proto/weft/plan.proto. Fails if the file cannot be read, does not parse or
/// violates a rule, and then lists all errors.
Result<PlanSpec> loadPlan(const std::string &path);

/// As loadPlan, but reads `text`; `file` is only for diagnostics.
Result<PlanSpec> parsePlan(std::string_view text, const std::string &file = "plan");

/// Gives the plan the schedule in the file at `path`: a line of actions for each stage, as
/// `parseSchedule` reads it. A plan without stages gets as many as there are lines. Fails
/// if the file cannot be read, or if it is no schedule of the plan's micro-batches and stages.
Result<PlanSpec> withSchedule(PlanSpec plan, const std::string &path);

/// Parses a mesh such as "dp=2,tp=4", or "dp=2,tp=2x2" to split an axis, and returns its plan
/// without shardings. Fails as parsePlan does.
Result<PlanSpec> parseMesh(std::string_view text);

/// Splits the axes of `plan` at the borders of `subAxes` and of all sub-axes that its entries name,
/// and names the parts in its entries. REQUIRES: these are sub-axes of the mesh's axes, and of two
/// borders of an axis one divides the other.
PlanSpec splitAxes(PlanSpec plan, const std::vector<SubAxis> &subAxes = {});

/// Gives the parts of split axes, in the mesh and in entries, the names that belong to their sizes,
/// which may have changed.
PlanSpec renameParts(PlanSpec plan);

/// Returns an entry's place, if known, and its text, for messages.
std::string describeEntry(const ShardingSpec &entry);

/// Prints the canonical text: fixed order of fields, defaults written out, one sharding per line.
/// Parsing it gives an equal plan.
std::string printPlan(const PlanSpec &plan);

/// Returns 16 hexadecimal digits: the 64-bit FNV-1a hash of the canonical text. It names a plan and
/// does not protect against forgery.
std::string hashPlan(const PlanSpec &plan);

} // namespace weft::desc

#endif // WEFT_DESCRIPTION_PLAN_H
