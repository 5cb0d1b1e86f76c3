//===- Random.h - the counter-based generator, as code -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The definitions are those of docs/Numerics.md.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_LOWER_RANDOM_H
#define WEFT_LIB_PIPELINE_LOWER_RANDOM_H

#include <optional>

#include "weft/Pipeline/Lower/Code.h"

namespace weft::lower {

/// Draws the random bits of one stream.
class Generator {
public:
  /// `seed` and `stream` are i64.
  Generator(Code &code, Num seed, Num stream);
  /// Returns the generator of a dropout: step and layer are i64.
  static Generator forDropout(Code &code, Num seed, Num step, Num layer, int64_t site);

  /// Returns bits(seed, stream, i), i64, for an i64.
  Num bits(Num i) const;
  /// Returns uniform(seed, stream, i) >= rate.
  Num isKept(Num i, double rate) const;

private:
  Code *code;
  Num base;
};

/// The place of a shard in the whole tensor, for row-major indices in the whole.
class Placement {
public:
  /// A shard of shape `localShape` at `offsets` of a tensor of shape `globalShape`; without
  /// offsets the shard starts at zero, without a global shape it is the whole.
  Placement(Code &code, llvm::ArrayRef<int64_t> localShape, mlir::ValueRange offsets,
            std::optional<llvm::ArrayRef<int64_t>> globalShape);

  /// Returns the index in the whole tensor, i64, of the element at `indices` of the shard.
  Num globalIndex(llvm::ArrayRef<Num> indices) const;

private:
  Code *code;
  Nums offsets;
  llvm::SmallVector<int64_t> strides;
};

} // namespace weft::lower

#endif // WEFT_LIB_PIPELINE_LOWER_RANDOM_H
