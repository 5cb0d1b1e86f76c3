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

/// Returns all phases, in order.
llvm::ArrayRef<Phase> allPhases();

/// Returns the name of a phase: "import".
llvm::StringRef nameOf(Phase phase);

/// Returns the result of a phase, in words: "the graph of the loss, from the description".
llvm::StringRef descriptionOf(Phase phase);

/// Returns the phase of this name, or nothing.
std::optional<Phase> parsePhase(llvm::StringRef name);

} // namespace weft

#endif // WEFT_PIPELINE_PHASES_H
