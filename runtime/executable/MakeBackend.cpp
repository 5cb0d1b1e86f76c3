//===- MakeBackend.cpp - chooses the backend that runs the ranks ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "executable/MakeBackend.h"

#include "backends/Launcher.h"
#include "backends/local/LocalBackend.h"
#include "backends/processes/MpiBackend.h"
#include "support/Checksum.h"
#include "support/Text.h"
#include "training/Trainer.h"

#include <cstdio>
#include <thread>

using namespace weft::rt;

ChosenBackend::ChosenBackend() = default;
ChosenBackend::ChosenBackend(ChosenBackend &&) noexcept = default;
ChosenBackend::~ChosenBackend() = default;

/// Connects the processes of the run. Those of one run share the properties in `mpi`.
static Result<ChosenBackend> makeProcesses(const Program &program, const Options &options,
                                           MpiOptions mpi) {
  Result<FileChecksum> file = checksumFile("/proc/self/exe");
  if (!file) {
    return file.error();
  }
  Checksum words;
  words.add(options.words);
  mpi.program = concat("plan ", program.planHash, ", certificate ", program.certificate, ", file ",
                       digestText(file->digest));
  mpi.arguments = digestText(words.digest());
  Result<std::unique_ptr<mpi::World>> world = mpi::World::start(mpi.timeout);
  if (!world) {
    return world.error();
  }
  ChosenBackend chosen;
  chosen.world = std::move(*world);
  Result<std::unique_ptr<Backend>> backend =
      makeMpiBackend(*chosen.world, program.rankCount(), mpi);
  if (!backend) {
    chosen.world->abandon();
    return backend.error();
  }
  chosen.backend = std::move(*backend);
  return chosen;
}

/// Checks that the launcher of this process allows `wanted`.
static Status checkLauncher(const std::optional<mpi::Launcher> &launcher, Options::Backend wanted,
                            Options::Backend natural) {
  bool isTcp = wanted == Options::Backend::Tcp;
  if (!launcher && !isTcp) {
    return {}; // What is missing for MPI is said where it is started.
  }
  if (!launcher) {
    return makeError("--backend tcp needs a process for each rank: start the program by 'torchrun "
                     "--no-python --nproc-per-node RANKS', or set RANK, WORLD_SIZE, MASTER_ADDR "
                     "and MASTER_PORT for each");
  }
  if (wanted != natural) {
    return makeError(launcher->name, " has started this process, but --backend ",
                     isTcp ? "tcp" : "mpi", " is given: expected --backend ", isTcp ? "mpi" : "tcp",
                     ", or none");
  }
  return {};
}

Result<ChosenBackend> weft::rt::makeBackend(const Program &program, const Options &options) {
  auto timeout = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(options.timeoutSeconds));
  std::optional<mpi::Launcher> launcher = mpi::findLauncher();
  using Kind = Options::Backend;
  Kind natural = !launcher                                                 ? Kind::Local
                 : launcher->rendezvousPoint || !launcher->problem.empty() ? Kind::Tcp
                                                                           : Kind::Mpi;
  Kind wanted = options.backend.value_or(natural);
  if (wanted != Kind::Local) {
    if (Status status = checkLauncher(launcher, wanted, natural); !status) {
      return status.error();
    }
    return makeProcesses(program, options, {timeout, kGrace, "", "", options.testDelays});
  }
  if (launcher && launcher->size > 1) {
    return makeError(launcher->name, " has started ", launcher->size,
                     " processes, but --backend local runs all ranks in one");
  }
  ChosenBackend chosen;
  chosen.backend = makeLocalBackend(program.rankCount(), {timeout, kGrace, options.testDelays});
  return chosen;
}

bool weft::rt::isFirstProcess() {
  std::optional<mpi::Launcher> launcher = mpi::findLauncher();
  return !launcher || launcher->rank == 0;
}

void weft::rt::printStartError(const Error &error) {
  if (!isFirstProcess()) {
    std::this_thread::sleep_for(kGrace);
  }
  if (!error.message.empty()) {
    std::fprintf(stderr, "error: %s\n", error.message.c_str());
  }
}
