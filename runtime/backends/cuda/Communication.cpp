//===- Communication.cpp - collectives between devices by NCCL ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Communicators are non-blocking: calls begin operations that go on in a thread of the
// library, and `ready` asks for their state. So no call waits for another rank.
//
// A call of the device's thread holds the lock of its communicators, so that `giveUp` does
// not free them meanwhile. `giveUp` waits for that lock for only a second: if the lock is
// held longer, the library is stuck, and an abort may free it.
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/Parts.h"
#include "weft-rt/Program.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

using namespace weft::rt;
using namespace weft::rt::cuda;

namespace {

/// The first version with symmetric windows and all functions that are called.
constexpr int kFirstVersion = NCCL_VERSION(2, 27, 3);
/// The faulty versions, which are refused.
constexpr int kFirstWrong = NCCL_VERSION(2, 28, 3), kLastWrong = NCCL_VERSION(2, 28, 8);

struct Communicator {
  Device *device = nullptr;
  /// Written by the library's thread, once the communicator is made.
  std::atomic<ncclComm_t> handle = nullptr;
};

struct Registered {
  Communicator *communicator = nullptr;
  bool isWindow = false;
  /// Written by the library's thread; null if it declined to make a window.
  ncclWindow_t window = nullptr;
  void *plain = nullptr;
};

} // namespace

struct cuda::Communicators {
  std::timed_mutex mutex;
  /// True once `findUsable` has succeeded.
  bool areUsable = false;
  std::vector<std::unique_ptr<Communicator>> all;
};

namespace {

template <typename... Parts> CallResult resultOf(ncclResult_t code, const Parts &...asked) {
  if (code == ncclSuccess || code == ncclInProgress) {
    return nullptr;
  }
  const char *last = communication().lastError(nullptr);
  return say(concat(asked..., ": ", communication().errorText(code),
                    // It may be of an earlier call, or of another communicator.
                    last && *last ? concat("; NCCL's last message is '", last, "'") : ""),
             code == ncclUnhandledCudaError);
}

std::string versionText(int version) {
  return concat(version / 10000, ".", version / 100 % 100, ".", version % 100);
}

/// Finds the library. Fails if its version or its settings are not supported.
CallResult findUsable() {
  if (Status status = findCommunication(); !status) {
    return say(concat(status.error().message, "; programs of several ranks need it: NCCL ",
                      versionText(kFirstVersion), " or later, as of nvidia-nccl-cu13"));
  }
  int version = 0;
  if (CallResult failed = resultOf(communication().version(&version), "ncclGetVersion")) {
    return failed;
  }
  if (version < kFirstVersion) {
    return say(concat("NCCL is of version ", versionText(version), ", expected ",
                      versionText(kFirstVersion), " or later, as of nvidia-nccl-cu13"));
  }
  if (version >= kFirstWrong && version <= kLastWrong) {
    return say(concat("NCCL is of version ", versionText(version), ", and versions ",
                      versionText(kFirstWrong), " to ", versionText(kLastWrong),
                      " are faulty: expected 2.28.9 or later, as of nvidia-nccl-cu13"));
  }
  // This variable overrides the communicators' settings. A blocking call would hold the lock that
  // `giveUp` needs, and no time limit could end it.
  const char *blocks = std::getenv("NCCL_COMM_BLOCKING");
  if (blocks && *blocks && std::strcmp(blocks, "0") != 0) {
    return say(concat("NCCL_COMM_BLOCKING is '", blocks,
                      "', by which NCCL's calls wait for other ranks without end: expected it to "
                      "be unset or 0"));
  }
  return nullptr;
}

/// Holds a device's communicators during a call of its thread.
struct Hold {
  std::unique_lock<std::timed_mutex> lock;
  Device *device = nullptr;
  CallResult failed = nullptr;

  explicit Hold(Handle handle) {
    failed = enter(handle, device);
    if (failed) {
      return;
    }
    Communicators &own = *device->communicators;
    lock = std::unique_lock(own.mutex);
    failed = own.areUsable ? nullptr : findUsable();
    own.areUsable = !failed;
    if (device->isGivenUp) { // In the meantime.
      failed = enter(handle, device);
    }
  }
};

/// Calls `body` with the device, its communicators held.
template <typename Body> CallResult held(Handle handle, const Body &body) {
  Hold hold(handle);
  return hold.failed ? hold.failed : body(*hold.device);
}

ncclComm_t commOf(Handle communicator) {
  return fromHandle<Communicator>(communicator)->handle.load();
}

Communicator &add(Device &device) {
  auto &made = device.communicators->all.emplace_back(std::make_unique<Communicator>());
  made->device = &device;
  return *made;
}

void drop(Device &device, Handle communicator) {
  std::erase_if(device.communicators->all,
                [&](const auto &one) { return toHandle(one.get()) == communicator; });
}

//===----------------------------------------------------------------------===//
// Communicators
//===----------------------------------------------------------------------===//

static_assert(sizeof(WorldId) == sizeof(ncclUniqueId));

ncclConfig_t makeConfig() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  // Communicators split off the world share its connections and buffers.
  config.splitShare = 1;
  return config;
}

CallResult makeWorldId(WorldId *id) {
  if (CallResult failed = findUsable()) {
    return failed;
  }
  ncclUniqueId made;
  CallResult failed = resultOf(communication().makeId(&made), "ncclGetUniqueId");
  std::memcpy(id->bytes, made.internal, sizeof id->bytes);
  return failed;
}

CallResult join(Handle handle, const WorldId *id, int64_t ranks, int64_t rank,
                Handle *communicator) {
  *communicator = 0;
  return held(handle, [&](Device &device) {
    ncclUniqueId world;
    std::memcpy(world.internal, id->bytes, sizeof id->bytes);
    ncclConfig_t config = makeConfig();
    ncclComm_t made = nullptr;
    CallResult failed = resultOf(communication().join(&made, int(ranks), world, int(rank), &config),
                                 "ncclCommInitRankConfig of rank ", rank, " of ", ranks);
    if (!failed) {
      Communicator &added = add(device);
      added.handle = made;
      *communicator = toHandle(&added);
    }
    return failed;
  });
}

CallResult split(Handle handle, Handle communicator, int64_t color, int64_t key, Handle *made) {
  *made = 0;
  return held(handle, [&](Device &device) {
    ncclConfig_t config = makeConfig();
    Communicator &added = add(device);
    // The library writes there when it is done, and until then the object stays.
    static_assert(sizeof added.handle == sizeof(ncclComm_t));
    CallResult failed =
        resultOf(communication().split(commOf(communicator), int(color), int(key),
                                       reinterpret_cast<ncclComm_t *>(&added.handle), &config),
                 "ncclCommSplit of color ", color);
    if (failed) {
      drop(device, toHandle(&added));
    } else {
      *made = toHandle(&added);
    }
    return failed;
  });
}

CallResult ready(Handle handle, Handle communicator, bool *isReady) {
  *isReady = false;
  return held(handle, [&](Device &) {
    ncclComm_t asked = commOf(communicator);
    if (!asked) { // Not yet split off.
      return CallResult(nullptr);
    }
    ncclResult_t state = ncclSuccess;
    CallResult failed = resultOf(communication().state(asked, &state), "ncclCommGetAsyncError");
    failed = failed ? failed : resultOf(state, "NCCL");
    *isReady = !failed && state == ncclSuccess;
    return failed;
  });
}

CallResult end(Handle handle, Handle communicator) {
  return held(handle, [&](Device &) {
    return resultOf(communication().end(commOf(communicator)), "ncclCommFinalize");
  });
}

CallResult freeCommunicator(Handle handle, Handle communicator) {
  return held(handle, [&](Device &device) {
    CallResult failed = resultOf(communication().destroy(commOf(communicator)), "ncclCommDestroy");
    drop(device, communicator);
    return failed;
  });
}

/// Aborts all communicators at the same time. One after another, ranks might wait for each other:
/// each abort for kernels that wait for a rank which aborts another communicator first.
CallResult abortAll(const Communicators &communicators) {
  CallResult failed = resultOf(communication().beginGroup(), "ncclGroupStart");
  if (failed) {
    return failed;
  }
  for (const auto &one : communicators.all) {
    if (ncclComm_t handle = one->handle.load()) {
      CallResult own = resultOf(communication().abort(handle), "ncclCommAbort");
      failed = failed ? failed : own;
    }
  }
  CallResult ended = resultOf(communication().endGroup(), "ncclGroupEnd");
  return failed ? failed : ended;
}

/// Threads that wait for a kernel which does not end cannot be woken; they end with the process.
CallResult giveUp(Handle handle) {
  auto *device = fromHandle<Device>(handle);
  if (device->isGivenUp.exchange(true)) {
    return nullptr;
  }
  // A thread without a context would get one of device 0, which takes memory there. The result is
  // ignored, since the abort may still help.
  (void)driver().setCurrent(device->context);
  std::shared_ptr<Communicators> communicators = device->communicators;
  std::unique_lock lock(communicators->mutex, std::chrono::seconds(1));
  return communicators->all.empty() ? nullptr : abortAll(*communicators);
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

ncclDataType_t typeOf(ElementType type) {
  switch (type) {
  case ElementType::F64:
    return ncclFloat64;
  case ElementType::F32:
    return ncclFloat32;
  case ElementType::I64:
    return ncclInt64;
  case ElementType::I32:
    return ncclInt32;
  case ElementType::F16:
    return ncclFloat16;
  case ElementType::F8E4M3:
    return ncclFloat8e4m3;
  case ElementType::F8E5M2:
    return ncclFloat8e5m2;
  case ElementType::BF16:
    break;
  }
  return ncclBfloat16;
}

ncclRedOp_t reductionOf(ReductionKind kind) {
  return kind == ReductionKind::Sum ? ncclSum : ncclMax;
}

void *at(Address address) { return reinterpret_cast<void *>(address); }

/// CUDA's libraries use the driver's pointers to streams.
cudaStream_t streamOf(Handle stream) { return fromHandle<CUstream_st>(stream); }

CallResult beginGroup(Handle handle) {
  return held(handle,
              [](Device &) { return resultOf(communication().beginGroup(), "ncclGroupStart"); });
}

CallResult endGroup(Handle handle) {
  return held(handle,
              [](Device &) { return resultOf(communication().endGroup(), "ncclGroupEnd"); });
}

CallResult allReduce(Handle handle, Handle stream, Handle communicator, ReductionKind reduction,
                     ElementType type, Address from, Address to, uint64_t count) {
  return held(handle, [&](Device &) {
    return resultOf(communication().allReduce(at(from), at(to), count, typeOf(type),
                                              reductionOf(reduction), commOf(communicator),
                                              streamOf(stream)),
                    "ncclAllReduce of ", count, " ", nameOf(type));
  });
}

CallResult allGather(Handle handle, Handle stream, Handle communicator, ElementType type,
                     Address from, Address to, uint64_t count) {
  return held(handle, [&](Device &) {
    return resultOf(communication().allGather(at(from), at(to), count, typeOf(type),
                                              commOf(communicator), streamOf(stream)),
                    "ncclAllGather of ", count, " ", nameOf(type));
  });
}

CallResult reduceScatter(Handle handle, Handle stream, Handle communicator, ReductionKind reduction,
                         ElementType type, Address from, Address to, uint64_t count) {
  return held(handle, [&](Device &) {
    return resultOf(communication().reduceScatter(at(from), at(to), count, typeOf(type),
                                                  reductionOf(reduction), commOf(communicator),
                                                  streamOf(stream)),
                    "ncclReduceScatter of ", count, " ", nameOf(type));
  });
}

CallResult send(Handle handle, Handle stream, Handle communicator, ElementType type, Address from,
                uint64_t count, int64_t peer) {
  return held(handle, [&](Device &) {
    return resultOf(communication().send(at(from), count, typeOf(type), int(peer),
                                         commOf(communicator), streamOf(stream)),
                    "ncclSend of ", count, " ", nameOf(type), " to ", peer);
  });
}

CallResult receive(Handle handle, Handle stream, Handle communicator, ElementType type, Address to,
                   uint64_t count, int64_t peer) {
  return held(handle, [&](Device &) {
    return resultOf(communication().receive(at(to), count, typeOf(type), int(peer),
                                            commOf(communicator), streamOf(stream)),
                    "ncclRecv of ", count, " ", nameOf(type), " from ", peer);
  });
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Returns true if the device has less than `bytes` left. NCCL gives one code for all errors of the
/// driver.
bool isBeyondMemory(uint64_t bytes) {
  constexpr uint64_t kPage = 2 << 20; // It allocates whole ones.
  size_t unused = 0, all = 0;
  return driver().freeMemory(&unused, &all) == CUDA_SUCCESS &&
         unused / kPage < bytes / kPage + (bytes % kPage > 0);
}

CallResult allocateShared(Handle handle, uint64_t bytes, Address *address) {
  *address = 0;
  return held(handle, [&](Device &) {
    void *made = nullptr;
    CallResult failed = resultOf(communication().allocate(&made, std::max<uint64_t>(bytes, 1)),
                                 "ncclMemAlloc of ", bytesText(bytes));
    *address = failed ? 0 : reinterpret_cast<Address>(made);
    return failed && isBeyondMemory(bytes) ? nullptr : failed;
  });
}

CallResult freeShared(Handle handle, Address address) {
  return held(handle,
              [&](Device &) { return resultOf(communication().free(at(address)), "ncclMemFree"); });
}

CallResult registerMemory(Handle handle, Handle communicator, Address address, uint64_t bytes,
                          bool asWindow, Handle *registered) {
  *registered = 0;
  return held(handle, [&](Device &) {
    auto made = std::make_unique<Registered>();
    made->communicator = fromHandle<Communicator>(communicator);
    made->isWindow = asWindow;
    ncclComm_t with = commOf(communicator);
    CallResult failed =
        asWindow ? resultOf(communication().registerWindow(with, at(address), bytes, &made->window,
                                                           NCCL_WIN_COLL_SYMMETRIC),
                            "ncclCommWindowRegister of ", bytesText(bytes))
                 : resultOf(communication().registerMemory(with, at(address), bytes, &made->plain),
                            "ncclCommRegister of ", bytesText(bytes));
    *registered = failed ? 0 : toHandle(made.release());
    return failed;
  });
}

CallResult isRegistered(Handle handle, Handle registered, bool *is) {
  return held(handle, [&](Device &) {
    const Registered &asked = *fromHandle<Registered>(registered);
    *is = !asked.isWindow || __atomic_load_n(&asked.window, __ATOMIC_ACQUIRE);
    return CallResult(nullptr);
  });
}

CallResult unregister(Handle handle, Handle registered) {
  return held(handle, [&](Device &) {
    std::unique_ptr<Registered> ended(fromHandle<Registered>(registered));
    ncclComm_t from = ended->communicator->handle.load();
    if (!ended->isWindow) {
      return resultOf(communication().unregisterMemory(from, ended->plain), "ncclCommDeregister");
    }
    return ended->window ? resultOf(communication().unregisterWindow(from, ended->window),
                                    "ncclCommWindowDeregister")
                         : nullptr;
  });
}

} // namespace

std::shared_ptr<Communicators> cuda::makeCommunicators() {
  return std::make_shared<Communicators>();
}

void cuda::addCommunication(DriverTable &library) {
  library.makeWorldId = makeWorldId;
  library.join = join;
  library.split = split;
  library.ready = ready;
  library.end = end;
  library.freeCommunicator = freeCommunicator;
  library.giveUp = giveUp;
  library.beginGroup = beginGroup;
  library.endGroup = endGroup;
  library.allReduce = allReduce;
  library.allGather = allGather;
  library.reduceScatter = reduceScatter;
  library.send = send;
  library.receive = receive;
  library.allocateShared = allocateShared;
  library.freeShared = freeShared;
  library.registerMemory = registerMemory;
  library.isRegistered = isRegistered;
  library.unregister = unregister;
}
