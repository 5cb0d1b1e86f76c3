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
std::string describeCall(const Collective &collective, const CallSite &site);

/// Returns true if the two calls are one collective at one place of the program, so that ranks that
/// make them belong together.
bool isSameCall(const Collective &a, const CallSite &siteA, const Collective &b,
                const CallSite &siteB);

/// "ranks 0 and 1 came to the same place with different collectives: ...".
std::string differentCallsText(int64_t first, const std::string &firstCall, int64_t second,
                               const std::string &secondCall);

} // namespace weft::rt

#endif // WEFT_RT_BACKENDS_CALLTEXT_H
