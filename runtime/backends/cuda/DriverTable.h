//===- DriverTable.h - what the backend calls of CUDA ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An executable is linked with nothing of CUDA, so that it starts where there is none.
// What it calls of the driver and the libraries is this table, each function about one
// call of theirs; handles are passed as numbers. All that decides which call comes when
// stands above the table: so what runs on a simulator for it, which needs no device, is
// the very code that runs on devices.
//
// Functions return null, or what went wrong; the text lives until the thread's next
// call. What is enqueued fails later: a call that asks how far a stream has come says
// so, and from then on all calls on that device do.
//
// A device's functions are for the thread that has opened it, but for `giveUp`. No two
// threads have the same device open.
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

/// What a device is.
struct DeviceFacts {
  /// The first architecture that multiplies FP8 numbers.
  static constexpr uint32_t kFirstWithBytes = 89;

  char name[64];
  /// Which one it is of all that there are; all 0 where that is not known.
  uint8_t identity[16];
  /// Compute capability times ten.
  uint32_t architecture;
  uint32_t multiprocessors;
  uint64_t memoryBytes;
  /// Of these, bytes that nobody had when it was opened.
  uint64_t freeBytes;
  /// What collectives may take of it, beside what they are called with.
  uint64_t communicationBytes;

  bool multipliesBytes() const { return architecture >= kFirstWithBytes; }
};

/// What all ranks that join one world have to bring.
struct WorldId {
  char bytes[128];
};

/// How a matmul is computed, as the library of matmuls writes it down: good for one version of
/// it, on one kind of device. All 0 is none.
struct MatmulAlgorithm {
  uint64_t words[8];
};

/// Where a matmul's operands are; 0 for those that it has not.
struct MatmulPlaces {
  uint64_t a = 0, b = 0, c = 0, addend = 0, bias = 0, aux = 0, sums = 0, workspace = 0;
  /// What FP8 A and B are multiplied by.
  uint64_t factorA = 0, factorB = 0;
};

struct DriverTable {
  /// Changes with this struct.
  static constexpr uint32_t kVersion = 5;

  using Result = const char *;
  /// None of these is ever 0 for a thing that is there.
  using Handle = uint64_t;
  /// In a device's memory.
  using Address = uint64_t;

  /// Whether what this thread was told last to have gone wrong is that memory was missing.
  bool (*lacksMemory)();

  /// "CUDA 13.0, driver 580.159".
  const char *(*name)();
  /// 0 where there is a driver, but no device that it may use; fails where there is no driver.
  Result (*countDevices)(int64_t *count);

  /// To be called first by the thread that is to use the device.
  Result (*open)(int64_t device, Handle *opened, DeviceFacts *facts);
  /// To be called last. All that was made on the device must have been freed.
  Result (*close)(Handle device);
  /// Of the device's memory the bytes that nobody has now.
  Result (*freeMemory)(Handle device, uint64_t *bytes);

  /// Aligned to 256 bytes, of unspecified contents; 0 where there are not so many left.
  Result (*allocate)(Handle device, uint64_t bytes, Address *address);
  Result (*free)(Handle device, Address address);
  /// Of the host, and copied from and to without going through other memory; null where there is
  /// not so much left.
  Result (*allocatePinned)(Handle device, uint64_t bytes, void **place);
  Result (*freePinned)(Handle device, void *place);

  /// Work that is enqueued on one stream is done in order; that of different streams in any.
  Result (*makeStream)(Handle device, Handle *stream);
  /// As `makeStream`; where work of both could begin, that of this stream does.
  Result (*makeUrgentStream)(Handle device, Handle *stream);
  Result (*freeStream)(Handle device, Handle stream);
  /// An event is a place in a stream: behind all that was enqueued when it was recorded last.
  Result (*makeEvent)(Handle device, Handle *event);
  Result (*freeEvent)(Handle device, Handle event);
  Result (*record)(Handle device, Handle event, Handle stream);
  /// What is enqueued on `stream` after this waits until `event`, which has been recorded, is
  /// reached.
  Result (*wait)(Handle device, Handle stream, Handle event);
  /// Whether `event`, which has been recorded, is reached. Never waits.
  Result (*reached)(Handle device, Handle event, bool *isReached);
  /// Waits until `event`, which has been recorded, is reached.
  Result (*await)(Handle device, Handle event);
  /// As `makeEvent`, of an event that keeps the time at which it is reached; to be freed as others.
  Result (*makeTimer)(Handle device, Handle *event);
  /// Seconds from one of these to another, both of which are known to be reached.
  Result (*elapsed)(Handle device, Handle from, Handle to, double *seconds);

  /// Enqueue copies. `host` is pinned, and not touched until the copy is done.
  Result (*copyToDevice)(Handle device, Handle stream, Address to, const void *host,
                         uint64_t bytes);
  Result (*copyToHost)(Handle device, Handle stream, void *host, Address from, uint64_t bytes);
  Result (*copy)(Handle device, Handle stream, Address to, Address from, uint64_t bytes);
  /// Enqueues that bytes become 0.
  Result (*zero)(Handle device, Handle stream, Address at, uint64_t bytes);

  /// Enqueues that `word`, which is pinned and at a multiple of 4 bytes, becomes `value`. What the
  /// stream has written before is then seen by who has seen that. The host may look at any time.
  /// Not for graphs.
  Result (*writeProgress)(Handle device, Handle stream, uint32_t *word, uint32_t value);
  /// Enqueues that `word`, likewise, becomes one more than it was; for graphs, which do the same
  /// each time.
  Result (*countProgress)(Handle device, Handle stream, uint32_t *word);
  /// The machine code in `bytes`, of a cubin or of PTX that ends with a 0; 0 where the device has
  /// no memory left for it.
  Result (*load)(Handle device, const void *bytes, Handle *module);
  Result (*unload)(Handle device, Handle module);
  /// The entry of that name; valid as long as the module is.
  Result (*entry)(Handle device, Handle module, const char *name, Handle *found);
  /// The bytes that an entry keeps for each thread in the device's memory, beside its operands.
  Result (*localBytes)(Handle device, Handle entry, uint64_t *bytes);
  /// Takes of the device's memory what entries with up to `bytes` of their own a thread need for
  /// all threads that may run at a time, unless there is not so much left. Without it the first
  /// launch of one takes it, and holds up all that is enqueued.
  Result (*reserveLocal)(Handle device, uint64_t bytes, bool *isThere);
  /// Enqueues an entry on `blocks` blocks of `threads` threads. Each argument has 8 bytes, and is
  /// read before this returns.
  Result (*launch)(Handle device, Handle stream, Handle entry, uint32_t blocks, uint32_t threads,
                   const uint64_t *arguments, size_t count);

  /// What decides, beside the matmul and the device, which ways there are to compute it:
  /// "cuBLASLt 130100, driver 13000". The text lives as long as the library.
  Result (*nameMatmuls)(Handle device, const char **name);
  /// Prepares `matmul`, which belongs to a well-formed program, to be computed in `way`. If that
  /// is none, chooses by trying, with memory for operands of its own until it returns, and gives
  /// its choice there. Fails where the device cannot go this way.
  Result (*prepareMatmul)(Handle device, const Matmul *matmul, MatmulAlgorithm *way,
                          Handle *prepared);
  Result (*freeMatmul)(Handle device, Handle prepared);
  /// Enqueues it. All operands begin at multiples of `kAlignment`, the workspace at one of
  /// `kWorkspaceAlignment`; two that may run at a time need workspaces of their own.
  Result (*runMatmul)(Handle device, Handle stream, Handle prepared, const MatmulPlaces *places);

  /// For one rank to call, and all to bring. Fails where the library of collectives is missing or
  /// of a version that cannot be used.
  Result (*makeWorldId)(WorldId *id);
  /// Begins to join a world of `ranks` ranks as number `rank`; all of them have to.
  Result (*join)(Handle device, const WorldId *id, int64_t ranks, int64_t rank,
                 Handle *communicator);
  /// Begins to make a communicator of the ranks of `communicator` that bring the same `color`,
  /// which is 0 or more, in the order of their `key`; all of them have to. `made` is ready no
  /// sooner than `communicator` is again.
  Result (*split)(Handle device, Handle communicator, int64_t color, int64_t key, Handle *made);
  /// Whether what was begun on a communicator has come to an end, which it does by itself; what
  /// was enqueued on it is then where it was enqueued. Until it has, nothing else may be begun on
  /// the communicator, nor enqueued on the streams of what was. Fails with what went wrong on it
  /// since. Never waits.
  Result (*ready)(Handle device, Handle communicator, bool *isReady);
  /// Begins to end a communicator of which nothing is enqueued or registered any more; all ranks
  /// have to. Once it is ready it is to be freed.
  Result (*end)(Handle device, Handle communicator);
  Result (*freeCommunicator)(Handle device, Handle communicator);
  /// Stops all that is under way or enqueued on the communicators of a device; who waits for it
  /// returns if that can be, and all calls on the device fail from here on. Nothing else is freed.
  /// For any thread, also while the device's own does not come back from a call. May take for ever:
  /// the caller has to mind the time.
  Result (*giveUp)(Handle device);

  /// What is enqueued in between is one unit of work, of which all parts may go on at a time. Of
  /// one communicator and one stream.
  Result (*beginGroup)(Handle device);
  Result (*endGroup)(Handle device);
  /// Enqueue this rank's part of what all ranks of a communicator do, in the same order. Two
  /// communicators that have several ranks in common get what they do in the same order on these.
  /// `count` is at least 1, and that of the shorter operand. `from` and `to` may be one for an
  /// all-reduce.
  Result (*allReduce)(Handle device, Handle stream, Handle communicator, ReductionKind reduction,
                      ElementType type, Address from, Address to, uint64_t count);
  Result (*allGather)(Handle device, Handle stream, Handle communicator, ElementType type,
                      Address from, Address to, uint64_t count);
  Result (*reduceScatter)(Handle device, Handle stream, Handle communicator,
                          ReductionKind reduction, ElementType type, Address from, Address to,
                          uint64_t count);
  /// To and from another rank or this one, by its number in the communicator. Only in groups.
  Result (*send)(Handle device, Handle stream, Handle communicator, ElementType type, Address from,
                 uint64_t count, int64_t peer);
  Result (*receive)(Handle device, Handle stream, Handle communicator, ElementType type, Address to,
                    uint64_t count, int64_t peer);

  /// As `allocate`, of memory that other ranks' devices may be given; 0 likewise.
  Result (*allocateShared)(Handle device, uint64_t bytes, Address *address);
  Result (*freeShared)(Handle device, Address address);
  /// Lets a communicator use memory of `allocateShared` where it lies. As a window all ranks have
  /// to register as many bytes, and whether there is one is known once the communicator is ready:
  /// where the library has none for it there is none, and if making one fails the communicator
  /// does. What fails here leaves the communicator as it was.
  Result (*registerMemory)(Handle device, Handle communicator, Address at, uint64_t bytes,
                           bool asWindow, Handle *registered);
  Result (*isRegistered)(Handle device, Handle registered, bool *is);
  Result (*unregister)(Handle device, Handle registered);
  /// Chooses how to do `part` of `attention`, both of a well-formed program, with at most the
  /// attention's workspace beside its operands; where `isDeterministic`, so that the same operands
  /// have the same bits as results. Where the library does not do it, that is no failure:
  /// `prepared` is 0, and `refusal` says why, as long as a result does.
  Result (*prepareAttention)(Handle device, const Attention *attention, const AttentionPart *part,
                             bool isDeterministic, Handle *prepared, const char **refusal);
  Result (*freeAttention)(Handle device, Handle prepared);
  /// Enqueues it. `operands` are those of the attention's roles in order, then where documents
  /// start, if there are any, each at a multiple of `kAlignment`, then the workspace, at one of
  /// `kWorkspaceAlignment`, which two that may run at a time do not share.
  Result (*runAttention)(Handle device, Handle stream, Handle prepared, const Address *operands,
                         size_t count);

  /// What is enqueued on `stream` from here on, by this thread, and on streams that wait for events
  /// recorded there since, is not done but put down for a graph. Until that is made nothing may be
  /// allocated, made, loaded, prepared, freed or waited for by the host, and events from before are
  /// not waited for.
  Result (*beginCapture)(Handle device, Handle stream);
  /// Ends it, on the same stream, which waits for all others that have come in. What their events
  /// say has no meaning from here on: they are to be recorded anew. Makes ready that the graph is
  /// launched; if `graph` is null what was put down is forgotten. Has ended it also if it fails.
  Result (*endCapture)(Handle device, Handle stream, Handle *graph);
  /// Enqueues all of a graph, behind its launch before. What it uses must still be there.
  Result (*launchGraph)(Handle device, Handle stream, Handle graph);
  /// Communicators that it uses are freed later.
  Result (*freeGraph)(Handle device, Handle graph);

  /// From here on nothing may be made, loaded, prepared or freed, nor waited for but by `await`: a
  /// call that does fails.
  Result (*seal)(Handle device);
  Result (*unseal)(Handle device);

  /// Null but for a simulator, which has to be told first what it stands in for: a program and the
  /// host's code of its kernels, which it runs in place of images. Both must outlive all else.
  void (*standFor)(const Program *program, const KernelCode *kernels);
};

} // namespace weft::rt::cuda

/// What the shared library exports; null if `version` is not its own.
extern "C" const weft::rt::cuda::DriverTable *weft_rt_cuda(uint32_t version);

#endif // WEFT_RT_BACKENDS_CUDA_DRIVERTABLE_H
