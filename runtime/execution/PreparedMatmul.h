//===- PreparedMatmul.h - a matmul by oneDNN --------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// oneDNN generates code for a matmul when it is prepared, for the processor at
// hand: AVX2, AVX-512, and for bf16 AVX512-BF16 or AMX. If it has no bf16 or f16
// matmul, as on processors with only AVX2, operands are widened and multiplied as
// float32, at the speed of float32. TF32 operands are rounded first. All matmuls
// sum in float32.
//
// Each thread that runs matmuls keeps one block of scratch memory for all of them, for
// the library and for copies of operands. `prepareThread` allocates it; otherwise the
// first run that needs more does. A run allocates nothing else from the heap, unless
// oneDNN does: on processors without AVX-512 it allocates buffers for packed operands.
// Any thread may run a PreparedMatmul, one thread at a time; the matmul uses only that
// thread, as teams provide the parallelism.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_EXECUTION_PREPAREDMATMUL_H
#define WEFT_RT_EXECUTION_PREPAREDMATMUL_H

#include "execution/Matmuls.h"
#include "weft-rt/Status.h"

#include <memory>

namespace weft::rt {

class PreparedMatmul {
public:
  /// Prepares the matmul. Fails if memory is short or the library fails. REQUIRES: `part` belongs
  /// to a well-formed program.
  static Result<std::unique_ptr<PreparedMatmul>> make(const MatmulPart &part);
  virtual ~PreparedMatmul() = default;

  /// Returns the bytes of scratch memory that a run needs.
  virtual size_t scratchBytes() const = 0;
  /// Allocates what the calling thread needs for runs, with `scratchBytes` of scratch memory.
  static void prepareThread(size_t scratchBytes);

  /// Overwrites the part's elements of C without reading them. `a`, `b` and `c` are the operands of
  /// the whole matmul. Fails only if the library fails or memory is short.
  virtual Status run(const void *a, const void *b, void *c) = 0;
};

} // namespace weft::rt

#endif // WEFT_RT_EXECUTION_PREPAREDMATMUL_H
