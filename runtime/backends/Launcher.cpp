//===- Launcher.cpp - finds the launcher of this process ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/Launcher.h"

#include "support/ParseNumber.h"
#include "support/Text.h"

#include <cstdlib>
#include <string_view>

using namespace weft::rt;
using namespace weft::rt::mpi;

static std::optional<int64_t> number(const Environment &environment, const char *name) {
  const char *value = environment(name);
  if (!value) {
    return std::nullopt;
  }
  int64_t result = 0;
  return parseNumber(value, result) && result >= 0 ? std::optional(result) : std::nullopt;
}

/// Returns the first launcher of MPI whose variables are set.
static std::optional<Launcher> findMpiLauncher(const Environment &environment) {
  struct Kind {
    const char *name, *rank, *size, *localRank;
    int64_t leastSize;
  };
  // srun sets the variables of MPICH's kind too.
  const Kind kinds[] = {
      {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", 1},
      {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", 2},
      {"mpiexec of MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", 1},
  };
  for (const Kind &kind : kinds) {
    std::optional<int64_t> rank = number(environment, kind.rank);
    std::optional<int64_t> size = number(environment, kind.size);
    if (rank && size && *size >= kind.leastSize && *rank < *size) {
      return Launcher{kind.name,      *rank,        *size, number(environment, kind.localRank),
                      kind.localRank, std::nullopt, ""};
    }
  }
  return std::nullopt;
}

namespace {

/// Reads torchrun's variables, and keeps the first error.
class TorchrunReader {
public:
  explicit TorchrunReader(const Environment &environment) : environment(environment) {}

  int64_t read(const char *name, int64_t least, int64_t most, const char *expected) {
    std::optional<int64_t> value = number(environment, name);
    if (!value || *value < least || *value > most) {
      blame(name, expected);
      return least;
    }
    return *value;
  }
  std::string text(const char *name, const char *expected) {
    const char *value = environment(name);
    if (!value || !*value) {
      blame(name, expected);
      return "";
    }
    return value;
  }
  const std::string &problem() const { return first; }

private:
  void blame(const char *name, const char *expected) {
    if (first.empty()) {
      const char *value = environment(name);
      first = value ? concat(name, " is '", value, "', expected ", expected)
                    : concat(name, " is not set, expected ", expected,
                             ": variables that torchrun sets say that this is one of several "
                             "processes");
    }
  }

  const Environment &environment;
  std::string first;
};

} // namespace

static Launcher readTorchrun(const Environment &environment) {
  Launcher launcher;
  launcher.name = "torchrun";
  launcher.localRankName = "LOCAL_RANK";
  TorchrunReader reader(environment);
  constexpr int64_t kMostRanks = 1 << 20;
  launcher.size = reader.read("WORLD_SIZE", 1, kMostRanks, "the number of processes");
  launcher.rank =
      reader.read("RANK", 0, launcher.size - 1, "a whole number from 0 to below WORLD_SIZE");
  if (environment("LOCAL_RANK")) {
    launcher.localRank = reader.read("LOCAL_RANK", 0, launcher.size - 1,
                                     "a whole number from 0 to below WORLD_SIZE");
  }
  RendezvousPoint &point = launcher.rendezvousPoint.emplace();
  point.host = reader.text("MASTER_ADDR", "the machine of rank 0");
  if (environment("WEFT_PORT")) {
    point.portName = "WEFT_PORT";
    point.port = uint16_t(reader.read("WEFT_PORT", 1, 65535, "a port, 1 to 65535"));
  } else {
    // torchrun's own store listens at MASTER_PORT.
    point.portName = "MASTER_PORT + 1";
    point.port = uint16_t(1 + reader.read("MASTER_PORT", 1, 65534, "a port, 1 to 65534"));
  }
  if (const char *run = environment("TORCHELASTIC_RUN_ID")) {
    point.run = run;
  }
  if (!reader.problem().empty()) {
    launcher = {"torchrun", 0, 1, {}, "LOCAL_RANK", {}, reader.problem()};
  }
  return launcher;
}

std::optional<Launcher> weft::rt::mpi::findLauncher(const Environment &environment) {
  std::optional<Launcher> other = findMpiLauncher(environment);
  // A launcher must set RANK for each process; a job's script may set the other variables for all.
  bool isSaid =
      environment("RANK") || (!other && environment("WORLD_SIZE") && environment("MASTER_ADDR"));
  bool isNearest =
      environment("TORCHELASTIC_RUN_ID") || (isSaid && (!other || other->name != "mpirun"));
  return isNearest ? readTorchrun(environment) : other;
}

std::optional<Launcher> weft::rt::mpi::findLauncher() {
  return findLauncher([](const char *name) { return std::getenv(name); });
}
