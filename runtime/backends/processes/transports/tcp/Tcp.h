//===- Tcp.h - the calls of MPI, over TCP ---------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For processes that were started without MPI: what the backend needs of it, done by the
// runtime itself. See Bootstrap.h for how they find each other, Network.h for messages.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_PROCESSES_TRANSPORTS_TCP_TCP_H
#define WEFT_RT_BACKENDS_PROCESSES_TRANSPORTS_TCP_TCP_H

#include "backends/Launcher.h"
#include "backends/processes/transports/TransportTable.h"

#include <chrono>

namespace weft::rt::tcp {

/// To be called once in a process. `start` then waits for the others of `launcher`, which has a
/// rendezvous point, for `patience`; it gives an empty error where rank 0 tells what is wrong.
const mpi::TransportTable *openLibrary(const mpi::Launcher &launcher,
                                       std::chrono::nanoseconds patience);

} // namespace weft::rt::tcp

#endif // WEFT_RT_BACKENDS_PROCESSES_TRANSPORTS_TCP_TCP_H
