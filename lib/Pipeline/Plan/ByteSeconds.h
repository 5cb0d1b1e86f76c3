//===- ByteSeconds.h - seconds of FP8 matmuls -----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_PLAN_BYTESECONDS_H
#define WEFT_LIB_PIPELINE_PLAN_BYTESECONDS_H

#include "weft/Cost/Predictor.h"
#include "weft/Pipeline/Schedule/QuantizedValues.h"

#include <memory>

namespace weft {

/// Prices the matmuls that encode-matmuls will turn into FP8 matmuls. It decides by the same rule
/// as that pass, but earlier: before values are cut, fused and resharded, so that it may decide
/// otherwise for a few matmuls.
class ByteSeconds {
public:
  /// Returns null unless `isAsked` is true and `machine` multiplies FP8 numbers. Module and machine
  /// must outlive the result, and the module's values must not change.
  static std::unique_ptr<ByteSeconds> make(bool isAsked, mlir::ModuleOp module,
                                           const cost::Predictor *machine);

  /// Returns the seconds of `op` on a rank that has `sizes` of the factors of `rule`, with the
  /// kernels that encode its operands; nothing if `op` does not become an FP8 matmul.
  std::optional<double> of(mlir::Operation *op, const FactorRule &rule,
                           llvm::ArrayRef<int64_t> sizes);

private:
  ByteSeconds(mlir::ModuleOp module, const cost::Predictor &machine)
      : values(module), machine(machine) {}

  QuantizedValues values;
  const cost::Predictor &machine;
};

} // namespace weft

#endif // WEFT_LIB_PIPELINE_PLAN_BYTESECONDS_H
