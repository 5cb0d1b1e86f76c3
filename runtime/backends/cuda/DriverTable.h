//===- DriverTable.h - the functions of CUDA that the runtime calls -------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An executable is not linked with CUDA, so that it starts on machines without it. It calls
// the driver and CUDA's libraries only by this table. Each function makes about one call of
// theirs; handles are passed as numbers. The code that uses the table decides the order of
// calls: so tests on a simulator of the table, without a device, run the same code as
// programs on devices.
//
// Functions return null on success, else the error; its text is valid until the thread's
// next call. Enqueued work fails later: calls that ask for a stream's progress report it,
// and from then on all calls on that device do.
//
// Only the thread that has opened a device may call its functions, except for `giveUp`. No
// two threads have the same device open.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_CUDA_DRIVERTABLE_H
#define WEFT_RT_BACKENDS_CUDA_DRIVERTABLE_H

#include <cstddef>
#include <cstdint>

namespace weft::rt {
struct Attention;
struct AttentionPart;
struct KernelCode;
enum class ElementType : uint8_t;
enum class ReductionKind : uint8_t;
struct Matmul;
struct Program;
} // namespace weft::rt

namespace weft::rt::cuda {

/// The properties of a device.
struct DeviceFacts {
  /// The first architecture with FP8 matmuls.
  static constexpr uint32_t kFirstWithBytes = 89;

  char name[64];
  /// The device's UUID; all 0 if unknown.
  uint8_t identity[16];
  /// Compute capability times ten.
  uint32_t architecture;
  uint32_t multiprocessors;
  uint64_t memoryBytes;
  /// The bytes that were free when it was opened.
  uint64_t freeBytes;
  /// The bytes that the library of collectives may take, beside operands and results.
  uint64_t communicationBytes;

  bool multipliesBytes() const { return architecture >= kFirstWithBytes; }
};

/// The token by which ranks join one world; see `makeWorldId`.
struct WorldId {
  char bytes[128];
};

/// The algorithm of a matmul, as the library encodes it; valid for one version of the library and
/// one kind of device. All 0 means none.
struct MatmulAlgorithm {
  uint64_t words[8];
};

/// The addresses of a matmul's operands; 0 for operands that it lacks.
struct MatmulPlaces {
  uint64_t a = 0, b = 0, c = 0, addend = 0, bias = 0, aux = 0, sums = 0, workspace = 0;
  /// The scale factors of FP8 operands A and B.
  uint64_t factorA = 0, factorB = 0;
};

struct DriverTable {
  /// Increase it with every change of this struct.
  static constexpr uint32_t kVersion = 5;

  using Result = const char *;
  /// A driver's or library's object; never 0, which means none.
  using Handle = uint64_t;
  /// An address in a device's memory.
  using Address = uint64_t;

  /// Returns true if this thread's last error was a lack of memory.
  bool (*lacksMemory)();

  /// Returns the versions: "CUDA 13.0, driver 580.159".
  const char *(*name)();
  /// Counts the devices that this process may use, perhaps 0. Fails if there is no driver.
  Result (*countDevices)(int64_t *count);

  /// Opens a device for the calling thread; its first call for this device.
  Result (*open)(int64_t device, Handle *opened, DeviceFacts *facts);
  /// Closes the device; the last call for it. All objects on the device must have been freed.
  Result (*close)(Handle device);
  /// Returns the free bytes of the device's memory.
  Result (*freeMemory)(Handle device, uint64_t *bytes);

  /// Allocates device memory, aligned to 256 bytes, of unspecified contents. Gives 0, without an
  /// error, if not enough is left.
  Result (*allocate)(Handle device, uint64_t bytes, Address *address);
  Result (*free)(Handle device, Address address);
  /// Allocates pinned host memory, which the device can copy from and to directly. Gives null,
  /// without an error, if not enough is left.
  Result (*allocatePinned)(Handle device, uint64_t bytes, void **place);
  Result (*freePinned)(Handle device, void *place);

  /// Makes a stream. Work of one stream is done in order, work of different streams in any order.
  Result (*makeStream)(Handle device, Handle *stream);
  /// As `makeStream`, of a stream whose work begins before that of other streams.
  Result (*makeUrgentStream)(Handle device, Handle *stream);
  Result (*freeStream)(Handle device, Handle stream);
  /// Makes an event. `record` sets it to a place in a stream: behind all work enqueued so far.
  Result (*makeEvent)(Handle device, Handle *event);
  Result (*freeEvent)(Handle device, Handle event);
  Result (*record)(Handle device, Handle event, Handle stream);
  /// Makes work that is enqueued on `stream` after this call wait for the recorded `event`.
  Result (*wait)(Handle device, Handle stream, Handle event);
  /// Asks whether the recorded `event` is reached. Never waits.
  Result (*reached)(Handle device, Handle event, bool *isReached);
  /// Waits on the host until the recorded `event` is reached.
  Result (*await)(Handle device, Handle event);
  /// As `makeEvent`, of an event that keeps the time at which it is reached. Freed by `freeEvent`.
  Result (*makeTimer)(Handle device, Handle *event);
  /// Returns the seconds between two timers. REQUIRES: both are known to be reached.
  Result (*elapsed)(Handle device, Handle from, Handle to, double *seconds);

  /// Enqueue copies. `host` is pinned; the caller must not touch it until the copy is done.
  Result (*copyToDevice)(Handle device, Handle stream, Address to, const void *host,
                         uint64_t bytes);
  Result (*copyToHost)(Handle device, Handle stream, void *host, Address from, uint64_t bytes);
  Result (*copy)(Handle device, Handle stream, Address to, Address from, uint64_t bytes);
  /// Enqueues setting bytes to 0.
  Result (*zero)(Handle device, Handle stream, Address at, uint64_t bytes);

  /// Enqueues a write of `value` to `word`, which is pinned and aligned to 4 bytes. The host may
  /// read the word at any time; once it sees the value it also sees all earlier writes of the
  /// stream. Not allowed in graphs.
  Result (*writeProgress)(Handle device, Handle stream, uint32_t *word, uint32_t value);
  /// As `writeProgress`, but adds 1 to `word`; for graphs, whose launches all do the same.
  Result (*countProgress)(Handle device, Handle stream, uint32_t *word);
  /// Loads a cubin, or PTX that ends with a 0 byte, from `bytes`. Gives 0, without an error, if the
  /// device's memory does not suffice.
  Result (*load)(Handle device, const void *bytes, Handle *module);
  Result (*unload)(Handle device, Handle module);
  /// Finds the kernel `name`; valid until the module is unloaded.
  Result (*entry)(Handle device, Handle module, const char *name, Handle *found);
  /// Returns the bytes of local memory that an entry uses for each thread.
  Result (*localBytes)(Handle device, Handle entry, uint64_t *bytes);
  /// Reserves device memory for entries with up to `bytes` of local memory, for all threads that
  /// may run at a time. Sets `isThere` to false, without an error, if the memory does not suffice.
  /// Without this call the first launch of such an entry reserves it, which delays all enqueued
  /// work.
  Result (*reserveLocal)(Handle device, uint64_t bytes, bool *isThere);
  /// Enqueues an entry on `blocks` blocks of `threads` threads. Each argument has 8 bytes and is
  /// copied before this returns.
  Result (*launch)(Handle device, Handle stream, Handle entry, uint32_t blocks, uint32_t threads,
                   const uint64_t *arguments, size_t count);

  /// Returns the versions that algorithms of matmuls depend on: "cuBLASLt 130100, driver 13000".
  /// The text is valid until the library is unloaded.
  Result (*nameMatmuls)(Handle device, const char **name);
  /// Prepares `matmul`, of a well-formed program, with the algorithm `way`. If `way` is none,
  /// measures several algorithms, for which it allocates operands until it returns, and sets `way`
  /// to its choice. Fails if the device does not support the algorithm.
  Result (*prepareMatmul)(Handle device, const Matmul *matmul, MatmulAlgorithm *way,
                          Handle *prepared);
  Result (*freeMatmul)(Handle device, Handle prepared);
  /// Enqueues a prepared matmul. All operands are aligned to `kAlignment`, the workspace to
  /// `kWorkspaceAlignment`. Two matmuls that may run at the same time need separate workspaces.
  Result (*runMatmul)(Handle device, Handle stream, Handle prepared, const MatmulPlaces *places);

  /// Makes the id of a world; one rank calls it and sends the id to all. Fails if the library of
  /// collectives is missing or its version is not supported.
  Result (*makeWorldId)(WorldId *id);
  /// Begins to join a world of `ranks` ranks as number `rank`. All ranks call it.
  Result (*join)(Handle device, const WorldId *id, int64_t ranks, int64_t rank,
                 Handle *communicator);
  /// Begins to make a communicator of the ranks of `communicator` with the same `color`, which is 0
  /// or more, in the order of their `key`. All its ranks call it. `made` is not ready before
  /// `communicator` is ready again.
  Result (*split)(Handle device, Handle communicator, int64_t color, int64_t key, Handle *made);
  /// Asks whether the operation that was begun on a communicator is done; it needs no calls to make
  /// progress. Collectives are then in their streams. Until then nothing else may be begun on the
  /// communicator, nor enqueued on these streams. Fails if the communicator has failed since. Never
  /// waits.
  Result (*ready)(Handle device, Handle communicator, bool *isReady);
  /// Begins to end a communicator without enqueued work or registered memory. All its ranks call
  /// it. Once the communicator is ready, free it.
  Result (*end)(Handle device, Handle communicator);
  Result (*freeCommunicator)(Handle device, Handle communicator);
  /// Aborts all operations on the communicators of a device. Calls that wait for them return, if
  /// possible, and all later calls on the device fail. Frees nothing else. Any thread may call it,
  /// also while the device's thread is stuck in a call. It may never return: the caller must limit
  /// the time.
  Result (*giveUp)(Handle device);

  /// Make the calls in between one unit of work, whose parts may run at the same time. All calls in
  /// between use one communicator and one stream.
  Result (*beginGroup)(Handle device);
  Result (*endGroup)(Handle device);
  /// Enqueue this rank's part of a collective. All ranks of a communicator enqueue the same
  /// collectives in the same order; ranks that share two communicators enqueue the collectives of
  /// both in one order. `count`, at least 1, counts the elements of the shorter one of operand and
  /// result. An all-reduce may have the same `from` and `to`.
  Result (*allReduce)(Handle device, Handle stream, Handle communicator, ReductionKind reduction,
                      ElementType type, Address from, Address to, uint64_t count);
  Result (*allGather)(Handle device, Handle stream, Handle communicator, ElementType type,
                      Address from, Address to, uint64_t count);
  Result (*reduceScatter)(Handle device, Handle stream, Handle communicator,
                          ReductionKind reduction, ElementType type, Address from, Address to,
                          uint64_t count);
  /// Enqueue a message to or from rank `peer` of the communicator, perhaps this rank itself. Only
  /// between `beginGroup` and `endGroup`.
  Result (*send)(Handle device, Handle stream, Handle communicator, ElementType type, Address from,
                 uint64_t count, int64_t peer);
  Result (*receive)(Handle device, Handle stream, Handle communicator, ElementType type, Address to,
                    uint64_t count, int64_t peer);

  /// As `allocate`, of memory that other ranks' devices can access.
  Result (*allocateShared)(Handle device, uint64_t bytes, Address *address);
  Result (*freeShared)(Handle device, Address address);
  /// Registers memory of `allocateShared` with a communicator, which then uses it without copies.
  /// For a window all ranks must register the same number of bytes, and `isRegistered` tells, once
  /// the communicator is ready, whether the library made it: the library may decline, and if making
  /// it fails, the communicator fails. An error of this call leaves the communicator as it was.
  Result (*registerMemory)(Handle device, Handle communicator, Address at, uint64_t bytes,
                           bool asWindow, Handle *registered);
  Result (*isRegistered)(Handle device, Handle registered, bool *is);
  Result (*unregister)(Handle device, Handle registered);
  /// Prepares `part` of `attention`, of a well-formed program, to run with at most the attention's
  /// workspace. If `isDeterministic`, equal operands give results with equal bits. If the library
  /// does not support the attention, that is no error: `prepared` is 0 and `refusal` the reason,
  /// valid until the thread's next call.
  Result (*prepareAttention)(Handle device, const Attention *attention, const AttentionPart *part,
                             bool isDeterministic, Handle *prepared, const char **refusal);
  Result (*freeAttention)(Handle device, Handle prepared);
  /// Enqueues a prepared attention. `operands` are those of the attention's roles in order, then
  /// the starts of documents, if there are any, each aligned to `kAlignment`, then the workspace,
  /// aligned to `kWorkspaceAlignment`. Two that may run at the same time need separate workspaces.
  Result (*runAttention)(Handle device, Handle stream, Handle prepared, const Address *operands,
                         size_t count);

  /// Begins to capture a graph: work that this thread enqueues on `stream` from here on, and on
  /// streams that wait for events recorded there since, is not done but recorded. Until
  /// `endCapture`, nothing may be allocated, made, loaded, prepared or freed, the host may not
  /// wait, and streams may not wait for earlier events.
  Result (*beginCapture)(Handle device, Handle stream);
  /// Ends the capture on the same stream, which must wait for all other captured streams, and
  /// prepares the graph for launches; discards it if `graph` is null. Events that were recorded in
  /// the capture are undefined until they are recorded again. Ends the capture even if it fails.
  Result (*endCapture)(Handle device, Handle stream, Handle *graph);
  /// Enqueues a graph behind its previous launch. All objects that it uses must still exist.
  Result (*launchGraph)(Handle device, Handle stream, Handle graph);
  /// Frees a graph. Free it before the communicators that it uses.
  Result (*freeGraph)(Handle device, Handle graph);

  /// From `seal` to `unseal`, calls that make, load, prepare or free objects fail, as do calls that
  /// wait, except `await`.
  Result (*seal)(Handle device);
  Result (*unseal)(Handle device);

  /// Null except in a simulator, where it must be called first: sets the programs, and the host's
  /// code of its kernels, which the simulator runs in place of images. Both must outlive all other
  /// objects.
  void (*standFor)(const Program *programs, size_t count, const KernelCode *kernels);
};

} // namespace weft::rt::cuda

/// Exported by the shared library. Returns null if `version` is not its own.
extern "C" const weft::rt::cuda::DriverTable *weft_rt_cuda(uint32_t version);

#endif // WEFT_RT_BACKENDS_CUDA_DRIVERTABLE_H
