//===- CheckCases.h - runs kernels on a device and checks the results --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The executor of programs runs the cases: each case is an instruction of one program, whose
// buffers have guards between them.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_KERNELS_CHECKCASES_H
#define WEFT_RT_KERNELS_CHECKCASES_H

#include "backends/cuda/DriverTable.h"
#include "kernels/Cases.h"

#include <functional>

namespace weft::rt::kernels {

/// The result of a case.
struct Verdict {
  std::string name;
  /// The first wrong element: "operand 2 element 7 is 1.5, expected 2 to within 1e-06". Empty if
  /// all are right.
  std::string fault;
  /// The largest deviations from float64 of the device and of the host's code of the same type,
  /// divided by the largest element.
  double error = 0, hostError = 0;
  /// The time of one run, and the bytes that it must read and write; 0 if it was not measured.
  double seconds = 0, bytes = 0;
  bool isLarge = false;
};

struct CheckSettings {
  const cuda::DriverTable *library = nullptr;
  /// The threads for the host's runs.
  int64_t threads = 1;
  /// The number of timed runs of a large case; 0 for none.
  int64_t repeats = 0;
  /// The number of wanted cases to skip at the beginning.
  uint64_t skipped = 0;
};

/// Gets the progress and the results of cases, in the order of running them, which is fixed.
struct CheckListener {
  std::function<void(const Case &)> begin;
  std::function<void(const Verdict &)> end;
};

/// Runs the cases for which `wanted` returns true, and calls `listener` for each. Fails at the
/// first failure of the device, since it may be unusable for this process then.
Status checkCases(const Cases &cases, const CheckSettings &settings,
                  const std::function<bool(const Case &)> &wanted, const CheckListener &listener);

} // namespace weft::rt::kernels

#endif // WEFT_RT_KERNELS_CHECKCASES_H
