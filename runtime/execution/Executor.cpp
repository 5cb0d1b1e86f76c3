//===- Executor.cpp - runs one rank's program -------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "execution/Executor.h"

#include "program/ProgramCheck.h"
#include "support/Elements.h"
#include "support/Text.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace weft::rt;

/// Kernels with fewer bytes of operands run on one thread: waking others takes longer.
static constexpr uint64_t kSmallBytes = 1 << 15;

Executor::Executor(const Program &program, const KernelCode *kernels, int64_t rank)
    : program(program), kernels(kernels), self(rank), place(program.coordinatesOf(rank)) {}

bool Executor::prepare(Communicator &communicator, Observer &observer) {
  link = &communicator;
  this->observer = &observer;
  if (!allocateArena()) {
    return communicator.fail(
        concat("rank ", self, " cannot allocate its arena of ", bytesText(program.arenaBytes)),
        ExitCode::OutOfMemory);
  }
  if (!prepareDevice()) {
    return false;
  }
  prepareBodies();
  initCode = prepareSection("init", program.init);
  stepCode = prepareSection("step", program.step);
  evaluateCode = prepareSection("evaluate", program.evaluate);
  if (recordsParts() && !(record(stepCode) && record(evaluateCode))) {
    return false;
  }

  Collective maximum = {.reduction = ReductionKind::Max, .type = ElementType::I32, .shape = {1}};
  agreement = communicator.prepare(maximum, allRanks(program.rankCount()),
                                   {"control", 0, "agree to go on"});
  return true;
}

std::vector<uint32_t> weft::rt::numberEvents(const std::vector<Instruction> &body) {
  std::vector<uint32_t> events(body.size(), kNoEvent);
  for (const Instruction &instruction : body) {
    for (uint32_t other : instruction.waits) {
      events[other] = 0;
    }
  }
  uint32_t count = 0;
  for (uint32_t &event : events) {
    event = event == kNoEvent ? kNoEvent : count++;
  }
  return events;
}

void Executor::reserve() {
  size_t operands = 0, phases = 0, waited = 0, numbers = 0;
  for (size_t body = 0; body < program.bodies.size(); ++body) {
    const size_t times = bodies[body].size();
    for (const Instruction &instruction : program.bodies[body].instructions) {
      operands += times * instruction.operands.size();
      numbers += times * instruction.immediates.size();
      waited += times * instruction.waits.size();
      if (instruction.opcode == Opcode::Kernel) {
        phases += times * size_t(kernels[instruction.target].phaseCount);
      }
    }
  }
  addresses.reserve(operands);
  waits.reserve(waited);
  cuts.reserve(phases);
  immediates.reserve(numbers);
}

void Executor::prepareBodies() {
  bodies.resize(program.bodies.size());
  for (const auto *section : {&program.init, &program.step, &program.evaluate}) {
    for (const Action &action : *section) {
      bodies[action.body].try_emplace(action.frames);
    }
  }
  reserve();
  std::vector<std::vector<bool>> areLate = areSeenLater(program);
  for (uint32_t body = 0; body < program.bodies.size(); ++body) {
    for (auto &[frames, prepared] : bodies[body]) {
      prepareBody(body, frames, areLate[body], prepared);
    }
  }
}

uint64_t Executor::operandBytes(const Instruction &instruction) const {
  uint64_t bytes = 0;
  for (const Operand &operand : instruction.operands) {
    bytes += program.buffers[operand.buffer].bytes;
  }
  return bytes;
}

void Executor::appendCuts(const KernelCode &kernel, bool isSmall) {
  for (int64_t phase = 0; phase < kernel.phaseCount; ++phase) {
    cuts.push_back(cutIterations(kernel.iterations[phase], isSmall ? 1 : program.threadsPerRank));
  }
}

void Executor::prepareObserve(const Instruction &instruction, std::span<const FrameUse> frames,
                              Prepared &prepared) const {
  const Observation &observed = program.observations[instruction.target];
  prepared.buffer = instruction.operands[0].buffer;
  prepared.frame = program.frameOf(prepared.buffer, frames);
  prepared.mustBeFinite = decidesRun(observed);
  prepared.hasLimit = observed.limit > 0;
  prepared.isSeen = isSeen(observed);
}

static uint64_t keptBytesOf(const Program &program, const Instruction &observe) {
  constexpr uint64_t kUnit = 16;
  return (program.buffers[observe.operands[0].buffer].bytes + kUnit - 1) / kUnit * kUnit;
}

/// A section may keep the values of all its actions.
uint64_t Executor::keptBytes(const Program &program) {
  uint64_t most = 0;
  for (const auto *section : {&program.step, &program.evaluate}) {
    uint64_t bytes = 0;
    for (const Instruction &instruction : Expansion(program, *section)) {
      if (instruction.opcode == Opcode::Observe &&
          isSeen(program.observations[instruction.target])) {
        bytes += keptBytesOf(program, instruction);
      }
    }
    most = std::max(most, bytes);
  }
  return most;
}

void Executor::forgetLate() {
  late.clear();
  lateBytes = 0;
}

bool Executor::record(Section &section) {
  isRecording = true;
  bool isGood = recordParts(section);
  if (!isGood) {
    dropRecording();
  }
  isRecording = false;
  issuing = {};
  forgetLate();
  return isGood;
}

/// Records the instructions between two places where the host reads values or ranks agree.
bool Executor::recordParts(Section &section) {
  Place place = placeOf(section, 0);
  while (true) {
    Part part = {place.number, place.number, partCount++};
    auto isEnd = [&] {
      return !place.prepared || place.prepared->opcode == Opcode::Agree ||
             (place.prepared->isSeen && !place.prepared->isLate);
    };
    if (!isEnd() && !beginRecording()) {
      return false;
    }
    for (; !isEnd(); advance(section, place)) {
      if (!beginAction(section, place) || execute(section, place) != Outcome::Done) {
        return false;
      }
      if (place.prepared->isLate) {
        part.late.push_back(late.back());
      }
    }
    part.end = place.number;
    if (part.begin < part.end && !endRecording(part.number)) {
      return false;
    }
    section.parts.push_back(std::move(part));
    if (!place.prepared) {
      return true;
    }
    advance(section, place);
  }
}

Executor::Prepared Executor::prepareInstruction(const Instruction &instruction,
                                                std::span<const FrameUse> frames,
                                                PreparedBody &body) {
  Prepared prepared;
  prepared.opcode = instruction.opcode;
  prepared.target = instruction.target;
  prepared.stream = isInLine ? Stream::Compute : instruction.stream;
  prepared.instruction = &instruction;
  prepared.operands = addresses.data() + addresses.size();
  for (const Operand &operand : instruction.operands) {
    addresses.push_back(address(operand.buffer, program.frameOf(operand.buffer, frames)));
  }
  prepared.immediates = immediates.data() + immediates.size();
  for (const Immediate &immediate : instruction.immediates) {
    immediates.push_back(immediate.value);
    if (immediate.addsMicroBatch) {
      body.moving.push_back({&immediates.back(), immediate.value});
    }
  }
  body.usesStreams |= prepared.stream != Stream::Compute;
  return prepared;
}

void Executor::prepareBody(uint32_t number, std::span<const FrameUse> frames,
                           const std::vector<bool> &areLate, PreparedBody &body) {
  const auto &[name, instructions] = program.bodies[number];
  const PreparedBody &first = bodies[number].begin()->second;
  body.code.reserve(instructions.size());
  std::vector<uint32_t> events = numberEvents(instructions);
  if (isInLine) {
    std::ranges::fill(events, kNoEvent);
  }
  for (uint32_t index = 0; index < instructions.size(); ++index) {
    const Instruction &instruction = instructions[index];
    Prepared prepared = prepareInstruction(instruction, frames, body);
    prepared.event = events[index];
    prepared.waits = {waits.data() + waits.size(), isInLine ? 0 : instruction.waits.size()};
    for (uint32_t other : instruction.waits) {
      waits.push_back(events[other]);
    }
    switch (instruction.opcode) {
    case Opcode::Kernel:
      prepared.kernel = &kernels[instruction.target];
      prepared.cuts = cuts.data() + cuts.size();
      appendCuts(*prepared.kernel, operandBytes(instruction) < kSmallBytes);
      break;
    case Opcode::Matmul:
    case Opcode::Agree:
      break;
    case Opcode::Collective:
      // One call site, whatever the frames.
      prepared.handle =
          &body != &first
              ? first.code[index].handle
              : prepareCollective(program.collectives[instruction.target],
                                  {name.c_str(), index, program.labels[instruction.label]});
      break;
    case Opcode::Observe:
      prepareObserve(instruction, frames, prepared);
      prepared.isLate = looksLate() && areLate[index];
      break;
    }
    body.code.push_back(prepared);
  }
}

Executor::Section Executor::prepareSection(const char *name, const std::vector<Action> &actions) {
  Section section = {name, &actions, Expansion(program, actions)};
  size_t lateCount = 0;
  for (const Action &action : actions) {
    const std::vector<Prepared> &code = bodyOf(action).code;
    lateCount += size_t(
        std::count_if(code.begin(), code.end(), [](const Prepared &one) { return one.isLate; }));
  }
  late.reserve(std::max(late.capacity(), lateCount));
  for (size_t number = 0; watcher && number < section.instructions.size(); ++number) {
    section.marks.push_back(watcher->marks().behind(name, number));
  }
  return section;
}

Executor::Place Executor::placeOf(const Section &section, size_t number) const {
  const Expansion &list = section.instructions;
  if (number >= list.size()) {
    return {list.size(), list.actionCount(), nullptr};
  }
  size_t action = list.actionOf(number);
  const std::vector<Prepared> &code = bodyOf(list.action(action)).code;
  return {number, action, &code[number - list.beginOf(action)]};
}

void Executor::advance(const Section &section, Place &place) const {
  const Expansion &list = section.instructions;
  bool isInside = place.number + 1 < list.beginOf(place.action + 1);
  place = isInside ? Place{place.number + 1, place.action, place.prepared + 1}
                   : placeOf(section, place.number + 1);
}

void Executor::setMicroBatch(const Action &action) {
  for (const Moving &moving : bodyOf(action).moving) {
    *moving.place = moving.added + *action.microBatch;
  }
}

/// Does what an action needs before its first instruction; nothing elsewhere. Streams join where
/// one action ends and the next begins.
bool Executor::beginAction(const Section &section, const Place &place) {
  const Expansion &list = section.instructions;
  if (place.number != list.beginOf(place.action)) {
    return true;
  }
  setMicroBatch(list.action(place.action));
  auto usesStreams = [&](size_t action) { return bodyOf(list.action(action)).usesStreams; };
  return place.action == 0 || ((!usesStreams(place.action - 1) || joinStreams()) &&
                               (!usesStreams(place.action) || forkStreams()));
}

bool Executor::overlaps() const {
  return std::ranges::any_of(program.step,
                             [&](const Action &action) { return bodyOf(action).usesStreams; });
}

const Operand *Executor::endOf(const Instruction &collective, Access access) {
  auto found = std::ranges::find(collective.operands, access, &Operand::access);
  return found == collective.operands.end() ? nullptr : &*found;
}

Executor::Ends Executor::endsOf(const Prepared &collective) {
  auto addressOf = [&](Access access) -> void * {
    const Operand *end = endOf(*collective.instruction, access);
    return end ? collective.operands[end - collective.instruction->operands.data()] : nullptr;
  };
  return {addressOf(Access::Read), addressOf(Access::Write)};
}

bool Executor::lap(size_t index, StepTimes *times) {
  if (times && takesTimes()) {
    return lapTimes(index);
  }
  if (times) {
    times->lap(index, link->waitedSeconds());
  }
  return true;
}

Outcome Executor::runSection(const Section &section, StepTimes *times) {
  if (times) {
    times->beginStep(link->waitedSeconds());
  }
  beyond.reset();
  areFinite = true;
  forgetLate();
  bool isWhole = section.parts.empty() || isMoreWanted(section);
  Outcome outcome = isWhole ? runEach(section, times) : runParts(section, times);
  issuing = {};
  if (outcome != Outcome::Done) {
    return outcome;
  }
  if (times) {
    times->endStep();
  }
  return link->stopped() ? Outcome::Stopped : Outcome::Done;
}

bool Executor::isMoreWanted(const Section &section) const {
  auto isWanted = [&](const Prepared &instruction) {
    return instruction.opcode == Opcode::Observe && !instruction.isSeen &&
           observer->wants(self, instruction.target);
  };
  return std::any_of(section.actions->begin(), section.actions->end(), [&](const Action &action) {
    const std::vector<Prepared> &code = bodyOf(action).code;
    return std::any_of(code.begin(), code.end(), isWanted);
  });
}

Outcome Executor::runParts(const Section &section, StepTimes *times) {
  for (const Part &part : section.parts) {
    setPosition(section, part.begin, std::max(part.end, part.begin + 1) - 1);
    if (link->stopped() || (part.begin < part.end && !launchPart(part.number))) {
      return Outcome::Stopped;
    }
    late.insert(late.end(), part.late.begin(), part.late.end());
    for (size_t number = part.begin; times && number < part.end; ++number) {
      if (!lap(number, times)) { // The first one has it all.
        return Outcome::Stopped;
      }
    }
    if (part.end == section.instructions.size()) {
      break;
    }
    setPosition(section, part.end, part.end);
    // All events that it waits for were awaited at the end of the part.
    const Prepared &instruction = *placeOf(section, part.end).prepared;
    uint32_t mark = section.markAfter(part.end);
    Outcome outcome = dispatch(instruction);
    if (outcome != Outcome::Done || (mark > 0 && !passMark(instruction, mark))) {
      notFiniteAt = part.end;
      return outcome == Outcome::Done ? Outcome::Stopped : outcome;
    }
    link->moved();
    if (!lap(part.end, times)) {
      return Outcome::Stopped;
    }
  }
  return Outcome::Done;
}

Outcome Executor::runEach(const Section &section, StepTimes *times) {
  bool isTimed = times && takesTimes();
  if (!forkStreams() || (isTimed && !beginTimes())) {
    return Outcome::Stopped;
  }
  for (Place place = placeOf(section, 0); place.prepared; advance(section, place)) {
    Outcome outcome = beginAction(section, place) ? execute(section, place) : Outcome::Stopped;
    if (outcome != Outcome::Done) {
      notFiniteAt = place.number;
      return joinStreams() ? outcome : Outcome::Stopped;
    }
    link->moved();
    if (!lap(place.number, times)) {
      return Outcome::Stopped;
    }
  }
  return joinStreams() && (!isTimed || recordTimes(*times)) ? Outcome::Done : Outcome::Stopped;
}

Outcome Executor::runStepInstruction(size_t number) {
  Place place = placeOf(stepCode, number);
  setMicroBatch(stepCode.instructions.action(place.action));
  if (!forkStreams()) {
    return Outcome::Stopped;
  }
  Outcome outcome = execute(stepCode, place);
  bool isJoined = joinStreams();
  issuing = {};
  return isJoined ? outcome : Outcome::Stopped;
}

void Executor::setPosition(const Section &section, size_t first, size_t last) {
  issuing = {section.name, section.actions, uint32_t(first), uint32_t(last)};
}

Outcome Executor::execute(const Section &section, const Place &place) {
  const Prepared &instruction = *place.prepared;
  setPosition(section, place.number, place.number);
  if (shaker) {
    sleepFor(shaker->next(), [&] { return link->stopped(); });
  }
  if (!instruction.waits.empty() && !waitForEvents(instruction)) {
    return Outcome::Stopped;
  }
  Outcome outcome = dispatch(instruction);
  bool isAwaited = outcome == Outcome::Done && instruction.event != kNoEvent;
  uint32_t mark = outcome == Outcome::Done ? section.markAfter(place.number) : 0;
  bool isGood =
      (!isAwaited || recordEvent(instruction)) && (mark == 0 || passMark(instruction, mark));
  return isGood ? outcome : Outcome::Stopped;
}

Outcome Executor::dispatch(const Prepared &instruction) {
  switch (instruction.opcode) {
  case Opcode::Kernel:
    if (link->stopped()) { // Kernels are where the time goes; a failure need not wait for them.
      return Outcome::Stopped;
    }
    return runKernel(instruction);
  case Opcode::Matmul:
    return runMatmul(instruction);
  case Opcode::Collective:
    return runCollective(instruction);
  case Opcode::Observe:
    return observe(instruction);
  case Opcode::Agree:
    return agree();
  }
  return Outcome::Done;
}

void Executor::write(uint32_t buffer, uint64_t begin, std::span<const char> bytes) {
  BufferDraft place = draft(buffer, begin, bytes.size());
  std::copy(bytes.begin(), bytes.end(), place.bytes().begin());
}

void Executor::look(const Prepared &instruction, const void *data) {
  if (!areFinite) {
    return;
  }
  if (observer->wants(self, instruction.target)) {
    observer->observe(self, instruction.target, data);
  }
  if (instruction.hasLimit) {
    std::optional<Overflow> found = findOverflow(program, instruction.target, place, data);
    if (found && (!beyond || goesBefore(*found, *beyond))) {
      beyond = found;
    }
  }
  if (instruction.mustBeFinite) {
    ElementType type = program.observations[instruction.target].layout.type;
    areFinite = std::isfinite(elementAt(type, data, 0));
  }
}

Outcome Executor::observe(const Prepared &instruction) {
  if (instruction.isLate) {
    late.push_back({&instruction, lateBytes});
    lateBytes += keptBytesOf(program, *instruction.instruction);
    return keep(instruction, late.back().at) ? Outcome::Done : Outcome::Stopped;
  }
  bool isWanted = !isRecording && observer->wants(self, instruction.target);
  if (isWanted || instruction.hasLimit || instruction.mustBeFinite) {
    BufferView value = view(instruction.buffer, instruction.frame);
    look(instruction, value.data());
  }
  return Outcome::Done;
}

Outcome Executor::agree() {
  if (!late.empty() && !finishKept()) {
    return Outcome::Stopped;
  }
  for (const Late &one : late) {
    look(*one.prepared, kept(one.at));
  }
  forgetLate();
  // An overflow may well be the reason for a value that is not finite.
  Outcome own = beyond ? Outcome::Overflow : !areFinite ? Outcome::NotFinite : Outcome::Done;
  auto mine = int32_t(own), greatest = int32_t(own);
  if (!link->run(agreement, &mine, &greatest)) {
    return Outcome::Stopped;
  }
  return Outcome(greatest);
}
