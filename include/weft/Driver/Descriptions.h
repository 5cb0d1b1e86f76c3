//===- Descriptions.h - the descriptions that a compilation follows -------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DRIVER_DESCRIPTIONS_H
#define WEFT_DRIVER_DESCRIPTIONS_H

#include "weft/Driver/CompileOptions.h"

#include "weft/Description/Machine.h"
#include "weft/Description/Model.h"
#include "weft/Description/Plan.h"
#include "weft/Description/Recipe.h"
#include "weft/Onnx/Graph.h"

#include <optional>

namespace weft {

/// What the files of a command line say. There is no model where the input is a module.
struct Descriptions {
  std::optional<desc::ModelSpec> model;
  /// Of a model that is one.
  std::optional<onnx::Graph> graph;
  desc::MachineSpec machine;
  desc::RecipeSpec recipe;
  desc::PlanSpec plan;
};

/// Reads all of them and checks them together, the legality of the plan included. Prints whatever
/// is wrong, all of it at once, to standard error; then there is no result.
std::optional<Descriptions> readDescriptions(const CompileOptions &options);

/// What a command begins with that may plant mistakes: checks the options by `check`, plants in the
/// rules of ops what they ask for, and reads the descriptions.
llvm::Expected<Descriptions> openDescriptions(const CompileOptions &options,
                                              llvm::Error (*check)(const CompileOptions &));

} // namespace weft

#endif // WEFT_DRIVER_DESCRIPTIONS_H
