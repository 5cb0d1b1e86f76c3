//===- Shrink.h - makes a model small enough to run here ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The program of a plan depends on the parts of the model, on which dimensions the mesh axes
// divide, and on the recipe, but hardly on sizes. So a small model of a few layers, with the same
// parts and divisibilities, shows whether the plan computes the same as one rank.
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

/// How axes shrink.
enum class AxisSizes {
  /// While there are more than 16 ranks, the longest axis gets its largest proper divisor, or 2 for
  /// a prime. More than four axes may give more ranks, because each has at least 2.
  Least,
  /// The same while there are more than 64 ranks, and primes stay: an axis does not begin to divide
  /// what it did not divide.
  Divisors,
};

/// Steps of training: one of warm-up, with optimizer states of zeros; one with the states of the
/// first; and two more.
inline constexpr int64_t kSteps = 4;

/// A difference from the original.
struct Change {
  /// "hidden", "axis tp", "steps".
  std::string what;
  std::string from, to;
};

struct Shrunk {
  desc::ModelSpec model;
  desc::RecipeSpec recipe;
  desc::PlanSpec plan;
  /// Layer i of the small model stands for layer `layers[i]` of the original. Empty for a graph.
  std::vector<int64_t> layers;
  /// In the order of the descriptions.
  std::vector<Change> changes;
  /// Properties of the original that a check of the small model does not cover, a sentence each.
  std::vector<std::string> notKept;
};

/// Makes a model, a recipe and a plan smaller.
///
///   axes       keep their names and order; their sizes are as `axes` says
///   layers     two of each kind, if there are that many, those with experts last
///   dimensions the least size that a product of axes divides if and only if it divides the
///              original, with at least two elements on each rank, and no two sizes equal; a size
///              of 1 does not change. The file of a graph fixes its sizes: only its batch is
///              smaller. With an optimizer of matrices, the shorter side of a matrix is still the
///              shorter: if sizes one by one do not allow this, all sides are divided by one
///              number, if need be 1
///   padding    a size that the plan pads is still padded, and ranks have nothing but padding if
///              any had in the original
///   parts      two micro-batches, and two parts of a sequence for logits, if there were more
///   recipe     float64, kSteps steps, a learning rate that changes the loss; optimizer, clipping,
///              losses, dropout and routing do not change
///
/// REQUIRES: the descriptions are valid together.
Shrunk shrink(const desc::ModelSpec &model, const desc::RecipeSpec &recipe,
              const desc::PlanSpec &plan, AxisSizes axes = AxisSizes::Least);

} // namespace weft::verify

#endif // WEFT_VERIFY_SHRINK_H
