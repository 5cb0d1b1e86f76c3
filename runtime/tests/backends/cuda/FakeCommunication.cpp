//===- FakeCommunication.cpp - an NCCL of one rank, which notes its calls ---===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/backends/cuda/FakeCuda.h"

#include <cstdlib>
#include <nccl.h>
#include <string>

namespace {

std::string calls;
int version = NCCL_VERSION_CODE;
ncclResult_t state = ncclSuccess;
bool hasWindows = true, isFull = false;
const char *lastMessage = "the cable is cut";

template <typename... Parts> ncclResult_t note(const char *function, Parts... parts) {
  calls += function;
  ((calls += " " + std::to_string(parts)), ...);
  calls += "; ";
  return ncclInProgress;
}

} // namespace

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
  *given = version;
  return ncclSuccess;
}
const char *ncclGetErrorString(ncclResult_t code) {
  return code == ncclRemoteError ? "remote process exited" : "another error";
}
const char *ncclGetLastError(ncclComm_t) { return lastMessage; }
ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  id->internal[0] = 42;
  return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config) {
  *comm = new ncclComm{1};
  return note("join", ranks, int(id.internal[0]), rank, config->blocking, config->splitShare);
}
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *made,
                           ncclConfig_t *config) {
  *made = new ncclComm{2};
  return note("split", comm->number, color, key, config->blocking);
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t *given) {
  *given = state;
  return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t comm) { return note("end", comm->number); }
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  note("destroy", comm->number);
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  note("abort", comm->number);
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclGroupStart() {
  note("begin");
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() { return note("end-group"); }
ncclResult_t ncclAllReduce(const void *, void *, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t) {
  return note("all-reduce", count, int(type), int(op), comm->number);
}
ncclResult_t ncclAllGather(const void *, void *, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t) {
  return note("all-gather", count, int(type), comm->number);
}
ncclResult_t ncclReduceScatter(const void *, void *, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t) {
  return note("reduce-scatter", count, int(type), int(op), comm->number);
}
ncclResult_t ncclSend(const void *, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t) {
  return note("send", count, int(type), peer, comm->number);
}
ncclResult_t ncclRecv(void *, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t) {
  return note("receive", count, int(type), peer, comm->number);
}
ncclResult_t ncclMemAlloc(void **made, size_t bytes) {
  if (isFull) {
    isFull = false;
    return ncclUnhandledCudaError;
  }
  *made = std::malloc(bytes);
  return ncclSuccess;
}
ncclResult_t ncclMemFree(void *made) {
  std::free(made);
  return ncclSuccess;
}
ncclResult_t ncclCommRegister(ncclComm_t comm, void *, size_t bytes, void **made) {
  *made = comm;
  note("register", comm->number, bytes);
  return ncclSuccess;
}
ncclResult_t ncclCommDeregister(ncclComm_t comm, void *) {
  note("unregister", comm->number);
  return ncclSuccess;
}
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *, size_t bytes, ncclWindow_t *made,
                                    int flags) {
  *made = hasWindows ? reinterpret_cast<ncclWindow_t>(comm) : nullptr;
  return note("window", comm->number, bytes, flags);
}
ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t) {
  note("unregister-window", comm->number);
  return ncclSuccess;
}
}
