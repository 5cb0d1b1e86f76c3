//===- Launcher.h - finds the launcher of this process --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_LAUNCHER_H
#define WEFT_RT_BACKENDS_LAUNCHER_H

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace weft::rt::mpi {

/// The address where processes without MPI find each other: rank 0 listens there.
struct RendezvousPoint {
  std::string host;
  uint16_t port = 0;
  /// The variable that gives the port: "WEFT_PORT", "MASTER_PORT + 1".
  std::string portName;
  /// The run's name, from the launcher; empty if it sets none.
  std::string run;
};

/// A tool that starts one program in several processes, and this process's place among them.
struct Launcher {
  /// "mpirun", "torchrun", "srun", "mpiexec of MPICH".
  std::string name;
  int64_t rank = 0, size = 1;
  /// This process's number among those on its machine, and the variable that gives it.
  std::optional<int64_t> localRank;
  std::string localRankName;
  /// Set if the processes find each other over TCP; else they use MPI.
  std::optional<RendezvousPoint> rendezvousPoint;
  /// An error in the launcher's variables; if there is one, only `name` is valid.
  std::string problem;
};

/// Returns the value of an environment variable, or null if it is not set.
using Environment = std::function<const char *(const char *name)>;

/// Finds the launcher by the environment variables that it set. Returns none for a program that was
/// started alone, in a job of Slurm outside of srun, and in a step of srun with one task, such as
/// an interactive shell.
///
/// If several launchers set variables, torchrun comes first, since any of the others may have
/// started it. A shell's loop or a pod may set the same variables (MASTER_ADDR and the like)
/// without torchrun: then mpirun comes first, since it was started inside, then these, then srun.
std::optional<Launcher> findLauncher(const Environment &environment);
std::optional<Launcher> findLauncher();

} // namespace weft::rt::mpi

#endif // WEFT_RT_BACKENDS_LAUNCHER_H
