//===- UpdateRules.h - the update rules of all optimizers -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_DIFFERENTIATE_UPDATERULES_H
#define WEFT_LIB_PIPELINE_DIFFERENTIATE_UPDATERULES_H

#include "UpdateRule.h"

#include <memory>

namespace weft {

// Each is in a file of its own.
std::unique_ptr<UpdateRule> makeAdamWRule(mlir::OpBuilder &builder, mlir::Location loc,
                                          OptimizerOp optimizer);
std::unique_ptr<UpdateRule> makeSgdRule(mlir::OpBuilder &builder, mlir::Location loc,
                                        OptimizerOp optimizer);
std::unique_ptr<UpdateRule> makeMuonRule(mlir::OpBuilder &builder, mlir::Location loc,
                                         OptimizerOp optimizer);

/// Returns the rule of the optimizer's kind.
inline std::unique_ptr<UpdateRule> makeUpdateRule(mlir::OpBuilder &builder, mlir::Location loc,
                                                  OptimizerOp optimizer) {
  switch (optimizer.getKind()) {
  case OptimizerKind::AdamW:
    return makeAdamWRule(builder, loc, optimizer);
  case OptimizerKind::SGD:
    return makeSgdRule(builder, loc, optimizer);
  case OptimizerKind::Muon:
    return makeMuonRule(builder, loc, optimizer);
  }
  llvm_unreachable("all kinds have a rule");
}

} // namespace weft

#endif // WEFT_LIB_PIPELINE_DIFFERENTIATE_UPDATERULES_H
