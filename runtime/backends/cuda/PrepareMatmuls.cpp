//===- PrepareMatmuls.cpp - one algorithm for each matmul on all ranks ---===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/PrepareMatmuls.h"

#include "backends/cuda/AlgorithmCache.h"
#include "backends/cuda/Check.h"
#include "program/InstructionRange.h"
#include "support/Random.h"
#include "support/Text.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>

using namespace weft::rt;
using namespace weft::rt::cuda;

namespace {

class Preparation {
public:
  Preparation(const MatmulSetup &setup, std::vector<DriverTable::Handle> &matmuls)
      : setup(setup), matmuls(matmuls), ways(setup.program.matmuls.size()) {}

  bool run() {
    return nameKind() && findLeader() && (!isLeader() || choose()) && share() &&
           (isLeader() || follow());
  }

private:
  bool isLeader() const { return leader == setup.rank; }
  bool check(DriverTable::Result result) const {
    return cuda::check(setup.library, setup.number, setup.communicator, result,
                       [this] { return placeText(); });
  }
  /// Returns the first instruction that uses the matmul that is being prepared.
  std::string placeText() const {
    return matmuls.empty() ? ""
                           : "for " + textOf(setup.program, firstUse(setup.program, Opcode::Matmul,
                                                                     uint32_t(matmuls.size() - 1)));
  }
  bool nameKind();
  bool findLeader();
  bool choose();
  bool share();
  bool follow();
  /// Runs a collective of all ranks of the class.
  bool run(const Collective &collective, const char *what, const void *operand, void *result);

  const MatmulSetup &setup;
  std::vector<DriverTable::Handle> &matmuls;
  std::vector<MatmulAlgorithm> ways;
  std::string kind;
  /// The first rank with this kind of device, the index of the kind, and the number of kinds.
  int64_t leader = 0;
  size_t ownKind = 0, kinds = 1;
};

bool Preparation::nameKind() {
  const char *library = nullptr;
  if (!check(setup.library.nameMatmuls(setup.device, &library))) {
    return false;
  }
  kind = concat(setup.facts.name, " sm_", setup.facts.architecture, ", ",
                setup.facts.multiprocessors, " multiprocessors, ", library);
  std::replace_if(kind.begin(), kind.end(), [](char c) { return uint8_t(c) < ' '; }, ' ');
  return true;
}

bool Preparation::run(const Collective &collective, const char *what, const void *operand,
                      void *result) {
  RankGroup group = setup.program.classGroup();
  return setup.communicator.run(setup.communicator.prepare(collective, group, {"control", 0, what}),
                                operand, result);
}

bool Preparation::findLeader() {
  auto ranks = size_t(setup.program.ranks().count);
  leader = setup.rank;
  if (ranks == 1) {
    return true;
  }
  auto own = int64_t(streamOf(kind));
  std::vector<int64_t> all(ranks);
  if (!run({.kind = CollectiveKind::AllGather, .type = ElementType::I64, .shape = {1}},
           "which ranks have devices of one kind", &own, all.data())) {
    return false;
  }
  leader = setup.program.ranks().first + (std::find(all.begin(), all.end(), own) - all.begin());
  std::vector<int64_t> seen;
  for (int64_t one : all) {
    if (std::find(seen.begin(), seen.end(), one) == seen.end()) {
      seen.push_back(one);
    }
  }
  kinds = seen.size();
  ownKind = size_t(std::find(seen.begin(), seen.end(), own) - seen.begin());
  return true;
}

/// Chooses algorithms: from the file, if it has one that the device still supports, else by
/// measuring.
bool Preparation::choose() {
  AlgorithmCache cache;
  bool isNew = false;
  if (Status status = setup.cacheFile.empty() ? Status() : cache.read(setup.cacheFile); !status) {
    std::fprintf(stderr, "warning: cannot use the algorithms kept for matmuls: %s\n",
                 status.error().message.c_str());
  }
  for (size_t i = 0; i < ways.size(); ++i) {
    const Matmul &matmul = setup.program.matmuls[i];
    DriverTable::Handle &prepared = matmuls.emplace_back();
    const MatmulAlgorithm *known = cache.find(kind, matmul);
    ways[i] = known ? *known : MatmulAlgorithm();
    if (known && !setup.library.prepareMatmul(setup.device, &matmul, &ways[i], &prepared)) {
      continue;
    }
    ways[i] = {};
    if (!check(setup.library.prepareMatmul(setup.device, &matmul, &ways[i], &prepared))) {
      return false;
    }
    cache.set(kind, matmul, ways[i]);
    isNew = true;
  }
  bool isKept = isNew && !setup.cacheFile.empty();
  if (Status status = isKept ? cache.write(setup.cacheFile) : Status(); !status) {
    std::fprintf(stderr, "warning: cannot keep the algorithms chosen for matmuls: %s\n",
                 status.error().message.c_str());
  }
  return true;
}

/// Shares the leaders' choices by a sum: each leader has a place of its own, where all others have
/// zeros.
bool Preparation::share() {
  if (setup.program.ranks().count == 1) {
    return true;
  }
  constexpr size_t kNumbers = sizeof(MatmulAlgorithm) / sizeof(int32_t);
  size_t each = ways.size() * kNumbers;
  std::vector<int32_t> own(kinds * each), all(kinds * each);
  if (isLeader()) {
    std::memcpy(own.data() + ownKind * each, ways.data(), each * sizeof(int32_t));
  }
  if (!run({.type = ElementType::I32, .shape = {int64_t(own.size())}}, "how matmuls are computed",
           own.data(), all.data())) {
    return false;
  }
  std::memcpy(ways.data(), all.data() + ownKind * each, each * sizeof(int32_t));
  return true;
}

bool Preparation::follow() {
  for (size_t i = 0; i < ways.size(); ++i) {
    DriverTable::Handle &prepared = matmuls.emplace_back();
    if (!check(setup.library.prepareMatmul(setup.device, &setup.program.matmuls[i], &ways[i],
                                           &prepared))) {
      return false;
    }
  }
  return true;
}

} // namespace

bool cuda::prepareMatmuls(const MatmulSetup &setup, std::vector<DriverTable::Handle> &matmuls) {
  return setup.program.matmuls.empty() || Preparation(setup, matmuls).run();
}

MatmulPlaces cuda::placesOf(const Matmul &matmul, void *const *operands) {
  const Epilogue &epilogue = matmul.epilogue;
  auto next = [&](bool isThere) {
    return isThere ? reinterpret_cast<uint64_t>(*operands++) : uint64_t(0);
  };
  MatmulPlaces at;
  at.a = next(true);
  at.b = next(true);
  at.c = next(true);
  at.addend = next(epilogue.hasAddend);
  at.bias = next(epilogue.hasBias);
  at.aux = next(epilogue.hasAux);
  at.sums = next(epilogue.sums != Epilogue::Sums::None);
  at.factorA = next(matmul.isFp8());
  at.factorB = next(matmul.isFp8());
  at.workspace = next(matmul.workspaceBytes > 0);
  return at;
}
