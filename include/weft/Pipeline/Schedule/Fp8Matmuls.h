//===- Fp8Matmuls.h - which matmuls multiply bytes ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What encode-matmuls makes of matmuls whose operands are quantized, and what Plan takes them
// for before they are.
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

/// An operand of a matmul, as its bytes lie.
struct ByteOperand {
  /// Nothing where it is not known what the operand was scaled by.
  std::optional<Float8> format;
  /// How many dimensions go behind the others.
  int64_t lead = 0;
  /// One letter for each dimension, and their sizes.
  std::string term;
  llvm::SmallVector<int64_t> shape;
};

/// An FP8 matmul, or why there is none.
struct Fp8MatmulForm {
  std::string refusal;
  rt::Matmul matmul;
};

/// The matmul of two operands that lie as terms and shapes say. Turns both so that what is summed,
/// which `result` lacks, comes last.
Fp8MatmulForm formFp8Matmul(ByteOperand &lhs, ByteOperand &rhs, llvm::StringRef result);

} // namespace weft

#endif // WEFT_PIPELINE_SCHEDULE_FP8MATMULS_H
