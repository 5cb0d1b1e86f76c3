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
// at the beginning: so views and drafts come after all. Inputs have a way of their own
// (InputStage.h).
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
#include "backends/cuda/CudaGraphs.h"
#include "backends/cuda/DeviceClock.h"
#include "backends/cuda/DeviceCollectives.h"
#include "backends/cuda/DriverTable.h"
#include "backends/cuda/InputStage.h"
#include "execution/Executor.h"
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
  /// Keeps how matmuls are computed; empty for not to.
  std::string cacheFile = {};
  /// Whether what is between two places where the host looks is launched at once.
  bool usesGraphs = false;
  /// Takes the times of steps on the device, for which all is on one stream and nothing a graph.
  bool takesTimes = false;
  /// For checks: ranks in processes of their own may have the same device.
  bool sharesDevices = false;
};

class CudaExecutor : public Executor, BufferLender {
public:
  /// See Executor. Device number `device` is this rank's alone; `images` are those of the program's
  /// kernels. All must outlive this. Calls of `library` are made by the thread that calls
  /// `prepare`, which is also to end this: if another does, as after a failure, all that is on the
  /// device is left to the end of the process, since the device may be stuck.
  CudaExecutor(const Program &program, const KernelCode *kernels, int64_t rank,
               const DriverTable &library, int64_t device, std::span<const DeviceImage> images,
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
  using Handle = DriverTable::Handle;
  using Address = DriverTable::Address;

  /// A kernel on the device.
  struct Entries {
    /// Of each phase; none where the library does all that is asked of it.
    std::vector<Handle> phases;
    size_t immediates = 0, buffers = 0;
    bool isNeeded = false;
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
  Outcome runMatmul(const Prepared &instruction) override;
  Outcome runCollective(const Prepared &instruction) override;
  bool passMark(const Prepared &instruction) override;
  bool looksLate() const override { return true; }
  bool keep(const Prepared &instruction) override;
  const void *kept(const Prepared &instruction) const override;
  bool recordsParts() const override { return options.usesGraphs && !options.takesTimes; }
  bool beginRecording() override;
  bool endRecording(size_t number) override;
  void dropRecording() override { graphs.drop(device, stream); }
  bool launchPart(size_t number) override;
  bool takesTimes() const override { return options.takesTimes; }
  bool beginTimes() override { return check(clock.begin(stream)); }
  bool lapTimes(size_t index) override { return check(clock.lap(index, stream)); }
  bool recordTimes(StepTimes &times) override { return finish() && check(clock.read(times)); }
  void endView(const char *memory) override;
  void endDraft(char *memory) override;

  static DriverTable::Address addressOf(const void *operand) {
    return reinterpret_cast<DriverTable::Address>(operand);
  }
  /// The phases that a device runs.
  static DevicePhases phasesOf(const KernelCode &code) {
    return code.device ? *code.device : DevicePhases{code.phaseCount, code.iterations, nullptr};
  }

  // See CudaStart.cpp.

  bool open();
  /// Says what the rank needs of the device's memory, unless it is there, beside what has been
  /// taken since the device was opened.
  bool canMultiply() const;
  bool hasMemory(bool isLoaded) const;
  /// What the run is predicted to take of what is free.
  uint64_t neededBytes(bool isLoaded) const;
  /// Makes the words by which streams tell how far they have come.
  bool watchStreams();
  uint32_t *wordOf(Stream on) const {
    return reinterpret_cast<uint32_t *>(words.place) + size_t(on);
  }
  bool enqueueMark(Stream on, uint32_t mark) const;
  /// Whether somebody looks at the words, and not all that they are to become has been reached.
  bool isBusy() const;
  /// Loads them with all that they need of the device's memory: their code, what modules keep, and
  /// what entries keep for their threads.
  bool loadKernels();
  bool loadEntries(size_t kernel, uint64_t &localBytes);
  const DeviceImage *chooseImage() const;
  void countOperands();
  bool prepareAttention();
  bool makeStreams();
  Handle handleOf(Stream on) const { return on == Stream::Compute || !side ? stream : side; }
  bool prepareCollectives();
  /// Does once what is slow or takes memory when it is done first. The arena is zero before and
  /// behind it.
  bool warmUp();
  bool warmUpCollectives();
  /// Bytes that sections ask to view while they run.
  uint64_t viewedBytes() const;
  bool sendCoordinates();
  bool prepareCopies();
  /// Has at least `bytes` in `pinned`.
  bool grow(Pinned &pinned, uint64_t bytes);
  /// Waits until all that was enqueued on the compute stream is done.
  bool finish();
  std::span<char> lend(uint64_t bytes, bool &isGood);
  /// Tells the communicator of what went wrong, if anything. Returns whether nothing did.
  bool check(DriverTable::Result result) const;

  const DriverTable &library;
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
  std::vector<Handle> matmuls;
  std::optional<DeviceCollectives> collectives;
  /// Of one launch.
  std::vector<uint64_t> arguments;
  /// What is lent.
  Pinned lent;
  /// Whether it still goes to the device.
  bool isLentUnderWay = false;
  InputStage stage;
  /// Values that are observed and looked at later, and where each observation has its own.
  Pinned keeping;
  uint64_t keepingBytes = 0;
  const std::vector<uint64_t> keepingPlaces;
  CudaGraphs graphs;
  static constexpr uint64_t kWordBytes = kStreams * sizeof(uint32_t);
  /// How far each stream has come, and who looks at it; null where nobody does.
  Pinned words;
  std::array<Monitor::Line *, kStreams> lines = {};
  /// In place of what is lent, when the device has failed.
  std::vector<char> lost;
  /// What the draft that is lent is of; no bytes if it is lost.
  struct Drafted {
    uint32_t buffer = 0;
    uint64_t begin = 0, bytes = 0;
    bool isInput = false;
  };
  Drafted drafted;
};

} // namespace weft::rt::cuda

#endif // WEFT_RT_BACKENDS_CUDA_CUDAEXECUTOR_H
