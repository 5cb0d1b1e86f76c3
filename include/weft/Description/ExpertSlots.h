//===- ExpertSlots.h - how many tokens an expert has room for -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The functions keep no state: any number of threads may call them.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DESCRIPTION_EXPERTSLOTS_H
#define WEFT_DESCRIPTION_EXPERTSLOTS_H

#include "weft/Description/Model.h"
#include "weft/Description/Recipe.h"

#include <cstdint>

namespace weft::desc {

/// Returns the number of tokens that each expert gets of `tokens` if all get equally many.
double evenShare(const ExpertsSpec &experts, int64_t tokens);

/// Returns the tokens of a group for which experts have a capacity: a sequence or a batch.
int64_t capacityGroupOf(const RecipeSpec &recipe);

/// Returns the tokens of such a group that each expert takes.
/// REQUIRES: the recipe has a capacity_factor.
int64_t capacityOf(const ExpertsSpec &experts, const RecipeSpec &recipe);

/// Returns the tokens of a sequence that an expert's buffer holds: by buffer_factor or, without
/// one, all. A capacity may be less.
int64_t bufferOf(const ExpertsSpec &experts, const RecipeSpec &recipe);

/// Returns the tokens of a sequence that an expert computes at most.
int64_t slotsOf(const ExpertsSpec &experts, const RecipeSpec &recipe);

} // namespace weft::desc

#endif // WEFT_DESCRIPTION_EXPERTSLOTS_H
