//===- MachineText.h - a measured machine as text ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DRIVER_MACHINETEXT_H
#define WEFT_DRIVER_MACHINETEXT_H

#include "weft/Description/Machine.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace weft {

/// The measurements of weft-rt-calibrate, and the spreads that comments in the machine's file
/// state. A spread is the distance between the 10th and the 90th of 100 samples, divided by the
/// median.
struct HostMeasurements {
  desc::MachineSpec machine;
  double spreadOfMatmuls = 0, spreadOfMemory = 0, spreadOfCollectives = 0; ///< Medians.
  double spreadOfRendezvous = 0;
  /// The name and version of the library of matmuls, as the library reports them.
  std::string library;
  /// The matmuls that the library refuses, each as a line of a comment.
  std::vector<std::string> refused;
  /// The name that the devices report; empty if the devices are parts of this host.
  std::string deviceName;
};

/// Where, when and how a machine was measured.
struct Occasion {
  std::string date, processor, command;
};

/// Reads the output of weft-rt-calibrate. `name` becomes the machine's name; a device that is part
/// of this host is named after `processor` and its number of cores.
llvm::Expected<HostMeasurements> readMeasurements(llvm::StringRef text, llvm::StringRef name,
                                                  llvm::StringRef processor);

/// Returns the machine in the text format of proto/weft/machine.proto, each number with its source.
std::string machineText(const HostMeasurements &host, const Occasion &occasion);

} // namespace weft

#endif // WEFT_DRIVER_MACHINETEXT_H
