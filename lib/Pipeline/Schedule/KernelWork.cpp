//===- KernelWork.cpp - what a kernel computes ----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelWork.h"

#include "OpKinds.h"

#include "llvm/ADT/DenseSet.h"

using namespace mlir;

llvm::SmallVector<Operation *> weft::findWork(func::FuncOp kernel) {
  SmallVector<Operation *> work;
  for (Operation &op : kernel.front().without_terminator()) {
    if (llvm::any_of(op.getResultTypes(), llvm::IsaPred<RankedTensorType>)) {
      work.push_back(&op);
    }
  }
  return work;
}

Operation *weft::findMainWork(func::FuncOp kernel) {
  SmallVector<Operation *> work = findWork(kernel);
  auto main = llvm::find_if(llvm::reverse(work), [](Operation *op) { return !isa<MapOp>(op); });
  return main != work.rend() ? *main : work.empty() ? nullptr : work.back();
}

void weft::eraseUnusedKernels(ModuleOp module) {
  llvm::DenseSet<StringRef> used;
  module.walk([&](LaunchOp launch) { used.insert(launch.getKernel()); });
  for (auto function : llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
    if (isKernel(function) && !used.contains(function.getSymName())) {
      function.erase();
    }
  }
}

std::string weft::scalarOps(Operation &op) {
  std::string text;
  for (Region &region : op.getRegions()) {
    for (Operation &inner : region.getOps()) {
      if (!inner.hasTrait<OpTrait::IsTerminator>() && !inner.hasTrait<OpTrait::ConstantLike>()) {
        text += (text.empty() ? "" : " ") + inner.getName().stripDialect().str();
      }
    }
  }
  return text;
}

StringRef weft::findName(Location loc) {
  if (auto name = dyn_cast<NameLoc>(loc)) {
    return name.getName();
  }
  if (auto call = dyn_cast<CallSiteLoc>(loc)) {
    return findName(call.getCallee());
  }
  if (auto fused = dyn_cast<FusedLoc>(loc)) {
    for (Location part : fused.getLocations()) {
      if (StringRef name = findName(part); !name.empty()) {
        return name;
      }
    }
  }
  return "";
}
