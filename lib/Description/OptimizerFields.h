//===- OptimizerFields.h - the optimizer in a recipe's text ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_DESCRIPTION_OPTIMIZERFIELDS_H
#define WEFT_LIB_DESCRIPTION_OPTIMIZERFIELDS_H

#include "Fields.h"
#include "weft/Description/Optimizer.h"
#include "weft/recipe.pb.h"

namespace weft::desc::detail {

/// Checks recipe_r7 and recipe_r8. `fields` are those of the recipe.
void checkOptimizer(const proto::Recipe &recipe, Fields &fields);

/// REQUIRES: the rules hold.
OptimizerSpec resolveOptimizer(const proto::Recipe &recipe);

} // namespace weft::desc::detail

#endif // WEFT_LIB_DESCRIPTION_OPTIMIZERFIELDS_H
