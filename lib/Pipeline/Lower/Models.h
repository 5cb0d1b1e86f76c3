//===- Models.h - the lowering of each family of ops ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_LOWER_MODELS_H
#define WEFT_LIB_PIPELINE_LOWER_MODELS_H

#include "mlir/IR/MLIRContext.h"
#include "weft/Dialect/Weft/IR/Weft.h"
#include "weft/Pipeline/Lower/HostLowering.h"

namespace weft::lower {

/// Base of the lowering of one kind of op. `Derived` defines it in
/// `static void lower(Code &, OpTy, OpTy::Adaptor operands, mlir::ValueRange results)`.
template <typename Derived, typename OpTy>
struct HostModel : HostLoweringOpInterface::ExternalModel<Derived, OpTy> {
  void lowerToLoops(mlir::Operation *op, Code &code, mlir::ValueRange operands,
                    mlir::ValueRange results) const {
    auto typed = llvm::cast<OpTy>(op);
    Derived::lower(code, typed, typename OpTy::Adaptor(operands, typed), results);
  }
};

void attachMapModels(mlir::MLIRContext &context);
void attachContractModels(mlir::MLIRContext &context);
void attachNormModels(mlir::MLIRContext &context);
void attachAttentionModels(mlir::MLIRContext &context);
void attachAttentionGradModels(mlir::MLIRContext &context);
void attachEmbeddingModels(mlir::MLIRContext &context);
void attachExpertModels(mlir::MLIRContext &context);
void attachCrossEntropyModels(mlir::MLIRContext &context);
void attachRandomModels(mlir::MLIRContext &context);
void attachRotaryModels(mlir::MLIRContext &context);
void attachRoutingModels(mlir::MLIRContext &context);
void attachMovementModels(mlir::MLIRContext &context);
void attachOrderModels(mlir::MLIRContext &context);
void attachShapeModels(mlir::MLIRContext &context);
void attachConvolutionModels(mlir::MLIRContext &context);
void attachPoolModels(mlir::MLIRContext &context);
void attachQuantizeModels(mlir::MLIRContext &context);

} // namespace weft::lower

#endif // WEFT_LIB_PIPELINE_LOWER_MODELS_H
