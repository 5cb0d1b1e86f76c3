//===- OpKinds.cpp - kinds of ops in the schedule -------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpKinds.h"

#include "weft/Dialect/Weft/IR/Fp8Ops.h"
#include "weft/Pipeline/Schedule/MatmulForm.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace weft;

bool weft::isCommunication(Operation *op) {
  return isa<AllReduceOp, AllGatherOp, ReduceScatterOp, AllToAllOp, PermuteOp, SendOp, ReceiveOp>(
      op);
}

bool weft::isMatmul(Operation *op) {
  auto contract = dyn_cast<ContractOp>(op);
  return isa<MatmulOp, Fp8MatmulOp>(op) || (contract && classifyMatmul(contract).has_value());
}

bool weft::isKernelWork(Operation *op) {
  bool computes = isa_and_present<WeftDialect>(op->getDialect()) && isPure(op) &&
                  llvm::any_of(op->getResultTypes(), llvm::IsaPred<RankedTensorType>);
  return computes && !isa<ReadOp, ReshapeOp, ReshardOp>(op) && !isCommunication(op) &&
         !isMatmul(op);
}

bool weft::isRearrangement(Operation *op) {
  auto contract = dyn_cast<ContractOp>(op);
  return isa<ConcatOp, SplitOp>(op) ||
         (contract && contract.getInputs().size() == 1 &&
          contract.getOutput().getType().getNumElements() ==
              cast<RankedTensorType>(contract.getInputs().front().getType()).getNumElements());
}

void weft::eraseDeadOps(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
    if (isOpTriviallyDead(&op)) {
      op.erase();
    }
  }
}

void weft::eraseDeadOps(func::FuncOp function) {
  for (Block &block : function.getBody()) {
    eraseDeadOps(block);
  }
}
