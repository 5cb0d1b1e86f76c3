//===- RandomPrograms.cpp - small programs of pipelines, drawn -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RandomPrograms.h"

#include "TablePlaces.h"
#include "weft/Schedule/Frames.h"
#include "weft/Schedule/Lifetimes.h"
#include "weft/Schedule/Streams.h"

#include <algorithm>

namespace weft::test {

namespace {

struct Shape {
  uint32_t classes = 1;
  int64_t microBatches = 1, ranks = 1;
};

/// Forward or backward of a micro-batch in a class.
struct Work {
  bool isBackward = false;
  uint32_t rankClass = 0;
  int64_t microBatch = 0;
};

/// Returns an order of all work in which each has what it needs.
std::vector<Work> drawOrder(const Shape &shape, Random &random) {
  // How many micro-batches each class has done.
  std::vector<int64_t> forward(shape.classes), backward(shape.classes);
  std::vector<Work> order;
  while (true) {
    std::vector<Work> next;
    for (uint32_t c = 0; c < shape.classes; ++c) {
      bool hasInput = c == 0 || forward[c] < forward[c - 1];
      if (forward[c] < shape.microBatches && hasInput) {
        next.push_back({false, c, forward[c]});
      }
      bool hasGradient = c + 1 == shape.classes || backward[c] < backward[c + 1];
      if (backward[c] < forward[c] && hasGradient) {
        next.push_back({true, c, backward[c]});
      }
    }
    if (next.empty()) {
      return order;
    }
    order.push_back(pick(next, random));
    ++(order.back().isBackward ? backward : forward)[order.back().rankClass];
  }
}

constexpr rt::Operand read(uint32_t buffer) { return {buffer, rt::Access::Read}; }
constexpr rt::Operand write(uint32_t buffer) { return {buffer, rt::Access::Write}; }
constexpr rt::Operand update(uint32_t buffer) { return {buffer, rt::Access::ReadWrite}; }

/// Numbers of bodies.
enum BodyNumber : uint32_t {
  kInit,
  kBegin,
  kForward,
  kBackward,
  kSendForth,
  kReceiveForth,
  kSendBack,
  kReceiveBack,
  kEnd
};
constexpr const char *kBodies[] = {"init",      "begin",        "forward",
                                   "backward",  "send forth",   "receive forth",
                                   "send back", "receive back", "end"};

class Maker {
public:
  Maker(const Shape &shape, uint32_t rankClass, Random &random)
      : shape(shape), random(random), sendsInBodies(random() % 2 == 0) {
    program.rankClass = rankClass;
    program.rankClasses = shape.classes;
    program.mesh = {{"dp", shape.ranks}};
    program.kernels = {{"any"}};
    program.labels = {""};
    program.globalBatch = program.microBatches = shape.microBatches;
    program.observations = {{"gradient_norm", {rt::ElementType::F32, {}, {}}}};
    for (const char *name : kBodies) {
      program.bodies.push_back({name, {}});
    }
  }

  rt::Program make(const std::vector<Work> &order) {
    addBuffers();
    fillBodies();
    program.init = {{kInit}};
    program.step = {{kBegin}};
    for (const Work &work : order) {
      follow(work);
    }
    program.step.push_back({kEnd});
    std::vector<bool> isOfMicroBatch(program.buffers.size(), false);
    for (uint32_t buffer : {input, saved, output, gradient, inputGradient}) {
      isOfMicroBatch[buffer] = true;
    }
    schedule::makeFrameSets(program, program.step, isOfMicroBatch);
    schedule::packArena(program);
    useStreams();
    return std::move(program);
  }

private:
  uint32_t addBuffer(int64_t elements, rt::BufferClass kind = rt::BufferClass::Activation) {
    rt::Buffer buffer;
    buffer.bytes = uint64_t(elements) * 4;
    buffer.kind = kind;
    program.buffers.push_back(buffer);
    return uint32_t(program.buffers.size() - 1);
  }

  void addBuffers() {
    weight = addBuffer(16, rt::BufferClass::Parameter);
    program.buffers[weight].persistent = true;
    program.parameters = {
        {"w" + std::to_string(program.rankClass), {rt::ElementType::F32, {16}, {{}}}, weight}};
    sum = addBuffer(16, rt::BufferClass::Gradient);
    norm = addBuffer(1);
    for (uint32_t *buffer : {&input, &output, &gradient, &inputGradient}) {
      *buffer = addBuffer(16);
    }
    saved = addBuffer(int64_t(1 + draw(40, random)));
  }

  void emit(BodyNumber body, rt::Opcode opcode, uint32_t target, std::vector<rt::Operand> operands,
            std::vector<rt::Immediate> immediates = {}) {
    rt::Instruction instruction = {opcode, target, 0, std::move(operands), std::move(immediates)};
    instruction.cost.seconds = opcode == rt::Opcode::Observe ? 0 : 1e-3;
    program.bodies[body].instructions.push_back(std::move(instruction));
  }
  void kernel(BodyNumber body, std::vector<rt::Operand> operands) {
    emit(body, rt::Opcode::Kernel, 0, std::move(operands), {{0, body == kForward}});
  }

  void sumOverRanks(BodyNumber body, uint32_t buffer) {
    auto elements = int64_t(program.buffers[buffer].bytes / 4);
    program.collectives.push_back({.axes = {0}, .shape = {elements}});
    emit(body, rt::Opcode::Collective, uint32_t(program.collectives.size() - 1),
         {read(buffer), write(buffer)});
  }

  /// Numbers of transfers: forth from class c is 2 c + 1, back to it is 2 c + 2.
  void transfer(BodyNumber body, uint32_t from, uint32_t to, uint32_t buffer) {
    rt::Collective made = {.kind = rt::CollectiveKind::Transfer, .shape = {16}};
    made.classes = {from, to};
    made.number = 2 * std::min(from, to) + (from < to ? 1 : 2);
    program.collectives.push_back(made);
    emit(body, rt::Opcode::Collective, uint32_t(program.collectives.size() - 1),
         {from == program.rankClass ? read(buffer) : write(buffer)});
  }

  /// A few kernels, and sums over ranks, that turn one value into another.
  void computeBetween(BodyNumber body, uint32_t from, uint32_t to) {
    uint32_t last = from;
    for (size_t left = draw(4, random); left > 0; --left) {
      uint32_t next = addBuffer(int64_t(1 + draw(32, random)));
      kernel(body, {read(last), write(next)});
      if (random() % 2 == 0) {
        sumOverRanks(body, next);
        uint32_t other = addBuffer(16);
        kernel(body, {read(from), write(other)});
        kernel(body, {read(other), update(next)});
      }
      last = next;
    }
    kernel(body, {read(last), read(weight), write(to)});
  }

  bool isFirst() const { return program.rankClass == 0; }
  bool isLast() const { return program.rankClass + 1 == shape.classes; }

  void fillBodies() {
    const uint32_t own = program.rankClass;
    kernel(kInit, {write(weight)});
    kernel(kBegin, {write(sum)});
    if (isFirst()) {
      kernel(kForward, {read(weight), write(input)});
    }
    computeBetween(kForward, input, saved);
    kernel(kForward, {read(saved), write(output)});
    if (isLast()) {
      kernel(kBackward, {read(output), write(gradient)});
    }
    computeBetween(kBackward, gradient, inputGradient);
    kernel(kBackward, {read(saved), read(inputGradient), update(sum)});
    if (!isLast()) {
      transfer(sendsInBodies ? kForward : kSendForth, own, own + 1, output);
      transfer(kReceiveBack, own + 1, own, gradient);
    }
    if (!isFirst()) {
      transfer(kReceiveForth, own - 1, own, input);
      transfer(sendsInBodies ? kBackward : kSendBack, own, own - 1, inputGradient);
    }
    sumOverRanks(kEnd, sum);
    kernel(kEnd, {read(sum), write(norm)});
    if (isFirst()) {
      emit(kEnd, rt::Opcode::Observe, 0, {read(norm)});
    }
    emit(kEnd, rt::Opcode::Agree, 0, {});
    kernel(kEnd, {read(sum), update(weight)});
  }

  void follow(const Work &work) {
    const uint32_t own = program.rankClass;
    uint32_t partner = work.isBackward ? work.rankClass - 1 : work.rankClass + 1;
    bool isSent = partner < shape.classes;
    if (work.rankClass == own) {
      program.step.push_back({work.isBackward ? kBackward : kForward, work.microBatch});
      if (isSent && !sendsInBodies) {
        program.step.push_back({work.isBackward ? kSendBack : kSendForth, work.microBatch});
      }
    } else if (isSent && partner == own) {
      program.step.push_back({work.isBackward ? kReceiveBack : kReceiveForth, work.microBatch});
    }
  }

  /// As the compiler does, or any collectives of a group on the other stream.
  void useStreams() {
    if (random() % 2 == 0) {
      schedule::assignStreams(program);
      return;
    }
    for (uint32_t body = 0; body < program.bodies.size(); ++body) {
      for (rt::Instruction &instruction : program.bodies[body].instructions) {
        if (isOfGroup(program, instruction) && random() % 2 == 0) {
          instruction.stream = rt::Stream::Communication;
        }
      }
      schedule::setWaits(program, body);
    }
  }

  const Shape shape;
  Random &random;
  const bool sendsInBodies;
  rt::Program program;
  uint32_t weight = 0, sum = 0, norm = 0, input = 0, saved = 0, output = 0, gradient = 0,
           inputGradient = 0;
};

} // namespace

rt::Programs drawPrograms(Random &random) {
  Shape shape = {uint32_t(1 + draw(3, random)), int64_t(1 + draw(4, random)),
                 int64_t(1 + draw(2, random))};
  std::vector<Work> order = drawOrder(shape, random);
  rt::Programs programs;
  for (uint32_t rankClass = 0; rankClass < shape.classes; ++rankClass) {
    programs.push_back(Maker(shape, rankClass, random).make(order));
  }
  return programs;
}

} // namespace weft::test
