//===- Strategies.h - plans by the names that people know -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What Pins.h does, the other way round: reports call by name what a plan comes to. Beside the
// parser of pins this is the only place that knows the names of strategies, and it decides nothing:
// it looks at axes of logical dimensions, whoever chose them.
//
// The functions keep no state: any number of threads may call them.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DESCRIPTION_STRATEGIES_H
#define WEFT_DESCRIPTION_STRATEGIES_H

#include "weft/Description/Plan.h"

namespace weft::desc {

/// A variable of a model; of an optimizer state the name is that of its parameter behind a slash,
/// and of an input there is no weight.
struct VariableShape {
  std::string name;
  std::vector<std::string> dimensions;
  double bytes = 0;
};

/// What `plan`, which leaves nothing open, is called, a line for each strategy in it: "tensor
/// parallelism over tp=8, with sequence parallelism". `variables` are parameters and optimizer
/// states.
std::vector<std::string> recognize(const PlanSpec &plan,
                                   const std::vector<VariableShape> &variables);

/// A strategy that people use, as a plan that leaves the rest open.
struct Strategy {
  std::string name;
  PlanSpec plan;
};

/// Those on the mesh of `plan`; none if it has axes that no pin makes.
std::vector<Strategy> knownStrategies(const PlanSpec &plan);

} // namespace weft::desc

#endif // WEFT_DESCRIPTION_STRATEGIES_H
