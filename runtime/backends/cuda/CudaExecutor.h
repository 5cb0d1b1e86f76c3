//===- CudaExecutor.h - runs one rank's program on a device ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The arena is one allocation of the device's memory. Instructions are enqueued on their
// streams, which events order as the program says; the host waits only for values that it
// observes. All other work is enqueued on the compute stream. At the beginning of a section
// the other streams wait for it, and at the end it waits for them, so that views and drafts
// come after all instructions. Inputs are copied separately (InputStage.h).
//
// Collectives go directly between the arenas of devices (DeviceCollectives.h); then the arena is
// memory that other ranks' devices may access. Views and drafts are pinned host memory
// (BufferView.h).
//
// `prepare` allocates all memory of a run, except for large views that are rarely needed, as of
// a checkpoint: the first such view allocates it.
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

/// Options of a run on devices.
struct CudaOptions {
  /// The longest time to wait for other devices when communicators or collectives are set up.
  std::chrono::nanoseconds timeout = std::chrono::seconds(60);
  /// Makes libraries give the same bits in each run, even if that is slower.
  bool isDeterministic = false;
  /// The file of algorithms chosen for matmuls (AlgorithmCache.h); empty for none.
  std::string cacheFile = {};
  /// Launches all instructions between two points where the host needs values as one graph.
  bool usesGraphs = false;
  /// Takes the times of instructions on the device. Then all work is on one stream, without graphs.
  bool takesTimes = false;
  /// For tests: ranks in different processes may share a device.
  bool sharesDevices = false;
};

class CudaExecutor : public Executor, BufferLender {
public:
  /// See Executor. Only this rank may use device number `device`; `images` hold the code of the
  /// program's kernels. All arguments must outlive the executor. The thread that calls `prepare`
  /// makes all calls of `library`, and should also destroy the executor. If another thread does, as
  /// after a failure, nothing on the device is freed before the process ends, since the device may
  /// be stuck.
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
  BufferView view(uint32_t buffer, uint32_t frame, uint64_t begin, uint64_t count) const override;
  BufferDraft draft(uint32_t buffer, uint64_t begin, uint64_t count) override;
  void zero(uint32_t buffer) override;

private:
  using Handle = DriverTable::Handle;
  using Address = DriverTable::Address;

  /// A kernel on the device.
  struct Entries {
    /// The entry of each phase; none if the library runs all instructions of this kernel.
    std::vector<Handle> phases;
    size_t immediates = 0, buffers = 0;
    bool isNeeded = false;
  };

  /// Pinned host memory, which the device can copy from and to.
  struct Pinned {
    char *place = nullptr;
    uint64_t bytes = 0;
  };

  bool allocateArena() override;
  bool prepareDevice() override;
  Communicator::Handle prepareCollective(const Collective &collective,
                                         const CallSite &site) override;
  void *address(uint32_t buffer, uint32_t frame) const override;
  bool forkStreams() override;
  bool joinStreams() override;
  bool waitForEvents(const Prepared &instruction) override;
  bool recordEvent(const Prepared &instruction) override;
  Outcome runKernel(const Prepared &instruction) override;
  Outcome runMatmul(const Prepared &instruction) override;
  Outcome runCollective(const Prepared &instruction) override;
  bool passMark(const Prepared &instruction, uint32_t mark) override;
  bool looksLate() const override { return true; }
  bool keep(const Prepared &instruction, uint64_t at) override;
  bool finishKept() override { return finish(); }
  const void *kept(uint64_t at) const override { return keeping.place + at; }
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
  /// Fails the run if the program has FP8 matmuls and the device does not support them.
  bool canMultiply() const;
  /// Fails the run unless the device has the memory that the rank needs, less the memory that the
  /// executor has already taken.
  bool hasMemory(bool isLoaded) const;
  /// Returns the bytes of free device memory that the run is predicted to take.
  uint64_t neededBytes(bool isLoaded) const;
  /// Allocates the progress words of the streams (see `words`).
  bool watchStreams();
  uint32_t *wordOf(Stream on) const {
    return reinterpret_cast<uint32_t *>(words.place) + size_t(on);
  }
  bool enqueueMark(Stream on, uint32_t mark) const;
  /// Returns true if a monitor watches the progress words, and work is enqueued that they have not
  /// reached.
  bool isBusy() const;
  /// Loads the kernels and takes all device memory that they need: for code, for variables of
  /// modules, and for the threads' local memory.
  bool loadKernels();
  bool loadEntries(size_t kernel, uint64_t &localBytes);
  const DeviceImage *chooseImage() const;
  void countOperands();
  bool prepareAttention();
  bool makeStreams();
  Handle handleOf(Stream on) const { return on == Stream::Compute || !side ? stream : side; }
  bool prepareCollectives();
  /// Runs each operation once that is slow or allocates memory at its first run. The arena is zero
  /// before and after it.
  bool warmUp();
  bool warmUpCollectives();
  /// Returns the bytes of views that the program's sections use while they run.
  uint64_t viewedBytes() const;
  bool sendCoordinates();
  bool prepareCopies();
  /// Grows `pinned` to at least `bytes`.
  bool grow(Pinned &pinned, uint64_t bytes);
  /// Waits until the compute stream has done all enqueued work.
  bool finish();
  std::span<char> lend(uint64_t bytes, bool &isGood);
  /// Returns true if `result` is a success; else fails the run.
  bool check(DriverTable::Result result) const;
  /// Returns the instructions that are being issued, and those that each stream has come to, where
  /// an error of enqueued work is: "in ..., having come to ...". Empty if there are none.
  std::string placeText() const;

  const DriverTable &library;
  const int64_t number;
  const std::span<const DeviceImage> images;
  const CudaOptions options;
  /// True if the ranks' devices communicate.
  const bool communicates;
  bool isEnded = false;
  CudaAttention attention;
  DeviceClock clock;
  DeviceFacts facts = {};
  std::thread::id owner;
  Handle device = 0, stream = 0, done = 0, module = 0;
  /// The communication stream (0 if unused), and the events that order instructions across streams.
  Handle side = 0;
  std::vector<Handle> events;
  Address arena = 0, place = 0;
  std::vector<Entries> entries;
  std::vector<Handle> matmuls;
  std::optional<DeviceCollectives> collectives;
  /// The arguments of one launch.
  std::vector<uint64_t> arguments;
  /// The memory of the view or draft that is lent now.
  Pinned lent;
  /// True while the device still copies from `lent`.
  bool isLentUnderWay = false;
  InputStage stage;
  /// Values of observations that the host reads later.
  Pinned keeping;
  CudaGraphs graphs;
  static constexpr uint64_t kWordBytes = kStreams * sizeof(uint32_t);
  /// By stream, the last progress mark that it has passed, and the monitor's line for it, or null.
  Pinned words;
  std::array<Monitor::Line *, kStreams> lines = {};
  /// Memory to lend after the device has failed.
  std::vector<char> lost;
  /// The range of the draft that is lent; 0 bytes if the device has failed.
  struct Drafted {
    uint32_t buffer = 0;
    uint64_t begin = 0, bytes = 0;
    bool isInput = false;
  };
  Drafted drafted;
};

} // namespace weft::rt::cuda

#endif // WEFT_RT_BACKENDS_CUDA_CUDAEXECUTOR_H
