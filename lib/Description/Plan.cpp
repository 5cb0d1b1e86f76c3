//===- Plan.cpp - how a program is split over a mesh of ranks -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Description/Plan.h"

#include "AxisBorders.h"
#include "Pipeline.h"
#include "Reader.h"
#include "Text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <map>
#include <set>
#include <tuple>

namespace weft::desc {

using detail::AxisBorders;
using detail::Fields;

/// The axes of a mesh by name.
using Borders = std::map<std::string, AxisBorders>;

static constexpr int64_t maximumRanks = 1 << 20;
// The schema lists the values of these enumerations in the same order.
static_assert(int(Saving::Recomputed) == proto::Activation::RECOMPUTED);

int64_t PlanSpec::ranks() const {
  int64_t product = pipeline.stages;
  for (const AxisSpec &axis : mesh) {
    product *= axis.size;
  }
  return product;
}

std::string PlanSpec::ranksText() const {
  const MeshParts axes = parts();
  std::string text = pipeline.stages > 1 ? std::to_string(pipeline.stages) + " stages" : "";
  text += pipeline.stages > 1 && !mesh.empty() ? " * " : "";
  return text + axes.sized(axes.partNames(), " * ");
}

const AxisSpec *PlanSpec::axis(std::string_view name) const {
  auto found = std::find_if(mesh.begin(), mesh.end(),
                            [&](const AxisSpec &axis) { return axis.name == name; });
  return found == mesh.end() ? nullptr : &*found;
}

MeshParts PlanSpec::parts() const {
  std::vector<std::string> names;
  std::vector<int64_t> sizes;
  for (const AxisSpec &axis : mesh) {
    names.push_back(axis.name);
    sizes.push_back(axis.size);
  }
  return {std::move(names), std::move(sizes)};
}

bool operator==(const PlanSpec &a, const PlanSpec &b) {
  auto sameAxis = [](const AxisSpec &x, const AxisSpec &y) {
    return x.name == y.name && x.size == y.size;
  };
  auto sameSharding = [](const ShardingSpec &x, const ShardingSpec &y) {
    return x.value == y.value && x.dimension == y.dimension && x.axes == y.axes &&
           x.priority == y.priority && x.layers == y.layers;
  };
  return a.mayPad == b.mayPad &&
         std::equal(a.mesh.begin(), a.mesh.end(), b.mesh.begin(), b.mesh.end(), sameAxis) &&
         std::equal(a.shardings.begin(), a.shardings.end(), b.shardings.begin(), b.shardings.end(),
                    sameSharding) &&
         std::equal(a.homes.begin(), a.homes.end(), b.homes.begin(), b.homes.end(), sameSharding) &&
         a.accumulation == b.accumulation && a.activations == b.activations &&
         a.pipeline == b.pipeline;
}

bool operator==(const ActivationSpec &a, const ActivationSpec &b) {
  return a.value == b.value && a.layers == b.layers && a.saving == b.saving;
}

bool LayerRange::has(std::optional<int64_t> layer) const {
  return layer ? *layer >= first.value_or(0) && *layer <= last.value_or(*layer) : isOpen();
}

std::string LayerRange::text() const {
  return (first ? " first_layer: " + std::to_string(*first) : "") +
         (last ? " last_layer: " + std::to_string(*last) : "");
}

std::span<const std::string_view> dimensionNames() {
  static constexpr std::array<std::string_view, 11> names = {
      "batch", "sequence", "kv_heads",  "group",   "head", "ffn",
      "vocab", "hidden",   "positions", "experts", "keys"};
  return names;
}

/// Returns true if `name` is `word` followed by one or two digits.
static bool isNumbered(std::string_view name, std::string_view word) {
  return name.starts_with(word) && name.size() > word.size() && name.size() <= word.size() + 2 &&
         name.find_first_not_of("0123456789", word.size()) == std::string_view::npos;
}

/// Dimensions of inputs in micro-batches; of a graph's inputs, statistics and last weight; of
/// latent attention; and of FP8 numbers' histories.
static constexpr std::array<std::string_view, 12> otherNames = {
    "micro_batch", "channel",      "height", "width",  "depth", "classes",
    "latent",      "query_latent", "plain",  "rotary", "value", "history"};

bool isDimensionName(std::string_view name) {
  auto isIn = [&](std::span<const std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  return isIn(dimensionNames()) || isIn(otherNames) || isNumbered(name, "d");
}

bool isOpDimension(std::string_view name) {
  return name == "terms" || isNumbered(name, "terms") || isNumbered(name, "factor");
}

std::optional<int64_t> layerOfName(std::string_view name) {
  constexpr std::string_view kPrefix = "layers.";
  for (size_t begin = 0; begin < name.size();
       begin = std::min(name.find('/', begin), name.size()) + 1) {
    std::string_view part = name.substr(begin);
    int64_t layer = 0;
    const char *digits = part.data() + std::min(kPrefix.size(), part.size());
    const char *end = part.data() + part.size();
    auto [behind, error] = std::from_chars(digits, end, layer);
    if (part.starts_with(kPrefix) && error == std::errc() && layer >= 0 && behind != end &&
        *behind == '.') {
      return layer;
    }
  }
  return std::nullopt;
}

const ShardingSpec *entryFor(const std::vector<ShardingSpec> &shardings, std::string_view value,
                             std::string_view dimension) {
  const ShardingSpec *found = nullptr;
  const std::optional<int64_t> layer = layerOfName(value);
  for (const ShardingSpec &sharding : shardings) {
    bool holds = sharding.layers.has(layer) && (!found || sharding.priority <= found->priority);
    if (holds && sharding.dimension == dimension && matchesPattern(sharding.value, value)) {
      found = &sharding;
    }
  }
  return found;
}

std::vector<int64_t> layerBorders(const PlanSpec &plan) {
  std::set<int64_t> borders;
  for (const std::vector<ShardingSpec> *entries : {&plan.shardings, &plan.homes}) {
    for (const ShardingSpec &entry : *entries) {
      borders.insert(entry.layers.first.value_or(0));
      borders.insert(entry.layers.last.value_or(-1) + 1);
    }
  }
  borders.erase(0);
  return {borders.begin(), borders.end()};
}

std::optional<std::vector<std::string>> axesFor(const std::vector<ShardingSpec> &shardings,
                                                std::string_view value,
                                                std::string_view dimension) {
  const ShardingSpec *entry = entryFor(shardings, value, dimension);
  return entry ? std::optional(entry->axes) : std::nullopt;
}

/// Checks the sub-axes that an axis of legal size lists.
static void checkParts(const proto::Axis &axis, Fields &fields) {
  AxisBorders borders(axis.size());
  int64_t before = 1;
  for (int i = 0; i < axis.sub_axes_size(); before *= axis.sub_axes(i++)) {
    int64_t size = axis.sub_axes(i);
    std::string problem = size <= maximumRanks ? borders.add(before, size)
                                               : "expected at most " + detail::text(maximumRanks) +
                                                     ", got " + detail::text(size);
    if (!problem.empty()) { // plan_r11
      fields.error("sub_axes", "plan_r11", problem, i);
      return;
    }
  }
  if (axis.sub_axes_size() > 0 && before != axis.size()) { // plan_r11
    fields.error("sub_axes", "plan_r11",
                 "expected sizes whose product is the axis's size " + detail::text(axis.size()) +
                     ", got " + detail::text(before));
  }
}

static void checkMesh(const proto::Mesh &mesh, Fields fields) {
  std::set<std::string> names;
  int64_t ranks = 1;
  for (int i = 0; i < mesh.axis_size(); ++i) {
    const proto::Axis &axis = mesh.axis(i);
    Fields inner = fields.nested("axis", i);
    // plan_r2
    inner.required("plan_r2", {"name"});
    if (inner.label("name", "plan_r2", 64, "_")) {
      if (!std::isalpha(static_cast<unsigned char>(axis.name()[0]))) {
        inner.error("name", "plan_r2",
                    "expected a letter first, got " + detail::quote(axis.name()));
      }
      if (!names.insert(axis.name()).second) {
        inner.error("name", "plan_r2",
                    "expected a name of its own, got " + detail::quote(axis.name()) +
                        " a second time");
      }
    }
    // plan_r3
    inner.required("plan_r3", {"size"});
    if (!inner.integer("size", "plan_r3", 2, maximumRanks)) {
      continue;
    }
    checkParts(axis, inner);
    // plan_r4
    if (ranks <= maximumRanks && (ranks *= axis.size()) > maximumRanks) {
      inner.error("size", "plan_r4",
                  "expected at most " + detail::text(maximumRanks) +
                      " ranks in the mesh, got at least " + detail::text(ranks));
    }
  }
}

/// Returns the whole axis or the sub-axis that `name` spells.
static SubAxis readAxis(const std::string &name) {
  return parseSubAxis(name).value_or(SubAxis{name, 1, maximumRanks});
}

static bool overlap(const SubAxis &a, const SubAxis &b) {
  return a.axis == b.axis && a.before < b.before * b.size && b.before < a.before * a.size;
}

/// Checks plan_r7 and plan_r12 for a sharding or a home.
template <typename Entry>
static void checkAxes(const Entry &sharding, Fields &fields, Borders &known) {
  std::vector<SubAxis> seen;
  for (int i = 0; i < sharding.axes_size(); ++i) {
    const std::string &name = sharding.axes(i);
    SubAxis axis = readAxis(name);
    auto error = [&](const char *rule, const std::string &text) {
      fields.error("axes", rule, text, i);
    };
    auto found = known.find(axis.axis);
    if (found == known.end()) {
      std::vector<std::string> names;
      for (const auto &[other, borders] : known) {
        names.push_back(other);
      }
      std::string help = known.empty() ? "; the mesh has no axes"
                                       : detail::suggestion(axis.axis, names, "the mesh's axes");
      error("plan_r7", "unknown axis " + detail::quote(name) + help);
    } else if (std::any_of(seen.begin(), seen.end(),
                           [&](const SubAxis &other) { return overlap(axis, other); })) {
      error("plan_r7", "expected an axis at most once, got " + detail::quote(name) + " again");
    } else if (axis.axis != name) { // plan_r12
      std::string problem = found->second.add(axis.before, axis.size);
      if (!problem.empty()) {
        error("plan_r12", "no sub-axis " + detail::quote(name) + ": " + problem);
      }
    }
    seen.push_back(axis);
  }
}

template <typename Entry> static void checkLayers(const Entry &entry, Fields &fields) {
  bool areBoth = fields.integer("first_layer", "plan_r13", 0, detail::maximumLayer);
  areBoth &= fields.integer("last_layer", "plan_r13", 0, detail::maximumLayer);
  if (areBoth && entry.last_layer() < entry.first_layer()) { // plan_r13
    fields.error("last_layer", "plan_r13",
                 "expected at least first_layer, " + detail::text(entry.first_layer()) + ", got " +
                     detail::text(entry.last_layer()));
  }
}

template <typename Entry> static LayerRange layersOf(const Entry &entry) {
  LayerRange layers;
  if (entry.has_first_layer()) {
    layers.first = entry.first_layer();
  }
  if (entry.has_last_layer()) {
    layers.last = entry.last_layer();
  }
  return layers;
}

template <typename Entries>
static void checkEntries(const Entries &shardings, const char *field, Fields &fields,
                         Borders &axes) {
  std::vector<std::string> dimensions(dimensionNames().begin(), dimensionNames().end());
  std::set<std::tuple<std::string, std::string, std::string>> entries;
  for (int i = 0; i < shardings.size(); ++i) {
    const auto &sharding = shardings[i];
    Fields inner = fields.nested(field, i);
    inner.label("value", "plan_r5", 256, "._/-*"); // plan_r5
    // plan_r6
    inner.required("plan_r6", {"dimension"});
    bool isKnown = isDimensionName(sharding.dimension()) ||
                   (field == std::string_view("sharding") ? isOpDimension(sharding.dimension())
                                                          : sharding.dimension() == "terms");
    if (sharding.has_dimension() && !isKnown) {
      inner.error("dimension", "plan_r6",
                  "unknown dimension " + detail::quote(sharding.dimension()) +
                      detail::suggestion(sharding.dimension(), dimensions, "dimensions"));
    }
    checkAxes(sharding, inner, axes);
    inner.integer("priority", "plan_r10", 0, 1000); // plan_r10
    checkLayers(sharding, inner);
    // plan_r8
    const std::string layers = layersOf(sharding).text();
    if (!entries.insert({sharding.value(), sharding.dimension(), layers}).second) {
      inner.error("dimension", "plan_r8",
                  "expected one entry for a value, a dimension and layers, got a second one for "
                  "value " +
                      detail::quote(sharding.value()) + " and dimension " +
                      detail::quote(sharding.dimension()) +
                      (layers.empty() ? "" : " with" + layers));
    }
  }
}

static void checkActivations(const proto::Plan &plan, Fields &fields) {
  for (int i = 0; i < plan.activation_size(); ++i) {
    const proto::Activation &activation = plan.activation(i);
    Fields inner = fields.nested("activation", i);
    inner.label("value", "plan_r5", 256, "._/-*"); // plan_r5
    // plan_r13
    inner.required("plan_r13", {"saving"});
    checkLayers(activation, inner);
  }
}

static void checkPlan(const proto::Plan &plan, Fields &fields) {
  if (plan.has_mesh()) {
    checkMesh(plan.mesh(), fields.nested("mesh"));
  }
  Borders axes;
  for (const proto::Axis &axis : plan.mesh().axis()) {
    axes.try_emplace(axis.name(), std::clamp<int64_t>(axis.size(), 1, maximumRanks));
  }
  checkEntries(plan.sharding(), "sharding", fields, axes);
  checkEntries(plan.home(), "home", fields, axes);
  fields.integer("accumulation", "plan_r9", 1, maximumRanks); // plan_r9
  checkActivations(plan, fields);
  detail::checkPipeline(plan, fields);
}

static std::vector<ActivationSpec> resolveActivations(const proto::Plan &plan, Fields &fields) {
  std::vector<ActivationSpec> specs;
  for (int i = 0; i < plan.activation_size(); ++i) {
    const proto::Activation &activation = plan.activation(i);
    ActivationSpec spec;
    spec.value = activation.value();
    spec.layers = layersOf(activation);
    spec.saving = Saving(activation.saving());
    spec.location = fields.nested("activation", i).location();
    specs.push_back(std::move(spec));
  }
  return specs;
}

static PlanSpec resolve(const proto::Plan &plan, Fields &fields) {
  PlanSpec spec;
  std::vector<SubAxis> subAxes;
  for (int i = 0; i < plan.mesh().axis_size(); ++i) {
    const proto::Axis &axis = plan.mesh().axis(i);
    spec.mesh.push_back(
        {axis.name(), axis.size(), fields.nested("mesh").nested("axis", i).location()});
    std::vector<SubAxis> parts =
        SplitAxis{axis.name(), {axis.sub_axes().begin(), axis.sub_axes().end()}}.subAxes();
    subAxes.insert(subAxes.end(), parts.begin(), parts.end());
  }
  auto resolveEntries = [&](const auto &entries, const char *field) {
    std::vector<ShardingSpec> specs;
    for (int i = 0; i < entries.size(); ++i) {
      specs.push_back({entries[i].value(),
                       entries[i].dimension(),
                       {entries[i].axes().begin(), entries[i].axes().end()},
                       fields.nested(field, i).location(),
                       entries[i].priority(),
                       layersOf(entries[i])});
    }
    return specs;
  };
  spec.shardings = resolveEntries(plan.sharding(), "sharding");
  spec.homes = resolveEntries(plan.home(), "home");
  spec.mayPad = plan.padding();
  spec.accumulation = plan.accumulation();
  if (plan.has_accumulation()) {
    spec.accumulationLocation = fields.locationOf("accumulation");
  }
  spec.activations = resolveActivations(plan, fields);
  spec.pipeline = detail::resolvePipeline(plan, fields);
  return splitAxes(std::move(spec), subAxes);
}

Result<PlanSpec> parsePlan(std::string_view text, const std::string &file) {
  return detail::readDescription<proto::Plan>(text, file, "plan_r1", checkPlan, resolve);
}

Result<PlanSpec> loadPlan(const std::string &path) {
  return detail::loadDescription<PlanSpec>(path, parsePlan);
}

/// Returns the field's text of one axis, "dp=2" or "tp=2x4"; nothing if it has another form.
static std::optional<std::string> axisField(std::string_view axis) {
  auto isNamed = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
  auto isDigit = [](unsigned char c) { return std::isdigit(c); };
  size_t equals = std::min(axis.find('='), axis.size());
  std::string_view name = axis.substr(0, equals);
  if (equals == axis.size() || !std::all_of(name.begin(), name.end(), isNamed)) {
    return std::nullopt;
  }
  std::string parts;
  int64_t product = 1;
  for (size_t begin = equals + 1; begin <= axis.size();) {
    size_t end = std::min(axis.find('x', begin), axis.size());
    std::string_view digits = axis.substr(begin, end - begin);
    if (digits.empty() || digits.size() > 18 ||
        !std::all_of(digits.begin(), digits.end(), isDigit)) {
      return std::nullopt;
    }
    int64_t size = std::stoll(std::string(digits));
    // Beyond the bounds of plan_r3, which reports it, only the order counts.
    product = size > maximumRanks || product > maximumRanks ? 2 * maximumRanks : product * size;
    parts += (parts.empty() ? "" : ", ") + std::to_string(size);
    begin = end + 1;
  }
  bool isSplit = parts.find(',') != std::string::npos;
  int64_t size = isSplit ? product : std::stoll(parts);
  return " axis { name: \"" + std::string(name) + "\" size: " + std::to_string(size) +
         (isSplit ? " sub_axes: [" + parts + "]" : "") + " }";
}

Result<PlanSpec> parseMesh(std::string_view text) {
  std::string plan = "version: 1 mesh {";
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find(',', begin), text.size());
    std::string_view axis = text.substr(begin, end - begin);
    std::optional<std::string> field = axisField(axis);
    if (!field) {
      return Diagnostics{{{"--mesh", 0, 0},
                          "",
                          "plan_r2",
                          "expected name=size as in dp=2,tp=4, got " + detail::quote(axis)}};
    }
    plan += *field;
    begin = end + 1;
  }
  Result<PlanSpec> spec = parsePlan(plan + " }", "--mesh");
  if (!spec) {
    Diagnostics problems = spec.diagnostics();
    for (Diagnostic &problem : problems) {
      problem.location = {"--mesh", 0, 0}; // The user did not write these lines.
    }
    return problems;
  }
  for (AxisSpec &axis : spec->mesh) {
    axis.location = {"--mesh", 0, 0};
  }
  return spec;
}

/// Prints an entry without its field's name. Names need no escapes because of plan_r2, plan_r5 and
/// plan_r6.
static std::string textOf(const ShardingSpec &entry) {
  std::string text = "{ value: \"" + entry.value + "\" dimension: \"" + entry.dimension + "\"";
  for (const std::string &axis : entry.axes) {
    text += (&axis == entry.axes.data() ? " axes: [\"" : ", \"") + axis + "\"";
  }
  text += entry.axes.empty() ? "" : "]";
  text += entry.layers.text();
  text += entry.priority == 0 ? "" : " priority: " + std::to_string(entry.priority);
  return text + " }";
}

std::string ActivationSpec::text() const {
  std::string text = "{ value: \"" + value + "\"";
  text += layers.text();
  return text + (saving == Saving::Kept ? " saving: KEPT }" : " saving: RECOMPUTED }");
}

std::string describeEntry(const ShardingSpec &entry) {
  return Diagnostic{entry.location, "", "", textOf(entry)}.str();
}

std::string printPlan(const PlanSpec &plan) {
  const MeshParts parts = plan.parts();
  std::string text = "version: 1\n";
  if (!plan.mesh.empty()) {
    text += "mesh {\n";
    for (const SplitAxis &axis : parts.axes()) {
      text += "  axis { name: \"" + axis.name + "\" size: " + std::to_string(axis.size());
      for (size_t i = 0; i < axis.parts.size() && axis.parts.size() > 1; ++i) {
        text += (i == 0 ? " sub_axes: [" : ", ") + std::to_string(axis.parts[i]);
      }
      text += axis.parts.size() > 1 ? "] }\n" : " }\n";
    }
    text += "}\n";
  }
  auto print = [&](const char *field, const std::vector<ShardingSpec> &entries) {
    for (ShardingSpec entry : entries) {
      entry.axes = parts.join(entry.axes);
      text += std::string(field) + " " + textOf(entry) + "\n";
    }
  };
  print("sharding", plan.shardings);
  print("home", plan.homes);
  if (plan.accumulation > 1) {
    text += "accumulation: " + std::to_string(plan.accumulation) + "\n";
  }
  for (const ActivationSpec &activation : plan.activations) {
    text += "activation " + activation.text() + "\n";
  }
  if (plan.pipeline.stages > 1) {
    text += "pipeline " + detail::textOf(plan.pipeline) + "\n";
  }
  return plan.mayPad ? text : text + "padding: false\n";
}

std::string hashPlan(const PlanSpec &plan) {
  // FNV-1a, 64 bits: Fowler, Noll, Vo, draft-eastlake-fnv.
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char c : printPlan(plan)) {
    hash = (hash ^ c) * 0x100000001b3;
  }
  std::string digits(16, '0');
  for (size_t i = 16; i-- > 0; hash >>= 4) {
    digits[i] = "0123456789abcdef"[hash & 15];
  }
  return digits;
}

} // namespace weft::desc
