//===- CollectiveMistake.h - what can be wrong with a reduction -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_PARTITION_COLLECTIVEMISTAKE_H
#define WEFT_PIPELINE_PARTITION_COLLECTIVEMISTAKE_H

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace weft {

/// What mutate-collective makes of an all-reduce; its description says what each is.
enum class CollectiveMistake : uint8_t { Drop, Double, Scale, Axis, Operator, Root, Infinite };

/// Nothing if `name` is that of none.
std::optional<CollectiveMistake> parseCollectiveMistake(llvm::StringRef name);

/// Their names, as options that take one speak of them: "drop, double or root".
std::string collectiveMistakeNames();

} // namespace weft

#endif // WEFT_PIPELINE_PARTITION_COLLECTIVEMISTAKE_H
