//===- MakeBackend.cpp - chooses what runs the ranks ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/MakeBackend.h"

#include "backends/local/LocalBackend.h"
#include "backends/mpi/MpiBackend.h"
#include "core/Checksum.h"
#include "core/Text.h"

#include <cstdio>
#include <thread>

using namespace weft::rt;

ChosenBackend::ChosenBackend() = default;
ChosenBackend::~ChosenBackend() = default;

/// The options under which processes would be one run.
static bool makeMpi(const Program &program, const Options &options, MpiOptions mpi,
                    ChosenBackend &chosen, std::string &error) {
  uint64_t bytes = 0;
  Digest file;
  if (!checksumFile("/proc/self/exe", bytes, file, error)) {
    return false;
  }
  Checksum words;
  words.add(options.words);
  mpi.program = concat("plan ", program.planHash, ", file ", digestText(file));
  mpi.arguments = digestText(words.digest());
  chosen.world = mpi::World::start(error);
  if (!chosen.world) {
    return false;
  }
  chosen.backend = makeMpiBackend(*chosen.world, program.mesh, mpi, error);
  if (!chosen.backend) {
    chosen.world->abandon();
  }
  return chosen.backend != nullptr;
}

bool weft::rt::makeBackend(const Program &program, const Options &options, ChosenBackend &chosen,
                           std::string &error) {
  auto timeout = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(options.timeoutSeconds));
  std::optional<mpi::Launcher> launcher = mpi::findLauncher();
  if (options.backend.value_or(launcher ? Options::Backend::Mpi : Options::Backend::Local) ==
      Options::Backend::Mpi) {
    return makeMpi(program, options, {timeout, kGrace, "", ""}, chosen, error);
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
