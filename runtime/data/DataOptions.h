//===- DataOptions.h - the data that a run reads ----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_DATA_DATAOPTIONS_H
#define WEFT_RT_DATA_DATAOPTIONS_H

#include "data/TokenFile.h"

#include <optional>

namespace weft::rt {

/// The options of a command line that choose samples and their order.
struct DataOptions {
  /// Files; empty if not given.
  std::string data, validationData;
  /// Detected from name and content if not given.
  std::optional<DataFormat> dataFormat;
  /// The share of the samples of `data` for validation, from 0 (none) to below 1.
  double validationSplit = 0;
  std::optional<int64_t> validationEvery, validationSteps;
  uint64_t seed = 0;
};

} // namespace weft::rt

#endif // WEFT_RT_DATA_DATAOPTIONS_H
