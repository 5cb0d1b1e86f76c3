//===- Pins.h - short forms of known strategies ---------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A pin is what a user types to fix part of a plan: "dp=2". This is the only
// place that knows the names of strategies; from here on there are only axes and
// shardings of logical dimensions.
//
//   dp=N  data parallelism: axis "dp" of size N splits batch
//   fsdp=N  data parallelism without copies: axis "fsdp" splits batch beside dp, and zero, which
//         is 3 then unless it is given, cuts over fsdp in the place of dp
//   ep=N  expert parallelism: axis "ep" splits experts, and batch beside dp
//   tp=N  tensor parallelism: axis "tp" splits kv_heads, ffn and vocab
//   cp=N  context parallelism: axis "cp" splits the sequence; cp=N:ring, cp=N:gather and
//         cp=N:all-to-all say how attention gets keys
//   sp=B  sequence parallelism: beside tp, norms and residuals are split by sequence over tp
//         (true), or are whole but for dp and cp (false)
//   accumulation=N  micro-batches, one after the other, whose gradients are added up
//   zero=N  what lies cut by hidden over dp, or fsdp, and cp between steps: nothing (0),
//         optimizer states (1, and 2, which also cuts gradients, as they are cut anyway),
//         parameters too (3); variables are cut by nothing else but tp and ep
//
// What no pin decides is left to the search.
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

/// The plan that `pins` stand for; each string is one pin or several with commas between them
/// ("dp=2,tp=2"). Mesh axes come out as dp, fsdp, ep, cp, tp, major to minor, in whatever order the
/// pins are given; a pin of size 1 leaves no trace, and no pins give the plan of one rank.
///
/// With `mesh`, as parseMesh takes it, the axes are those, what they cut is left to the search, and
/// only `accumulation` may be pinned.
///
/// Fails on what parseMesh does, an unknown name, a repeated pin, a value out of range, and a pin
/// without the one that it needs; lists all of it. Whether a model can be split so is for
/// validatePlan to say.
///
/// Safe to call from any thread.
Result<PlanSpec> applyPins(const std::vector<std::string> &pins, std::string_view mesh = {});

/// `plan`, which applyPins made, for a model whose key and value heads tp does not divide: where
/// that leaves less to compute, tp cuts query heads that share a key and value head (`group`)
/// instead, or becomes two axes, "tp" that cuts kv_heads and "tp_group" that cuts group. With
/// tp=4, two key and value heads of two query heads each become one query head on each rank, and
/// each key and value head is on two ranks.
PlanSpec fitPins(PlanSpec plan, const ModelSpec &model);

} // namespace weft::desc

#endif // WEFT_DESCRIPTION_PINS_H
