//===- ByteSeconds.h - what FP8 matmuls take ------------------------------===//
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

/// Prices the matmuls that encode-matmuls will make FP8 matmuls, by the same rule, but
/// before values are cut, joined and brought elsewhere: it may come to another answer for few.
class ByteSeconds {
public:
  /// Null unless matmuls are to multiply bytes, and there is a machine that can. Both must outlive
  /// this, and the module's values stay what they are.
  static std::unique_ptr<ByteSeconds> make(bool isAsked, mlir::ModuleOp module,
                                           const cost::Predictor *machine);

  /// Of `op` on a rank that has `sizes` of the factors of `rule`, with a kernel in front for the
  /// bytes of each operand; nothing for what stays as it is.
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
