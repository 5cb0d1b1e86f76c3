//===- FakeCommunication.cpp - an NCCL of one rank, which notes its calls ---===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/backends/cuda/FakeCuda.h"
#include "tests/backends/cuda/FakeFaults.h"

#include <cstdlib>
#include <mutex>
#include <nccl.h>
#include <string>

namespace {

std::mutex mutex;
std::string calls;
int version = NCCL_VERSION_CODE;
ncclResult_t state = ncclSuccess;
bool hasWindows = !std::getenv("WEFT_FAKE_NO_WINDOWS"), isFull = false;
const char *lastMessage = "the cable is cut";

template <typename... Parts> ncclResult_t note(const char *function, Parts... parts) {
  std::lock_guard lock(mutex);
  calls += function;
  ((calls += " " + std::to_string(parts)), ...);
  calls += "; ";
  return ncclInProgress;
}

} // namespace

#define FAKE_CALL()                                                                                \
  if (int code = fakeFaults.call(__func__)) {                                                      \
    return ncclResult_t(code);                                                                     \
  }

struct ncclComm {
  int number;
};

void weft_fake_nccl(int version, int state, bool hasWindows) {
  ::version = version;
  ::state = ncclResult_t(state);
  ::hasWindows = hasWindows;
}
void weft_fake_nccl_full() { isFull = true; }
void weft_fake_nccl_says(const char *message) { lastMessage = message; }
const char *weft_fake_nccl_calls() {
  static std::string given;
  given = calls;
  calls.clear();
  return given.c_str();
}

extern "C" {

ncclResult_t ncclGetVersion(int *given) {
  FAKE_CALL();
  *given = version;
  return ncclSuccess;
}
const char *ncclGetErrorString(ncclResult_t code) {
  return code == ncclRemoteError ? "remote process exited" : "another error";
}
const char *ncclGetLastError(ncclComm_t) { return lastMessage; }
ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  FAKE_CALL();
  id->internal[0] = 42;
  return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config) {
  FAKE_CALL();
  *comm = new ncclComm{1};
  ++fakeFaults.left;
  return note("join", ranks, int(id.internal[0]), rank, config->blocking, config->splitShare);
}
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *made,
                           ncclConfig_t *config) {
  FAKE_CALL();
  *made = new ncclComm{2};
  ++fakeFaults.left;
  return note("split", comm->number, color, key, config->blocking);
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t *given) {
  FAKE_CALL();
  *given = state;
  return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  FAKE_CALL();
  return note("end", comm->number);
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  FAKE_CALL();
  note("destroy", comm->number);
  --fakeFaults.left;
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  FAKE_CALL();
  note("abort", comm->number);
  --fakeFaults.left;
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclGroupStart() {
  FAKE_CALL();
  note("begin");
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  FAKE_CALL();
  return note("end-group");
}
ncclResult_t ncclAllReduce(const void *, void *, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t) {
  FAKE_CALL();
  return note("all-reduce", count, int(type), int(op), comm->number);
}
ncclResult_t ncclAllGather(const void *, void *, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t) {
  FAKE_CALL();
  return note("all-gather", count, int(type), comm->number);
}
ncclResult_t ncclReduceScatter(const void *, void *, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t) {
  FAKE_CALL();
  return note("reduce-scatter", count, int(type), int(op), comm->number);
}
ncclResult_t ncclSend(const void *, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t) {
  FAKE_CALL();
  return note("send", count, int(type), peer, comm->number);
}
ncclResult_t ncclRecv(void *, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t) {
  FAKE_CALL();
  return note("receive", count, int(type), peer, comm->number);
}
ncclResult_t ncclMemAlloc(void **made, size_t bytes) {
  FAKE_CALL();
  if (isFull) {
    isFull = false;
    return ncclUnhandledCudaError;
  }
  *made = std::malloc(bytes);
  ++fakeFaults.left;
  return ncclSuccess;
}
ncclResult_t ncclMemFree(void *made) {
  FAKE_CALL();
  std::free(made);
  --fakeFaults.left;
  return ncclSuccess;
}
ncclResult_t ncclCommRegister(ncclComm_t comm, void *, size_t bytes, void **made) {
  FAKE_CALL();
  *made = comm;
  note("register", comm->number, bytes);
  return ncclSuccess;
}
ncclResult_t ncclCommDeregister(ncclComm_t comm, void *) {
  FAKE_CALL();
  note("unregister", comm->number);
  return ncclSuccess;
}
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *, size_t bytes, ncclWindow_t *made,
                                    int flags) {
  FAKE_CALL();
  *made = hasWindows ? reinterpret_cast<ncclWindow_t>(comm) : nullptr;
  return note("window", comm->number, bytes, flags);
}
ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t) {
  FAKE_CALL();
  note("unregister-window", comm->number);
  return ncclSuccess;
}
}
