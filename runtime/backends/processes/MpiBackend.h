//===- MpiBackend.h - ranks as processes ----------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One process for each rank, started by a launcher of MPI, on any number of machines.
// Sums are taken by our own code in group order, so results have the bits of every other
// backend; MPI only carries messages. See Engine.h for collectives, FailureDetector.h for failures.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_PROCESSES_MPIBACKEND_H
#define WEFT_RT_BACKENDS_PROCESSES_MPIBACKEND_H

#include "backends/processes/World.h"
#include "weft-rt/Backend.h"

#include <chrono>

namespace weft::rt {

struct MpiOptions {
  /// How long a rank waits for its partners in one collective.
  std::chrono::nanoseconds timeout = std::chrono::seconds(60);
  /// How long, after a failure, the others may take to return before they are abandoned.
  std::chrono::nanoseconds grace = std::chrono::seconds(5);
  /// Must be the same in all processes: what program runs, what it was told to do.
  std::string program, arguments;
};

/// All processes of `world` call it at the same point. Fails, on all of them, if their number is
/// not that of the mesh's ranks or if they do not run the same program: then only rank 0's gets an
/// error to tell. With `mayIdle` there may be more of them, and those too many get no backend and
/// no error. `world` must outlive it.
std::unique_ptr<Backend> makeMpiBackend(mpi::World &world, std::vector<Axis> mesh,
                                        const MpiOptions &options, std::string &error,
                                        bool mayIdle = false);

} // namespace weft::rt

#endif // WEFT_RT_BACKENDS_PROCESSES_MPIBACKEND_H
