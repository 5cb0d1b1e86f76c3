//===- StageLists.h - the actions of each stage, checked ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_DESCRIPTION_STAGELISTS_H
#define WEFT_LIB_DESCRIPTION_STAGELISTS_H

#include "weft/Description/StageOrder.h"

#include <optional>

namespace weft::desc::detail {

/// Returns what is wrong with the lists of a schedule, each by itself: all that `simulate` refuses,
/// but actions that wait for themselves.
std::optional<ScheduleFault> faultOfLists(const StageSchedule &schedule, int64_t microBatches,
                                          SchedulePurpose purpose);

/// Numbers the actions of one stage that are of no micro-batch: each chunk's of each kind.
void numberGathers(std::vector<StageAction> &actions);

} // namespace weft::desc::detail

#endif // WEFT_LIB_DESCRIPTION_STAGELISTS_H
