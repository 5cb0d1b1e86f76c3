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
/// call on device `number`: "device 0 of rank 1, PLACE: ERROR". `place` returns the instructions
/// that the call was for: "in step instruction 3 (...)", or ""; `advice` follows the error.
template <typename Place>
bool check(const DriverTable &library, int64_t number, Communicator &link,
           DriverTable::Result result, const Place &place, const std::string &advice = "") {
  if (!result) {
    return true;
  }
  std::string text = place();
  return link.fail(concat("device ", number, " of rank ", link.rank(), text.empty() ? "" : ", ",
                          text, ": ", result, advice),
                   library.lacksMemory() ? ExitCode::OutOfMemory : ExitCode::Error);
}

} // namespace weft::rt::cuda

#endif // WEFT_RT_BACKENDS_CUDA_CHECK_H
