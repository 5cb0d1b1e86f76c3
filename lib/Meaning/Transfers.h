//===- Transfers.h - what is on its way between rank classes --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The ranks of a class have the coordinates of one rank of each other class, with which alone they
// exchange values by transfers. So one rank of each class stands for all. Transfers of one number
// between two classes happen in the order in which each of the two has them.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_MEANING_TRANSFERS_H
#define WEFT_LIB_MEANING_TRANSFERS_H

#include "Arrays.h"

#include "weft-rt/Program.h"

#include <compare>

namespace weft::meaning {

/// The transfers of one number from a rank class to another.
struct Route {
  uint32_t from, to, number;

  auto operator<=>(const Route &other) const = default;
};

/// The route of a collective of `program`. None if it is no transfer from or to its class.
inline std::optional<Route> routeOf(const rt::Collective &collective, const rt::Program &program) {
  const std::vector<uint32_t> &classes = collective.classes;
  bool isTransfer = collective.kind == rt::CollectiveKind::Transfer && classes.size() == 2 &&
                    (classes[0] == program.rankClass) != (classes[1] == program.rankClass);
  return isTransfer ? std::optional(Route{classes[0], classes[1], collective.number})
                    : std::nullopt;
}

/// Arrays that were sent and not yet received.
class Transfers {
public:
  void send(const Route &route, ArrayId array) { sent[route].push_back(array); }

  std::optional<ArrayId> receive(const Route &route) {
    auto found = sent.find(route);
    if (found == sent.end()) {
      return std::nullopt;
    }
    ArrayId array = found->second.front();
    found->second.pop_front();
    if (found->second.empty()) {
      sent.erase(found);
    }
    return array;
  }

  /// A route of which something is left, if there is one.
  std::optional<Route> findLeft() const {
    return sent.empty() ? std::nullopt : std::optional(sent.begin()->first);
  }

private:
  std::map<Route, std::deque<ArrayId>> sent;
};

/// Lets each of `walks` go on, again and again, until none can. `advance` lets one go on until it
/// has to wait for another; it returns true if that one did anything.
template <typename Walks, typename Advance> void goTogether(Walks &walks, Advance advance) {
  for (bool isMore = true; isMore;) {
    isMore = false;
    for (auto &walk : walks) {
      isMore |= advance(walk);
    }
  }
}

} // namespace weft::meaning

#endif // WEFT_LIB_MEANING_TRANSFERS_H
