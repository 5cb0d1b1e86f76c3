//===- MakeBackend.h - chooses what runs the ranks ------------------------===//
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

/// A backend, and what must outlive it.
struct ChosenBackend {
  ChosenBackend();
  ~ChosenBackend();

  std::unique_ptr<mpi::World> world;
  std::unique_ptr<Backend> backend;
};

/// The backend that `options` ask for, or by who has started this process. Fails if it is not
/// there, or if the processes are not the ranks of this program.
bool makeBackend(const Program &program, const Options &options, ChosenBackend &chosen,
                 std::string &error);

/// Prints an error that all processes of a run are likely to have: only the first prints at once,
/// and the launcher then ends the others. An empty one is known to be told by the first.
void printStartError(const std::string &error);

/// Whether this process is the one that prints what all processes know.
bool isFirstProcess();

} // namespace weft::rt

#endif // WEFT_RT_EXECUTABLE_MAKEBACKEND_H
