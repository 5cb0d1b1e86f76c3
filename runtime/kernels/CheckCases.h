//===- CheckCases.h - runs kernels on a device and judges them ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A device runs cases by the executor that whole programs run by: each case is an
// instruction of a program that is made of them, whose buffers have guards between them.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_KERNELS_CHECKCASES_H
#define WEFT_RT_KERNELS_CHECKCASES_H

#include "backends/cuda/DriverTable.h"
#include "kernels/Cases.h"

#include <functional>

namespace weft::rt::kernels {

/// What became of a case.
struct Verdict {
  std::string name;
  /// Empty if all is well: "operand 2 element 7 is 1.5, expected 2 to within 1e-06".
  std::string fault;
  /// How far the device is from float64 at most, and the host's code of the same type, as parts of
  /// the largest element.
  double error = 0, hostError = 0;
  /// Of one run, and the bytes that it has to read and write; 0 where nobody measured.
  double seconds = 0, bytes = 0;
  bool isLarge = false;
};

struct CheckSettings {
  const cuda::DriverTable *library = nullptr;
  /// Threads for the host's part.
  int64_t threads = 1;
  /// Runs of a large case that are timed; 0 for none.
  int64_t repeats = 0;
  /// Of what is wanted, the first ones, which are not run.
  uint64_t skipped = 0;
};

/// What is told of cases, in the order in which they are run, which is always the same.
struct CheckListener {
  std::function<void(const Case &)> begin;
  std::function<void(const Verdict &)> end;
};

/// Runs those of `cases` that `wanted` says and tells of each. Returns false and an error if the
/// device fails, after which nothing more is told: it may do nothing more for this process.
bool checkCases(const Cases &cases, const CheckSettings &settings,
                const std::function<bool(const Case &)> &wanted, const CheckListener &listener,
                std::string &error);

} // namespace weft::rt::kernels

#endif // WEFT_RT_KERNELS_CHECKCASES_H
