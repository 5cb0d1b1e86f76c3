//===- ProofCollectives.cpp - collectives match and have one order --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A communicator is a group of ranks that differ only on some axes. A rank's n-th
// collective on a communicator meets the n-th of every other rank of it.
//
// 1. Rendezvous. All ranks of a class issue the same collectives, so it is enough to
//    compare, for each set of axes, the lists of those pairs of classes that have
//    ranks in one group over these axes.
// 2. Order. Every class walks down its list; a collective happens when all its
//    participants have reached it. If all lists come to their ends, the order in which
//    collectives happened is the linear order. Ranks of one class never wait for one
//    another: the groups over any axes partition the ranks. First all ranks of a class
//    walk as one, which takes no longer than reading the lists; that is stricter than
//    necessary, so if they get stuck, every rank walks by itself.
//
//===----------------------------------------------------------------------===//

#include "ProofParts.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

using namespace weft;
using namespace weft::schedule;

void weft::schedule::checkClasses(std::span<const RankClass> classes, Diagnostics &diagnostics) {
  const rt::Program &first = *classes[0].program;
  auto sameAxis = [](const rt::Axis &a, const rt::Axis &b) {
    return a.name == b.name && a.size == b.size;
  };
  for (const RankClass &rankClass : classes) {
    const rt::Program &program = *rankClass.program;
    if (!std::equal(first.mesh.begin(), first.mesh.end(), program.mesh.begin(), program.mesh.end(),
                    sameAxis)) {
      diagnostics.add("the tables of different ranks have different meshes");
      return;
    }
    if (program.planHash != first.planHash) {
      diagnostics.add("the tables of different ranks have different plans");
      return;
    }
  }
  std::vector<int> seen(first.rankCount(), 0);
  for (const RankClass &rankClass : classes) {
    for (int64_t rank : rankClass.ranks) {
      if (rank < 0 || rank >= static_cast<int64_t>(seen.size())) {
        diagnostics.add("rank " + std::to_string(rank) + " lies outside of the mesh");
      } else if (seen[rank]++ == 1) {
        diagnostics.add("rank " + std::to_string(rank) + " has more than one table");
      }
    }
  }
  for (size_t rank = 0; rank < seen.size(); ++rank) {
    if (seen[rank] == 0) {
      diagnostics.add("rank " + std::to_string(rank) + " has no table");
    }
  }
}

namespace {

/// The axes of a group, sorted, without those of size 1.
using AxisSet = std::vector<uint32_t>;

/// One collective in a class's list.
struct Issue {
  uint32_t instruction;
  /// The number of the collective in its program.
  uint32_t collective;
  /// Number of the axis set, and the number of earlier issues with the same set.
  uint32_t axes, turn;
};

struct ClassList {
  std::vector<Issue> issues;
  /// For each axis set, its issues, in order.
  std::vector<std::vector<uint32_t>> byAxes;
};

/// A class or one rank that walks down its list.
struct Walker {
  uint32_t list;
  int64_t rank;
};

/// A rendezvous of walkers: for each axis set, a communicator's number, and the turn.
using RendezvousKey = std::pair<uint64_t, uint32_t>;

class CollectiveCheck {
public:
  CollectiveCheck(std::span<const RankClass> classes, Section section, Diagnostics &diagnostics)
      : classes(classes), section(section), diagnostics(diagnostics) {}

  void run() {
    buildLists();
    size_t before = diagnostics.size();
    compareLists();
    if (diagnostics.size() == before && classes.size() > 1) {
      checkOrder();
    }
  }

private:
  const rt::Program &programOf(uint32_t number) const { return *classes[number].program; }

  const rt::Collective &collectiveOf(uint32_t list, const Issue &issue) const {
    return programOf(list).collectives[issue.collective];
  }

  std::string describe(int64_t rank, uint32_t list, const Issue &issue) const {
    return "rank " + std::to_string(rank) + " at " +
           describeInstruction(programOf(list), section, issue.instruction) + " issues " +
           describeCollective(programOf(list), collectiveOf(list, issue));
  }

  void buildLists();
  void compareLists();
  void compareGroup(uint32_t axes, const std::vector<int64_t> &group);
  void compare(uint32_t axes, int64_t rankA, int64_t rankB);
  void checkOrder();
  /// Lets all walk; returns for each the place in its list where it stopped.
  std::vector<size_t> walk(const std::vector<Walker> &walkers,
                           const std::vector<std::vector<uint32_t>> &communicators) const;
  void reportStuck(const std::vector<Walker> &walkers,
                   const std::vector<std::vector<uint32_t>> &communicators,
                   const std::vector<size_t> &places);
  uint32_t findRoot(uint32_t axes, uint32_t list);

  std::span<const RankClass> classes;
  Section section;
  Diagnostics &diagnostics;

  std::vector<AxisSet> axisSets;
  std::vector<ClassList> lists;
  /// The class of each rank.
  std::vector<uint32_t> classOf;
  /// For each axis set, a forest over classes: classes with ranks in one group have one root.
  std::vector<std::vector<uint32_t>> parents;
  /// Pairs of classes that were compared, for each axis set.
  std::vector<std::set<std::pair<uint32_t, uint32_t>>> compared;
};

void CollectiveCheck::buildLists() {
  classOf.resize(programOf(0).rankCount());
  std::map<AxisSet, uint32_t> numbers;
  for (uint32_t c = 0; c < classes.size(); ++c) {
    for (int64_t rank : classes[c].ranks) {
      classOf[rank] = c;
    }
    const rt::Program &program = programOf(c);
    ClassList &list = lists.emplace_back();
    uint32_t next = 0;
    for (const rt::Instruction &instruction : expansionOf(program, section)) {
      uint32_t i = next++;
      if (instruction.opcode != rt::Opcode::Collective) {
        continue;
      }
      AxisSet axes = program.collectives[instruction.target].axes;
      std::erase_if(axes, [&](uint32_t axis) { return program.mesh[axis].size == 1; });
      std::sort(axes.begin(), axes.end());
      auto [it, isNew] = numbers.try_emplace(axes, static_cast<uint32_t>(axisSets.size()));
      if (isNew) {
        axisSets.push_back(axes);
      }
      list.issues.push_back({i, instruction.target, it->second, 0});
    }
  }
  for (ClassList &list : lists) {
    list.byAxes.resize(axisSets.size());
    for (uint32_t i = 0; i < list.issues.size(); ++i) {
      std::vector<uint32_t> &same = list.byAxes[list.issues[i].axes];
      list.issues[i].turn = static_cast<uint32_t>(same.size());
      same.push_back(i);
    }
  }
  std::vector<uint32_t> alone(classes.size());
  std::iota(alone.begin(), alone.end(), 0);
  parents.assign(axisSets.size(), alone);
  compared.resize(axisSets.size());
}

uint32_t CollectiveCheck::findRoot(uint32_t axes, uint32_t list) {
  while (parents[axes][list] != list) {
    list = parents[axes][list] = parents[axes][parents[axes][list]];
  }
  return list;
}

void CollectiveCheck::compareLists() {
  if (classes.size() == 1) {
    return; // Every rank meets ranks with its own list.
  }
  const rt::Program &program = programOf(0);
  for (uint32_t axes = 0; axes < axisSets.size(); ++axes) {
    for (int64_t rank = 0; rank < static_cast<int64_t>(classOf.size()); ++rank) {
      std::vector<int64_t> group = rt::groupOver(axisSets[axes], rank, program.mesh).ranks;
      if (*std::min_element(group.begin(), group.end()) == rank) {
        compareGroup(axes, group);
      }
    }
  }
}

void CollectiveCheck::compareGroup(uint32_t axes, const std::vector<int64_t> &group) {
  for (int64_t rank : group) {
    uint32_t a = classOf[group[0]], b = classOf[rank];
    if (a != b && compared[axes].insert({a, b}).second) {
      parents[axes][findRoot(axes, b)] = findRoot(axes, a);
      compare(axes, group[0], rank);
    }
  }
}

/// Returns true if two ranks issue the same collective. Axis numbers agree, as meshes are equal.
bool meansTheSame(const rt::Collective &a, const rt::Collective &b) {
  return a.kind == b.kind && a.type == b.type && a.axes == b.axes && a.shape == b.shape &&
         a.sources == b.sources && (!rt::isReduction(a.kind) || a.reduction == b.reduction) &&
         (!rt::changesShape(a.kind) || a.dim == b.dim) &&
         (a.kind != rt::CollectiveKind::AllToAll || a.dim2 == b.dim2);
}

void CollectiveCheck::compare(uint32_t axes, int64_t rankA, int64_t rankB) {
  uint32_t a = classOf[rankA], b = classOf[rankB];
  const std::vector<uint32_t> &issuesA = lists[a].byAxes[axes], &issuesB = lists[b].byAxes[axes];
  size_t common = std::min(issuesA.size(), issuesB.size());
  for (size_t i = 0; i < common; ++i) {
    const Issue &x = lists[a].issues[issuesA[i]], &y = lists[b].issues[issuesB[i]];
    if (!meansTheSame(collectiveOf(a, x), collectiveOf(b, y))) {
      diagnostics.add(describe(rankA, a, x) + ", but " + describe(rankB, b, y));
      return;
    }
  }
  if (issuesA.size() > common) {
    diagnostics.add(describe(rankA, a, lists[a].issues[issuesA[common]]) + ", but rank " +
                    std::to_string(rankB) + " issues no collective that matches it");
  } else if (issuesB.size() > common) {
    diagnostics.add(describe(rankB, b, lists[b].issues[issuesB[common]]) + ", but rank " +
                    std::to_string(rankA) + " issues no collective that matches it");
  }
}

std::vector<size_t>
CollectiveCheck::walk(const std::vector<Walker> &walkers,
                      const std::vector<std::vector<uint32_t>> &communicators) const {
  // The number of walkers in each communicator of each axis set.
  std::vector<std::map<uint32_t, uint32_t>> parties(axisSets.size());
  for (uint32_t axes = 0; axes < axisSets.size(); ++axes) {
    for (uint32_t communicator : communicators[axes]) {
      ++parties[axes][communicator];
    }
  }
  std::vector<size_t> places(walkers.size(), 0);
  std::map<RendezvousKey, std::vector<uint32_t>> waiting;
  std::vector<uint32_t> ready(walkers.size());
  std::iota(ready.begin(), ready.end(), 0);
  while (!ready.empty()) {
    uint32_t walker = ready.back();
    ready.pop_back();
    const std::vector<Issue> &issues = lists[walkers[walker].list].issues;
    if (places[walker] == issues.size()) {
      continue;
    }
    const Issue &issue = issues[places[walker]];
    uint32_t communicator = communicators[issue.axes][walker];
    RendezvousKey key{uint64_t(issue.axes) << 32 | communicator, issue.turn};
    std::vector<uint32_t> &here = waiting[key];
    here.push_back(walker);
    if (here.size() == parties[issue.axes].at(communicator)) {
      for (uint32_t member : here) {
        ++places[member];
        ready.push_back(member);
      }
      waiting.erase(key);
    }
  }
  return places;
}

void CollectiveCheck::checkOrder() {
  auto allDone = [&](const std::vector<Walker> &walkers, const std::vector<size_t> &places) {
    for (size_t i = 0; i < walkers.size(); ++i) {
      if (places[i] != lists[walkers[i].list].issues.size()) {
        return false;
      }
    }
    return true;
  };

  std::vector<Walker> walkers;
  std::vector<std::vector<uint32_t>> communicators(axisSets.size());
  for (uint32_t c = 0; c < classes.size(); ++c) {
    walkers.push_back({c, -1});
    for (uint32_t axes = 0; axes < axisSets.size(); ++axes) {
      communicators[axes].push_back(findRoot(axes, c));
    }
  }
  if (allDone(walkers, walk(walkers, communicators))) {
    return;
  }

  walkers.clear();
  for (int64_t rank = 0; rank < static_cast<int64_t>(classOf.size()); ++rank) {
    walkers.push_back({classOf[rank], rank});
  }
  for (uint32_t axes = 0; axes < axisSets.size(); ++axes) {
    communicators[axes].assign(walkers.size(), 0);
    for (int64_t rank = 0; rank < static_cast<int64_t>(classOf.size()); ++rank) {
      std::vector<int64_t> group = rt::groupOver(axisSets[axes], rank, programOf(0).mesh).ranks;
      communicators[axes][rank] =
          static_cast<uint32_t>(*std::min_element(group.begin(), group.end()));
    }
  }
  std::vector<size_t> places = walk(walkers, communicators);
  if (!allDone(walkers, places)) {
    reportStuck(walkers, communicators, places);
  }
}

/// Names one waiting rank, and a rank that it waits for. As the lists match, the latter issues the
/// same collective later, and so waits for another one.
void CollectiveCheck::reportStuck(const std::vector<Walker> &walkers,
                                  const std::vector<std::vector<uint32_t>> &communicators,
                                  const std::vector<size_t> &places) {
  for (uint32_t a = 0; a < walkers.size(); ++a) {
    const std::vector<Issue> &issues = lists[walkers[a].list].issues;
    if (places[a] == issues.size()) {
      continue;
    }
    const Issue &here = issues[places[a]];
    for (uint32_t b = 0; b < walkers.size(); ++b) {
      if (communicators[here.axes][b] != communicators[here.axes][a] ||
          places[b] == lists[walkers[b].list].issues.size()) {
        continue;
      }
      const Issue &there = lists[walkers[b].list].issues[places[b]];
      if (there.axes != here.axes || there.turn != here.turn) {
        diagnostics.add("deadlock: " + describe(walkers[a].rank, walkers[a].list, here) +
                        " and waits for rank " + std::to_string(walkers[b].rank) + "; " +
                        describe(walkers[b].rank, walkers[b].list, there) +
                        " first and waits as well");
        return;
      }
    }
  }
}

} // namespace

void weft::schedule::checkCollectives(std::span<const RankClass> classes, Section section,
                                      Diagnostics &diagnostics) {
  CollectiveCheck(classes, section, diagnostics).run();
}
