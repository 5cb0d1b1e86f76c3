//===- ConvertKernelsToLLVM.cpp - loops on memrefs to the LLVM dialect ---===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "weft/Pipeline/Lower/Passes.h"

namespace weft {

#define GEN_PASS_DEF_CONVERTKERNELSTOLLVMPASS
#include "weft/Pipeline/Lower/Passes.h.inc"

using namespace mlir;

namespace {

/// Returns the type of the bits of a number or a vector of bf16; null for other types.
Type bitsOfBF16(Type type) {
  Type bits = IntegerType::get(type.getContext(), 16);
  auto vector = dyn_cast<VectorType>(type);
  return !getElementTypeOrSelf(type).isBF16() ? Type() : vector ? vector.clone(bits) : bits;
}

/// Loads and stores the bits of bf16 numbers, on which expand-bf16 computes. Between a load of bf16
/// and a selection of bits, LLVM would select bf16 again, for which some processors call a function
/// that no library has.
void moveBits(LLVM::LLVMFuncOp function) {
  OpBuilder builder(function.getContext());
  function.walk([&](Operation *op) {
    auto load = dyn_cast<LLVM::LoadOp>(op);
    auto store = dyn_cast<LLVM::StoreOp>(op);
    Value moved = load ? load.getRes() : store ? store.getValue() : Value();
    Type type = moved ? moved.getType() : Type(), bits = moved ? bitsOfBF16(type) : Type();
    if (bits && load) {
      builder.setInsertionPointAfter(op);
      moved.setType(bits);
      auto number = LLVM::BitcastOp::create(builder, op->getLoc(), type, moved);
      moved.replaceAllUsesExcept(number, number);
    } else if (bits) {
      builder.setInsertionPoint(op);
      store.getValueMutable().set(LLVM::BitcastOp::create(builder, op->getLoc(), bits, moved));
    }
  });
}

struct ConvertKernelsToLLVMPass : impl::ConvertKernelsToLLVMPassBase<ConvertKernelsToLLVMPass> {
  using ConvertKernelsToLLVMPassBase::ConvertKernelsToLLVMPassBase;

  void runOnOperation() override {
    // Loops first: the functions' blocks must be final when arguments become pointers.
    RewritePatternSet loops(&getContext());
    populateSCFToControlFlowConversionPatterns(loops);
    ConversionTarget branches(getContext());
    branches.addIllegalDialect<scf::SCFDialect>();
    branches.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    if (failed(applyPartialConversion(getOperation(), branches, std::move(loops)))) {
      return signalPassFailure();
    }

    LowerToLLVMOptions options(&getContext());
    options.useBarePtrCallConv = true;
    LLVMTypeConverter converter(&getContext(), options);
    RewritePatternSet patterns(&getContext());
    arith::populateArithToLLVMConversionPatterns(converter, patterns);
    cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
    populateFinalizeMemRefToLLVMConversionPatterns(converter, patterns);
    populateFuncToLLVMConversionPatterns(converter, patterns);
    populateVectorToLLVMConversionPatterns(converter, patterns);
    // Functions without an LLVM intrinsic become calls of the C library.
    populateMathToLLVMConversionPatterns(converter, patterns);
    populateMathToLibmConversionPatterns(patterns, /*benefit=*/0);
    LLVMConversionTarget target(getContext());
    target.addLegalOp<ModuleOp>();
    if (failed(applyFullConversion(getOperation(), target, std::move(patterns)))) {
      return signalPassFailure();
    }
    if (!forDevices) {
      llvm::for_each(getOperation().getOps<LLVM::LLVMFuncOp>(), moveBits);
    }
  }
};

} // namespace

} // namespace weft
