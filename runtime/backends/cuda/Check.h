//===- Check.h - reports errors of calls of the driver table --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_CUDA_CHECK_H
#define WEFT_RT_BACKENDS_CUDA_CHECK_H

#include "backends/cuda/DriverTable.h"
#include "support/Text.h"
#include "weft-rt/Backend.h"

namespace weft::rt::cuda {

/// Returns true if `result` is a success. Else fails `link` with the error of this thread's last
/// call on device `number`, and `advice`.
inline bool check(const DriverTable &library, int64_t number, Communicator &link,
                  DriverTable::Result result, const char *advice = "") {
  return !result ||
         link.fail(concat("device ", number, " of rank ", link.rank(), ": ", result, advice),
                   library.lacksMemory() ? ExitCode::OutOfMemory : ExitCode::Error);
}

} // namespace weft::rt::cuda

#endif // WEFT_RT_BACKENDS_CUDA_CHECK_H
