//===- PreparedMatmul.h - a matmul by oneDNN --------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// oneDNN makes code for a matmul when it is prepared, by the processor: AVX2, AVX-512, and for
// bf16 AVX512-BF16 or AMX. Where it has none for bf16 or f16, as on processors with no more than
// AVX2, operands are widened and multiplied as float32, at its speed; those of TF32 are rounded.
// All sum in float32.
//
// A thread that runs matmuls keeps one block of memory for the library, had at its first run. A
// PreparedMatmul may be run by one thread at a time, from any thread, and only on that one: teams
// are the parallelism.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_EXECUTION_PREPAREDMATMUL_H
#define WEFT_RT_EXECUTION_PREPAREDMATMUL_H

#include "execution/Matmuls.h"

#include <memory>
#include <string>

namespace weft::rt {

class PreparedMatmul {
public:
  /// Null, with the reason in `error`, if there is no memory for it or the library fails.
  /// REQUIRES: `part` belongs to a well-formed program.
  static std::unique_ptr<PreparedMatmul> make(const MatmulPart &part, std::string &error);
  virtual ~PreparedMatmul() = default;

  /// Overwrites the part's part of C, never reads it. `a`, `b` and `c` are those of the whole
  /// matmul. Fails only where the library does or memory is out; then says why in
  /// `error`.
  virtual bool run(const void *a, const void *b, void *c, std::string &error) = 0;
};

} // namespace weft::rt

#endif // WEFT_RT_EXECUTION_PREPAREDMATMUL_H
