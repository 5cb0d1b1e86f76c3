//===- Exponential.h - exponentials of what is not above zero ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_LOWER_EXPONENTIAL_H
#define WEFT_LIB_PIPELINE_LOWER_EXPONENTIAL_H

#include "weft/Pipeline/Lower/Code.h"

namespace weft::lower {

/// The exponential of a number that is about zero or less, as of a logit less the greatest. For
/// devices: that of a float32 is off by |a| units of the last place, little where it counts.
Num expOfNegative(Num a);

} // namespace weft::lower

#endif // WEFT_LIB_PIPELINE_LOWER_EXPONENTIAL_H
