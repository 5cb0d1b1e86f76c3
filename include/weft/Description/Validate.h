//===- Validate.h - rules between several descriptions --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rules inside one description hold as soon as it is loaded; these are the
// rules between them. Each function lists all that is violated and is silent
// where everything holds. They keep no state: any number of threads may call
// them.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DESCRIPTION_VALIDATE_H
#define WEFT_DESCRIPTION_VALIDATE_H

#include "weft/Description/Machine.h"
#include "weft/Description/Model.h"
#include "weft/Description/Plan.h"
#include "weft/Description/Recipe.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace weft::desc {

/// Elements of a logical dimension before it is split; none where the model has no such dimension
/// (positions of a model without learned positions) or the name is not a dimension. Of "ffn", which
/// experts have in another size than plain MLPs, that of the latter.
std::optional<int64_t> dimensionSize(const ModelSpec &model, const RecipeSpec &recipe,
                                     std::string_view dimension);

/// Whether the model can be trained by this recipe on this machine at all (together_r1 to
/// together_r2 of docs/Descriptions.md). Empty where it can.
Diagnostics validateTogether(const ModelSpec &model, const RecipeSpec &recipe,
                             const MachineSpec &machine);

/// Whether a model's dimension can be padded, so that it divides.
bool canBePadded(std::string_view dimension);

/// Whether the plan splits this model legally (legal_r1 to legal_r3 of docs/Descriptions.md): every
/// split dimension exists and is divisible by the product of its axes, unless the plan may pad it
/// and it can be padded, and the mesh has no more ranks than the machine has devices. Empty where
/// it does.
Diagnostics validatePlan(const ModelSpec &model, const RecipeSpec &recipe,
                         const MachineSpec &machine, const PlanSpec &plan);

} // namespace weft::desc

#endif // WEFT_DESCRIPTION_VALIDATE_H
