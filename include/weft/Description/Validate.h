//===- Validate.h - rules between several descriptions --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loading a description checks its own rules; the functions here check the rules between
// descriptions. Each returns a diagnostic for every violation, none if all rules hold. They keep no
// state: any number of threads may call them.
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

/// Returns the size of a logical dimension before it is split; none if the model has no such
/// dimension (positions of a model without learned positions) or the name is not a dimension. For
/// "ffn" it is the size of plain MLPs, from which that of experts may differ.
std::optional<int64_t> dimensionSize(const ModelSpec &model, const RecipeSpec &recipe,
                                     std::string_view dimension);

/// Checks that the model can be trained by this recipe on this machine (together_r1 to together_r2
/// of docs/Descriptions.md).
Diagnostics validateTogether(const ModelSpec &model, const RecipeSpec &recipe,
                             const MachineSpec &machine);

/// Returns true if a model's dimension can be padded to a size that its axes divide.
bool canBePadded(std::string_view dimension);

/// The parts of a mesh, axes or parts of split axes, beyond which a search takes minutes and
/// gigabytes: the layouts of a tensor of rank r on n parts are (r+2)ⁿ.
constexpr size_t mostParts = 5;

/// Checks that the plan can split this model (legal_r1 to legal_r3 and legal_r14 of
/// docs/Descriptions.md): every
/// split dimension exists and is divisible by the product of its axes, unless the plan allows
/// padding and the dimension can be padded; and the mesh has at most as many ranks as the machine
/// has devices, and at most `mostParts` parts.
Diagnostics validatePlan(const ModelSpec &model, const RecipeSpec &recipe,
                         const MachineSpec &machine, const PlanSpec &plan);

} // namespace weft::desc

#endif // WEFT_DESCRIPTION_VALIDATE_H
