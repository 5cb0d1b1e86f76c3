//===- World.h - the processes of a run, and their transport --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_PROCESSES_WORLD_H
#define WEFT_RT_BACKENDS_PROCESSES_WORLD_H

#include "backends/Launcher.h"
#include "backends/processes/connections/Secret.h"
#include "backends/processes/transports/TransportTable.h"
#include "weft-rt/Status.h"

#include <chrono>
#include <memory>
#include <string>

namespace weft::rt::mpi {

/// All processes that one launcher has started. A process has at most one World. Its end finalizes
/// MPI, which waits for the other processes, unless `abandon` was called.
class World {
public:
  /// Connects to the other processes: over TCP if the launcher gives a rendezvous point, where all
  /// must arrive within `patience`; else by MPI, whose shared library is found by the executable's
  /// run path or named by the environment variable WEFT_RT_MPI. Fails if there is no launcher, or
  /// if MPI is missing or another implementation than the library needs, or the secret cannot be
  /// read; the error is empty if rank 0 reports it.
  static Result<std::unique_ptr<World>>
  start(std::chrono::nanoseconds patience = std::chrono::seconds(60));
  ~World();
  World(const World &) = delete;
  World &operator=(const World &) = delete;

  const TransportTable &library() const { return *table; }
  int64_t rank() const { return self; }
  int64_t size() const { return count; }
  /// Returns the secret that the user gave to all processes.
  const tcp::Secret &secret() const { return shared; }
  /// Returns the machine of rank 0 as the launcher names it; empty if it does not, as with MPI.
  const std::string &firstHost() const { return host; }

  /// Lets the destructor not wait for other processes, since they may be gone.
  void abandon() { isAbandoned = true; }

private:
  World() = default;

  const TransportTable *table = nullptr;
  int64_t self = 0, count = 1;
  tcp::Secret shared;
  std::string host;
  bool isStarted = false, isAbandoned = false;
};

} // namespace weft::rt::mpi

#endif // WEFT_RT_BACKENDS_PROCESSES_WORLD_H
