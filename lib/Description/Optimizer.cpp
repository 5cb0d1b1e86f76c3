//===- Optimizer.cpp - the optimizers that a recipe may name ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Description/Optimizer.h"

#include "OptimizerFields.h"

namespace weft::desc {
namespace {

/// What is the same for all optimizers of a type.
struct Traits {
  const char *name;
  bool updatesMatrices;
  bool normalizesUpdates;
};

Traits traits(const AdamWSpec &) { return {"adamw", false, true}; }
Traits traits(const SgdSpec &) { return {"sgd", false, false}; }
Traits traits(const MuonSpec &) { return {"muon", true, true}; }

Traits traitsOf(const OptimizerSpec &optimizer) {
  return std::visit([](const auto &spec) { return traits(spec); }, optimizer);
}

int statesOf(const AdamWSpec &) { return 2; }
int statesOf(const SgdSpec &sgd) { return sgd.momentum == 0 ? 0 : 1; }
/// Of a matrix; other parameters have those of AdamW.
int statesOf(const MuonSpec &) { return 1; }

double *epsilonIn(AdamWSpec &adamw) { return &adamw.epsilon; }
double *epsilonIn(SgdSpec &) { return nullptr; }
double *epsilonIn(MuonSpec &muon) { return &muon.adamw.epsilon; }

} // namespace

std::string nameOf(const OptimizerSpec &optimizer) { return traitsOf(optimizer).name; }

bool updatesMatrices(const OptimizerSpec &optimizer) { return traitsOf(optimizer).updatesMatrices; }

std::string elementwiseOptimizers() {
  std::string names;
  for (const Traits &one : {traits(AdamWSpec()), traits(SgdSpec()), traits(MuonSpec())}) {
    if (!one.updatesMatrices) {
      names += (names.empty() ? "" : " or ") + std::string(one.name);
    }
  }
  return names;
}

int fewestStates(const OptimizerSpec &optimizer) {
  return std::visit([](const auto &spec) { return statesOf(spec); }, optimizer);
}

bool normalizesUpdates(const OptimizerSpec &optimizer) {
  return traitsOf(optimizer).normalizesUpdates;
}

double *epsilonOf(OptimizerSpec &optimizer) {
  return std::visit([](auto &spec) { return epsilonIn(spec); }, optimizer);
}

namespace detail {

void checkOptimizer(const proto::Recipe &recipe, Fields &fields) {
  constexpr Bounds share{.low = 0, .high = 1, .below = true};
  switch (recipe.optimizer_case()) {
  case proto::Recipe::OPTIMIZER_NOT_SET: // recipe_r7
    fields.error("adamw", "recipe_r7", "missing, expected this, sgd or muon");
    return;
  case proto::Recipe::kAdamw: { // recipe_r8
    Fields adamw = fields.nested("adamw");
    adamw.real("beta1", "recipe_r8", share);
    adamw.real("beta2", "recipe_r8", share);
    adamw.real("epsilon", "recipe_r8", {.low = 0, .high = 1, .above = true});
    adamw.real("weight_decay", "recipe_r8", {.low = 0, .high = 10});
    return;
  }
  case proto::Recipe::kSgd: { // recipe_r8
    Fields sgd = fields.nested("sgd");
    sgd.real("momentum", "recipe_r8", share);
    sgd.real("weight_decay", "recipe_r8", {.low = 0, .high = 10});
    return;
  }
  case proto::Recipe::kMuon: { // recipe_r8
    Fields muon = fields.nested("muon");
    for (const char *field : {"momentum", "beta1", "beta2"}) {
      muon.real(field, "recipe_r8", share);
    }
    muon.integer("iterations", "recipe_r8", 1, 100);
    muon.real("epsilon", "recipe_r8", {.low = 0, .high = 1, .above = true});
    muon.real("weight_decay", "recipe_r8", {.low = 0, .high = 10});
    muon.real("adamw_rate", "recipe_r8", {.low = 0, .high = 1000, .above = true});
    return;
  }
  }
}

static AdamWSpec toSpec(const proto::AdamW &adamw) {
  return {adamw.beta1(), adamw.beta2(), adamw.epsilon(), adamw.weight_decay()};
}

static SgdSpec toSpec(const proto::Sgd &sgd) { return {sgd.momentum(), sgd.weight_decay()}; }

static MuonSpec toSpec(const proto::Muon &muon) {
  MuonSpec spec;
  spec.momentum = muon.momentum();
  spec.nesterov = muon.nesterov();
  spec.iterations = muon.iterations();
  spec.scale = muon.scale() == proto::Muon::SPECTRAL ? MuonScale::Spectral : MuonScale::Rms;
  spec.adamwRate = muon.adamw_rate();
  spec.adamw = {muon.beta1(), muon.beta2(), muon.epsilon(), muon.weight_decay()};
  return spec;
}

OptimizerSpec resolveOptimizer(const proto::Recipe &recipe) {
  if (recipe.has_adamw()) {
    return toSpec(recipe.adamw());
  }
  if (recipe.has_muon()) {
    return toSpec(recipe.muon());
  }
  return toSpec(recipe.sgd());
}

} // namespace detail
} // namespace weft::desc
