//===- CallText.cpp - a collective in words -------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/CallText.h"

#include "support/Text.h"

#include <cstring>

using namespace weft::rt;

std::string weft::rt::describeCall(const Collective &collective, const CallSite &site) {
  bool reduces = isReduction(collective.kind);
  return concat(nameOf(collective.kind), reduces ? " " : "",
                reduces ? nameOf(collective.reduction) : "", " ", nameOf(collective.type), " ",
                shapeText(collective.shape), " (", site.section, " instruction ", site.instruction,
                ", ", site.label, ")");
}

bool weft::rt::isSameCall(const Collective &a, const CallSite &siteA, const Collective &b,
                          const CallSite &siteB) {
  return a.kind == b.kind && a.reduction == b.reduction && a.type == b.type && a.shape == b.shape &&
         a.dim == b.dim && a.dim2 == b.dim2 && a.sources == b.sources && a.classes == b.classes &&
         a.number == b.number &&
         (a.isAcrossClasses() || (siteA.instruction == siteB.instruction &&
                                  std::strcmp(siteA.section, siteB.section) == 0));
}

std::string weft::rt::differentCallsText(int64_t first, const std::string &firstCall,
                                         int64_t second, const std::string &secondCall) {
  return concat("ranks ", first, " and ", second,
                " came to the same place with different collectives: rank ", first, " with ",
                firstCall, ", rank ", second, " with ", secondCall);
}
