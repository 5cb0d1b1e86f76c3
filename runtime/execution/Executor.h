//===- Executor.h - runs one rank's program ---------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An Executor walks the program's instruction lists on one rank's device. What the
// table alone says is here, once for all devices: in which order instructions are
// run, how kernels are cut, which collective is called from where, what a value that
// is observed decides. A kind of device is a class of its own, HostExecutor for one,
// that owns the memory of the arena and does the work of an instruction.
//
// All that an instruction needs (addresses, arguments, prepared collectives) is put
// in place by `prepare`; running a section then allocates nothing. Instructions are
// issued in the order of their lists; on a device with streams, which run beside one
// another, they are ordered as `Instruction` says. A device may be
// still at work on a section that has been run: views wait for what they show, and
// drafts for what still reads what they replace.
//
// A device that the host would have to wait for keeps what is observed in memory of the
// host, and the host looks at all of it at once, at the last Observe of a section that
// decides whether the run goes on. One that can put instructions down and launch them
// together is given all between two places where the host looks.
//
// An Executor belongs to its rank's thread: only that thread calls it, after
// `prepare` and as long as the communicator lives. Whatever fails, on the device or
// in another rank, the communicator knows; a section that is run then ends with
// Stopped.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_EXECUTION_EXECUTOR_H
#define WEFT_RT_EXECUTION_EXECUTOR_H

#include "execution/BufferView.h"
#include "execution/Monitor.h"
#include "execution/Overflow.h"
#include "execution/StepTimes.h"
#include "execution/Team.h"
#include "weft-rt/Backend.h"
#include "weft-rt/Program.h"

#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace weft::rt {

/// Gets what the program observes, on every rank, in the rank's thread.
class Observer {
public:
  virtual ~Observer() = default;

  /// Whether this step's value is to be brought: where buffers are not in host memory that is a
  /// copy, for which the device has to come to an end of its work. Scalars that decide if the run
  /// goes on, and what has a limit, are brought in any case.
  virtual bool wants(int64_t /*rank*/, uint32_t /*observation*/) { return true; }

  /// `data` is the rank's shard of `program.observations[observation]`, until this returns.
  virtual void observe(int64_t rank, uint32_t observation, const void *data) = 0;
};

/// How a section ended.
enum class Outcome : uint8_t {
  Done,
  /// This rank or another has failed; the communicator knows why.
  Stopped,
  /// On some rank the loss, the gradient norm or the validation loss is not finite. All ranks stand
  /// behind the same Observe instruction, `stoppedAt`.
  NotFinite,
  /// On some rank an observation was above its limit. All ranks stand behind the same Observe
  /// instruction of a scalar that must be finite, which comes after.
  Overflow,
};

/// Numbers those instructions of a section that others wait for, from 0; the rest have `kNoEvent`.
/// Sections may share events, as they begin and end with all streams together.
inline constexpr uint32_t kNoEvent = ~uint32_t(0);
std::vector<uint32_t> numberEvents(const std::vector<Instruction> &section);

class Executor {
public:
  virtual ~Executor() = default;

  /// Bytes of this machine's memory that it will take: known before `prepare`.
  virtual uint64_t hostBytes() const = 0;

  /// Allocates the arena, all zero, and prepares every instruction. To be called once,
  /// by the rank's own thread, so that memory comes from near its core. On failure
  /// tells the communicator and returns false.
  bool prepare(Communicator &communicator, Observer &observer);

  /// To be called last, by the rank's own thread, after a run that has gone well: gives back what
  /// ranks have in common. On failure tells the communicator.
  virtual void end() {}

  Outcome runInit() { return runSection(initCode); }
  Outcome runStep() { return runSection(stepCode, times); }
  Outcome runEvaluate() { return runSection(evaluateCode); }

  /// From now on keeps the times of steps in `times`, which must outlive this object; null for
  /// not.
  void measure(StepTimes *times) { this->times = times; }
  /// What is to be known of them, beside that they are the host's: ", ..." or nothing.
  virtual const char *noteOfTimes() const { return ""; }
  /// What the device's memory is taken for now, as a line; empty where that is the host's.
  virtual std::string noteOfMemory() const { return ""; }

  /// To be called before `prepare`: lets the device tell `monitor`, which must outlive this object,
  /// how far it has come.
  void watch(Monitor *monitor) { watcher = monitor; }

  /// Runs one instruction of the step.
  Outcome runStepInstruction(size_t index);

  /// The Observe instruction at which a step ended with NotFinite.
  size_t stoppedAt() const { return notFiniteAt; }

  /// What this rank has to tell of limits in the section that ran last.
  const std::optional<Overflow> &overflow() const { return beyond; }

  /// Bytes `begin` to before `begin + count` of a buffer as they are now. If a device fails to copy
  /// them, it has told the communicator, and what a view shows, or a draft changes, is unspecified:
  /// the rank's next collective returns false.
  virtual BufferView view(uint32_t buffer, uint64_t begin, uint64_t count) const = 0;
  virtual BufferDraft draft(uint32_t buffer, uint64_t begin, uint64_t count) = 0;
  virtual void zero(uint32_t buffer) = 0;

  /// The whole buffer.
  BufferView view(uint32_t buffer) const { return view(buffer, 0, program.buffers[buffer].bytes); }
  BufferDraft draft(uint32_t buffer) { return draft(buffer, 0, program.buffers[buffer].bytes); }

  /// Copies `bytes` into a buffer, from its byte `begin` on.
  void write(uint32_t buffer, uint64_t begin, std::span<const char> bytes);

  int64_t rank() const { return self; }
  std::span<const int64_t> coordinates() const { return place; }
  Communicator &communicator() const { return *link; }

protected:
  /// An instruction with everything looked up.
  struct Prepared {
    Opcode opcode = Opcode::Kernel;
    Stream stream = Stream::Compute;
    /// Its own event, if others wait for it, and those that it waits for; see `numberEvents`.
    uint32_t event = kNoEvent;
    std::span<const uint32_t> waits;
    /// Matmul, collective or observation number.
    uint32_t target = 0;
    Communicator::Handle handle = 0;
    const KernelCode *kernel = nullptr;
    /// For Kernel: how the iterations of each phase are cut for threads, in `cuts`.
    const Cut *cuts = nullptr;
    /// Addresses of the operands, in `addresses`.
    void *const *operands = nullptr;
    const int64_t *immediates = nullptr;
    /// For Observe: where the value is, and whether it decides if the run goes on.
    uint32_t buffer = 0;
    bool mustBeFinite = false;
    /// Likewise: whether it has a limit.
    bool hasLimit = false;
    /// Likewise: whether the host looks at it, though nobody may want it, and if so only at a later
    /// Observe.
    bool isSeen = false, isLate = false;
    /// The mark behind it; 0 for none.
    uint32_t mark = 0;
  };

  /// `program` and `kernels` must outlive this object; `kernels[i]` is the code of
  /// `program.kernels[i]`. The program must be well-formed.
  Executor(const Program &program, const KernelCode *kernels, int64_t rank);

  /// Has `program.arenaBytes` of the device's memory, all zero, and what has to be made ready
  /// before that is taken. False if something fails, of which the communicator is told, or if there
  /// are not so many, which the caller tells if nothing was told.
  virtual bool allocateArena() = 0;
  /// Makes ready what else the device runs instructions by; comes after the arena. On failure tells
  /// the communicator and returns false.
  virtual bool prepareDevice() = 0;
  virtual Communicator::Handle prepareCollective(const Collective &collective,
                                                 const CallSite &site) = 0;

  const KernelCode &codeOf(size_t kernel) const { return kernels[kernel]; }

  /// Where the device has a buffer, for its own code; the same for the whole run.
  virtual void *address(uint32_t buffer) const = 0;

  /// For devices with several streams. Those beside the compute stream go on behind what that one
  /// was given so far; it goes on behind all of theirs. On failure false; the communicator knows.
  virtual bool forkStreams() { return true; }
  virtual bool joinStreams() { return true; }
  /// What the instruction's stream is given from now on comes after the events that it waits for.
  virtual bool waitForEvents(const Prepared &) { return true; }
  /// Its event comes after what its stream was given so far.
  virtual bool recordEvent(const Prepared &) { return true; }

  /// A device that works behind the host may take the times of steps itself. It is then told when a
  /// step begins, and when an instruction was issued; at the end it waits until all is done, and
  /// records what it took. On failure false; the communicator knows.
  virtual bool takesTimes() const { return false; }
  virtual bool beginTimes() { return true; }
  virtual bool lapTimes(size_t /*index*/) { return true; }
  virtual bool recordTimes(StepTimes &) { return true; }

  /// Run one instruction: what those before it have written is there, wherever they still are.
  virtual Outcome runKernel(const Prepared &instruction) = 0;
  virtual Outcome runMatmul(const Prepared &instruction) = 0;
  virtual Outcome runCollective(const Prepared &instruction) = 0;
  /// Lets the device tell that it has come to the mark of an instruction that was run. Returns
  /// false where it cannot, and the communicator knows.
  virtual bool passMark(const Prepared &) { return true; }

  /// Whether looking at a value means to wait for the device.
  virtual bool looksLate() const { return false; }
  /// For such devices: lets an Observe's value be copied to where `kept` finds it after a view that
  /// comes later. On failure false; the communicator knows.
  virtual bool keep(const Prepared &) { return true; }
  virtual const void *kept(const Prepared &) const { return nullptr; }

  /// For devices that put instructions down, to launch them together: whether this one is to. What
  /// comes between the next two is launched by the number that `endRecording` is given, any number
  /// of times. On failure false; the communicator knows.
  virtual bool recordsParts() const { return false; }
  virtual bool beginRecording() { return true; }
  virtual bool endRecording(size_t) { return true; }
  /// Forgets what was put down since, if that is not ended.
  virtual void dropRecording() {}
  virtual bool launchPart(size_t) { return true; }

  /// May be null.
  Monitor *monitor() const { return watcher; }

  const Program &program;

private:
  void reserve();
  uint64_t operandBytes(const Instruction &instruction) const;
  void appendCuts(const KernelCode &kernel, bool isSmall);
  /// Instructions from `begin` to before `end`, behind which the host looks or the section ends.
  struct Part {
    size_t begin = 0, end = 0, number = 0;
  };
  struct Section {
    std::vector<Prepared> code = {};
    /// Empty where nothing is recorded.
    std::vector<Part> parts = {};
  };

  Section prepareSection(const char *section, const std::vector<Instruction> &instructions);
  void prepareObserve(const Instruction &instruction, Prepared &prepared) const;
  bool record(Section &section);
  bool recordParts(Section &section);
  /// Keeps the times of a step in `times`, unless that is null.
  Outcome runSection(const Section &section, StepTimes *times = nullptr);
  bool lap(size_t index, StepTimes *times);
  Outcome runEach(const Section &section, StepTimes *times);
  Outcome runParts(const Section &section, StepTimes *times);
  /// Whether somebody wants to see what the host does not look at otherwise.
  bool isMoreWanted(const Section &section) const;
  Outcome execute(const Prepared &instruction);
  Outcome dispatch(const Prepared &instruction);
  Outcome observe(const Prepared &instruction);
  /// Returns whether it is finite, if that matters.
  bool look(const Prepared &instruction, const void *data);

  const KernelCode *const kernels;
  const int64_t self;
  const std::vector<int64_t> place;
  Communicator *link = nullptr;
  Observer *observer = nullptr;
  StepTimes *times = nullptr;
  Monitor *watcher = nullptr;

  /// Operand addresses of all instructions, one after another. Never grows after `prepare`
  /// has reserved it, since instructions point into it.
  std::vector<void *> addresses;
  /// Events that instructions wait for, likewise.
  std::vector<uint32_t> waits;
  /// The cuts of all kernels' phases, likewise.
  std::vector<Cut> cuts;
  Section initCode, stepCode, evaluateCode;
  /// Parts so far, and whether one is being recorded.
  size_t partCount = 0;
  bool isRecording = false;
  /// Observe instructions whose values are kept and not looked at yet.
  std::vector<const Prepared *> late;
  /// A maximum over all ranks of how their sections end.
  Communicator::Handle agree = 0;
  std::optional<Overflow> beyond;
  size_t notFiniteAt = 0;
};

/// Makes what runs the program on a rank of this process, with so many threads for it.
using MakeExecutor = std::function<std::unique_ptr<Executor>(
    const Program &program, const KernelCode *kernels, int64_t rank, int64_t threads)>;

} // namespace weft::rt

#endif // WEFT_RT_EXECUTION_EXECUTOR_H
