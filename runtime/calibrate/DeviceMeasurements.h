//===- DeviceMeasurements.h - measures the speed of CUDA devices ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_CALIBRATE_DEVICEMEASUREMENTS_H
#define WEFT_RT_CALIBRATE_DEVICEMEASUREMENTS_H

#include "calibrate/Measurements.h"

namespace weft::rt::calibrate {

/// Measures this machine's CUDA devices by the driver table, so that it makes the same calls as
/// programs; each rank is a thread with a device of its own. Times are those of the devices'
/// clocks. A `plan.ranks` of 0 becomes the number of devices. Fails if the plug-in, the driver or a
/// device is missing or fails; the error is one line. FP8 matmuls that the library refuses go to
/// `Measurements::refused`.
Result<Measurements> measureDevices(Plan &plan,
                                    const std::function<void(const std::string &)> &progress);

/// Returns the approximate seconds for each measurement on a single device. There are fewer of them
/// if some devices have no FP8 matmuls.
double secondsOfEach(const Plan &plan, bool areWithBytes);

} // namespace weft::rt::calibrate

#endif // WEFT_RT_CALIBRATE_DEVICEMEASUREMENTS_H
