//===- Fp8Matmuls.h - which matmuls can be FP8 matmuls --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The form of the FP8 matmul that encode-matmuls makes of a matmul of quantized operands, and that
// Plan predicts for it.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_SCHEDULE_FP8MATMULS_H
#define WEFT_PIPELINE_SCHEDULE_FP8MATMULS_H

#include "weft-rt/Program.h"
#include "weft/Dialect/Weft/IR/Weft.h"

#include "llvm/ADT/SmallVector.h"

#include <optional>
#include <string>

namespace weft {

/// An operand of a matmul and the layout of its bytes.
struct ByteOperand {
  /// The format; nothing if the scale of the operand is unknown.
  std::optional<Float8> format;
  /// The number of leading dimensions that move behind the others.
  int64_t lead = 0;
  /// One letter for each dimension, and the dimensions' sizes.
  std::string term;
  llvm::SmallVector<int64_t> shape;
};

/// An FP8 matmul, or in `refusal` why there is none.
struct Fp8MatmulForm {
  std::string refusal;
  rt::Matmul matmul;
};

/// Returns the matmul of two operands with the given terms and shapes. Reorders the dimensions of
/// both so that the summed one, which `result` lacks, comes last.
Fp8MatmulForm formFp8Matmul(ByteOperand &lhs, ByteOperand &rhs, llvm::StringRef result);

} // namespace weft

#endif // WEFT_PIPELINE_SCHEDULE_FP8MATMULS_H
