//===- World.h - the processes of a run, and what carries messages --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_PROCESSES_WORLD_H
#define WEFT_RT_BACKENDS_PROCESSES_WORLD_H

#include "backends/Launcher.h"
#include "backends/processes/transports/TransportTable.h"

#include <chrono>
#include <memory>
#include <string>

namespace weft::rt::mpi {

/// All processes that one launcher has started. There is at most one in a process. Ends MPI, which
/// waits for the other processes, unless `abandon` has been called.
class World {
public:
  /// Where the launcher says a rendezvous point, processes meet there within `patience`, over TCP.
  /// Otherwise loads the shared library from where the executable's run path says, or from the file
  /// that the environment variable WEFT_RT_MPI names, and starts MPI. Fails, saying what is
  /// missing, if nothing has started several processes, or if MPI is not there or is another one;
  /// with an empty error where rank 0 says it.
  static std::unique_ptr<World> start(std::string &error,
                                      std::chrono::nanoseconds patience = std::chrono::seconds(60));
  ~World();
  World(const World &) = delete;
  World &operator=(const World &) = delete;

  const TransportTable &library() const { return *table; }
  int64_t rank() const { return self; }
  int64_t size() const { return count; }

  /// Other processes may be gone: the end is not to wait for them.
  void abandon() { isAbandoned = true; }

private:
  World() = default;
  bool load(std::string &error);

  const TransportTable *table = nullptr;
  int64_t self = 0, count = 1;
  bool isStarted = false, isAbandoned = false;
};

} // namespace weft::rt::mpi

#endif // WEFT_RT_BACKENDS_PROCESSES_WORLD_H
