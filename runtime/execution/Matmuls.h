//===- Matmuls.h - how matmuls are cut for threads ---------------------------===//
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

/// A part of a matmul that is a matmul itself, on operands that begin further on.
struct MatmulPart {
  Matmul matmul;
  /// Elements.
  int64_t offsetA = 0, offsetB = 0, offsetC = 0;
};

/// Cuts a matmul into parts that together write each element of C once, for a device of `cores`:
/// rows and columns into a grid whose parts are as square as can be, since what a part reads is
/// packed once for each part. The sum over k stays whole, so no part waits for another. A small
/// matmul is left whole. The last bits of a sum depend on the cut, since libraries take its terms
/// in parts that depend on the rows and columns.
std::vector<MatmulPart> cutMatmul(const Matmul &matmul, int64_t cores);

} // namespace weft::rt

#endif // WEFT_RT_EXECUTION_MATMULS_H
