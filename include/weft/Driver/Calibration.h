//===- Calibration.h - measures this machine --------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DRIVER_CALIBRATION_H
#define WEFT_DRIVER_CALIBRATION_H

#include "weft/Driver/MachineText.h"
#include "weft/Pipeline/Target.h"

#include "llvm/Support/Error.h"

#include <string>

namespace weft {

/// What `weft calibrate` was asked for.
struct CalibrateOptions {
  /// The file to write, and the machine's name in it.
  std::string output, name = "calibrated";
  /// A file of measurements made on another machine; empty to measure this one.
  std::string measured;
  TargetKind target = TargetKind::Host;
  /// 0 for as many as there are processors.
  int64_t ranks = 0;
  bool quick = false;
  /// For tests; 0 for what `quick` says.
  double seconds = 0;
};

/// The processor as the system calls it, in characters that a comment may hold.
std::string processorName();

/// Measures this machine, or reads what was measured, writes the machine's file, whole or not at
/// all, and prints what it has found. Warns on standard error where other work has disturbed it.
llvm::Error calibrate(const CalibrateOptions &options, const Occasion &occasion);

} // namespace weft

#endif // WEFT_DRIVER_CALIBRATION_H
