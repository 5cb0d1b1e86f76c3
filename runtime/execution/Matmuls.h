//===- Matmuls.h - divides matmuls among threads --------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_EXECUTION_MATMULS_H
#define WEFT_RT_EXECUTION_MATMULS_H

#include "weft-rt/Program.h"

#include <vector>

namespace weft::rt {

/// A part of a matmul: a matmul whose operands begin at offsets into those of the whole.
struct MatmulPart {
  Matmul matmul;
  /// Elements.
  int64_t offsetA = 0, offsetB = 0, offsetC = 0;
};

/// Cuts a matmul into parts for a device of `cores` cores; together they write each element of C
/// once. The parts form a grid over rows and columns and are as square as possible, because each
/// part packs the operands that it reads. The sum over k stays whole, so no part waits for another.
/// A small matmul stays whole, and any on one core, where oneDNN needs no large scratch memory. The
/// last bits of a sum depend on the cut, because libraries group its terms by the number of rows
/// and columns.
std::vector<MatmulPart> cutMatmul(const Matmul &matmul, int64_t cores);

} // namespace weft::rt

#endif // WEFT_RT_EXECUTION_MATMULS_H
