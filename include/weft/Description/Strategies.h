//===- Strategies.h - names of known strategies for plans -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The reverse of Pins.h: finds the names of the strategies in a plan, for reports. Beside the
// parser of pins, only this code knows the names of strategies. It decides nothing: it only looks
// at the axes of logical dimensions.
//
// The functions keep no state: any number of threads may call them.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DESCRIPTION_STRATEGIES_H
#define WEFT_DESCRIPTION_STRATEGIES_H

#include "weft/Description/Plan.h"

namespace weft::desc {

/// What a plan's home shards: a parameter, or what is named by its kind, a slash and its parameter:
/// an optimizer state, the master of a rounded parameter, or a sum of gradients ("gradient/…").
struct VariableShape {
  std::string name;
  std::vector<std::string> dimensions;
  double bytes = 0;
};

/// Returns one line for each strategy in `plan`: "tensor parallelism over tp=8, with sequence
/// parallelism". `variables` are all that the plan's homes shard, but inputs. REQUIRES: the plan
/// leaves nothing open.
std::vector<std::string> recognize(const PlanSpec &plan,
                                   const std::vector<VariableShape> &variables);

/// A common strategy, as a plan that leaves everything else open.
struct Strategy {
  std::string name;
  PlanSpec plan;
};

/// Returns the common strategies on the mesh of `plan`, whose axes they do not split (fitPins
/// does); none if it has axes that no pin makes.
std::vector<Strategy> knownStrategies(const PlanSpec &plan);

} // namespace weft::desc

#endif // WEFT_DESCRIPTION_STRATEGIES_H
