//===- CudaStart.cpp - readies a device for a rank's program ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The steps of a CudaExecutor before the device is sealed, in the order of allocateArena and
// prepareDevice.
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/CudaExecutor.h"

#include "backends/cuda/PrepareMatmuls.h"
#include "support/CheckedMath.h"
#include "support/Text.h"

#include <algorithm>
#include <cstdio>

using namespace weft::rt;
using namespace weft::rt::cuda;

bool CudaExecutor::open() {
  if (!check(library.open(number, &device, &facts))) {
    return false;
  }
  owner = std::this_thread::get_id();
  if (monitor()) {
    monitor()->begin(rank(), communicator(),
                     [&library = library, device = device] { (void)library.giveUp(device); });
  }
  return hasMemory(/*isLoaded=*/false) && check(library.makeStream(device, &stream)) &&
         check(library.makeEvent(device, &done));
}

/// Subtracts from the prediction the memory that is already taken: the context, and, once code is
/// loaded, all but the buffers of communicators and of inputs.
uint64_t CudaExecutor::neededBytes(bool isLoaded) const {
  uint64_t bytes = saturatingAdd(program.arenaBytes, program.stagedBytes());
  bool isKnown = !communicates;
  for (const DeviceUse &use : program.deviceUses) {
    bool isOfRanks = use.part == DevicePart::Communicators;
    bool isCounted = use.part == DevicePart::Context || use.part == DevicePart::Inputs;
    isKnown |= isOfRanks && use.bytes;
    if (isOfRanks || (!isCounted && !isLoaded)) {
      bytes = saturatingAdd(bytes, use.bytes.value_or(0));
    }
  }
  return isKnown ? bytes : saturatingAdd(bytes, facts.communicationBytes);
}

bool CudaExecutor::hasMemory(bool isLoaded) const {
  uint64_t left = 0;
  if (!check(library.freeMemory(device, &left))) {
    return false;
  }
  uint64_t needed = neededBytes(isLoaded);
  if (needed <= left) {
    return true;
  }
  uint64_t taken = facts.freeBytes - std::min(left, facts.freeBytes);
  return communicator().fail(
      concat("rank ", rank(), " needs ", bytesText(needed), " of device ", number, ", a ",
             facts.name, " that has ", bytesText(left), " free of ", bytesText(facts.memoryBytes),
             taken > 0 ? concat(", beside ", bytesText(taken), " that its code has") : ""),
      ExitCode::OutOfMemory);
}

/// Checked here, since preparing the first FP8 matmul would fail with a less helpful error.
bool CudaExecutor::canMultiply() const {
  bool isAsked = std::any_of(program.matmuls.begin(), program.matmuls.end(),
                             [](const Matmul &matmul) { return matmul.isFp8(); });
  return !isAsked || facts.multipliesBytes() ||
         communicator().fail(concat(
             "device ", number, " of rank ", rank(), ", a ", facts.name, " of sm_",
             facts.architecture, ", has no FP8 matmuls, which sm_", DeviceFacts::kFirstWithBytes,
             " and later have: compile for a machine that has no peak_flops of F8"));
}

bool CudaExecutor::prepareCollectives() {
  collectives.emplace(library, number, device, communicator(), program.rankCount(),
                      program.classGroup(), options.timeout);
  collectives->watchBy([this] { return isBusy(); });
  collectives->placeBy([this] { return placeText(); });
  if (communicates && !collectives->join(options.sharesDevices ? DeviceFacts() : facts)) {
    return false;
  }
  return std::all_of(program.collectives.begin(), program.collectives.end(),
                     [&](const Collective &collective) {
                       return collectives->prepare(collective, program.groupOf(rank(), collective));
                     }) &&
         (!communicates || collectives->registerMemory(arena, program.arenaBytes));
}

/// Runs each collective once, since the library connects ranks and takes memory at the first run.
bool CudaExecutor::warmUpCollectives() {
  auto runFirst = [&](uint32_t number) {
    InstructionRange first = firstUse(program, Opcode::Collective, number);
    const Instruction *one = first.lastOne(program);
    if (!one) {
      return true;
    }
    setPosition(first);
    auto at = [&](Access access) {
      const Operand *end = endOf(*one, access);
      return end ? addressOf(address(end->buffer, /*frame=*/0)) : 0;
    };
    // Reports of a hang name the instruction by its mark.
    uint32_t mark = monitor() ? monitor()->marks().behind(first.section, first.first) : 0;
    return collectives->run(number, stream, at(Access::Read), at(Access::Write)) &&
           enqueueMark(Stream::Compute, mark);
  };
  std::vector<uint32_t> order = collectives->firstOrder();
  bool isGood = std::all_of(order.begin(), order.end(), runFirst);
  setPosition({});
  return isGood;
}

bool CudaExecutor::warmUp() {
  auto addressOf = [&](uint32_t buffer) { return address(buffer, /*frame=*/0); };
  // Loading code may wait for the device: finish collectives first, or ranks that load code would
  // wait for each other.
  return warmUpCollectives() && finish() && check(attention.runEach(device, stream, addressOf)) &&
         check(library.zero(device, stream, arena, std::max<uint64_t>(program.arenaBytes, 1))) &&
         finish() && (!communicates || collectives->meet(0, "are ready for steps"));
}

void CudaExecutor::end() {
  isEnded = finish() && check(library.unseal(device)) && check(graphs.free(device)) &&
            (!communicates || collectives->end()) && check(library.seal(device));
}

bool CudaExecutor::allocateArena() {
  uint64_t bytes = std::max<uint64_t>(program.arenaBytes, 1);
  auto allocate = communicates ? library.allocateShared : library.allocate;
  // Measuring matmuls uses memory that the arena takes afterwards.
  return open() && canMultiply() &&
         prepareMatmuls(
             {program, library, device, facts, number, rank(), communicator(), options.cacheFile},
             matmuls) &&
         prepareAttention() && loadKernels() && hasMemory(/*isLoaded=*/true) &&
         check(allocate(device, bytes, &arena)) && arena &&
         check(library.zero(device, stream, arena, bytes));
}

bool CudaExecutor::prepareDevice() {
  if (options.usesGraphs && options.takesTimes && rank() == 0) {
    std::fputs("note: --profile and --timeline take times on the devices, one after another, so "
               "there are no graphs\n",
               stderr);
  }
  return (!options.takesTimes ||
          check(clock.prepare(device, Expansion(program, program.step).size()))) &&
         makeStreams() && prepareCopies() && watchStreams() && sendCoordinates() &&
         prepareCollectives() && warmUp() && check(library.seal(device));
}

bool CudaExecutor::makeStreams() {
  size_t count = 0;
  for (const Body &body : program.bodies) {
    for (const Instruction &instruction : body.instructions) {
      if (instruction.stream != Stream::Compute && !side && !options.takesTimes &&
          !check(library.makeUrgentStream(device, &side))) {
        return false;
      }
    }
    std::vector<uint32_t> numbers = numberEvents(body.instructions);
    auto isOne = [](uint32_t number) { return number != kNoEvent; };
    count = std::max(count, size_t(std::count_if(numbers.begin(), numbers.end(), isOne)));
  }
  for (size_t i = 0; i < count; ++i) {
    if (!check(library.makeEvent(device, &events.emplace_back()))) {
      return false;
    }
  }
  return true;
}

/// Returns the newest machine code that the device can run, else the newest PTX.
const DeviceImage *CudaExecutor::chooseImage() const {
  const DeviceImage *best = nullptr;
  for (const DeviceImage &image : images) {
    bool isOlder = image.architecture <= facts.architecture;
    bool runs = isOlder && (image.isPtx || image.architecture / 10 == facts.architecture / 10);
    auto rank = [](const DeviceImage &one) { return std::pair(!one.isPtx, one.architecture); };
    if (runs && (!best || rank(*best) < rank(image))) {
      best = &image;
    }
  }
  return best;
}

void CudaExecutor::countOperands() {
  entries.resize(program.kernels.size());
  size_t most = 0;
  for (const Body &body : program.bodies) {
    for (const Instruction &instruction : body.instructions) {
      if (instruction.opcode == Opcode::Kernel) {
        Entries &kernel = entries[instruction.target];
        kernel.buffers = program.kernels[instruction.target].operandCount(instruction);
        kernel.immediates = instruction.immediates.size();
        kernel.isNeeded |= !attention.find(instruction);
        most = std::max(most, kernel.buffers + kernel.immediates);
      }
    }
  }
  arguments.reserve(1 + most);
}

bool CudaExecutor::loadKernels() {
  countOperands();
  if (program.kernels.empty()) {
    return true;
  }
  const DeviceImage *image = chooseImage();
  if (!image) {
    return communicator().fail(concat("device ", number, " of rank ", rank(), " is a ", facts.name,
                                      " of sm_", facts.architecture,
                                      ", for which the program has no kernels"));
  }
  uint64_t localBytes = 0;
  bool isThere = false;
  if (!check(library.load(device, image->bytes, &module))) {
    return false;
  }
  for (size_t kernel = 0; module && kernel < program.kernels.size(); ++kernel) {
    setPosition(firstUse(program, Opcode::Kernel, uint32_t(kernel)));
    if (entries[kernel].isNeeded && !loadEntries(kernel, localBytes)) {
      return false;
    }
  }
  setPosition({});
  if (module && !check(library.reserveLocal(device, localBytes, &isThere))) {
    return false;
  }
  return isThere ||
         communicator().fail(concat("device ", number, " of rank ", rank(), ", a ", facts.name,
                                    ", has too little memory for the program's kernels",
                                    localBytes > 0 ? concat(", of which one keeps ",
                                                            bytesText(localBytes), " a thread")
                                                   : ""),
                             ExitCode::OutOfMemory);
}

bool CudaExecutor::loadEntries(size_t kernel, uint64_t &localBytes) {
  for (int64_t phase = 0; phase < phasesOf(codeOf(kernel)).phaseCount; ++phase) {
    std::string name = concat(program.kernels[kernel].name, "_phase_", phase);
    Handle &entry = entries[kernel].phases.emplace_back();
    uint64_t own = 0;
    if (!check(library.entry(device, module, name.c_str(), &entry)) ||
        !check(library.localBytes(device, entry, &own))) {
      return false;
    }
    localBytes = std::max(localBytes, own);
  }
  return true;
}

bool CudaExecutor::prepareAttention() {
  if (!check(attention.prepare(device, coordinates(), options.isDeterministic))) {
    return false;
  }
  if (std::string refusals = attention.refusals(); rank() == 0 && !refusals.empty()) {
    std::fputs(refusals.c_str(), stderr); // Slow, but right.
  }
  return true;
}
