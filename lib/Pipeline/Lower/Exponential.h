//===- Exponential.h - exponentials of numbers at most zero ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_LOWER_EXPONENTIAL_H
#define WEFT_LIB_PIPELINE_LOWER_EXPONENTIAL_H

#include "weft/Pipeline/Lower/Code.h"

namespace weft::lower {

/// Returns the exponential of a number that is at most about zero, as of a logit less the greatest.
/// For devices: in float32 the error is |a| units of the last place, so it is small where the
/// result is not, and results below the least normal number are 0.
Num expOfNegative(Num a);

} // namespace weft::lower

#endif // WEFT_LIB_PIPELINE_LOWER_EXPONENTIAL_H
