//===- CudaExecutor.cpp - runs one rank's program on a device --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/CudaExecutor.h"

#include "backends/cuda/PrepareProducts.h"
#include "core/ProgramCheck.h"
#include "core/Text.h"

#include <algorithm>

using namespace weft::rt;
using namespace weft::rt::cuda;

/// Blocks that a multiprocessor gets of one launch: as many as keep it busy while the last ones
/// end.
static constexpr uint64_t kBlocksEach = 16;

CudaExecutor::CudaExecutor(const Program &program, const KernelCode *kernels, int64_t rank,
                           const Library &library, int64_t device,
                           std::span<const DeviceImage> images, std::string cacheFile)
    : Executor(program, kernels, rank), library(library), number(device), images(images),
      cacheFile(std::move(cacheFile)) {}

CudaExecutor::~CudaExecutor() {
  if (!device) {
    return;
  }
  // What fails here has failed before, and been told.
  library.unseal(device);
  if (done) {
    library.record(device, done, stream);
    library.await(device, done);
  }
  for (Handle product : products) {
    if (product) { // The last one may have failed.
      library.freeProduct(device, product);
    }
  }
  for (Address memory : {arena, place}) {
    if (memory) {
      library.free(device, memory);
    }
  }
  for (const Pinned &pinned : {lent, sent, got}) {
    if (pinned.place) {
      library.freePinned(device, pinned.place);
    }
  }
  if (module) {
    library.unload(device, module);
  }
  if (done) {
    library.freeEvent(device, done);
  }
  if (stream) {
    library.freeStream(device, stream);
  }
  library.close(device);
}

bool CudaExecutor::check(Library::Result result) const {
  return !result ||
         communicator().fail(concat("device ", number, " of rank ", rank(), ": ", result));
}

bool CudaExecutor::open() {
  return check(library.open(number, &device, &facts)) &&
         check(library.makeStream(device, &stream)) && check(library.makeEvent(device, &done));
}

bool CudaExecutor::allocateArena() {
  uint64_t bytes = std::max<uint64_t>(program.arenaBytes, 1);
  // Products are tried with memory that the arena takes after.
  return open() &&
         prepareProducts(
             {program, library, device, facts, number, rank(), communicator(), cacheFile},
             products) &&
         check(library.allocate(device, bytes, &arena)) && arena &&
         check(library.zero(device, stream, arena, bytes));
}

bool CudaExecutor::prepareDevice() {
  auto [toLend, toSend, toGet] = stagingBytes();
  return loadKernels() && grow(lent, toLend) && grow(sent, toSend) && grow(got, toGet) &&
         sendCoordinates() && check(library.seal(device));
}

/// The newest machine code that runs there; else the newest PTX.
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
  for (const auto *section : {&program.init, &program.step, &program.evaluate}) {
    for (const Instruction &instruction : *section) {
      if (instruction.opcode == Opcode::Kernel) {
        Entries &kernel = entries[instruction.target];
        kernel.buffers = instruction.operands.size();
        kernel.immediates = instruction.immediates.size();
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
  if (!check(library.load(device, image->bytes, &module))) {
    return false;
  }
  for (size_t number = 0; number < program.kernels.size(); ++number) {
    for (int64_t phase = 0; phase < codeOf(number).phaseCount; ++phase) {
      std::string name = concat(program.kernels[number].name, "_phase_", phase);
      Handle &entry = entries[number].phases.emplace_back();
      if (!check(library.entry(device, module, name.c_str(), &entry))) {
        return false;
      }
    }
  }
  return true;
}

std::array<uint64_t, 3> CudaExecutor::stagingBytes() const {
  uint64_t observed = 8, operand = 8, result = 8;
  for (const auto *section : {&program.init, &program.step, &program.evaluate}) {
    for (const Instruction &instruction : *section) {
      auto bytes = [&](size_t i) { return program.buffers[instruction.operands[i].buffer].bytes; };
      if (instruction.opcode == Opcode::Observe &&
          (decidesRun(program.observations[instruction.target]) ||
           program.observations[instruction.target].limit > 0)) {
        observed = std::max(observed, bytes(0));
      } else if (instruction.opcode == Opcode::Collective) {
        operand = std::max(operand, bytes(0));
        result = std::max(result, bytes(1));
      }
    }
  }
  for (const NamedTensor &input : program.inputs) {
    observed = std::max(observed, program.buffers[input.buffer].bytes);
  }
  return {observed, operand, result};
}

uint64_t CudaExecutor::hostBytes() const {
  auto [toLend, toSend, toGet] = stagingBytes();
  return toLend + toSend + toGet;
}

bool CudaExecutor::sendCoordinates() {
  // Kernels take an address even where the mesh has no axes.
  uint64_t bytes = std::max<size_t>(coordinates().size(), 1) * sizeof(int64_t);
  if (!grow(lent, bytes) || !check(library.allocate(device, bytes, &place)) || !place) {
    return communicator().fail(concat("rank ", rank(), " cannot allocate ", bytesText(bytes)));
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
                                      " of host memory that its device reaches"));
  }
  pinned = {static_cast<char *>(made), bytes};
  return true;
}

bool CudaExecutor::finish() const {
  return check(library.record(device, done, stream)) && check(library.await(device, done));
}

Communicator::Handle CudaExecutor::prepareCollective(const Collective &collective,
                                                     const CallSite &site) {
  uint64_t operand = sizeOf(collective.type);
  for (int64_t size : collective.shape) {
    operand *= uint64_t(size);
  }
  uint64_t ranks = groupSize(program, collective.axes);
  uint64_t result = collective.kind == CollectiveKind::AllGather       ? operand * ranks
                    : collective.kind == CollectiveKind::ReduceScatter ? operand / ranks
                                                                       : operand;
  Communicator::Handle handle = communicator().prepare(collective, site);
  moved[handle] = {operand, result};
  return handle;
}

void *CudaExecutor::address(uint32_t buffer) const {
  return reinterpret_cast<void *>(arena + program.buffers[buffer].offset);
}

static Library::Address addressOf(const void *operand) {
  return reinterpret_cast<Library::Address>(operand);
}

Outcome CudaExecutor::runKernel(const Prepared &instruction) {
  const Entries &kernel = entries[instruction.target];
  arguments.assign(1, place);
  std::transform(instruction.operands, instruction.operands + kernel.buffers,
                 std::back_inserter(arguments), addressOf);
  arguments.insert(arguments.end(), instruction.immediates,
                   instruction.immediates + kernel.immediates);
  for (size_t phase = 0; phase < kernel.phases.size(); ++phase) {
    auto iterations = uint64_t(instruction.kernel->iterations[phase]);
    if (iterations == 0) {
      continue;
    }
    // Where there are few iterations, smaller blocks let more multiprocessors take part.
    uint64_t share = (iterations + facts.multiprocessors - 1) / facts.multiprocessors;
    uint64_t threads = std::clamp<uint64_t>((share + 31) / 32 * 32, 32, kBlockThreads);
    uint64_t blocks = std::min((iterations + threads - 1) / threads,
                               kBlocksEach * uint64_t(facts.multiprocessors));
    if (!check(library.launch(device, stream, kernel.phases[phase], uint32_t(blocks),
                              uint32_t(threads), arguments.data(), arguments.size()))) {
      return Outcome::Stopped;
    }
  }
  return Outcome::Done;
}

Outcome CudaExecutor::runProduct(const Prepared &instruction) {
  ProductPlaces places = placesOf(program.products[instruction.target], instruction.operands);
  bool isGood = check(library.runProduct(device, stream, products[instruction.target], &places));
  return isGood ? Outcome::Done : Outcome::Stopped;
}

Outcome CudaExecutor::runCollective(const Prepared &instruction) {
  auto [operand, result] = moved.find(instruction.handle)->second;
  bool isGood = check(library.copyToHost(device, stream, sent.place,
                                         addressOf(instruction.operands[0]), operand)) &&
                finish() && communicator().run(instruction.handle, sent.place, got.place) &&
                check(library.copyToDevice(device, stream, addressOf(instruction.operands[1]),
                                           got.place, result));
  return isGood ? Outcome::Done : Outcome::Stopped;
}

void CudaExecutor::zero(uint32_t buffer) {
  if (uint64_t bytes = program.buffers[buffer].bytes) {
    (void)check(library.zero(device, stream, addressOf(address(buffer)), bytes));
  }
}

/// Memory to lend. What was drafted there before may still be on its way to the device.
std::span<char> CudaExecutor::lend(uint64_t bytes, bool &isGood) {
  isGood = finish();
  if (isGood && bytes > lent.bytes) {
    isGood = check(library.unseal(device)) && grow(lent, bytes) && check(library.seal(device));
  }
  if (!isGood) {
    lost.resize(bytes); // Who asked for it must have some.
    return lost;
  }
  return {lent.place, bytes};
}

BufferView CudaExecutor::view(uint32_t buffer, uint64_t begin, uint64_t count) const {
  auto &self = const_cast<CudaExecutor &>(*this); // What it lends is no part of what it computes.
  bool isGood = false;
  std::span<char> memory = self.lend(count, isGood);
  if (isGood && count > 0) {
    Address from = addressOf(address(buffer)) + begin;
    (void)(check(library.copyToHost(device, stream, memory.data(), from, count)) && finish());
  }
  return BufferView(memory, self);
}

BufferDraft CudaExecutor::draft(uint32_t buffer, uint64_t begin, uint64_t count) {
  bool isGood = false;
  std::span<char> memory = lend(count, isGood);
  drafted = {addressOf(address(buffer)) + begin, isGood ? count : 0};
  return BufferDraft(memory, *this);
}

void CudaExecutor::endView(const char *) {}

void CudaExecutor::endDraft(char *memory) {
  if (auto [to, bytes] = drafted; bytes > 0) {
    (void)check(library.copyToDevice(device, stream, to, memory, bytes));
  }
}
