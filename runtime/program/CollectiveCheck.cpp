//===- CollectiveCheck.cpp - checks the collectives of programs -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "program/ProgramCheck.h"
#include "support/Text.h"

#include <algorithm>

using namespace weft::rt;

Status weft::rt::checkAxes(const Program &program, const std::string &name,
                           std::span<const uint32_t> axes) {
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] >= program.mesh.size()) {
      return makeError(name, " uses mesh axis ", axes[i], ", the mesh has ", program.mesh.size());
    }
    if (std::find(axes.begin(), axes.begin() + i, axes[i]) != axes.begin() + i) {
      return makeError(name, " uses mesh axis '", program.mesh[axes[i]].name, "' twice");
    }
  }
  return {};
}

namespace {

/// Checks one collective.
class CollectiveChecker {
public:
  CollectiveChecker(const Program &program, size_t number)
      : program(program), collective(program.collectives[number]),
        name(concat("collective ", number)) {}

  Status check() {
    for (auto part : {&CollectiveChecker::checkGroup, &CollectiveChecker::checkShape,
                      &CollectiveChecker::checkSources, &CollectiveChecker::checkCuts}) {
      if (Status status = (this->*part)(); !status) {
        return status;
      }
    }
    return {};
  }

private:
  Status checkGroup() const;
  Status checkClasses() const;
  Status checkShape() const;
  Status checkSources() const;
  Status checkCuts() const;
  uint64_t ranks() const { return program.groupSize(collective); }

  const Program &program;
  const Collective &collective;
  const std::string name;
};

Status CollectiveChecker::checkGroup() const {
  if (collective.isAcrossClasses()) {
    return checkClasses();
  }
  if (collective.kind == CollectiveKind::Transfer) {
    return makeError(name, " is a transfer within a rank class, expected one between two");
  }
  if (collective.number != 0) {
    return makeError(name, " is of one class, but has the number ", collective.number,
                     " of one across classes");
  }
  return checkAxes(program, name, collective.axes);
}

Status CollectiveChecker::checkClasses() const {
  const std::vector<uint32_t> &classes = collective.classes;
  if (!collective.axes.empty()) {
    return makeError(name, " is both over mesh axes and across rank classes");
  }
  for (size_t i = 0; i < classes.size(); ++i) {
    if (classes[i] >= program.rankClasses) {
      return makeError(name, " names rank class ", classes[i], " of ", program.rankClasses);
    }
    if (std::find(classes.begin(), classes.begin() + i, classes[i]) != classes.begin() + i) {
      return makeError(name, " names rank class ", classes[i], " twice");
    }
  }
  if (std::find(classes.begin(), classes.end(), program.rankClass) == classes.end()) {
    return makeError(name, " is across other rank classes than ", program.rankClass,
                     ", that of its program");
  }
  // Only the ranks of all classes have a communicator on devices; two can send and receive.
  bool isTransfer = collective.kind == CollectiveKind::Transfer;
  size_t expected = isTransfer ? 2 : program.rankClasses;
  if (classes.size() != expected) {
    return makeError(name, " is across ", classes.size(), " rank classes, expected ",
                     isTransfer ? "" : "all ", expected);
  }
  return {};
}

Status CollectiveChecker::checkShape() const {
  for (int64_t size : collective.shape) {
    if (size < 0) {
      return makeError(name, " has a negative size in ", shapeText(collective.shape));
    }
  }
  if (isFloat8(collective.type)) {
    return makeError(name, " is of type ", nameOf(collective.type), ", which only matmuls support");
  }
  return {};
}

Status CollectiveChecker::checkSources() const {
  uint64_t expected = collective.kind == CollectiveKind::Permute ? ranks() : 0;
  if (collective.sources.size() != expected) {
    return makeError(name, " names ", collective.sources.size(), " sources, expected ", expected);
  }
  std::vector<bool> named(expected);
  for (uint32_t source : collective.sources) {
    if (source >= expected || named[source]) {
      return makeError(name, " takes the shard of rank ", source, " of its ", expected,
                       source >= expected ? "" : " twice");
    }
    named[source] = true;
  }
  return {};
}

Status CollectiveChecker::checkCuts() const {
  if (!changesShape(collective.kind)) {
    return {};
  }
  bool two = collective.kind == CollectiveKind::AllToAll;
  size_t rank = collective.shape.size();
  if (collective.dim >= rank || (two && collective.dim2 >= rank)) {
    return makeError(name, " names dimension ",
                     two ? std::max(collective.dim, collective.dim2) : collective.dim, " of ",
                     shapeText(collective.shape));
  }
  if (collective.kind != CollectiveKind::AllGather &&
      uint64_t(collective.shape[collective.dim]) % ranks() != 0) {
    return makeError(name, " cuts ", collective.shape[collective.dim], " into ", ranks(),
                     " shards");
  }
  return {};
}

} // namespace

Status weft::rt::checkCollectives(const Program &program) {
  for (size_t number = 0; number < program.collectives.size(); ++number) {
    if (Status status = CollectiveChecker(program, number).check(); !status) {
      return status;
    }
  }
  return {};
}
