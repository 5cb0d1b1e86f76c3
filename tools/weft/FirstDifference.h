//===- FirstDifference.h - the op that two programs differ by ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_TOOLS_WEFT_FIRSTDIFFERENCE_H
#define WEFT_TOOLS_WEFT_FIRSTDIFFERENCE_H

#include "SmallPrograms.h"

namespace weft {

/// Compiles the programs of both requests again so that they show every value of a step, runs step
/// `step` of them in `folder` on `data`, and names the first value that differs and what made it,
/// in a sentence. Padding is left out. Where none differs it says so: then what is observed is
/// right, and the mistake lies behind Partition.
llvm::Expected<std::string> firstDifference(SmallProgramRequest split, SmallProgramRequest single,
                                            int64_t step, const std::string &folder,
                                            const std::string &data);

} // namespace weft

#endif // WEFT_TOOLS_WEFT_FIRSTDIFFERENCE_H
