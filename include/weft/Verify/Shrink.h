//===- Shrink.h - a model small enough to run here, split the same way ----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a plan does to a model depends on which dimensions its axes divide, on which parts the model
// has, and on the recipe: hardly on sizes. So a model of a few layers of small sizes, with the same
// parts and the same divisibilities, tells whether the plan computes what one rank does.
//
// The functions keep no state: any number of threads may call them.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_VERIFY_SHRINK_H
#define WEFT_VERIFY_SHRINK_H

#include "weft/Description/Model.h"
#include "weft/Description/Plan.h"
#include "weft/Description/Recipe.h"

#include <cstdint>
#include <string>
#include <vector>

namespace weft::verify {

/// Ranks that the small model has at most, unless it has more than four axes: none gets less
/// than 2.
inline constexpr int64_t kMostRanks = 16;

/// Steps that it is trained: one of warm-up, with states of zeros; one with states that the first
/// has made; and two behind them.
inline constexpr int64_t kSteps = 4;

/// Something that is not as in the original.
struct Change {
  /// "hidden", "axis tp", "steps".
  std::string what;
  std::string from, to;
};

struct Shrunk {
  desc::ModelSpec model;
  desc::RecipeSpec recipe;
  desc::PlanSpec plan;
  /// Layer i stands for layer `layers[i]` of the original. Empty for a graph.
  std::vector<int64_t> layers;
  /// In the order of the descriptions.
  std::vector<Change> changes;
  /// What a check of the small model says nothing about, a sentence each.
  std::vector<std::string> notKept;
};

/// Makes a model, a recipe and a plan smaller.
///
///   axes       keep their names and order; while there are more than kMostRanks ranks, the longest
///              gets its largest proper divisor, or 2 for a prime
///   layers     two of each kind, as far as there are, in the same order of kinds
///   dimensions the least size that some product of axes divides exactly where it divides the
///              original, of at least two elements on each rank, and no two dimensions alike; one
///              that was 1 stays 1. The sizes of a graph stand in its file: only its batch is
///              smaller. With Muon, what is the shorter side of a matrix stays it.
///   padding    a size that the plan cuts unevenly stays such a size, and ranks with nothing but
///              padding stay if there were any
///   parts      two micro-batches, and two parts of a sequence whose logits come in parts, if there
///              were more
///   recipe     float64, kSteps steps, a learning rate that moves the loss; optimizer, clipping,
///              losses, dropout and routing are kept
///
/// REQUIRES: the descriptions are valid together.
Shrunk shrink(const desc::ModelSpec &model, const desc::RecipeSpec &recipe,
              const desc::PlanSpec &plan);

} // namespace weft::verify

#endif // WEFT_VERIFY_SHRINK_H
