//===- MpiBackend.h - ranks as processes ----------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One process for each rank, started by a launcher of MPI, on any number of machines.
// The runtime's own code sums in group order, so results have the same bits as on every other
// backend; MPI only carries messages. See Engine.h for collectives, FailureDetector.h for failures.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_PROCESSES_MPIBACKEND_H
#define WEFT_RT_BACKENDS_PROCESSES_MPIBACKEND_H

#include "backends/processes/World.h"
#include "support/TestDelays.h"
#include "weft-rt/Backend.h"

#include <chrono>

namespace weft::rt {

struct MpiOptions {
  /// The longest time that a rank waits for the others in one collective.
  std::chrono::nanoseconds timeout = std::chrono::seconds(60);
  /// The time that the other ranks have to return after a failure; then they are abandoned.
  std::chrono::nanoseconds grace = std::chrono::seconds(5);
  /// Identify the program and its options. Must be the same in all processes.
  std::string program, arguments;
  TestDelays delays = {};
};

/// Makes the backend of this process. All processes of `world` call it at the same point. Fails in
/// all processes if there are not as many as the mesh has ranks, or if their programs differ; only
/// at rank 0 is this error not empty. With `mayIdle` there may be more processes: the surplus ones
/// get null. `world` must outlive the backend.
Result<std::unique_ptr<Backend>> makeMpiBackend(mpi::World &world, int64_t ranks,
                                                const MpiOptions &options, bool mayIdle = false);

} // namespace weft::rt

#endif // WEFT_RT_BACKENDS_PROCESSES_MPIBACKEND_H
