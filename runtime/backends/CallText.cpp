//===- CallText.cpp - a collective in words -------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/CallText.h"

#include "support/Random.h"
#include "support/Text.h"

using namespace weft::rt;

std::string weft::rt::describeCall(const Collective &collective, const RankGroup &group,
                                   const CallSite &site) {
  bool reduces = isReduction(collective.kind);
  bool isTransfer = collective.kind == CollectiveKind::Transfer;
  return concat(
      nameOf(collective.kind), reduces ? " " : "", reduces ? nameOf(collective.reduction) : "", " ",
      nameOf(collective.type), " ", shapeText(collective.shape),
      isTransfer ? concat(" from rank ", group.ranks.front(), " to rank ", group.ranks.back()) : "",
      " (", site.section, " instruction ", site.instruction, ", ", site.label, ")");
}

uint64_t weft::rt::fingerprintOf(const Collective &collective, const RankGroup &group,
                                 const CallSite &site) {
  std::string text =
      concat(int(collective.kind), " ", int(collective.reduction), " ", int(collective.type), " ",
             collective.dim, " ", collective.dim2, " ", shapeText(collective.shape));
  bool isTransfer = collective.kind == CollectiveKind::Transfer;
  text += isTransfer ? concat(" from ", group.ranks.front()) : "";
  // Partners of other rank classes, and the two ends of a transfer, are at places of their own.
  text += collective.isAcrossClasses() ? concat(" number ", collective.number)
          : isTransfer                 ? ""
                                       : concat(" ", site.section, " ", site.instruction);
  for (uint32_t source : collective.sources) {
    text += concat(" s", source);
  }
  return streamOf(text);
}

std::string weft::rt::differentCallsText(int64_t first, const std::string &firstCall,
                                         int64_t second, const std::string &secondCall) {
  return concat("ranks ", first, " and ", second,
                " came to the same place with different collectives: rank ", first, " with ",
                firstCall, ", rank ", second, " with ", secondCall);
}
