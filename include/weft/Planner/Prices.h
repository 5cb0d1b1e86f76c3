//===- Prices.h - prices of steps between shardings -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PLANNER_PRICES_H
#define WEFT_PLANNER_PRICES_H

#include "weft/Cost/Predictor.h"
#include "weft/Planner/Reshard.h"

#include <map>
#include <span>

namespace weft::planner {

/// A `Price` on one mesh: seconds on a machine or, without a machine, bytes that a rank sends.
/// Caches groups, so that only one thread at a time may call it. Does not own the machine.
class Prices {
public:
  explicit Prices(std::span<const int64_t> mesh, const cost::Predictor *machine = nullptr)
      : mesh(mesh.begin(), mesh.end()), machine(machine) {}

  double operator()(StepKind kind, const Axes &axes, double bytes);

private:
  std::vector<int64_t> mesh;
  const cost::Predictor *machine;
  std::map<Axes, cost::Group> groups;
};

} // namespace weft::planner

#endif // WEFT_PLANNER_PRICES_H
