//===- DeviceMeasurements.h - what CUDA devices do how fast -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_CALIBRATE_DEVICEMEASUREMENTS_H
#define WEFT_RT_CALIBRATE_DEVICEMEASUREMENTS_H

#include "calibrate/Measurements.h"

namespace weft::rt::calibrate {

/// Measures this machine's CUDA devices, by the table of functions that programs load, so that what
/// is measured is what programs do; each rank is a thread with a device of its own. Times are those
/// of the devices' clocks. `plan.ranks` of 0 becomes the number of devices. Fails, with one line,
/// where the plug-in, the driver or a device is missing, and where one fails. An FP8
/// matmul that the library refuses on a device is told as refused.
bool measureDevices(Plan &plan, const std::function<void(const std::string &)> &progress,
                    Measurements &measurements, std::string &error);

/// About what each thing may take that a device does by itself: fewer are measured where not all
/// devices have FP8 matmuls.
double secondsOfEach(const Plan &plan, bool areWithBytes);

} // namespace weft::rt::calibrate

#endif // WEFT_RT_CALIBRATE_DEVICEMEASUREMENTS_H
