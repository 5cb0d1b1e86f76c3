//===- ChunkedPipeline.h - a step of any stages and chunks -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_UNITTESTS_MEANING_CHUNKEDPIPELINE_H
#define WEFT_UNITTESTS_MEANING_CHUNKEDPIPELINE_H

#include <cstdint>
#include <string>

namespace weft::test {

/// Chunk c lies in stage c modulo the number of stages. Each stage has two ranks, which have
/// samples of their own, or twice as many, of which two have the same.
struct ChunkedShape {
  int64_t stages = 2, chunks = 2, microBatches = 3;
  bool hasTensorRanks = false;
  /// The two ranks of a stage have shards of its variables, which a step gathers when it begins.
  bool hasShards = false;
  /// Backward of chunks in the middle is in two functions, as split-backward leaves it.
  bool hasParts = false;
};

/// Returns a module as Partition leaves it, as `SmallPipeline::text` does. Chunks in the middle
/// sum over both ranks of their stage in forward, beside a product that does not need the sum;
/// gradients and the loss are summed over both at the end of the step.
std::string chunkedPipeline(const ChunkedShape &shape);

} // namespace weft::test

#endif // WEFT_UNITTESTS_MEANING_CHUNKEDPIPELINE_H
