//===- CollectiveMistake.cpp - mistakes to plant in collectives -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Pipeline/Partition/CollectiveMistake.h"

#include "weft/Dialect/Weft/IR/Weft.h"

#include "llvm/ADT/STLExtras.h"

namespace weft {

static constexpr std::pair<llvm::StringLiteral, CollectiveMistake> kMistakes[] = {
    {"drop", CollectiveMistake::Drop},         {"double", CollectiveMistake::Double},
    {"scale", CollectiveMistake::Scale},       {"axis", CollectiveMistake::Axis},
    {"operator", CollectiveMistake::Operator}, {"root", CollectiveMistake::Root},
    {"infinite", CollectiveMistake::Infinite}};

bool mayMutate(mlir::Operation *op) { return mlir::isa<AllReduceOp, TransferOp>(op); }

std::optional<CollectiveMistake> parseCollectiveMistake(llvm::StringRef name) {
  const auto *it = llvm::find_if(kMistakes, [&](const auto &known) { return known.first == name; });
  return it == std::end(kMistakes) ? std::nullopt : std::optional(it->second);
}

std::string collectiveMistakeNames() {
  std::string names;
  for (auto [number, known] : llvm::enumerate(kMistakes)) {
    bool isLast = number + 1 == std::size(kMistakes);
    names += (number == 0 ? "" : isLast ? " or " : ", ") + known.first.str();
  }
  return names;
}

} // namespace weft
