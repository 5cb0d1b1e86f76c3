//===- Library.h - what the backend calls of CUDA -------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An executable is linked with nothing of CUDA, so that it starts where there is none.
// What it calls of the driver and the libraries is this table, each function about one
// call of theirs; handles are passed as numbers. All that decides which call comes when
// stands above the table: so what runs on a stand-in for it, which needs no device, is
// the very code that runs on devices.
//
// Functions return null, or what went wrong; the text lives until the thread's next
// call. What is enqueued fails later: a call that asks how far a stream has come says
// so, and from then on all calls on that device do.
//
// A device's functions are for the thread that has opened it. No two threads have the
// same device open.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_CUDA_LIBRARY_H
#define WEFT_RT_BACKENDS_CUDA_LIBRARY_H

#include <cstddef>
#include <cstdint>

namespace weft::rt {
struct KernelCode;
struct Product;
struct Program;
} // namespace weft::rt

namespace weft::rt::cuda {

/// What a device is.
struct DeviceFacts {
  char name[64];
  /// Compute capability times ten.
  uint32_t architecture;
  uint32_t multiprocessors;
  uint64_t memoryBytes;
};

/// How a product is computed, as the library of products writes it down: good for one version of
/// it, on one kind of device. All 0 is none.
struct ProductWay {
  uint64_t words[8];
};

/// Where a product's operands are; 0 for those that it has not.
struct ProductPlaces {
  uint64_t a, b, c, addend, bias, aux, sums, workspace;
};

struct Library {
  /// Changes with this struct.
  static constexpr uint32_t kVersion = 2;

  using Result = const char *;
  /// None of these is ever 0 for a thing that is there.
  using Handle = uint64_t;
  /// In a device's memory.
  using Address = uint64_t;

  /// "CUDA 13.0, driver 580.159".
  const char *(*name)();
  /// 0 where there is a driver, but no device that it may use; fails where there is no driver.
  Result (*countDevices)(int64_t *count);

  /// To be called first by the thread that is to use the device.
  Result (*open)(int64_t device, Handle *opened, DeviceFacts *facts);
  /// To be called last. All that was made on the device must have been freed.
  Result (*close)(Handle device);

  /// Aligned to 256 bytes, of unspecified contents; 0 where there are not so many left.
  Result (*allocate)(Handle device, uint64_t bytes, Address *address);
  Result (*free)(Handle device, Address address);
  /// Of the host, and copied from and to without going through other memory; null where there is
  /// not so much left.
  Result (*allocatePinned)(Handle device, uint64_t bytes, void **place);
  Result (*freePinned)(Handle device, void *place);

  /// Work that is enqueued on one stream is done in order; that of different streams in any.
  Result (*makeStream)(Handle device, Handle *stream);
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

  /// Enqueue copies. `host` is pinned, and not touched until the copy is done.
  Result (*copyToDevice)(Handle device, Handle stream, Address to, const void *host,
                         uint64_t bytes);
  Result (*copyToHost)(Handle device, Handle stream, void *host, Address from, uint64_t bytes);
  Result (*copy)(Handle device, Handle stream, Address to, Address from, uint64_t bytes);
  /// Enqueues that bytes become 0.
  Result (*zero)(Handle device, Handle stream, Address at, uint64_t bytes);

  /// The machine code in `bytes`, of a cubin or of PTX that ends with a 0.
  Result (*load)(Handle device, const void *bytes, Handle *module);
  Result (*unload)(Handle device, Handle module);
  /// The entry of that name; valid as long as the module is.
  Result (*entry)(Handle device, Handle module, const char *name, Handle *found);
  /// Enqueues an entry on `blocks` blocks of `threads` threads. Each argument has 8 bytes, and is
  /// read before this returns.
  Result (*launch)(Handle device, Handle stream, Handle entry, uint32_t blocks, uint32_t threads,
                   const uint64_t *arguments, size_t count);

  /// What decides, beside the product and the device, which ways there are to compute it:
  /// "cuBLASLt 130100, driver 13000". The text lives as long as the library.
  Result (*nameProducts)(Handle device, const char **name);
  /// Prepares `product`, which belongs to a well-formed program, to be computed in `way`. If that
  /// is none, chooses by trying, with memory for operands of its own until it returns, and gives
  /// its choice there. Fails where the device cannot go this way.
  Result (*prepareProduct)(Handle device, const Product *product, ProductWay *way,
                           Handle *prepared);
  Result (*freeProduct)(Handle device, Handle prepared);
  /// Enqueues it. All operands begin at multiples of `kAlignment`; two that may run at a time need
  /// workspaces of their own.
  Result (*runProduct)(Handle device, Handle stream, Handle prepared, const ProductPlaces *places);

  /// From here on nothing may be made, loaded or prepared, nor waited for but by `await`: a call
  /// that does fails. The real libraries are not asked; a stand-in is strict.
  Result (*seal)(Handle device);
  Result (*unseal)(Handle device);

  /// Null but for a stand-in, which has to be told first what it stands in for: a program and the
  /// host's code of its kernels, which it runs in place of images. Both must outlive all else.
  void (*standFor)(const Program *program, const KernelCode *kernels);
};

} // namespace weft::rt::cuda

/// What the shared library exports; null if `version` is not its own.
extern "C" const weft::rt::cuda::Library *weft_rt_cuda(uint32_t version);

#endif // WEFT_RT_BACKENDS_CUDA_LIBRARY_H
