//===- Launcher.h - who has started the processes -------------------------===//
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

/// Where processes meet that know no MPI.
struct RendezvousPoint {
  std::string host;
  uint16_t port = 0;
  /// "WEFT_PORT", "MASTER_PORT + 1": who says the port.
  std::string portName;
  /// The launcher's name of the run; empty if it gives none.
  std::string run;
};

/// Something that starts one program in several processes, and what it says of this one.
struct Launcher {
  /// "mpirun", "torchrun", "srun", "mpiexec of MPICH".
  std::string name;
  int64_t rank = 0, size = 1;
  /// This process's number among those on its machine, and the variable that says it.
  std::optional<int64_t> localRank;
  std::string localRankName;
  /// If the processes find each other by TCP; else by MPI.
  std::optional<RendezvousPoint> rendezvousPoint;
  /// What is wrong with what it says; then nothing else counts but the name.
  std::string problem;
};

/// Reads a variable of the environment; null if there is none.
using Environment = std::function<const char *(const char *name)>;

/// By the variables that launchers set. None, if the program was started by itself; so too in a
/// job of Slurm outside of srun, and in a step of srun with one task, as an interactive shell is.
///
/// What is said by torchrun, which may itself have been started by any of the others, goes before
/// all. The same variables may come from whoever runs a shell's loop or a pod: mpirun, which must
/// have been started in there, goes before them, and they before srun, which sets none of them.
std::optional<Launcher> findLauncher(const Environment &environment);
std::optional<Launcher> findLauncher();

} // namespace weft::rt::mpi

#endif // WEFT_RT_BACKENDS_LAUNCHER_H
