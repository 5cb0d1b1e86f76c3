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
  reserve();
  initCode = prepareSection("init", program.init);
  stepCode = prepareSection("step", program.step);
  evaluateCode = prepareSection("evaluate", program.evaluate);
  if (recordsParts() && !(record(stepCode) && record(evaluateCode))) {
    return false;
  }

  std::vector<uint32_t> allAxes(program.mesh.size());
  std::iota(allAxes.begin(), allAxes.end(), 0);
  Collective maximum = {CollectiveKind::AllReduce,
                        ReductionKind::Max,
                        ElementType::I32,
                        std::move(allAxes),
                        {1},
                        0,
                        0};
  agree = communicator.prepare(maximum,
                               {"control", 0, "does the loss or norm of any rank end the run"});
  return true;
}

std::vector<uint32_t> weft::rt::numberEvents(const std::vector<Instruction> &section) {
  std::vector<uint32_t> events(section.size(), kNoEvent);
  for (const Instruction &instruction : section) {
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
  size_t operands = 0, phases = 0, waited = 0;
  for (const auto *section : {&program.init, &program.step, &program.evaluate}) {
    for (const Instruction &instruction : *section) {
      operands += instruction.operands.size();
      waited += instruction.waits.size();
      if (instruction.opcode == Opcode::Kernel) {
        phases += size_t(kernels[instruction.target].phaseCount);
      }
    }
  }
  addresses.reserve(operands);
  waits.reserve(waited);
  cuts.reserve(phases);
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

void Executor::prepareObserve(const Instruction &instruction, Prepared &prepared) const {
  const Observation &observed = program.observations[instruction.target];
  prepared.buffer = instruction.operands[0].buffer;
  prepared.mustBeFinite = decidesRun(observed);
  prepared.hasLimit = observed.limit > 0;
  prepared.isSeen = isSeen(observed);
}

bool Executor::record(Section &section) {
  isRecording = true;
  bool isGood = recordParts(section);
  if (!isGood) {
    dropRecording();
  }
  isRecording = false;
  issuing = {};
  late.clear();
  return isGood;
}

/// Records the instructions between two places where the host reads values.
bool Executor::recordParts(Section &section) {
  for (size_t index = 0; index <= section.code.size(); ++index) {
    size_t begin = section.parts.empty() ? 0 : section.parts.back().end + 1;
    bool isEnd = index == section.code.size();
    if (!isEnd && !(section.code[index].isSeen && !section.code[index].isLate)) {
      continue;
    }
    section.parts.push_back({begin, index, partCount++});
    if (begin == index) {
      continue;
    }
    if (!beginRecording()) {
      return false;
    }
    for (size_t i = begin; i < index; ++i) {
      if (execute(section, i) != Outcome::Done) {
        return false;
      }
    }
    if (!endRecording(section.parts.back().number)) {
      return false;
    }
  }
  return true;
}

Executor::Section Executor::prepareSection(const char *section,
                                           const std::vector<Instruction> &instructions) {
  std::vector<Prepared> code;
  code.reserve(instructions.size());
  std::vector<uint32_t> events = numberEvents(instructions);
  for (uint32_t index = 0; index < instructions.size(); ++index) {
    const Instruction &instruction = instructions[index];
    Prepared prepared;
    prepared.mark = watcher ? watcher->marks().behind(section, index) : 0;
    prepared.opcode = instruction.opcode;
    prepared.target = instruction.target;
    prepared.stream = instruction.stream;
    prepared.event = events[index];
    prepared.waits = {waits.data() + waits.size(), instruction.waits.size()};
    for (uint32_t other : instruction.waits) {
      waits.push_back(events[other]);
    }
    prepared.operands = addresses.data() + addresses.size();
    prepared.immediates = instruction.immediates.data();
    for (const Operand &operand : instruction.operands) {
      addresses.push_back(address(operand.buffer));
    }
    switch (instruction.opcode) {
    case Opcode::Kernel:
      prepared.kernel = &kernels[instruction.target];
      prepared.cuts = cuts.data() + cuts.size();
      appendCuts(*prepared.kernel, operandBytes(instruction) < kSmallBytes);
      break;
    case Opcode::Matmul:
      break;
    case Opcode::Collective:
      prepared.handle = prepareCollective(program.collectives[instruction.target],
                                          {section, index, program.labels[instruction.label]});
      break;
    case Opcode::Observe:
      prepareObserve(instruction, prepared);
      break;
    }
    code.push_back(prepared);
  }
  if (looksLate()) {
    std::vector<bool> later = areSeenLater(program, instructions);
    for (size_t index = 0; index < code.size(); ++index) {
      code[index].isLate = later[index];
    }
  }
  late.reserve(std::max<size_t>(
      late.capacity(), std::count_if(code.begin(), code.end(), [](const Prepared &instruction) {
        return instruction.isLate;
      })));
  return {section, &instructions, std::move(code), {}};
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
  late.clear();
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
  return std::any_of(section.code.begin(), section.code.end(), [&](const Prepared &instruction) {
    return instruction.opcode == Opcode::Observe && !instruction.isSeen &&
           observer->wants(self, instruction.target);
  });
}

Outcome Executor::runParts(const Section &section, StepTimes *times) {
  const std::vector<Prepared> &code = section.code;
  for (const Part &part : section.parts) {
    setPosition(section, part.begin, std::max(part.end, part.begin + 1) - 1);
    if (link->stopped() || (part.begin < part.end && !launchPart(part.number))) {
      return Outcome::Stopped;
    }
    for (size_t index = part.begin; index < part.end; ++index) {
      if (code[index].isLate) {
        late.push_back(&code[index]);
      }
      if (!lap(index, times)) { // The first one has it all.
        return Outcome::Stopped;
      }
    }
    if (part.end == code.size()) {
      break;
    }
    setPosition(section, part.end, part.end);
    // All events that it waits for were awaited at the end of the part.
    Outcome outcome = dispatch(code[part.end]);
    if (outcome != Outcome::Done || (code[part.end].mark > 0 && !passMark(code[part.end]))) {
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
  const std::vector<Prepared> &code = section.code;
  bool isTimed = times && takesTimes();
  if (!forkStreams() || (isTimed && !beginTimes())) {
    return Outcome::Stopped;
  }
  for (size_t index = 0; index < code.size(); ++index) {
    Outcome outcome = execute(section, index);
    if (outcome != Outcome::Done) {
      notFiniteAt = index;
      return joinStreams() ? outcome : Outcome::Stopped;
    }
    link->moved();
    if (!lap(index, times)) {
      return Outcome::Stopped;
    }
  }
  return joinStreams() && (!isTimed || recordTimes(*times)) ? Outcome::Done : Outcome::Stopped;
}

Outcome Executor::runStepInstruction(size_t index) {
  if (!forkStreams()) {
    return Outcome::Stopped;
  }
  Outcome outcome = execute(stepCode, index);
  bool isJoined = joinStreams();
  issuing = {};
  return isJoined ? outcome : Outcome::Stopped;
}

void Executor::setPosition(const Section &section, size_t first, size_t last) {
  issuing = {section.name, section.instructions, uint32_t(first), uint32_t(last)};
}

Outcome Executor::execute(const Section &section, size_t index) {
  const Prepared &instruction = section.code[index];
  setPosition(section, index, index);
  if (!instruction.waits.empty() && !waitForEvents(instruction)) {
    return Outcome::Stopped;
  }
  Outcome outcome = dispatch(instruction);
  bool isAwaited = outcome == Outcome::Done && instruction.event != kNoEvent;
  bool isMarked = outcome == Outcome::Done && instruction.mark > 0;
  bool isGood = (!isAwaited || recordEvent(instruction)) && (!isMarked || passMark(instruction));
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
  }
  return Outcome::Done;
}

void Executor::write(uint32_t buffer, uint64_t begin, std::span<const char> bytes) {
  BufferDraft place = draft(buffer, begin, bytes.size());
  std::copy(bytes.begin(), bytes.end(), place.bytes().begin());
}

bool Executor::look(const Prepared &instruction, const void *data) {
  if (observer->wants(self, instruction.target)) {
    observer->observe(self, instruction.target, data);
  }
  if (instruction.hasLimit) {
    std::optional<Overflow> found = findOverflow(program, instruction.target, place, data);
    if (found && (!beyond || goesBefore(*found, *beyond))) {
      beyond = found;
    }
  }
  if (!instruction.mustBeFinite) {
    return true;
  }
  const Observation &observation = program.observations[instruction.target];
  return std::isfinite(elementAt(observation.layout.type, data, 0));
}

Outcome Executor::observe(const Prepared &instruction) {
  if (instruction.isLate) {
    late.push_back(&instruction);
    return keep(instruction) ? Outcome::Done : Outcome::Stopped;
  }
  bool isWanted = !isRecording && observer->wants(self, instruction.target);
  if (!isWanted && !instruction.hasLimit && !instruction.mustBeFinite) {
    return Outcome::Done;
  }
  BufferView value = view(instruction.buffer);
  bool isFinite = true;
  for (const Prepared *before : late) {
    // Later values are not read, as on a device that the host reads at once.
    isFinite = isFinite && look(*before, kept(*before));
  }
  late.clear();
  isFinite = isFinite && look(instruction, value.data());
  if (!instruction.mustBeFinite) {
    return Outcome::Done;
  }
  // An overflow may well be the reason for a value that is not finite.
  Outcome own = beyond ? Outcome::Overflow : !isFinite ? Outcome::NotFinite : Outcome::Done;
  auto mine = int32_t(own), greatest = int32_t(own);
  if (!link->run(agree, &mine, &greatest)) {
    return Outcome::Stopped;
  }
  return Outcome(greatest);
}
