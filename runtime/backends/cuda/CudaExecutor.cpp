//===- CudaExecutor.cpp - runs one rank's program on a device --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/CudaExecutor.h"

#include "backends/cuda/Check.h"
#include "backends/cuda/PrepareMatmuls.h"
#include "program/ProgramCheck.h"
#include "support/Text.h"

#include <algorithm>
#include <cstdio>

using namespace weft::rt;
using namespace weft::rt::cuda;

/// The blocks of one launch for each multiprocessor; enough to keep all busy while the last ones
/// end.
static constexpr uint64_t kBlocksEach = 16;

CudaExecutor::CudaExecutor(const Program &program, const KernelCode *kernels, int64_t rank,
                           const DriverTable &library, int64_t device,
                           std::span<const DeviceImage> images, const CudaOptions &options)
    : Executor(program, kernels, rank), library(library), number(device), images(images),
      options(options), communicates(program.communicates()), attention(program, library),
      clock(library), stage(program, library), graphs(library) {}

CudaExecutor::~CudaExecutor() {
  // If devices may still wait for each other, free nothing: a call that frees may wait too, and the
  // process ends soon.
  if (!device || std::this_thread::get_id() != owner || (communicates && !isEnded)) {
    return;
  }
  // Errors here were reported before.
  library.unseal(device);
  for (Handle which : {stream, side}) {
    if (done && which) {
      library.record(device, done, which);
      library.await(device, done);
    }
  }
  (void)graphs.free(device);
  stage.free(device);
  for (Handle matmul : matmuls) {
    if (matmul) { // The last one may have failed.
      library.freeMatmul(device, matmul);
    }
  }
  attention.free(device);
  clock.free();
  if (arena) {
    communicates ? library.freeShared(device, arena) : library.free(device, arena);
  }
  if (place) {
    library.free(device, place);
  }
  for (const Pinned &pinned : {lent, keeping, words}) {
    if (pinned.place) {
      library.freePinned(device, pinned.place);
    }
  }
  if (module) {
    library.unload(device, module);
  }
  events.push_back(done);
  for (Handle event : events) {
    if (event) {
      library.freeEvent(device, event);
    }
  }
  for (Handle which : {stream, side}) {
    if (which) {
      library.freeStream(device, which);
    }
  }
  library.close(device);
}

bool CudaExecutor::check(DriverTable::Result result) const {
  return cuda::check(library, number, communicator(), result, [this] { return placeText(); });
}

std::string CudaExecutor::placeText() const {
  std::string issuing = position();
  std::string text = issuing.empty() ? "" : "in " + issuing;
  for (const Monitor::Line *line : lines) {
    Monitor::Place reached = line ? line->place() : Monitor::Place();
    if (!reached.isIdle()) {
      text += concat(text.empty() ? "having come to " : ", having come to ",
                     monitor()->marks().describe(reached.mark));
    }
  }
  return text;
}

uint64_t CudaExecutor::viewedBytes() const {
  uint64_t observed = 8;
  for (const Body &body : program.bodies) {
    for (const Instruction &instruction : body.instructions) {
      if (instruction.opcode == Opcode::Observe &&
          (decidesRun(program.observations[instruction.target]) ||
           program.observations[instruction.target].limit > 0)) {
        observed = std::max(observed, program.buffers[instruction.operands[0].buffer].bytes);
      }
    }
  }
  return observed;
}

uint64_t CudaExecutor::hostBytes() const {
  return viewedBytes() + keptBytes(program) + kWordBytes + stage.hostBytes();
}

bool CudaExecutor::prepareCopies() {
  if (!grow(lent, viewedBytes()) || !grow(keeping, keptBytes(program)) ||
      !check(stage.prepare(device))) {
    return false;
  }
  return stage.isReady() ||
         communicator().fail(concat("rank ", rank(), " cannot allocate ",
                                    bytesText(stage.hostBytes()), " of host memory and ",
                                    bytesText(program.stagedBytes()), " of device ", number,
                                    " for its inputs"),
                             ExitCode::OutOfMemory);
}

bool CudaExecutor::keep(const Prepared &instruction, uint64_t at) {
  return check(library.copyToHost(device, stream, keeping.place + at,
                                  addressOf(address(instruction.buffer, instruction.frame)),
                                  program.buffers[instruction.buffer].bytes));
}

bool CudaExecutor::sendCoordinates() {
  // Kernels take an address even if the mesh has no axes.
  uint64_t bytes = std::max<size_t>(coordinates().size(), 1) * sizeof(int64_t);
  if (!grow(lent, bytes) || !check(library.allocate(device, bytes, &place)) || !place) {
    return communicator().fail(concat("rank ", rank(), " cannot allocate ", bytesText(bytes)),
                               ExitCode::OutOfMemory);
  }
  std::copy(coordinates().begin(), coordinates().end(), reinterpret_cast<int64_t *>(lent.place));
  return check(library.copyToDevice(device, stream, place, lent.place, bytes)) && finish();
}

bool CudaExecutor::grow(Pinned &pinned, uint64_t bytes) {
  if (bytes <= pinned.bytes) {
    return true;
  }
  if (pinned.place && !check(library.freePinned(device, pinned.place))) {
    return false;
  }
  void *made = nullptr;
  pinned = {};
  if (!check(library.allocatePinned(device, bytes, &made))) {
    return false;
  }
  if (!made) {
    return communicator().fail(concat("rank ", rank(), " cannot allocate ", bytesText(bytes),
                                      " of host memory that its device reaches"),
                               ExitCode::OutOfMemory);
  }
  pinned = {static_cast<char *>(made), bytes};
  return true;
}

bool CudaExecutor::watchStreams() {
  if (!monitor()) {
    return true;
  }
  if (!grow(words, kWordBytes)) {
    return false;
  }
  for (size_t i = 0; i < (side ? kStreams : 1); ++i) {
    lines[i] = &monitor()->addLine(rank(), new (wordOf(Stream(i))) uint32_t(0));
  }
  return true;
}

bool CudaExecutor::forkStreams() {
  return !side ||
         (check(library.record(device, done, stream)) && check(library.wait(device, side, done)));
}

bool CudaExecutor::joinStreams() {
  return !side ||
         (check(library.record(device, done, side)) && check(library.wait(device, stream, done)));
}

bool CudaExecutor::waitForEvents(const Prepared &instruction) {
  return std::all_of(instruction.waits.begin(), instruction.waits.end(), [&](uint32_t event) {
    return (graphs.isRecording() && !graphs.hasEvent(event)) ||
           check(library.wait(device, handleOf(instruction.stream), events[event]));
  });
}

bool CudaExecutor::beginRecording() {
  return check(library.unseal(device)) && check(graphs.begin(device, stream)) && forkStreams();
}

bool CudaExecutor::endRecording(size_t number) {
  return joinStreams() && check(graphs.end(device, stream, number)) && check(library.seal(device));
}

bool CudaExecutor::launchPart(size_t number) {
  for (auto [on, mark] : graphs.marks(number)) {
    lines[size_t(on)]->issue(mark); // The graph counts the words up.
  }
  return check(graphs.launch(device, stream, number));
}

bool CudaExecutor::recordEvent(const Prepared &instruction) {
  if (graphs.isRecording()) {
    graphs.noteEvent(instruction.event);
  }
  return check(library.record(device, events[instruction.event], handleOf(instruction.stream)));
}

const char *CudaExecutor::noteOfTimes() const {
  return options.takesTimes ? ", by the devices' clocks, one after another"
                            : ", until it was issued: --profile asks the devices";
}

std::string CudaExecutor::noteOfMemory() const {
  uint64_t unused = 0;
  bool isGood = check(library.unseal(device)) && check(library.freeMemory(device, &unused));
  if (!check(library.seal(device)) || !isGood) {
    return "";
  }
  uint64_t taken = facts.memoryBytes - unused, before = facts.memoryBytes - facts.freeBytes;
  uint64_t context = 0; // It was taken before free memory was first asked for.
  for (const DeviceUse &use : program.deviceUses) {
    context += use.part == DevicePart::Context ? use.bytes.value_or(0) : 0;
  }
  return concat("device ", number, " of rank ", rank(), ": ", bytesText(taken), " of ",
                bytesText(facts.memoryBytes), " taken, by anybody; ", bytesText(before),
                " before the run and by its context, ", bytesText(taken - std::min(taken, before)),
                " since then, predicted ", bytesText(program.deviceBytes() - context), "\n");
}

bool CudaExecutor::enqueueMark(Stream on, uint32_t mark) const {
  on = side ? on : Stream::Compute; // Where all is on one.
  Monitor::Line *line = lines[size_t(on)];
  return !line || check(library.writeProgress(device, handleOf(on), wordOf(on), line->issue(mark)));
}

bool CudaExecutor::isBusy() const {
  return std::any_of(lines.begin(), lines.end(),
                     [](const Monitor::Line *line) { return line && !line->place().isIdle(); });
}

bool CudaExecutor::passMark(const Prepared &instruction, uint32_t mark) {
  if (!graphs.isRecording()) {
    return enqueueMark(instruction.stream, mark);
  }
  graphs.noteMark(instruction.stream, mark);
  return check(
      library.countProgress(device, handleOf(instruction.stream), wordOf(instruction.stream)));
}

bool CudaExecutor::finish() {
  if (!enqueueMark(Stream::Compute, ProgressMarks::kCopy) ||
      !check(library.record(device, done, stream))) {
    return false;
  }
  // Another rank may have failed, and this one's device would wait for it forever.
  bool isReached =
      communicates && collectives ? collectives->await(done) : check(library.await(device, done));
  if (isReached) {
    stage.notePassed();
    isLentUnderWay = false;
  }
  return isReached;
}

Communicator::Handle CudaExecutor::prepareCollective(const Collective &, const CallSite &) {
  return 0; // All are prepared before the device is sealed, by their number in the program.
}

void *CudaExecutor::address(uint32_t buffer, uint32_t frame) const {
  return reinterpret_cast<void *>(arena + program.offsetOf(buffer, frame));
}

Outcome CudaExecutor::runKernel(const Prepared &instruction) {
  if (Handle prepared = attention.find(*instruction.instruction)) {
    bool isGood =
        check(attention.run(device, stream, prepared, instruction.target, instruction.operands));
    return isGood ? Outcome::Done : Outcome::Stopped;
  }
  const Entries &kernel = entries[instruction.target];
  arguments.assign(1, place);
  std::transform(instruction.operands, instruction.operands + kernel.buffers,
                 std::back_inserter(arguments), addressOf);
  arguments.insert(arguments.end(), instruction.immediates,
                   instruction.immediates + kernel.immediates);
  DevicePhases phases = phasesOf(*instruction.kernel);
  for (size_t phase = 0; phase < kernel.phases.size(); ++phase) {
    auto iterations = uint64_t(phases.iterations[phase]);
    if (iterations == 0) {
      continue;
    }
    // With few iterations, smaller blocks let more multiprocessors take part.
    uint64_t share = (iterations + facts.multiprocessors - 1) / facts.multiprocessors;
    uint64_t threads = std::clamp<uint64_t>((share + 31) / 32 * 32, 32, kBlockThreads);
    uint64_t blocks = std::min((iterations + threads - 1) / threads,
                               kBlocksEach * uint64_t(facts.multiprocessors));
    if (phases.threads && phases.threads[phase] != 0) { // A block takes an iteration.
      threads = uint64_t(phases.threads[phase]);
      blocks = std::min<uint64_t>(iterations, INT32_MAX);
    }
    if (!check(library.launch(device, handleOf(instruction.stream), kernel.phases[phase],
                              uint32_t(blocks), uint32_t(threads), arguments.data(),
                              arguments.size()))) {
      return Outcome::Stopped;
    }
  }
  return Outcome::Done;
}

Outcome CudaExecutor::runMatmul(const Prepared &instruction) {
  MatmulPlaces places = placesOf(program.matmuls[instruction.target], instruction.operands);
  bool isGood = check(library.runMatmul(device, handleOf(instruction.stream),
                                        matmuls[instruction.target], &places));
  return isGood ? Outcome::Done : Outcome::Stopped;
}

Outcome CudaExecutor::runCollective(const Prepared &instruction) {
  auto [operand, result] = endsOf(instruction);
  return collectives->run(instruction.target, handleOf(instruction.stream), addressOf(operand),
                          addressOf(result))
             ? Outcome::Done
             : Outcome::Stopped;
}

void CudaExecutor::zero(uint32_t buffer) {
  if (uint64_t bytes = program.buffers[buffer].bytes) {
    (void)check(library.zero(device, stream, addressOf(address(buffer, 0)), bytes));
  }
}

std::span<char> CudaExecutor::lend(uint64_t bytes, bool &isGood) {
  // Allocating pinned memory during collectives may wait for all their devices, so finish them
  // first.
  isGood = (!isLentUnderWay && bytes <= lent.bytes) || finish();
  if (isGood && bytes > lent.bytes) {
    isGood = check(library.unseal(device)) && grow(lent, bytes) && check(library.seal(device));
  }
  if (!isGood) {
    lost.resize(bytes); // The caller must get some memory.
    return lost;
  }
  return {lent.place, bytes};
}

BufferView CudaExecutor::view(uint32_t buffer, uint32_t frame, uint64_t begin,
                              uint64_t count) const {
  auto &self = const_cast<CudaExecutor &>(*this); // Lent memory does not change results.
  bool isGood = false;
  std::span<char> memory = self.lend(count, isGood);
  if (isGood && count > 0) {
    Address from = addressOf(address(buffer, frame)) + begin;
    (void)(check(library.copyToHost(device, stream, memory.data(), from, count)) && self.finish());
  }
  return BufferView(memory, self);
}

BufferDraft CudaExecutor::draft(uint32_t buffer, uint64_t begin, uint64_t count) {
  bool isGood = false, isInput = stage.has(buffer);
  std::span<char> memory;
  if (isInput) {
    memory = stage.take(buffer);
    if (memory.empty() && finish()) {
      memory = stage.take(buffer);
    }
    memory = memory.empty() ? memory : memory.subspan(begin, count);
    isGood = !memory.empty();
  }
  if (!isInput || !isGood) {
    isInput = false;
    memory = lend(count, isGood);
  }
  drafted = {buffer, begin, isGood ? count : 0, isInput};
  return BufferDraft(memory, *this);
}

void CudaExecutor::endView(const char *) {}

void CudaExecutor::endDraft(char *memory) {
  auto [buffer, begin, bytes, isInput] = drafted;
  if (bytes == 0) {
    return;
  }
  Address to = addressOf(address(buffer, 0)) + begin;
  (void)check(isInput ? stage.send(device, stream, buffer, begin, bytes, to)
                      : library.copyToDevice(device, stream, to, memory, bytes));
  isLentUnderWay = isLentUnderWay || !isInput;
}
