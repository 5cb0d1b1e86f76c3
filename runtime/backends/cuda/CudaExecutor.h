//===- CudaExecutor.h - runs one rank's program on a device ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The arena is one allocation of the device's memory. Instructions are enqueued on one
// stream and done in order; the host goes on, until it has to see what the device has
// come to: a value that is observed, what a collective sends.
//
// Collectives go through the host: what a rank sends is copied to host memory that the
// device reaches, the communicator moves it, and what comes is copied back. Views and
// drafts are such memory too (BufferView.h).
//
// All that a run needs is made in `prepare`. Memory for views that a run needs now and
// then, as of a checkpoint, is made when the first of that size is asked for.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_CUDA_CUDAEXECUTOR_H
#define WEFT_RT_BACKENDS_CUDA_CUDAEXECUTOR_H

#include "backends/cuda/Library.h"
#include "core/Executor.h"
#include "weft-rt/DeviceImage.h"

#include <array>
#include <map>

namespace weft::rt::cuda {

class CudaExecutor : public Executor, BufferLender {
public:
  /// See Executor. Device number `device` is this rank's alone; `images` are those of the program's
  /// kernels. All must outlive this. `cacheFile` keeps how products are computed, empty for not to.
  /// Calls of `library` are made by the thread that calls `prepare`, which is also to end this, but
  /// after a failure: what a device does not give back to another thread goes with the process.
  CudaExecutor(const Program &program, const KernelCode *kernels, int64_t rank,
               const Library &library, int64_t device, std::span<const DeviceImage> images,
               std::string cacheFile = {});
  ~CudaExecutor();

  uint64_t hostBytes() const override;

  using Executor::draft;
  using Executor::view;
  BufferView view(uint32_t buffer, uint64_t begin, uint64_t count) const override;
  BufferDraft draft(uint32_t buffer, uint64_t begin, uint64_t count) override;
  void zero(uint32_t buffer) override;

private:
  using Handle = Library::Handle;
  using Address = Library::Address;

  /// A kernel on the device.
  struct Entries {
    /// Of each phase.
    std::vector<Handle> phases;
    size_t immediates = 0, buffers = 0;
  };

  /// Host memory that the device reaches.
  struct Pinned {
    char *place = nullptr;
    uint64_t bytes = 0;
  };

  bool allocateArena() override;
  bool prepareDevice() override;
  Communicator::Handle prepareCollective(const Collective &collective,
                                         const CallSite &site) override;
  void *address(uint32_t buffer) const override;
  Outcome runKernel(const Prepared &instruction) override;
  Outcome runProduct(const Prepared &instruction) override;
  Outcome runCollective(const Prepared &instruction) override;
  void endView(const char *memory) override;
  void endDraft(char *memory) override;

  bool open();
  bool loadKernels();
  const DeviceImage *chooseImage() const;
  void countOperands();
  /// Bytes that sections ask for while they run: to lend, to send and to get.
  std::array<uint64_t, 3> stagingBytes() const;
  bool sendCoordinates();
  /// Has at least `bytes` in `pinned`.
  bool grow(Pinned &pinned, uint64_t bytes);
  /// Waits until all that was enqueued is done.
  bool finish() const;
  std::span<char> lend(uint64_t bytes, bool &isGood);
  /// Tells the communicator of what went wrong, if anything. Returns whether nothing did.
  bool check(Library::Result result) const;

  const Library &library;
  const int64_t number;
  const std::span<const DeviceImage> images;
  const std::string cacheFile;
  DeviceFacts facts = {};
  Handle device = 0, stream = 0, done = 0, module = 0;
  Address arena = 0, place = 0;
  std::vector<Entries> entries;
  std::vector<Handle> products;
  /// Bytes of the operand and of the result of collectives.
  std::map<Communicator::Handle, std::pair<uint64_t, uint64_t>> moved;
  /// Of one launch.
  std::vector<uint64_t> arguments;
  /// What is lent, and what collectives send and get.
  Pinned lent, sent, got;
  /// In their place, when the device has failed.
  std::vector<char> lost;
  /// Where the draft that is lent goes, and how many bytes of it.
  std::pair<Address, uint64_t> drafted;
};

} // namespace weft::rt::cuda

#endif // WEFT_RT_BACKENDS_CUDA_CUDAEXECUTOR_H
