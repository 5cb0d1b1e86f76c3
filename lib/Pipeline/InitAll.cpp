//===- InitAll.cpp - registration of dialects and passes ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/InitAll.h"

#include "weft/Conversion/Shard/Passes.h"
#include "weft/Dialect/Weft/IR/ScalarOps.h"
#include "weft/Dialect/Weft/IR/Weft.h"
#include "weft/Meaning/Passes.h"
#include "weft/Pipeline/Differentiate/Passes.h"
#include "weft/Pipeline/Emit/Emit.h"
#include "weft/Pipeline/Import/Passes.h"
#include "weft/Pipeline/Lower/HostLowering.h"
#include "weft/Pipeline/Lower/Passes.h"
#include "weft/Pipeline/Partition/Passes.h"
#include "weft/Pipeline/Plan/Passes.h"
#include "weft/Pipeline/Schedule/Passes.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void weft::registerAllWeft(DialectRegistry &registry) {
  registry.insert<WeftDialect, func::FuncDialect, arith::ArithDialect, math::MathDialect>();
  // Dialects that kernels are lowered through.
  registry.insert<cf::ControlFlowDialect, LLVM::LLVMDialect, memref::MemRefDialect, scf::SCFDialect,
                  vector::VectorDialect>();
  // The dialect that convert-weft-to-shard writes.
  registry.insert<shard::ShardDialect>();
  registerScalarOpModels(registry);
  registerHostLoweringModels(registry);
  registerEmitTranslations(registry);
}

void weft::registerAllWeftPasses() {
  registerImportPasses();
  registerDifferentiatePasses();
  registerPlanPasses();
  registerPartitionPasses();
  registerSchedulePasses();
  registerLowerPasses();
  registerShardConversionPasses();
  registerMeaningPasses();
  // canonicalize, cse, symbol-dce and the like.
  registerTransformsPasses();
}
