//===- World.cpp - the processes of a run, and their transport -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/processes/World.h"

#include "backends/LoadTable.h"
#include "backends/PluginFile.h"
#include "backends/processes/transports/tcp/Tcp.h"

using namespace weft::rt;
using namespace weft::rt::mpi;

static const char *const kFile = "libweft-rt-mpi.so.1";

static Result<const TransportTable *> load() {
  Result<std::string> file = findPlugin("WEFT_RT_MPI", kFile);
  // Open MPI's own plugins look for its symbols among the global ones.
  void *handle = file ? dlopen(file->c_str(), RTLD_NOW | RTLD_GLOBAL) : nullptr;
  if (!handle) {
    std::string reason = file ? dlerror() : file.error().message;
    if (file && reason.find("libmpi") != std::string::npos) {
      return makeError("--backend mpi needs Open MPI 4 (of Debian: openmpi-bin): ", reason);
    }
    return makeError("--backend mpi needs ", kFile,
                     ", which the compiler's build makes, found by the program's run path, "
                     "LD_LIBRARY_PATH or WEFT_RT_MPI: ",
                     reason);
  }
  return findTable<TransportTable>(handle, *file, "weft_rt_mpi", "--backend mpi needs");
}

Result<std::unique_ptr<World>> World::start(std::chrono::nanoseconds patience) {
  std::optional<Launcher> launcher = findLauncher();
  if (!launcher) {
    return makeError("--backend mpi needs a process for each rank: start the program by 'mpirun -n "
                     "RANKS', by 'srun -n RANKS', or by 'weft run --backend mpi'");
  }
  if (!launcher->problem.empty()) {
    return makeError(launcher->problem);
  }
  Result<tcp::Secret> secret = tcp::Secret::find();
  if (!secret) {
    return secret.error();
  }
  std::unique_ptr<World> world(new World);
  world->shared = *secret;
  if (launcher->rendezvousPoint) {
    world->host = launcher->rendezvousPoint->host;
    world->table = tcp::openLibrary(*launcher, *secret, patience);
    if (const char *reason = world->table->start(&world->self, &world->count)) {
      return makeError(reason);
    }
    world->isStarted = true;
    return world;
  }
  Result<const TransportTable *> table = load();
  if (!table) {
    return table.error();
  }
  world->table = *table;
  std::string name = world->table->name();
  if (launcher->name.ends_with("MPICH") && name.starts_with("Open MPI")) {
    return makeError(
        "the program was started by an mpiexec that is not Open MPI's, but --backend mpi uses ",
        name, ": expected the mpirun of the same MPI");
  }
  if (const char *reason = world->table->start(&world->self, &world->count)) {
    return makeError("cannot start ", name, ": ", reason);
  }
  world->isStarted = true;
  if (world->count != launcher->size) {
    return makeError(launcher->name, " has started ", launcher->size, " processes, but ", name,
                     " finds ", world->count,
                     launcher->name == "srun" ? ": expected 'srun --mpi=pmix'"
                                              : ": expected the mpirun of the same MPI");
  }
  return world;
}

World::~World() {
  if (isStarted && !isAbandoned) {
    table->finish();
  }
}
