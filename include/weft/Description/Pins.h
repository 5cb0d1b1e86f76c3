//===- Pins.h - short forms of known strategies ---------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A pin is a user's short form of a part of a plan, such as "dp=2". Beside Strategies.h, only this
// code knows the names of strategies; all other code knows only axes and shardings of logical
// dimensions.
//
//   dp=N  data parallelism: axis "dp" of size N splits batch
//   fsdp=N  data parallelism without copies: axis "fsdp" splits batch beside dp, and zero, by
//         default 3 then, cuts over fsdp instead of dp
//   ep=N  expert parallelism: axis "ep" splits experts, and batch beside dp
//   tp=N  tensor parallelism: axis "tp" splits kv_heads, ffn and vocab
//   cp=N  context parallelism: axis "cp" splits the sequence; cp=N:ring, cp=N:gather and
//         cp=N:all-to-all choose how attention gets keys
//   sp=B  sequence parallelism: beside tp, norms and residuals are split by sequence over tp
//         (true), or are whole but for dp and cp (false)
//   accumulation=N  micro-batches, one after the other, whose gradients are added up
//   recompute=W  what backward computes again of each layer: all but its arguments (full), all of
//         attention but what it adds to the layer (attention), or nothing (none)
//   zero=N  the variables that are cut by hidden over dp, or fsdp, and cp between steps: none (0),
//         optimizer states (1 and 2, which are the same, as gradients are always cut), parameters
//         too (3); otherwise only tp and ep cut variables
//
// The search decides everything that no pin decides.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DESCRIPTION_PINS_H
#define WEFT_DESCRIPTION_PINS_H

#include "weft/Description/Model.h"
#include "weft/Description/Plan.h"

#include <string>
#include <string_view>
#include <vector>

namespace weft::desc {

/// The help of the option `--pin`, in lines.
std::string_view pinsHelp();

/// Returns the plan that `pins` stand for; each string is one pin or several with commas between
/// them ("dp=2,tp=2"). The order of mesh axes is always dp, fsdp, ep, cp, tp, major to minor. A pin
/// of size 1 has no effect; no pins give the plan of one rank.
///
/// If `mesh` is given, in the form of parseMesh, the plan has these axes, the search decides which
/// dimensions they cut, and only `accumulation` and `recompute` may be pinned.
///
/// Fails on an unknown name, a repeated pin, a value out of range, a pin without the pin that it
/// requires, and an invalid mesh; lists all errors. validatePlan checks whether a model can be
/// split by the plan.
///
/// Safe to call from any thread.
Result<PlanSpec> applyPins(const std::vector<std::string> &pins, std::string_view mesh = {});

/// Adapts `plan`, which applyPins made, to a model whose number of key and value heads the axes
/// that cut them do not divide. If that means less computation, these axes cut the query heads that
/// share a key and value head (`group`) instead, or a sub-axis cuts kv_heads and the rest cuts
/// group. Example: with tp=4 and two key and value heads of two query heads each, tp:(1)2 cuts
/// kv_heads and tp:(2)2 cuts group; every rank has one query head, and each key and value head is
/// on two ranks. Where ranks are more than heads, some have padding alone: with tp=3, each of two
/// key and value heads is on one rank.
PlanSpec fitPins(const PlanSpec &plan, const ModelSpec &model);

/// Returns how many of `ranks` ranks should cut key and value heads, a divisor of `ranks`: the
/// others cut the query heads that share one. A rank then has the fewest query heads and key heads.
int64_t waysOfHeads(const ModelSpec &model, int64_t ranks);

} // namespace weft::desc

#endif // WEFT_DESCRIPTION_PINS_H
