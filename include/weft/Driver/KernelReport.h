//===- KernelReport.h - table of kernels and their times -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DRIVER_KERNELREPORT_H
#define WEFT_DRIVER_KERNELREPORT_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <string>
#include <vector>

namespace weft {

/// One kernel, matmul or collective of a profile that a program has written (docs/Calibration.md).
/// Amounts and times are of one rank and one step.
struct KernelRow {
  std::string kind, name, detail;
  std::vector<std::string> places;
  int64_t calls = 0;
  double flops = 0, bytes = 0;
  /// The peak rate for the type that the row multiplies, in operations per second.
  double peakFlops = 0;
  /// Seconds; 0 if unknown.
  double predicted = 0, measured = 0, waited = 0;
  /// Seconds of a single call.
  double least = 0, median = 0;

  /// Rates of arithmetic and of memory as shares of the machine's peaks; 0 if unknown.
  double shareOfFlops = 0, shareOfBandwidth = 0;
  /// The greater of both shares.
  double shareOfPeak() const { return std::max(shareOfFlops, shareOfBandwidth); }
  const char *nearerPeak() const { return shareOfFlops >= shareOfBandwidth ? "flops" : "bytes"; }
};

/// The kernels of one rank class.
struct KernelReport {
  std::string planHash;
  int64_t ranks = 0, threads = 0, steps = 0;
  double stepSeconds = 0, waitingSeconds = 0, predictedSeconds = 0;
  /// The slowest first.
  std::vector<KernelRow> rows;
};

/// By rank class; at least one.
using KernelReports = std::vector<KernelReport>;

/// Reads the profile `text` of the file `path`. Fails on anything that no program writes.
llvm::Expected<KernelReports> readProfile(llvm::StringRef text, llvm::StringRef path);

/// A table for each class, of two lines for each kernel: numbers, then where it comes from and what
/// it computes.
void printTable(llvm::raw_ostream &os, const KernelReports &reports);
/// The same as one JSON object, or a list of one for each class if there are several.
void printJson(llvm::raw_ostream &os, const KernelReports &reports);

} // namespace weft

#endif // WEFT_DRIVER_KERNELREPORT_H
