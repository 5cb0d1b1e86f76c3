//===- MutateRules.h - plants a mistake in a factor rule ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_TOOLS_WEFT_OPT_MUTATERULES_H
#define WEFT_TOOLS_WEFT_OPT_MUTATERULES_H

#include "mlir/Support/LLVM.h"

namespace weft {

/// What --help says of the mistakes that there are.
extern const char *const kRuleMutations;

/// From now on, all ops of one name say something wrong of how they may be sharded: `mutation` is
/// NAME:KIND:SITE, the mistakes of a kind that can be made in a rule being numbered from 0. An op
/// whose rule has no such site stays as it is. Fails, with an error printed, if it is something
/// else. Call it before any op is made.
llvm::LogicalResult plantRuleMutation(llvm::StringRef mutation);

} // namespace weft

#endif // WEFT_TOOLS_WEFT_OPT_MUTATERULES_H
