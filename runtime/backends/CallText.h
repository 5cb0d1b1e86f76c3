//===- CallText.h - a collective in words ---------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_CALLTEXT_H
#define WEFT_RT_BACKENDS_CALLTEXT_H

#include "weft-rt/Backend.h"

namespace weft::rt {

/// "all-reduce sum f32 [4, 8] (step instruction 12, layers.0.mlp)".
/// "transfer f32 [4] from rank 0 to rank 1 (step instruction 12, layers.0.mlp)".
std::string describeCall(const Collective &collective, const RankGroup &group,
                         const CallSite &site);

/// Returns a hash of the collective and its place in the program, so that ranks whose calls have
/// the same belong together. A transfer's ranks may call it from different places; they must agree
/// on who sends.
uint64_t fingerprintOf(const Collective &collective, const RankGroup &group, const CallSite &site);

/// "ranks 0 and 1 came to the same place with different collectives: ...".
std::string differentCallsText(int64_t first, const std::string &firstCall, int64_t second,
                               const std::string &secondCall);

} // namespace weft::rt

#endif // WEFT_RT_BACKENDS_CALLTEXT_H
