//===- Phases.h - names of the phases of a compilation --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_PHASES_H
#define WEFT_PIPELINE_PHASES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <optional>

namespace weft {

/// The phases of a compilation, in order.
enum class Phase {
#define PHASE(identifier, name, description) identifier,
#include "weft/Pipeline/AllPhases.def"
};

/// All of them, in order.
llvm::ArrayRef<Phase> allPhases();

/// "import".
llvm::StringRef nameOf(Phase phase);

/// What the phase makes of the program: "the graph of the loss, from the description".
llvm::StringRef descriptionOf(Phase phase);

/// The phase of that name, or none.
std::optional<Phase> parsePhase(llvm::StringRef name);

} // namespace weft

#endif // WEFT_PIPELINE_PHASES_H
