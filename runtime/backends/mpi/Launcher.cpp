//===- Launcher.cpp - who has started the processes -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/mpi/Launcher.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

using namespace weft::rt::mpi;

static std::optional<int64_t> number(const Environment &environment, const char *name) {
  const char *value = environment(name);
  if (!value) {
    return std::nullopt;
  }
  std::string_view text = value;
  int64_t result = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), result);
  bool ok = code == std::errc() && end == text.data() + text.size() && result >= 0;
  return ok ? std::optional(result) : std::nullopt;
}

std::optional<Launcher> weft::rt::mpi::findLauncher(const Environment &environment) {
  struct Kind {
    const char *name, *rank, *size, *localRank;
    int64_t leastSize;
  };
  // The first that fits: srun sets the variables of MPICH's kind too.
  const Kind kinds[] = {
      {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", 1},
      {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", 2},
      {"mpiexec of MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", 1},
  };
  for (const Kind &kind : kinds) {
    std::optional<int64_t> rank = number(environment, kind.rank);
    std::optional<int64_t> size = number(environment, kind.size);
    if (rank && size && *size >= kind.leastSize && *rank < *size) {
      return Launcher{kind.name, *rank, *size, number(environment, kind.localRank), kind.localRank};
    }
  }
  return std::nullopt;
}

std::optional<Launcher> weft::rt::mpi::findLauncher() {
  return findLauncher([](const char *name) { return std::getenv(name); });
}
