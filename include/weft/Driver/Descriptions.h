//===- Descriptions.h - reads the descriptions of a compilation -----------===//
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

/// The descriptions that the files of a command line contain. There is no model if the input is a
/// module. A plain value: it owns everything, and any thread may read it.
struct Descriptions {
  std::optional<desc::ModelSpec> model;
  /// The graph of a model that names an ONNX file.
  std::optional<onnx::Graph> graph;
  desc::MachineSpec machine;
  desc::RecipeSpec recipe;
  desc::PlanSpec plan;
};

/// Reads all descriptions and checks them together, including that the plan is legal. Prints all
/// errors at once to standard error, and then returns nothing.
std::optional<Descriptions> readDescriptions(const CompileOptions &options);

/// Checks the options with `check`, plants the mistake of `--mutate-rule` in the rules of ops, for
/// the whole process, and reads the descriptions. An error without a message means that the errors
/// have been printed.
llvm::Expected<Descriptions> openDescriptions(const CompileOptions &options,
                                              llvm::Error (*check)(const CompileOptions &));

} // namespace weft

#endif // WEFT_DRIVER_DESCRIPTIONS_H
