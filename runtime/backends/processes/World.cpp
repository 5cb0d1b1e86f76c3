//===- World.cpp - the processes of a run, and their transport -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/processes/World.h"

#include "backends/LoadTable.h"
#include "backends/processes/transports/tcp/Tcp.h"

#include <cstring>

using namespace weft::rt;
using namespace weft::rt::mpi;

static const char *const kFile = "libweft-rt-mpi.so.1";

bool World::load(std::string &error) {
  const char *file = chosenFile("WEFT_RT_MPI", kFile);
  // Open MPI's own plugins look for its symbols among the global ones.
  void *handle = dlopen(file, RTLD_NOW | RTLD_GLOBAL);
  if (!handle) {
    const char *reason = dlerror();
    if (std::strstr(reason, "libmpi")) {
      return fail(error, "--backend mpi needs Open MPI 4 (of Debian: openmpi-bin): ", reason);
    }
    return fail(error, "--backend mpi needs ", kFile,
                ", which the compiler's build makes, found by the program's run path, "
                "LD_LIBRARY_PATH or WEFT_RT_MPI: ",
                reason);
  }
  table = findTable<TransportTable>(handle, file, "weft_rt_mpi", "--backend mpi needs", error);
  return table;
}

std::unique_ptr<World> World::start(std::string &error, std::chrono::nanoseconds patience) {
  std::optional<Launcher> launcher = findLauncher();
  if (!launcher) {
    error = "--backend mpi needs a process for each rank: start the program by 'mpirun -n RANKS', "
            "by 'srun -n RANKS', or by 'weft run --backend mpi'";
    return nullptr;
  }
  if (!launcher->problem.empty()) {
    error = launcher->problem;
    return nullptr;
  }
  std::unique_ptr<World> world(new World);
  if (launcher->rendezvousPoint) {
    world->table = tcp::openLibrary(*launcher, patience);
    if (const char *reason = world->table->start(&world->self, &world->count)) {
      error = reason;
      return nullptr;
    }
    world->isStarted = true;
    return world;
  }
  if (!world->load(error)) {
    return nullptr;
  }
  std::string name = world->table->name();
  if (launcher->name.ends_with("MPICH") && name.starts_with("Open MPI")) {
    fail(error,
         "the program was started by an mpiexec that is not Open MPI's, but --backend mpi uses ",
         name, ": expected the mpirun of the same MPI");
    return nullptr;
  }
  if (const char *reason = world->table->start(&world->self, &world->count)) {
    fail(error, "cannot start ", name, ": ", reason);
    return nullptr;
  }
  world->isStarted = true;
  if (world->count != launcher->size) {
    fail(error, launcher->name, " has started ", launcher->size, " processes, but ", name,
         " finds ", world->count,
         launcher->name == "srun" ? ": expected 'srun --mpi=pmix'"
                                  : ": expected the mpirun of the same MPI");
    return nullptr;
  }
  return world;
}

World::~World() {
  if (isStarted && !isAbandoned) {
    table->finish();
  }
}
