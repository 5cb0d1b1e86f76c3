//===- ToyPipeline.cpp - the small program with micro-batches in flight -----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/ToyPipeline.h"

#include "tests/Toy.h"

#include <algorithm>
#include <sstream>
#include <tuple>

using namespace weft::rt;

namespace {

constexpr int64_t kMicroBatches = 4;
constexpr double kTokens = kToyBatch * kToySequence;

/// Numbers in kToyPipelineKernels.
enum Code : uint32_t { kInit, kBegin, kForward, kLoss, kBackward, kSquare, kRoot, kUpdate };

Instruction kernel(Code code, uint32_t label, std::vector<Operand> operands,
                   std::vector<Immediate> immediates) {
  return {Opcode::Kernel, code, label, std::move(operands), std::move(immediates)};
}

constexpr Operand read(uint32_t buffer) { return {buffer, Access::Read}; }
constexpr Operand write(uint32_t buffer) { return {buffer, Access::Write}; }
constexpr Operand update(uint32_t buffer) { return {buffer, Access::ReadWrite}; }

class Maker {
public:
  Maker(int64_t data, int64_t model)
      : shard(kToyVocabulary / model), tokens(kToyBatch / kMicroBatches / data * kToySequence) {
    program.modelName = "toy";
    program.planHash = "0123456789abcdef";
    program.mesh = {{"data", data}, {"model", model}};
    program.kernels = {{"toy_init"},     {"toy_begin"},  {"toy_forward"}, {"toy_loss"},
                       {"toy_backward"}, {"toy_square"}, {"toy_root"},    {"toy_update"}};
    program.labels = {"table: initial values", "table: zeros", "table: differences", "loss",
                      "table: gradient",       "table: update"};
    program.globalBatch = kToyBatch;
    program.microBatches = kMicroBatches;
    program.sequenceLength = kToySequence;
    program.vocabulary = kToyVocabulary;
  }

  Program make(const std::string &order, uint32_t frames) {
    addBuffers(frames);
    program.bodies = {
        {"init", {kernel(kInit, 0, {read(seed), write(table), write(momentum)}, {shard})}},
        {"begin", {kernel(kBegin, 1, {write(loss), write(gradient)}, {shard})}},
        {"forward", forward()},
        {"backward", backward()},
        {"end", end()}};
    program.init = {{0}};
    program.step = {{1}};
    addActions(order);
    program.step.push_back({4});
    return std::move(program);
  }

private:
  uint32_t buffer(ElementType type, int64_t elements, BufferClass kind, bool persistent = false) {
    uint64_t bytes = uint64_t(elements) * sizeOf(type);
    program.buffers.push_back({bytes, program.arenaBytes, kind, persistent, type});
    program.arenaBytes += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return uint32_t(program.buffers.size() - 1);
  }

  uint32_t framed(int64_t elements) {
    FrameSet &set = program.frameSets[0];
    uint64_t bytes = uint64_t(elements) * sizeof(double);
    program.buffers.push_back(
        {bytes, set.bytes, BufferClass::Activation, false, ElementType::F64, 0});
    set.bytes += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return uint32_t(program.buffers.size() - 1);
  }

  void addBuffers(uint32_t frames) {
    table = buffer(ElementType::F64, shard, BufferClass::Parameter, true);
    momentum = buffer(ElementType::F64, shard, BufferClass::Optimizer, true);
    ids = buffer(ElementType::I32, kMicroBatches * tokens, BufferClass::Input, true);
    targets = buffer(ElementType::I32, kMicroBatches * tokens, BufferClass::Input, true);
    seed = buffer(ElementType::I64, 1, BufferClass::Input, true);
    loss = buffer(ElementType::F64, 1, BufferClass::Activation);
    gradient = buffer(ElementType::F64, shard, BufferClass::Gradient);
    norm = buffer(ElementType::F64, 1, BufferClass::Activation);
    program.frameSets.resize(1);
    difference = framed(tokens);
    part = framed(1);
    for (uint32_t frame = 0; frame < frames; ++frame) {
      program.frameSets[0].offsets.push_back(program.arenaBytes);
      program.arenaBytes += program.frameSets[0].bytes;
    }

    const TensorLayout whole = {ElementType::F64, {kToyVocabulary}, {{1}}};
    const TensorLayout batch = {
        ElementType::I32, {kMicroBatches, kToyBatch / kMicroBatches, kToySequence}, {{}, {0}, {}}};
    program.parameters = {{"table", whole, table}};
    program.optimizerState = {{"momentum/table", whole, momentum}};
    program.inputs = {{"tokens", batch, ids},
                      {"targets", batch, targets},
                      {"seed", {ElementType::I64, {}, {}}, seed}};
    program.observations = {{"dropped/toy", {ElementType::F64, {}, {}}},
                            {"loss", {ElementType::F64, {}, {}}},
                            {"gradient_norm", {ElementType::F64, {}, {}}}};
  }

  Instruction sum(uint32_t label, uint32_t buffer, uint32_t axis, std::vector<int64_t> shape) {
    program.collectives.push_back({CollectiveKind::AllReduce,
                                   ReductionKind::Sum,
                                   ElementType::F64,
                                   {axis},
                                   std::move(shape),
                                   0,
                                   0});
    return {Opcode::Collective,
            uint32_t(program.collectives.size() - 1),
            label,
            {read(buffer), write(buffer)},
            {}};
  }

  static Instruction observe(uint32_t observation, uint32_t label, uint32_t buffer) {
    return {Opcode::Observe, observation, label, {read(buffer)}, {}};
  }

  std::vector<Instruction> forward() {
    std::vector<Instruction> body = {
        kernel(kForward, 2, {read(table), read(ids), read(targets), write(difference)},
               {shard, tokens, {0, true}}),
        sum(2, difference, 1, {tokens}),
        kernel(kLoss, 3, {read(difference), write(part), update(loss)}, {tokens}),
        observe(0, 3, part)};
    body[1].stream = Stream::Communication;
    body[1].waits = {0};
    body[2].waits = {1};
    return body;
  }

  std::vector<Instruction> backward() const {
    return {kernel(kBackward, 4, {read(difference), read(ids), update(gradient)},
                   {shard, tokens, {0, true}})};
  }

  std::vector<Instruction> end() {
    return {sum(3, loss, 0, {}),
            observe(1, 3, loss),
            sum(4, gradient, 0, {shard}),
            kernel(kSquare, 5, {read(gradient), write(norm)}, {shard}),
            sum(5, norm, 1, {}),
            kernel(kRoot, 5, {update(norm)}, {}),
            observe(2, 5, norm),
            {Opcode::Agree, 0, 5, {}, {}},
            kernel(kUpdate, 5, {read(gradient), update(momentum), update(table)}, {shard})};
  }

  void addActions(const std::string &order) {
    std::istringstream words(order);
    for (std::string word; words >> word;) {
      const auto frame = uint32_t(word[3] - '0');
      program.step.push_back({word[0] == 'F' ? 2u : 3u, word[1] - '0', {{0, frame}}});
    }
  }

  Program program;
  const int64_t shard;
  /// Of one micro-batch.
  const int64_t tokens;
  uint32_t table = 0, momentum = 0, ids = 0, targets = 0, seed = 0, loss = 0, gradient = 0,
           norm = 0, difference = 0, part = 0;
};

void begin(void *const *buffers, const int64_t *immediates, const int64_t *, int64_t, int64_t,
           int64_t) {
  *static_cast<double *>(buffers[0]) = 0;
  std::fill_n(static_cast<double *>(buffers[1]), immediates[0], 0);
}

/// Leaves 0 for tokens of other ranks.
void forward(void *const *buffers, const int64_t *immediates, const int64_t *coordinates, int64_t,
             int64_t, int64_t) {
  auto [shard, tokens, microBatch] = std::tuple(immediates[0], immediates[1], immediates[2]);
  const double *table = static_cast<double *>(buffers[0]);
  const int32_t *ids = static_cast<int32_t *>(buffers[1]) + microBatch * tokens;
  const int32_t *targets = static_cast<int32_t *>(buffers[2]) + microBatch * tokens;
  double *difference = static_cast<double *>(buffers[3]);
  for (int64_t i = 0; i < tokens; ++i) {
    int64_t token = ids[i] - coordinates[1] * shard;
    bool isOwn = token >= 0 && token < shard;
    difference[i] = isOwn ? table[token] - targets[i] / 256.0 : 0;
  }
}

void loss(void *const *buffers, const int64_t *immediates, const int64_t *, int64_t, int64_t,
          int64_t) {
  const double *difference = static_cast<double *>(buffers[0]);
  double sum = 0;
  for (int64_t i = 0; i < immediates[0]; ++i) {
    sum += difference[i] * difference[i] / kTokens;
  }
  *static_cast<double *>(buffers[1]) = sum;
  *static_cast<double *>(buffers[2]) += sum;
}

void backward(void *const *buffers, const int64_t *immediates, const int64_t *coordinates, int64_t,
              int64_t, int64_t) {
  auto [shard, tokens, microBatch] = std::tuple(immediates[0], immediates[1], immediates[2]);
  const double *difference = static_cast<double *>(buffers[0]);
  const int32_t *ids = static_cast<int32_t *>(buffers[1]) + microBatch * tokens;
  double *gradient = static_cast<double *>(buffers[2]);
  for (int64_t i = 0; i < tokens; ++i) {
    int64_t token = ids[i] - coordinates[1] * shard;
    if (token >= 0 && token < shard) {
      gradient[token] += 2 * difference[i] / kTokens;
    }
  }
}

const int64_t kOnce[] = {1};

} // namespace

const KernelCode weft::rt::kToyPipelineKernels[] = {
    kToyKernels[0],       {begin, 1, kOnce}, {forward, 1, kOnce}, {loss, 1, kOnce},
    {backward, 1, kOnce}, kToyKernels[2],    kToyKernels[3],      kToyKernels[4]};

Program weft::rt::makeToyPipeline(int64_t data, int64_t model, const std::string &order,
                                  uint32_t frames) {
  return Maker(data, model).make(order, frames);
}
