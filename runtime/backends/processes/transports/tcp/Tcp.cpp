//===- Tcp.cpp - the transport table over TCP ----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/processes/transports/tcp/Tcp.h"

#include "backends/processes/transports/tcp/Network.h"

using namespace weft::rt;
using namespace weft::rt::tcp;

namespace {

using CallResult = mpi::TransportTable::Result;

/// The transport's state. A process has one; it is never freed, since a rank that hangs may use it
/// until the process ends.
struct Opened {
  mpi::Launcher launcher;
  Secret secret;
  std::chrono::nanoseconds patience;
  Network *network = nullptr;
  std::string error;
};
Opened *opened = nullptr;

const char *name() { return "TCP"; }

CallResult start(int64_t *rank, int64_t *size) {
  Result<Bootstrap> bootstrap = gather(opened->launcher, opened->secret, opened->patience);
  if (!bootstrap) {
    opened->error = bootstrap.error().message;
    return opened->error.c_str();
  }
  *rank = bootstrap->rank;
  *size = bootstrap->size;
  opened->network = new Network(std::move(*bootstrap), opened->patience);
  return nullptr;
}

CallResult finish() {
  opened->network->finish();
  return nullptr;
}

CallResult makeGroup(int64_t members, uint64_t *group) {
  return opened->network->makeGroup(members, group);
}

CallResult freeGroup(uint64_t *group) {
  *group = 0;
  return nullptr;
}

CallResult allGather(uint64_t group, const void *own, void *all, size_t bytes) {
  return opened->network->allGather(group, own, all, bytes);
}

CallResult send(uint64_t group, const void *bytes, size_t count, int64_t to, int32_t tag,
                uint64_t *request) {
  return opened->network->send(group, bytes, count, to, tag, request);
}

CallResult receive(uint64_t group, void *bytes, size_t count, int64_t from, int32_t tag,
                   uint64_t *request) {
  return opened->network->receive(group, bytes, count, from, tag, request);
}

CallResult test(uint64_t *requests, size_t count, size_t *doneCount, size_t *done, size_t *bytes) {
  return opened->network->test({requests, count}, doneCount, done, bytes);
}

void cancel(uint64_t *request) { opened->network->cancel(request); }

} // namespace

const mpi::TransportTable *weft::rt::tcp::openLibrary(const mpi::Launcher &launcher,
                                                      const Secret &secret,
                                                      std::chrono::nanoseconds patience) {
  static const mpi::TransportTable library = {name,      start,     finish,        makeGroup,
                                              freeGroup, allGather, send,          receive,
                                              test,      cancel,    Network::kIdle};
  opened = new Opened{launcher, secret, patience, nullptr, ""};
  return &library;
}
