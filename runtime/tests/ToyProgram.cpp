//===- ToyProgram.cpp - a small program made by hand ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/Toy.h"

#include <array>

using namespace weft::rt;

namespace {

class Maker {
public:
  Program program;

  uint32_t buffer(ElementType type, uint64_t elements, BufferClass kind, bool persistent = false) {
    uint64_t bytes = elements * sizeOf(type);
    program.buffers.push_back({bytes, program.arenaBytes, kind, persistent, type});
    program.arenaBytes += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return uint32_t(program.buffers.size() - 1);
  }

  uint32_t label(const char *text) {
    program.labels.push_back(text);
    return uint32_t(program.labels.size() - 1);
  }

  void kernel(std::vector<Instruction> &section, uint32_t number, const char *text,
              std::vector<Operand> operands, std::vector<int64_t> immediates) {
    section.push_back({Opcode::Kernel,
                       number,
                       label(text),
                       std::move(operands),
                       {immediates.begin(), immediates.end()}});
  }

  void sum(std::vector<Instruction> &section, const char *text, uint32_t buffer,
           std::vector<uint32_t> axes, std::vector<int64_t> shape) {
    program.collectives.push_back(
        {CollectiveKind::AllReduce, ReductionKind::Sum, ElementType::F64, axes, shape, 0, 0});
    section.push_back({Opcode::Collective,
                       uint32_t(program.collectives.size() - 1),
                       label(text),
                       {{buffer, Access::Read}, {buffer, Access::Write}},
                       {}});
  }

  /// Runs a collective of f64 across both rank classes, if there are two.
  void across(std::vector<Instruction> &section, const char *text, CollectiveKind kind,
              std::array<uint32_t, 2> buffers, std::vector<int64_t> shape) {
    if (program.rankClasses == 1) {
      return;
    }
    Collective collective = {.kind = kind, .type = ElementType::F64, .shape = std::move(shape)};
    collective.classes = {0, 1};
    collective.number = ++acrossCount;
    if (kind == CollectiveKind::Permute) {
      collective.sources = {1, 0};
    }
    program.collectives.push_back(collective);
    section.push_back({Opcode::Collective,
                       uint32_t(program.collectives.size() - 1),
                       label(text),
                       {{buffers[0], Access::Read}, {buffers[1], Access::Write}},
                       {}});
  }
  uint32_t acrossCount = 0;

  void observe(std::vector<Instruction> &section, const char *name, uint32_t buffer,
               const TensorLayout &layout) {
    program.observations.push_back({name, layout});
    section.push_back({Opcode::Observe,
                       uint32_t(program.observations.size() - 1),
                       label(name),
                       {{buffer, Access::Read}},
                       {}});
  }

  void agree(std::vector<Instruction> &section) {
    section.push_back({Opcode::Agree, 0, label("going on"), {}, {}});
  }
};

} // namespace

/// Returns the program of one of `classes` rank classes, which trains the table `name`.
static Program makeToyOf(int64_t data, int64_t model, const std::string &name, uint32_t rankClass,
                         uint32_t classes) {
  Maker make;
  Program &program = make.program;
  program.rankClass = rankClass;
  program.rankClasses = classes;
  program.modelName = "toy";
  program.planText = "data 2\n";
  program.planHash = "0123456789abcdef";
  program.mesh = {{"data", data}, {"model", model}};
  program.kernels = {{"toy_init"}, {"toy_gradient"}, {"toy_square"}, {"toy_root"}, {"toy_update"}};
  program.globalBatch = kToyBatch;
  program.sequenceLength = kToySequence;
  program.vocabulary = kToyVocabulary;
  program.defaultSteps = 5;
  program.defaultSeed = 7;
  program.stepFlops = 4.0 * kToyBatch * kToySequence;
  program.peakFlopsPerRank = 1e9;

  int64_t rows = kToyBatch / data, shard = kToyVocabulary / model;
  const TensorLayout whole = {ElementType::F64, {kToyVocabulary}, {{1}}};
  const TensorLayout tokensLayout = {ElementType::I32, {kToyBatch, kToySequence}, {{0}, {}}};
  const TensorLayout scalar = {ElementType::F64, {}, {}};

  uint32_t table = make.buffer(ElementType::F64, shard, BufferClass::Parameter, true);
  uint32_t momentum = make.buffer(ElementType::F64, shard, BufferClass::Optimizer, true);
  uint32_t tokens = make.buffer(ElementType::I32, rows * kToySequence, BufferClass::Input, true);
  uint32_t targets = make.buffer(ElementType::I32, rows * kToySequence, BufferClass::Input, true);
  uint32_t seed = make.buffer(ElementType::I64, 1, BufferClass::Input, true);
  uint32_t loss = make.buffer(ElementType::F64, 1, BufferClass::Activation);
  uint32_t gradient = make.buffer(ElementType::F64, shard, BufferClass::Gradient);
  uint32_t norm = make.buffer(ElementType::F64, 1, BufferClass::Activation);
  program.parameters = {{name, whole, table}};
  program.optimizerState = {{"momentum/" + name, whole, momentum}};
  program.inputs = {{"tokens", tokensLayout, tokens},
                    {"targets", tokensLayout, targets},
                    {"seed", {ElementType::I64, {}, {}}, seed}};

  make.kernel(program.initBody(), 0, "table: initial values",
              {{seed, Access::Read}, {table, Access::Write}, {momentum, Access::Write}}, {shard});
  make.kernel(program.stepBody(), 1, "table: loss and gradient",
              {{table, Access::Read},
               {tokens, Access::Read},
               {targets, Access::Read},
               {loss, Access::Write},
               {gradient, Access::Write}},
              {shard, rows * kToySequence, model});
  make.sum(program.stepBody(), "loss: sum over ranks", loss, {0, 1}, {});
  make.sum(program.stepBody(), "table: sum of gradients", gradient, {0}, {shard});
  make.across(program.stepBody(), "loss: sum over classes", CollectiveKind::AllReduce, {loss, loss},
              {});
  make.across(program.stepBody(), "table: sum over classes", CollectiveKind::AllReduce,
              {gradient, gradient}, {shard});
  make.observe(program.stepBody(), "loss", loss, scalar);
  make.observe(program.stepBody(), ("gradient/" + name).c_str(), gradient, whole);
  make.kernel(program.stepBody(), 2, "norm: squares",
              {{gradient, Access::Read}, {norm, Access::Write}}, {shard});
  make.sum(program.stepBody(), "norm: sum over shards", norm, {1}, {1});
  make.kernel(program.stepBody(), 3, "norm: root", {{norm, Access::ReadWrite}}, {});
  uint32_t seen = norm;
  if (classes > 1) { // Both have the same.
    seen = make.buffer(ElementType::F64, 1, BufferClass::Activation);
    make.across(program.stepBody(), "norm: of the other class", CollectiveKind::Permute,
                {norm, seen}, {1});
  }
  make.observe(program.stepBody(), "gradient_norm", seen, scalar);
  make.agree(program.stepBody());
  make.kernel(program.stepBody(), 4, "table: update",
              {{gradient, Access::Read}, {momentum, Access::ReadWrite}, {table, Access::ReadWrite}},
              {shard});

  // The sum of gradients beside the loss.
  program.stepBody()[2].stream = Stream::Communication;
  program.stepBody()[2].waits = {0};
  program.stepBody()[4].waits = {2};

  uint32_t validation = make.buffer(ElementType::F64, 1, BufferClass::Activation);
  uint32_t unused = make.buffer(ElementType::F64, shard, BufferClass::Activation);
  make.kernel(program.evaluateBody(), 1, "table: loss",
              {{table, Access::Read},
               {tokens, Access::Read},
               {targets, Access::Read},
               {validation, Access::Write},
               {unused, Access::Write}},
              {shard, rows * kToySequence, model});
  make.sum(program.evaluateBody(), "validation: sum over ranks", validation, {0, 1}, {});
  make.across(program.evaluateBody(), "validation: sum over classes", CollectiveKind::AllReduce,
              {validation, validation}, {});
  make.observe(program.evaluateBody(), "validation_loss", validation, scalar);
  make.agree(program.evaluateBody());
  return program;
}

Program weft::rt::makeToy(int64_t data, int64_t model) {
  Program program = makeToyOf(data, model, "table", 0, 1);
  program.certificate = certificateOf({&program, 1});
  return program;
}

Programs weft::rt::makeToyClasses(int64_t model) {
  Programs programs = {makeToyOf(1, model, "table", 0, 2), makeToyOf(1, model, "second", 1, 2)};
  programs[0].certificate = programs[1].certificate = certificateOf(programs);
  return programs;
}
