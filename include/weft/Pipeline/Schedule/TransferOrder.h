//===- TransferOrder.h - when pipeline stages exchange values --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A transfer takes place between two actions of its sender and two of its receiver, and whoever
// comes first waits. Where that is follows from a simulation, in which a stage that is done with an
// action
//
//   - exchanges a value with another that is waiting, too, first one that is needed next;
//   - waits for a partner that will soon need a value of it, if it would else let it wait longer;
//   - else begins its next action, or waits for what that needs.
//
// So each stage is near its schedule, whatever its actions take. Where stages have one chunk, it
// exchanges only what is needed next: nothing is gained by taking a value early, but its
// micro-batch is in flight for longer. Where they have several, most values would have to wait at
// their sender, in frames, and their stages would meet more seldom. So it is where gradients of
// weights, which need nothing of others, stand between what does: a stage would begin with them
// while another waits to send.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_SCHEDULE_TRANSFERORDER_H
#define WEFT_PIPELINE_SCHEDULE_TRANSFERORDER_H

#include "weft/Description/StageOrder.h"

#include <functional>
#include <optional>
#include <vector>

namespace weft {

/// A value of stage `from` that one action makes, and that stage `to` needs for another.
struct ActionTransfer {
  desc::StageAction maker, user;
  int64_t from = 0, to = 0;
};

/// An action, or the transfer of that number.
struct StageEvent {
  desc::StageAction action;
  std::optional<size_t> transfer = std::nullopt;
};

/// Returns all actions and transfers in one order, in which each stage does its own. `timeOf` is
/// positive; a transfer takes one unit of it. Returns nothing if stages wait for each other in a
/// circle. REQUIRES: `desc::simulate` finds no fault in the schedule, and makers and users are in
/// the lists of their stages.
std::optional<std::vector<StageEvent>>
orderTransfers(const desc::StageSchedule &schedule, const std::vector<ActionTransfer> &transfers,
               const std::function<double(const desc::StageAction &)> &timeOf);

} // namespace weft

#endif // WEFT_PIPELINE_SCHEDULE_TRANSFERORDER_H
