//===- Plugin.cpp - the calls of MPI --------------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The only file that calls MPI, built as a shared library of its own; see TransportTable.h.
//
//===----------------------------------------------------------------------===//

#include "backends/processes/transports/TransportTable.h"

#include <climits>
#include <cstdlib>
#include <cstring>
#include <mpi.h>
#include <string>
#include <vector>

using namespace weft::rt::mpi;

static_assert(sizeof(MPI_Comm) <= sizeof(uint64_t) && sizeof(MPI_Request) <= sizeof(uint64_t));
static_assert(kMostBytes <= INT_MAX, "MPI counts in int");

namespace {

template <typename T> uint64_t toNumber(T handle) {
  uint64_t number = 0;
  std::memcpy(&number, &handle, sizeof handle);
  return number;
}

template <typename T> T fromNumber(uint64_t number) {
  T handle;
  std::memcpy(&handle, &number, sizeof handle);
  return handle;
}

TransportTable::Result resultOf(const char *call, int code) {
  static thread_local std::string text;
  if (code == MPI_SUCCESS) {
    return nullptr;
  }
  char reason[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, reason, &length);
  text = std::string(call) + " failed: " + reason;
  return text.c_str();
}

const char *name() {
  static char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  if (char *end = std::strpbrk(text, ",\n")) {
    *end = '\0'; // The name of its builder follows.
  }
  return text;
}

TransportTable::Result start(int64_t *rank, int64_t *size) {
  // A test that finds nothing yields to other threads, since ranks may outnumber cores. The user
  // may override this.
  setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
  int level = MPI_THREAD_SINGLE, self = 0, count = 0;
  int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level);
  if (code != MPI_SUCCESS) {
    return "MPI_Init_thread failed";
  }
  if (level < MPI_THREAD_SERIALIZED) {
    return "this MPI was built without support for threads";
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &self);
  MPI_Comm_size(MPI_COMM_WORLD, &count);
  *rank = self;
  *size = count;
  return nullptr;
}

TransportTable::Result finish() { return resultOf("MPI_Finalize", MPI_Finalize()); }

TransportTable::Result makeGroup(int64_t members, uint64_t *group) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm made = MPI_COMM_NULL;
  int code = MPI_Comm_split(MPI_COMM_WORLD, rank < members ? 0 : MPI_UNDEFINED, rank, &made);
  *group = made == MPI_COMM_NULL ? 0 : toNumber(made);
  if (code == MPI_SUCCESS && made != MPI_COMM_NULL) {
    code = MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
  }
  return resultOf("MPI_Comm_split", code);
}

TransportTable::Result freeGroup(uint64_t *group) {
  MPI_Comm communicator = fromNumber<MPI_Comm>(*group);
  *group = 0;
  return resultOf("MPI_Comm_free", MPI_Comm_free(&communicator));
}

TransportTable::Result allGather(uint64_t group, const void *own, void *all, size_t bytes) {
  int code = MPI_Allgather(own, int(bytes), MPI_BYTE, all, int(bytes), MPI_BYTE,
                           fromNumber<MPI_Comm>(group));
  return resultOf("MPI_Allgather", code);
}

TransportTable::Result send(uint64_t group, const void *bytes, size_t count, int64_t to,
                            int32_t tag, uint64_t *request) {
  MPI_Request made = MPI_REQUEST_NULL;
  int code =
      MPI_Isend(bytes, int(count), MPI_BYTE, int(to), tag, fromNumber<MPI_Comm>(group), &made);
  *request = toNumber(made);
  return resultOf("MPI_Isend", code);
}

TransportTable::Result receive(uint64_t group, void *bytes, size_t count, int64_t from, int32_t tag,
                               uint64_t *request) {
  MPI_Request made = MPI_REQUEST_NULL;
  int code =
      MPI_Irecv(bytes, int(count), MPI_BYTE, int(from), tag, fromNumber<MPI_Comm>(group), &made);
  *request = toNumber(made);
  return resultOf("MPI_Irecv", code);
}

TransportTable::Result test(uint64_t *requests, size_t count, size_t *doneCount, size_t *done,
                            size_t *bytes) {
  // These keep their memory, so that nothing is allocated in the long run.
  static thread_local std::vector<MPI_Request> handles;
  static thread_local std::vector<MPI_Status> statuses;
  static thread_local std::vector<int> indices;
  handles.resize(count);
  statuses.resize(count);
  indices.resize(count);
  for (size_t i = 0; i < count; ++i) {
    handles[i] = fromNumber<MPI_Request>(requests[i]);
  }
  int ended = 0;
  int code = MPI_Testsome(int(count), handles.data(), &ended, indices.data(), statuses.data());
  ended = ended == MPI_UNDEFINED ? 0 : ended;
  for (int i = 0; i < ended; ++i) {
    int length = 0;
    MPI_Get_count(&statuses[size_t(i)], MPI_BYTE, &length);
    done[i] = size_t(indices[size_t(i)]);
    bytes[i] = size_t(length);
    requests[done[i]] = toNumber(handles[done[i]]);
  }
  *doneCount = size_t(ended);
  return resultOf("MPI_Testsome", code);
}

void cancel(uint64_t *request) {
  MPI_Request handle = fromNumber<MPI_Request>(*request);
  if (handle != MPI_REQUEST_NULL) {
    int done = 0;
    MPI_Cancel(&handle);
    MPI_Test(&handle, &done, MPI_STATUS_IGNORE);
    if (!done) {
      MPI_Request_free(&handle);
    }
  }
  *request = toNumber(MPI_REQUEST_NULL);
}

} // namespace

const TransportTable *weft_rt_mpi(uint32_t version) {
  static const TransportTable library = {name,
                                         start,
                                         finish,
                                         makeGroup,
                                         freeGroup,
                                         allGather,
                                         send,
                                         receive,
                                         test,
                                         cancel,
                                         toNumber(MPI_Request(MPI_REQUEST_NULL))};
  return version == TransportTable::kVersion ? &library : nullptr;
}
