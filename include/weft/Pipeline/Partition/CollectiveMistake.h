//===- CollectiveMistake.h - mistakes to plant in collectives ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_PARTITION_COLLECTIVEMISTAKE_H
#define WEFT_PIPELINE_PARTITION_COLLECTIVEMISTAKE_H

#include "mlir/IR/Operation.h"

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace weft {

/// The changes that mutate-collective can make to an all-reduce or a transfer; see its description
/// in Passes.td.
enum class CollectiveMistake : uint8_t { Drop, Double, Scale, Axis, Operator, Root, Infinite };

/// Returns true if mutate-collective counts `op`: an all-reduce, or a transfer between stages.
bool mayMutate(mlir::Operation *op);

/// Returns the mistake of this name, or nothing.
std::optional<CollectiveMistake> parseCollectiveMistake(llvm::StringRef name);

/// Returns all names as a list for messages: "drop, double or root".
std::string collectiveMistakeNames();

} // namespace weft

#endif // WEFT_PIPELINE_PARTITION_COLLECTIVEMISTAKE_H
