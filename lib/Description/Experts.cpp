//===- Experts.cpp - the experts of a model's description -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Experts.h"

#include "Text.h"

namespace weft::desc::detail {

static int64_t keptGroups(const proto::Experts &experts) {
  return experts.has_kept_groups() ? experts.kept_groups() : experts.groups();
}

/// Checks model_r22. REQUIRES: the numbers are in their ranges.
static void checkGroups(const proto::Experts &experts, Fields &fields) {
  if (experts.experts() % experts.groups() != 0 ||
      (experts.groups() > 1 && experts.experts() / experts.groups() < 2)) {
    fields.error("groups", "model_r22",
                 "expected a divisor of experts " + text(experts.experts()) +
                     " that leaves at least 2 in a group, got " + text(experts.groups()));
    return;
  }
  if (keptGroups(experts) > experts.groups()) {
    fields.error("kept_groups", "model_r22",
                 "expected at most groups " + text(experts.groups()) + ", got " +
                     text(experts.kept_groups()));
    return;
  }
  int64_t most = experts.experts() / experts.groups() * keptGroups(experts);
  if (experts.experts_per_token() > most) {
    bool hasGroups = keptGroups(experts) < experts.groups();
    fields.error("experts_per_token", "model_r22",
                 "expected at most " + text(most) +
                     (hasGroups ? ", the experts of kept_groups, got " : ", the experts, got ") +
                     text(experts.experts_per_token()));
  }
}

/// Checks model_r23: at least one layer has experts.
static void checkLayers(const proto::Model &model, Fields &fields) {
  const proto::Experts &experts = model.experts();
  bool first = fields.integer("first_layer", "model_r21", 0, 1 << 10) || !fields.has("first_layer");
  bool period =
      fields.integer("layer_period", "model_r21", 1, 1 << 10) || !fields.has("layer_period");
  if (!first || !period || model.layers() < 1) {
    return;
  }
  if (experts.first_layer() >= model.layers()) {
    fields.error("first_layer", "model_r23",
                 "expected less than layers " + text(model.layers()) + ", got " +
                     text(experts.first_layer()));
  } else if (model.layers() / experts.layer_period() ==
             experts.first_layer() / experts.layer_period()) {
    fields.error("layer_period", "model_r23",
                 "expected a multiple from " + text(experts.first_layer() + 1) + " to layers " +
                     text(model.layers()) + ", or no layer has experts; got " +
                     text(experts.layer_period()));
  }
}

void checkExperts(const proto::Model &model, Fields fields) {
  const proto::Experts &experts = model.experts();
  // model_r21
  fields.required("model_r21", {"experts", "experts_per_token"});
  bool count = fields.integer("experts", "model_r21", 2, 1 << 10);
  bool perToken = fields.integer("experts_per_token", "model_r21", 1, 1 << 10);
  fields.integer("ffn", "model_r21", 1, 1 << 20);
  fields.integer("shared_ffn", "model_r21", 1, 1 << 20);
  fields.real("scale", "model_r21", {.low = 0, .high = 1000, .above = true});
  bool groups = fields.integer("groups", "model_r21", 1, 1 << 9) || !fields.has("groups");
  bool kept = fields.integer("kept_groups", "model_r21", 1, 1 << 9) || !fields.has("kept_groups");
  checkLayers(model, fields);
  if (count && perToken && groups && kept) {
    checkGroups(experts, fields);
  }
  // model_r24
  if (!experts.has_shared_ffn()) {
    fields.refused("model_r24", {"shared_gate"}, "without shared_ffn");
  }
  // model_r26
  if (perToken && experts.experts_per_token() == 1 && experts.normalize()) {
    fields.error("normalize", "model_r26", "expected false with experts_per_token 1, got true");
  }
}

ExpertsSpec resolveExperts(const proto::Model &model) {
  const proto::Experts &experts = model.experts();
  ExpertsSpec spec;
  spec.count = experts.experts();
  spec.perToken = experts.experts_per_token();
  spec.ffn = experts.has_ffn() ? experts.ffn() : model.ffn();
  spec.sharedFfn = experts.shared_ffn();
  spec.sharedGate = experts.shared_gate();
  spec.firstLayer = experts.first_layer();
  spec.layerPeriod = experts.layer_period();
  spec.scoring = ScoringKind(experts.scoring());
  spec.normalizes = experts.has_normalize() ? experts.normalize() : spec.perToken > 1;
  spec.scale = experts.scale();
  spec.groups = experts.groups();
  spec.keptGroups = keptGroups(experts);
  spec.selectionBias = experts.selection_bias();
  return spec;
}

} // namespace weft::desc::detail
