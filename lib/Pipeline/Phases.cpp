//===- Phases.cpp - names of the phases of a compilation ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Pipeline/Phases.h"

using namespace weft;

llvm::ArrayRef<Phase> weft::allPhases() {
  static constexpr Phase phases[] = {
#define PHASE(identifier, name, description) Phase::identifier,
#include "weft/Pipeline/AllPhases.def"
  };
  return phases;
}

llvm::StringRef weft::nameOf(Phase phase) {
  switch (phase) {
#define PHASE(identifier, name, description)                                                       \
  case Phase::identifier:                                                                          \
    return name;
#include "weft/Pipeline/AllPhases.def"
  }
  return {};
}

llvm::StringRef weft::descriptionOf(Phase phase) {
  switch (phase) {
#define PHASE(identifier, name, description)                                                       \
  case Phase::identifier:                                                                          \
    return description;
#include "weft/Pipeline/AllPhases.def"
  }
  return {};
}

std::optional<Phase> weft::parsePhase(llvm::StringRef name) {
  for (Phase phase : allPhases()) {
    if (nameOf(phase) == name) {
      return phase;
    }
  }
  return std::nullopt;
}
