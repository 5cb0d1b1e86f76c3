//===- ShareKernels.h - one table of kernels for all stages ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_SCHEDULE_SHAREKERNELS_H
#define WEFT_PIPELINE_SCHEDULE_SHAREKERNELS_H

#include "weft-rt/Program.h"

namespace weft {

/// Makes the programs of pipeline stages those of one executable, which has one table of kernels:
/// each program gets the kernels of all, in the order of stages. Their names differ, see
/// outline-kernels. A single program stays as it is.
void shareKernels(rt::Programs &programs);

} // namespace weft

#endif // WEFT_PIPELINE_SCHEDULE_SHAREKERNELS_H
