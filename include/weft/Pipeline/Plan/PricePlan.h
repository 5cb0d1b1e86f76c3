//===- PricePlan.h - what a planned module takes --------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Computes from a module alone, whoever planned it, what a step takes: from what ops say of
// themselves, from the shardings in types, and from the ways that reshards go. It shares no code
// with what a search makes its tables of, so that each checks the other: a search that has summed
// up something else than what it wrote into the module has a mistake. What is legal, the ops'
// verifiers and verify-plan say.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_PLAN_PRICEPLAN_H
#define WEFT_PIPELINE_PLAN_PRICEPLAN_H

#include <map>
#include <string>

namespace weft {

/// One rank in one step.
struct PlanPrice {
  /// Seconds on a machine; without one, bytes that are sent.
  double seconds = 0;
  /// Of these, what ops compute, by kinds ("contract"), and what is sent over axes of the mesh
  /// ("tp", or "dp,tp" for what goes over both at once).
  std::map<std::string, double> computing, sending;
  /// Bytes of variables by their roles ("parameter"), and of what is saved for after the instant
  /// when values take most memory.
  std::map<std::string, double> variables;
  double saved = 0;

  double bytes() const;
};

} // namespace weft

#endif // WEFT_PIPELINE_PLAN_PRICEPLAN_H
