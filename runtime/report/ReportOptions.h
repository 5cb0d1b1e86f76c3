//===- ReportOptions.h - the reports that a run gives -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_REPORT_REPORTOPTIONS_H
#define WEFT_RT_REPORT_REPORTOPTIONS_H

#include <string>

namespace weft::rt {

/// The options of a command line that choose a run's reports on its steps.
struct ReportOptions {
  /// A file; empty if not given.
  std::string metrics;
  /// `noProgress` prints no line for each step; `quiet` prints nothing.
  bool noProgress = false, quiet = false;
  bool curve = false;
};

} // namespace weft::rt

#endif // WEFT_RT_REPORT_REPORTOPTIONS_H
