//===- Executor.h - runs one rank's program ---------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An Executor runs the program's sections on one rank's device. The base
// class has the parts that all devices share: the order of instructions, the
// division of kernels, the call sites of collectives, and the decisions that
// observed values make. Each kind of device has a derived class, as HostExecutor,
// that owns the arena's memory and executes single instructions.
//
// `prepare` looks up everything that instructions need (addresses, arguments,
// prepared collectives) once for each body and frame; running a section then allocates
// nothing.
// Instructions are issued in the order of the section's expansion, by which they are
// numbered here; on devices with concurrent streams `Instruction` defines the order. A device may
// still work on a section whose run has returned: views wait for the values that they show, drafts
// for pending reads of the values that they replace.
//
// An asynchronous device stores observed values in host memory, and the host reads
// them all at the last Observe of a section that decides whether the run goes on. A
// device that can record instructions and launch them together gets all
// instructions between two such reads at once.
//
// An Executor belongs to its rank's thread: after `prepare`, only that thread calls
// it, and only while the communicator lives. Any failure, of the device or of
// another rank, goes to the communicator; the section that runs then returns
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
#include "support/TestDelays.h"
#include "weft-rt/Backend.h"
#include "weft-rt/Expansion.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace weft::rt {

/// Receives the values that the program observes, on every rank, in the rank's thread.
class Observer {
public:
  virtual ~Observer() = default;

  /// Returns true if `observe` should get this step's value. If buffers are not in host memory,
  /// this costs a copy and a wait for the device. Scalars that decide whether the run goes on, and
  /// observations with a limit, come in any case.
  virtual bool wants(int64_t /*rank*/, uint32_t /*observation*/) { return true; }

  /// Receives the rank's shard of `program.observations[observation]`; `data` is valid during the
  /// call.
  virtual void observe(int64_t rank, uint32_t observation, const void *data) = 0;
};

/// How a section ended.
enum class Outcome : uint8_t {
  Done,
  /// This rank or another has failed; the communicator has the reason.
  Stopped,
  /// The loss, the gradient norm or the validation loss is not finite on some rank. All ranks have
  /// stopped where they agree, at instruction `stoppedAt`.
  NotFinite,
  /// An observation was above its limit on some rank. All ranks have stopped where they agree.
  Overflow,
};

/// Numbers the instructions of a body that others wait for, from 0; the others get `kNoEvent`.
/// Bodies may share events, because all streams join at the beginning and end of each action.
inline constexpr uint32_t kNoEvent = ~uint32_t(0);
std::vector<uint32_t> numberEvents(const std::vector<Instruction> &body);

class Executor {
public:
  virtual ~Executor() = default;

  /// Returns the bytes of host memory that the executor will take; may be called before `prepare`.
  virtual uint64_t hostBytes() const = 0;

  /// Allocates the arena, filled with zeros, and prepares every instruction. Call it once, on the
  /// rank's own thread, so that the memory lies near its core. On failure tells the communicator
  /// and returns false.
  bool prepare(Communicator &communicator, Observer &observer);

  /// Releases the resources that ranks share. Call it last, on the rank's own thread, after a run
  /// without failure. Reports failures to the communicator.
  virtual void end() {}

  Outcome runInit() { return runSection(initCode); }
  Outcome runStep() { return runSection(stepCode, times); }
  Outcome runEvaluate() { return runSection(evaluateCode); }

  /// Records the times of the following steps in `times`, which must outlive this object; null
  /// stops recording.
  void measure(StepTimes *times) { this->times = times; }
  /// Returns a remark on recorded times besides that the host measured them: ", ..." or "".
  virtual const char *noteOfTimes() const { return ""; }
  /// Returns a line on the present use of the device's memory; empty if that is the host's.
  virtual std::string noteOfMemory() const { return ""; }

  /// Runs collectives in line with computation, also those on the communication stream. The bits
  /// are the same. Call it before `prepare`.
  void keepInLine() { isInLine = true; }
  /// Makes the rank's thread sleep at random before instructions, for tests.
  void shake(const TestDelays &delays) { shaker.emplace(delays, self, /*thread=*/0); }

  /// Makes the device report its progress to `monitor`, which must outlive this object. Call it
  /// before `prepare`.
  void watch(Monitor *monitor) { watcher = monitor; }

  /// Runs instruction `number` of the step.
  Outcome runStepInstruction(size_t number);

  /// Returns the number of the Agree instruction at which a step ended with NotFinite.
  size_t stoppedAt() const { return notFiniteAt; }

  /// Returns the overflow that this rank found in the section that ran last, if any.
  const std::optional<Overflow> &overflow() const { return beyond; }

  /// Return access to the present bytes `begin` to `begin + count - 1` of a buffer, in frame
  /// `frame` if it is framed; there are no drafts of framed ones. If the device fails to copy, it
  /// tells the communicator, the content is unspecified, and the rank's next collective returns
  /// false.
  virtual BufferView view(uint32_t buffer, uint32_t frame, uint64_t begin,
                          uint64_t count) const = 0;
  virtual BufferDraft draft(uint32_t buffer, uint64_t begin, uint64_t count) = 0;
  virtual void zero(uint32_t buffer) = 0;

  BufferView view(uint32_t buffer, uint64_t begin, uint64_t count) const {
    return view(buffer, 0, begin, count);
  }
  /// Return access to the whole buffer.
  BufferView view(uint32_t buffer, uint32_t frame = 0) const {
    return view(buffer, frame, 0, program.buffers[buffer].bytes);
  }
  BufferDraft draft(uint32_t buffer) { return draft(buffer, 0, program.buffers[buffer].bytes); }

  /// Copies `bytes` into a buffer, starting at byte `begin`.
  void write(uint32_t buffer, uint64_t begin, std::span<const char> bytes);

  int64_t rank() const { return self; }
  const std::string &planHash() const { return program.planHash; }
  std::span<const int64_t> coordinates() const { return place; }
  Communicator &communicator() const { return *link; }

protected:
  /// An instruction with everything looked up.
  struct Prepared {
    Opcode opcode = Opcode::Kernel;
    Stream stream = Stream::Compute;
    /// The event that this instruction records, and the events that it waits for; see
    /// `numberEvents`.
    uint32_t event = kNoEvent;
    std::span<const uint32_t> waits;
    /// The number of the matmul, collective or observation.
    uint32_t target = 0;
    Communicator::Handle handle = 0;
    const KernelCode *kernel = nullptr;
    /// For Kernel: the division of each phase's iterations among threads, in `cuts`.
    const Cut *cuts = nullptr;
    /// The addresses of the operands, in `addresses`.
    void *const *operands = nullptr;
    /// The numbers that a kernel gets from the action that runs, in `immediates`.
    const int64_t *immediates = nullptr;
    const Instruction *instruction = nullptr;
    /// For Observe: the buffer with the value and its frame, and whether the run ends if it is not
    /// finite.
    uint32_t buffer = 0, frame = 0;
    bool mustBeFinite = false;
    /// For Observe: whether the value has a limit.
    bool hasLimit = false;
    /// For Observe: whether the host reads the value even if no Observer wants it, and if so,
    /// whether only when ranks agree to go on.
    bool isSeen = false, isLate = false;
  };

  /// The operand and the result of a collective; null where a transfer has none.
  struct Ends {
    void *operand = nullptr, *result = nullptr;
  };
  static Ends endsOf(const Prepared &collective);
  /// Returns the operand of a collective that it only reads, or that it writes; null if it has
  /// none.
  static const Operand *endOf(const Instruction &collective, Access access);

  /// `program`, which must be well-formed, and `kernels` must outlive this object; `kernels[i]` is
  /// the code of `program.kernels[i]`.
  Executor(const Program &program, const KernelCode *kernels, int64_t rank);

  /// Allocates `program.arenaBytes` of the device's memory, filled with zeros, after preparing all
  /// that must come first. Returns false on failure; the communicator then knows the reason, unless
  /// memory is short: then the caller reports that.
  virtual bool allocateArena() = 0;
  /// Prepares all else that the device needs to run instructions; called after `allocateArena`. On
  /// failure tells the communicator and returns false.
  virtual bool prepareDevice() = 0;
  virtual Communicator::Handle prepareCollective(const Collective &collective,
                                                 const CallSite &site) = 0;

  /// Returns the instructions that are being issued, for reports: "step instruction 3 (matmul
  /// ..., layers.0.mlp)". Empty outside of sections.
  std::string position() const { return textOf(program, issuing); }
  void setPosition(const InstructionRange &range) { issuing = range; }

  const KernelCode &codeOf(size_t kernel) const { return kernels[kernel]; }

  /// Returns true if collectives of a step run beside computation.
  bool overlaps() const;

  /// Returns the device's address of a buffer, in frame `frame` if it is framed, for the device's
  /// code; constant for the whole run.
  virtual void *address(uint32_t buffer, uint32_t frame) const = 0;

  /// For devices with several streams, and hosts. `forkStreams` makes the other streams wait for
  /// all work so far on the compute stream; `joinStreams` makes the compute stream wait for all of
  /// theirs. On failure tell the communicator and return false.
  virtual bool forkStreams() { return true; }
  virtual bool joinStreams() { return true; }
  /// Makes all later work on the instruction's stream wait for the events that the instruction
  /// waits for.
  virtual bool waitForEvents(const Prepared &) { return true; }
  /// Records the instruction's event after all work so far on its stream.
  virtual bool recordEvent(const Prepared &) { return true; }

  /// An asynchronous device may measure the times of steps itself (`takesTimes`). It then learns
  /// when a step begins and when each instruction was issued; at the end, `recordTimes` waits for
  /// all work and records the times. On failure they tell the communicator and return false.
  virtual bool takesTimes() const { return false; }
  virtual bool beginTimes() { return true; }
  virtual bool lapTimes(size_t /*index*/) { return true; }
  virtual bool recordTimes(StepTimes &) { return true; }

  /// Run one instruction. The results of earlier instructions are available to it.
  virtual Outcome runKernel(const Prepared &instruction) = 0;
  virtual Outcome runMatmul(const Prepared &instruction) = 0;
  virtual Outcome runCollective(const Prepared &instruction) = 0;
  /// Makes the device report that it has reached `mark`, which follows the instruction. On failure
  /// tells the communicator and returns false.
  virtual bool passMark(const Prepared &, uint32_t /*mark*/) { return true; }

  /// Returns true if reading a value means waiting for the device.
  virtual bool looksLate() const { return false; }
  /// For such devices: begins to copy an Observe's value to byte `at` of host memory; `finishKept`
  /// waits for these copies, and then `kept` finds the value. On failure `keep` and `finishKept`
  /// tell the communicator and return false.
  virtual bool keep(const Prepared &, uint64_t /*at*/) { return true; }
  virtual bool finishKept() { return true; }
  virtual const void *kept(uint64_t /*at*/) const { return nullptr; }
  /// Returns the bytes of that memory.
  static uint64_t keptBytes(const Program &program);

  /// For devices that record instructions to launch them together (`recordsParts`). `launchPart`
  /// launches the instructions between `beginRecording` and `endRecording`, any number of times, by
  /// the number passed to `endRecording`. On failure they tell the communicator and return false.
  virtual bool recordsParts() const { return false; }
  virtual bool beginRecording() { return true; }
  virtual bool endRecording(size_t) { return true; }
  /// Discards an unfinished recording.
  virtual void dropRecording() {}
  virtual bool launchPart(size_t) { return true; }

  /// Returns the monitor, or null.
  Monitor *monitor() const { return watcher; }

  const Program &program;

private:
  void reserve();
  uint64_t operandBytes(const Instruction &instruction) const;
  void appendCuts(const KernelCode &kernel, bool isSmall);
  /// An immediate that depends on the micro-batch: its place, and what is added to the number.
  struct Moving {
    int64_t *place = nullptr;
    int64_t added = 0;
  };
  struct PreparedBody {
    std::vector<Prepared> code = {};
    std::vector<Moving> moving = {};
    bool usesStreams = false;
  };
  /// An Observe whose value the host reads when ranks agree, and where the value is kept.
  struct Late {
    const Prepared *prepared = nullptr;
    uint64_t at = 0;
  };
  /// Instructions `begin` to `end - 1`. After them the host reads a value, or the section ends.
  struct Part {
    size_t begin = 0, end = 0, number = 0;
    std::vector<Late> late = {};
  };
  struct Section {
    const char *name = "";
    const std::vector<Action> *actions = nullptr;
    Expansion instructions = {};
    /// The progress mark after each instruction, 0 for none; empty without a monitor.
    std::vector<uint32_t> marks = {};
    /// Empty if the device records nothing.
    std::vector<Part> parts = {};

    uint32_t markAfter(size_t number) const { return marks.empty() ? 0 : marks[number]; }
  };
  /// An instruction of a section.
  struct Place {
    size_t number = 0, action = 0;
    const Prepared *prepared = nullptr;
  };

  void prepareBodies();
  void prepareBody(uint32_t number, std::span<const FrameUse> frames,
                   const std::vector<bool> &areLate, PreparedBody &body);
  const PreparedBody &bodyOf(const Action &action) const {
    return bodies[action.body].at(action.frames);
  }
  Prepared prepareInstruction(const Instruction &instruction, std::span<const FrameUse> frames,
                              PreparedBody &body);
  Section prepareSection(const char *name, const std::vector<Action> &actions);
  Place placeOf(const Section &section, size_t number) const;
  /// Goes to the next instruction; at the end `prepared` is null.
  void advance(const Section &section, Place &place) const;
  bool beginAction(const Section &section, const Place &place);
  void setMicroBatch(const Action &action);
  void prepareObserve(const Instruction &instruction, std::span<const FrameUse> frames,
                      Prepared &prepared) const;
  bool record(Section &section);
  bool recordParts(Section &section);
  /// Runs a section. Records the times of its instructions in `times` unless that is null.
  Outcome runSection(const Section &section, StepTimes *times = nullptr);
  bool lap(size_t index, StepTimes *times);
  Outcome runEach(const Section &section, StepTimes *times);
  Outcome runParts(const Section &section, StepTimes *times);
  /// Returns true if an Observer wants a value that the host does not read otherwise.
  bool isMoreWanted(const Section &section) const;
  void setPosition(const Section &section, size_t first, size_t last);
  Outcome execute(const Section &section, const Place &place);
  Outcome dispatch(const Prepared &instruction);
  Outcome observe(const Prepared &instruction);
  void forgetLate();
  /// Looks at an observed value, unless one before it was not finite.
  void look(const Prepared &instruction, const void *data);
  /// Takes the maximum of all ranks' outcomes of the section.
  Outcome agree();

  const KernelCode *const kernels;
  const int64_t self;
  const std::vector<int64_t> place;
  Communicator *link = nullptr;
  Observer *observer = nullptr;
  StepTimes *times = nullptr;
  Monitor *watcher = nullptr;
  bool isInLine = false;
  std::optional<Shaker> shaker;

  /// The operand addresses of all instructions. Never grows after `prepare` has reserved it,
  /// because instructions point into it.
  std::vector<void *> addresses;
  /// The events that instructions wait for; never grows either.
  std::vector<uint32_t> waits;
  /// The cuts of all kernels' phases; never grows either.
  std::vector<Cut> cuts;
  /// All immediates; never grows either.
  std::vector<int64_t> immediates;
  /// Of each body of the program, one for each list of frames with which an action runs it.
  std::vector<std::map<std::vector<FrameUse>, PreparedBody>> bodies;
  Section initCode, stepCode, evaluateCode;
  /// The number of parts so far, and whether one is being recorded.
  size_t partCount = 0;
  bool isRecording = false;
  /// Values that are kept but not read yet, and the bytes that they take.
  std::vector<Late> late;
  uint64_t lateBytes = 0;
  /// The collective by which ranks agree.
  Communicator::Handle agreement = 0;
  /// Of the values that this rank has looked at in the section.
  std::optional<Overflow> beyond;
  bool areFinite = true;
  size_t notFiniteAt = 0;
  InstructionRange issuing;
};

/// Makes the executor of one rank of this process, with `threads` threads.
using MakeExecutor = std::function<std::unique_ptr<Executor>(
    const Program &program, const KernelCode *kernels, int64_t rank, int64_t threads)>;

} // namespace weft::rt

#endif // WEFT_RT_EXECUTION_EXECUTOR_H
