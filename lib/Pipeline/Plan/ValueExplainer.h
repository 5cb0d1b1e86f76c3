//===- ValueExplainer.h - what a search says of one value -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_PLAN_VALUEEXPLAINER_H
#define WEFT_LIB_PIPELINE_PLAN_VALUEEXPLAINER_H

#include "OpPins.h"
#include "ShardingReasons.h"
#include "SolveShardings.h"

#include "weft/Pipeline/Plan/ValueQuestion.h"

namespace weft {

/// Answers a question while a module has no shardings yet. All arguments must outlive it.
class ValueExplainer {
public:
  ValueExplainer(mlir::ModuleOp module, ShardingProblem &shardings, const ValueQuestion &question)
      : module(module), shardings(shardings), question(question) {}

  /// Finds the value. If the name fits none or several, writes names into the answer and fails.
  mlir::LogicalResult find();
  /// Writes the layout in `found`, the reason for it and the costs of other layouts into the
  /// answer. REQUIRES: find succeeded.
  void explain(const ShardingChoice &found, ReshardTables &tables, const PinOrigins &origins);

  const ValueAnswer &getAnswer() const { return answer; }

private:
  /// A variable, or an op's first result.
  struct Candidate {
    std::string name;
    VariableOp variable;
    mlir::Value value;
    const ShardingEnd *end = nullptr;
  };

  std::vector<Candidate> candidates(const OpNames &names);
  std::string nameOf(mlir::Operation *op, const OpNames &names) const;
  bool matches(const Candidate &candidate, const OpNames &names) const;
  std::string layoutOf(ShardingReasons &reasons, uint32_t option);
  LayoutPrice price(const ShardingChoice &choice, std::string layout, ReshardTables &tables);

  mlir::ModuleOp module;
  ShardingProblem &shardings;
  const ValueQuestion &question;
  ValueAnswer answer;
  Candidate asked;
};

} // namespace weft

#endif // WEFT_LIB_PIPELINE_PLAN_VALUEEXPLAINER_H
