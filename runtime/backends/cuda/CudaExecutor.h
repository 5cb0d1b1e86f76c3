//===- CudaExecutor.h - runs one rank's program on a device ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The arena is one allocation of the device's memory. Instructions are enqueued on their
// streams, which events order as the program says; the host goes on, until it has to see
// what the device has come to: a value that is observed. All else that is enqueued is on the
// compute stream, which at the end of a section is behind the others, as they are behind it
// at the beginning: so views and drafts come after all.
//
// Collectives go from device to device (DeviceCollectives.h), from and to the arena, which
// is then memory that other ranks' devices may be given. Views and drafts are host memory
// that the device reaches (BufferView.h).
//
// All that a run needs is made in `prepare`. Memory for views that a run needs now and
// then, as of a checkpoint, is made when the first of that size is asked for.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_CUDA_CUDAEXECUTOR_H
#define WEFT_RT_BACKENDS_CUDA_CUDAEXECUTOR_H

#include "backends/cuda/CudaAttention.h"
#include "backends/cuda/DeviceClock.h"
#include "backends/cuda/DeviceCollectives.h"
#include "backends/cuda/Library.h"
#include "core/Executor.h"
#include "weft-rt/DeviceImage.h"

#include <optional>
#include <thread>

namespace weft::rt::cuda {

/// What a run wants of its devices.
struct CudaOptions {
  /// How long what begins between devices is waited for.
  std::chrono::nanoseconds timeout = std::chrono::seconds(60);
  /// Whether libraries are to give the same bits each time, also where that takes longer.
  bool isDeterministic = false;
  /// Keeps how products are computed; empty for not to.
  std::string cacheFile = {};
  /// Takes the times of steps on the device, for which all is on one stream.
  bool takesTimes = false;
};

class CudaExecutor : public Executor, BufferLender {
public:
  /// See Executor. Device number `device` is this rank's alone; `images` are those of the program's
  /// kernels. All must outlive this. Calls of `library` are made by the thread that calls
  /// `prepare`, which is also to end this: if another does, as after a failure, all that is on the
  /// device is left to the end of the process, since the device may be stuck.
  CudaExecutor(const Program &program, const KernelCode *kernels, int64_t rank,
               const Library &library, int64_t device, std::span<const DeviceImage> images,
               const CudaOptions &options = {});
  ~CudaExecutor();

  uint64_t hostBytes() const override;
  void end() override;
  const char *noteOfTimes() const override;
  std::string noteOfMemory() const override;

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
  bool forkStreams() override;
  bool joinStreams() override;
  bool waitForEvents(const Prepared &instruction) override;
  bool recordEvent(const Prepared &instruction) override;
  Outcome runKernel(const Prepared &instruction) override;
  Outcome runProduct(const Prepared &instruction) override;
  Outcome runCollective(const Prepared &instruction) override;
  bool passMark(const Prepared &instruction) override;
  bool takesTimes() const override { return options.takesTimes; }
  bool beginTimes() override { return check(clock.begin(stream)); }
  bool lapTimes(size_t index) override { return check(clock.lap(index, stream)); }
  bool recordTimes(StepTimes &times) override { return finish() && check(clock.read(times)); }
  void endView(const char *memory) override;
  void endDraft(char *memory) override;

  bool open();
  /// Says what the rank needs of the device's memory, unless it is there.
  bool hasMemory() const;
  /// What the run is predicted to take of what is free.
  uint64_t neededBytes() const;
  /// Makes the words by which streams tell how far they have come.
  bool watchStreams();
  uint32_t *wordOf(Stream on) const {
    return reinterpret_cast<uint32_t *>(words.place) + size_t(on);
  }
  bool enqueueMark(Stream on, uint32_t mark) const;
  bool loadKernels();
  const DeviceImage *chooseImage() const;
  void countOperands();
  bool prepareAttention();
  bool makeStreams();
  Handle handleOf(Stream on) const { return on == Stream::Compute || !side ? stream : side; }
  bool prepareCollectives();
  /// Bytes that sections ask to view while they run.
  uint64_t viewedBytes() const;
  bool sendCoordinates();
  /// Has at least `bytes` in `pinned`.
  bool grow(Pinned &pinned, uint64_t bytes);
  /// Waits until all that was enqueued on the compute stream is done.
  bool finish() const;
  std::span<char> lend(uint64_t bytes, bool &isGood);
  /// Tells the communicator of what went wrong, if anything. Returns whether nothing did.
  bool check(Library::Result result) const;

  const Library &library;
  const int64_t number;
  const std::span<const DeviceImage> images;
  const CudaOptions options;
  /// Whether this rank's device has others to talk to, and how that has come to an end.
  const bool communicates;
  bool isEnded = false;
  CudaAttention attention;
  DeviceClock clock;
  DeviceFacts facts = {};
  std::thread::id owner;
  Handle device = 0, stream = 0, done = 0, module = 0;
  /// The communication stream, if this uses it, and what orders instructions.
  Handle side = 0;
  std::vector<Handle> events;
  Address arena = 0, place = 0;
  std::vector<Entries> entries;
  std::vector<Handle> products;
  std::optional<DeviceCollectives> collectives;
  /// Of one launch.
  std::vector<uint64_t> arguments;
  /// What is lent.
  Pinned lent;
  /// How far each stream has come, and who looks at it; null where nobody does.
  Pinned words;
  std::array<Monitor::Line *, kStreams> lines = {};
  /// In place of what is lent, when the device has failed.
  std::vector<char> lost;
  /// Where the draft that is lent goes, and how many bytes of it.
  std::pair<Address, uint64_t> drafted;
};

} // namespace weft::rt::cuda

#endif // WEFT_RT_BACKENDS_CUDA_CUDAEXECUTOR_H
