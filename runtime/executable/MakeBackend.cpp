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
ChosenBackend::~ChosenBackend() = default;

/// The properties that the processes of one run share.
static bool makeProcesses(const Program &program, const Options &options, MpiOptions mpi,
                          ChosenBackend &chosen, std::string &error) {
  Result<FileChecksum> file = checksumFile("/proc/self/exe");
  if (!file) {
    return fail(error, file.error().message);
  }
  Checksum words;
  words.add(options.words);
  mpi.program = concat("plan ", program.planHash, ", file ", digestText(file->digest));
  mpi.arguments = digestText(words.digest());
  Result<std::unique_ptr<mpi::World>> world = mpi::World::start(mpi.timeout);
  if (!world) {
    return fail(error, world.error().message);
  }
  chosen.world = std::move(*world);
  Result<std::unique_ptr<Backend>> backend = makeMpiBackend(*chosen.world, program.mesh, mpi);
  if (!backend) {
    chosen.world->abandon();
    return fail(error, backend.error().message);
  }
  chosen.backend = std::move(*backend);
  return true;
}

/// Returns true if the launcher of this process allows one of `wanted`.
static bool isPossible(const std::optional<mpi::Launcher> &launcher, Options::Backend wanted,
                       Options::Backend natural, std::string &error) {
  bool isTcp = wanted == Options::Backend::Tcp;
  if (!launcher) {
    return !isTcp || // What is missing for MPI is said where it is started.
           fail(error,
                "--backend tcp needs a process for each rank: start the program by 'torchrun "
                "--no-python --nproc-per-node RANKS', or set RANK, WORLD_SIZE, MASTER_ADDR "
                "and MASTER_PORT for each");
  }
  if (wanted != natural) {
    return fail(error, launcher->name, " has started this process, but --backend ",
                isTcp ? "tcp" : "mpi", " is given: expected --backend ", isTcp ? "mpi" : "tcp",
                ", or none");
  }
  return true;
}

bool weft::rt::makeBackend(const Program &program, const Options &options, ChosenBackend &chosen,
                           std::string &error) {
  auto timeout = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(options.timeoutSeconds));
  std::optional<mpi::Launcher> launcher = mpi::findLauncher();
  using Kind = Options::Backend;
  Kind natural = !launcher                                                 ? Kind::Local
                 : launcher->rendezvousPoint || !launcher->problem.empty() ? Kind::Tcp
                                                                           : Kind::Mpi;
  Kind wanted = options.backend.value_or(natural);
  if (wanted != Kind::Local) {
    return isPossible(launcher, wanted, natural, error) &&
           makeProcesses(program, options, {timeout, kGrace, "", ""}, chosen, error);
  }
  if (launcher && launcher->size > 1) {
    return fail(error, launcher->name, " has started ", launcher->size,
                " processes, but --backend local runs all ranks in one");
  }
  chosen.backend = makeLocalBackend(program.mesh, {timeout, kGrace});
  return true;
}

bool weft::rt::isFirstProcess() {
  std::optional<mpi::Launcher> launcher = mpi::findLauncher();
  return !launcher || launcher->rank == 0;
}

void weft::rt::printStartError(const std::string &error) {
  if (!isFirstProcess()) {
    std::this_thread::sleep_for(kGrace);
  }
  if (!error.empty()) {
    std::fprintf(stderr, "error: %s\n", error.c_str());
  }
}
