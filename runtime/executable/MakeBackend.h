//===- MakeBackend.h - chooses the backend that runs the ranks ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_EXECUTABLE_MAKEBACKEND_H
#define WEFT_RT_EXECUTABLE_MAKEBACKEND_H

#include "training/Options.h"
#include "weft-rt/Backend.h"

#include <memory>

namespace weft::rt {

namespace mpi {
class World;
}

/// A backend and the MPI world that it needs.
struct ChosenBackend {
  ChosenBackend();
  ChosenBackend(ChosenBackend &&) noexcept;
  ~ChosenBackend();

  std::unique_ptr<mpi::World> world;
  std::unique_ptr<Backend> backend;
};

/// Makes the backend that `options` choose or, without a choice, the one of this process's
/// launcher. Fails if that backend is not available, or if the processes are not the ranks of this
/// program.
Result<ChosenBackend> makeBackend(const Program &program, const Options &options);

/// Prints an error that all processes of a run probably have: only the first process prints at
/// once, and the launcher then ends the others. An empty message stands for an error that the first
/// process reports.
void printStartError(const Error &error);

/// Returns true if this process prints the messages that all processes share.
bool isFirstProcess();

} // namespace weft::rt

#endif // WEFT_RT_EXECUTABLE_MAKEBACKEND_H
