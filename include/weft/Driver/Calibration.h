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

/// The options of `weft calibrate`.
struct CalibrateOptions {
  /// The file to write, and the machine's name in it.
  std::string output, name = "calibrated";
  /// A file of measurements made on another machine; empty to measure this one.
  std::string measured;
  TargetKind target = TargetKind::Host;
  /// Devices to divide the processors into; 0 for one per processor.
  int64_t ranks = 0;
  bool quick = false;
  /// Duration of the host's measurements, for tests; 0 for the duration that `quick` implies.
  double seconds = 0;
};

/// Returns the system's name of the processor, in printable characters for a comment.
std::string processorName();

/// Measures this machine, or reads the measurements of another, writes the machine's file, whole or
/// not at all, and prints a summary. Warns on standard error if other work disturbed the samples.
llvm::Error calibrate(const CalibrateOptions &options, const Occasion &occasion);

} // namespace weft

#endif // WEFT_DRIVER_CALIBRATION_H
