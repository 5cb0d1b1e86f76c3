//===- Tcp.h - the transport table over TCP -------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The runtime's own transport for processes that were started without MPI. See Bootstrap.h for
// connecting them, Network.h for messages.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_PROCESSES_TRANSPORTS_TCP_TCP_H
#define WEFT_RT_BACKENDS_PROCESSES_TRANSPORTS_TCP_TCP_H

#include "backends/Launcher.h"
#include "backends/processes/connections/Secret.h"
#include "backends/processes/transports/TransportTable.h"

#include <chrono>

namespace weft::rt::tcp {

/// Returns the table; call it once in a process. `launcher` must have a rendezvous point. The
/// table's `start` waits up to `patience` for the other processes; its error is empty if rank 0
/// reports it.
const mpi::TransportTable *openLibrary(const mpi::Launcher &launcher, const Secret &secret,
                                       std::chrono::nanoseconds patience);

} // namespace weft::rt::tcp

#endif // WEFT_RT_BACKENDS_PROCESSES_TRANSPORTS_TCP_TCP_H
