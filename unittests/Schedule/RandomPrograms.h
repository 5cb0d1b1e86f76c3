//===- RandomPrograms.h - small programs of pipelines, drawn ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_UNITTESTS_SCHEDULE_RANDOMPROGRAMS_H
#define WEFT_UNITTESTS_SCHEDULE_RANDOMPROGRAMS_H

#include "TableMutations.h"

namespace weft::test {

/// Returns correct programs of one to three classes, for one to four micro-batches: forward and
/// backward of each, in any order that values and sums allow, with transfers in between or in
/// their bodies, frames as `assignFrames` gives them, kernels, sums over a class's ranks, and
/// streams.
rt::Programs drawPrograms(Random &random);

} // namespace weft::test

#endif // WEFT_UNITTESTS_SCHEDULE_RANDOMPROGRAMS_H
