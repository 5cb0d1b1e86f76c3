//===- SyntheticProgram.cpp - programs like those of transformers ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SyntheticProgram.h"

#include "weft/Schedule/Lifetimes.h"

#include <optional>
#include <random>

using namespace weft;
using namespace weft::test;

namespace {

constexpr uint32_t kData = 0, kTensor = 1;

class Builder {
public:
  /// `rankClass` is empty if all ranks are one class.
  explicit Builder(const SyntheticShape &shape, std::optional<int64_t> rankClass = {})
      : shape(shape) {
    program.modelName = "synthetic";
    program.planHash = "0";
    program.mesh = {{"dp", shape.dataRanks}, {"tp", shape.tensorRanks}};
    if (rankClass) {
      program.mesh[kData].size = 1;
      program.rankClass = *rankClass;
      program.rankClasses = shape.dataRanks;
    }
    program.kernels = {{"fill"}, {"activate"}, {"scale"}, {"update"}, {"loss"}};
    program.labels = {"init", "forward", "backward", "update"};
    program.observations = {{"loss", {rt::ElementType::F32, {}, {}}}};
  }

  rt::Program build() {
    for (int64_t i = 0; i < shape.layers; ++i) {
      weights.push_back(addWeight(i));
      emit(program.initBody(), rt::Opcode::Kernel, 0, 0, {{weights.back(), rt::Access::Write}},
           {i});
    }
    buildStep();
    schedule::packArena(program);
    return std::move(program);
  }

private:
  uint32_t addBuffer(int64_t elements, rt::BufferClass kind = rt::BufferClass::Activation) {
    rt::Buffer buffer;
    buffer.bytes = elements * 4;
    buffer.kind = kind;
    program.buffers.push_back(buffer);
    return program.buffers.size() - 1;
  }

  uint32_t addWeight(int64_t layer) {
    uint32_t buffer = addBuffer(shape.hidden * shape.hidden, rt::BufferClass::Parameter);
    program.buffers[buffer].persistent = true;
    rt::TensorLayout layout{
        rt::ElementType::F32, {shape.hidden * shape.tensorRanks, shape.hidden}, {{kTensor}, {}}};
    program.parameters.push_back({"w" + std::to_string(layer), layout, buffer});
    return buffer;
  }

  void emit(std::vector<rt::Instruction> &section, rt::Opcode opcode, uint32_t target,
            uint32_t label, std::vector<rt::Operand> operands,
            std::vector<rt::Immediate> immediates = {}) {
    section.push_back({opcode, target, label, std::move(operands), std::move(immediates)});
  }

  void matmul(rt::Matmul matmul, uint32_t label, uint32_t a, uint32_t b, uint32_t c) {
    program.matmuls.push_back(matmul);
    emit(program.stepBody(), rt::Opcode::Matmul, program.matmuls.size() - 1, label,
         {{a, rt::Access::Read}, {b, rt::Access::Read}, {c, rt::Access::Write}});
  }

  /// Emits a collective; where "dp" is of rank classes, those over it are across classes.
  void collective(rt::Collective collective, uint32_t label, uint32_t from, uint32_t to) {
    if (program.rankClasses > 1 && collective.axes == std::vector<uint32_t>{kData}) {
      collective.axes.clear();
      for (uint32_t number = 0; number < program.rankClasses; ++number) {
        collective.classes.push_back(number);
      }
      collective.number = ++acrossCount;
    }
    program.collectives.push_back(std::move(collective));
    emit(program.stepBody(), rt::Opcode::Collective, program.collectives.size() - 1, label,
         {{from, rt::Access::Read}, {to, rt::Access::Write}});
  }

  void kernel(uint32_t number, uint32_t label, std::vector<rt::Operand> operands) {
    emit(program.stepBody(), rt::Opcode::Kernel, number, label, std::move(operands));
  }

  /// x Wᵀ, then an activation, then the sum over "tp".
  uint32_t forward(int64_t layer, uint32_t x) {
    int64_t t = shape.tokens, h = shape.hidden;
    uint32_t y = addBuffer(t * h), z = addBuffer(t * h);
    matmul({rt::ElementType::F32, false, true, t, h, h, h, h, h}, 1, x, weights[layer], y);
    kernel(1, 1, {{y, rt::Access::Read}, {z, rt::Access::Write}});
    collective({rt::CollectiveKind::AllReduce,
                rt::ReductionKind::Sum,
                rt::ElementType::F32,
                {kTensor},
                {t, h},
                0,
                0},
               1, z, z);
    saved.push_back({x, y});
    return z;
  }

  /// The gradients of x and W, the latter summed over "dp".
  uint32_t backward(int64_t layer, uint32_t gradient) {
    int64_t t = shape.tokens, h = shape.hidden;
    auto [x, y] = saved[layer];
    uint32_t dy = addBuffer(t * h), dx = addBuffer(t * h);
    uint32_t dw = addBuffer(h * h, rt::BufferClass::Gradient);
    kernel(2, 2, {{y, rt::Access::Read}, {gradient, rt::Access::Read}, {dy, rt::Access::Write}});
    matmul({rt::ElementType::F32, false, false, t, h, h, h, h, h}, 2, dy, weights[layer], dx);
    matmul({rt::ElementType::F32, true, false, h, h, t, h, h, h}, 2, dy, x, dw);
    collective({rt::CollectiveKind::AllReduce,
                rt::ReductionKind::Sum,
                rt::ElementType::F32,
                {kData},
                {h, h},
                0,
                0},
               2, dw, dw);
    gradients.push_back(dw);
    return dx;
  }

  void buildStep() {
    int64_t t = shape.tokens, h = shape.hidden, tp = shape.tensorRanks, dp = shape.dataRanks;
    uint32_t x = addBuffer(t * h), shards = addBuffer(t / tp * h), whole = addBuffer(t * h);
    kernel(0, 1, {{x, rt::Access::Write}});
    collective({rt::CollectiveKind::ReduceScatter,
                rt::ReductionKind::Sum,
                rt::ElementType::F32,
                {kTensor},
                {t, h},
                0,
                0},
               1, x, shards);
    collective({rt::CollectiveKind::AllGather,
                rt::ReductionKind::Sum,
                rt::ElementType::F32,
                {kTensor},
                {t / tp, h},
                0,
                0},
               1, shards, whole);
    uint32_t turned = addBuffer(t * h);
    collective({rt::CollectiveKind::AllToAll,
                rt::ReductionKind::Sum,
                rt::ElementType::F32,
                {kData},
                {t / dp, h * dp},
                1,
                0},
               1, whole, turned);
    for (int64_t i = 0; i < shape.layers; ++i) {
      turned = forward(i, turned);
    }
    uint32_t loss = addBuffer(1), gradient = addBuffer(t * h);
    kernel(4, 1,
           {{turned, rt::Access::Read}, {loss, rt::Access::Write}, {gradient, rt::Access::Write}});
    for (std::vector<uint32_t> axes : lossAxes()) {
      collective({.reduction = rt::ReductionKind::Max, .axes = std::move(axes)}, 1, loss, loss);
    }
    emit(program.stepBody(), rt::Opcode::Observe, 0, 1, {{loss, rt::Access::Read}});
    emit(program.stepBody(), rt::Opcode::Agree, 0, 1, {});
    for (int64_t i = shape.layers; i-- > 0;) {
      gradient = backward(i, gradient);
    }
    for (int64_t i = 0; i < shape.layers; ++i) {
      kernel(3, 3,
             {{weights[i], rt::Access::ReadWrite},
              {gradients[shape.layers - 1 - i], rt::Access::Read}});
    }
  }

  std::vector<std::vector<uint32_t>> lossAxes() const {
    return program.rankClasses > 1 ? std::vector<std::vector<uint32_t>>{{kTensor}, {kData}}
                                   : std::vector<std::vector<uint32_t>>{{kData, kTensor}};
  }

  SyntheticShape shape;
  rt::Program program;
  uint32_t acrossCount = 0;
  std::vector<uint32_t> weights, gradients;
  std::vector<std::pair<uint32_t, uint32_t>> saved;
};

} // namespace

rt::Program weft::test::makeProgram(const SyntheticShape &shape) { return Builder(shape).build(); }

rt::Programs weft::test::makeClasses(const SyntheticShape &shape) {
  rt::Programs programs;
  for (int64_t number = 0; number < shape.dataRanks; ++number) {
    programs.push_back(Builder(shape, number).build());
  }
  return programs;
}

schedule::ArenaProblem weft::test::makeStepProblem(int64_t layers, uint64_t seed) {
  std::mt19937_64 random(seed);
  // Sizes of a layer's five saved results and five temporaries, the same for every layer.
  std::vector<uint64_t> saved, temporary;
  for (int i = 0; i < 5; ++i) {
    saved.push_back((1 + random() % 64) * 65536);
    temporary.push_back((1 + random() % 256) * 65536);
  }
  schedule::ArenaProblem problem;
  int64_t span = 8, end = 2 * layers * span;
  for (int64_t layer = 0; layer < layers; ++layer) {
    int64_t forward = layer * span, backward = end - (layer + 1) * span;
    uint64_t weight = (1 + random() % 16) * 262144;
    problem.buffers.push_back({weight, 0, end});
    problem.buffers.push_back({weight, backward + int64_t(random() % span), end});
    for (int i = 0; i < 5; ++i) {
      int64_t at = forward + i;
      problem.buffers.push_back({saved[i], at, backward + span - 1 - i});
      problem.buffers.push_back({temporary[i], at, at + 1 + int64_t(random() % 3)});
      problem.buffers.push_back({temporary[i], backward + i, backward + i + 2});
      problem.buffers.push_back({saved[i], backward + i, backward + span});
    }
  }
  return problem;
}
