//===- NonFinite.cpp - finds the origin of a non-finite value -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "execution/NonFinite.h"

#include "support/Elements.h"
#include "support/Text.h"
#include "weft-rt/Expansion.h"

#include <cmath>
#include <limits>
#include <tuple>

using namespace weft::rt;

namespace {

/// Keeps the first finding of each kind.
class Search {
public:
  Search(const Program &program, const Executor &executor) : program(program), executor(executor) {}

  void look(int64_t instruction, uint32_t buffer, uint32_t frame = 0) {
    const Buffer &place = program.buffers[buffer];
    if (isFloat(place.type)) {
      visitElement(place.type, [&]<typename T>(T) {
        lookTyped<T>(instruction, buffer, frame, place.bytes / sizeof(T));
      });
    }
  }

  std::optional<Finding> first() const { return bad ? bad : masked; }

private:
  template <typename T>
  void lookTyped(int64_t instruction, uint32_t buffer, uint32_t frame, uint64_t count) {
    BufferView view = executor.view(buffer, frame);
    const T *values = static_cast<const T *>(view.data());
    for (uint64_t i = 0; i < count && !bad; ++i) {
      auto value = double(values[i]);
      if (std::isfinite(value)) {
        continue;
      }
      bool isMask = value == -std::numeric_limits<double>::infinity();
      std::optional<Finding> &found = isMask ? masked : bad;
      if (!found) {
        found = Finding{executor.rank(), instruction, buffer, i, value};
      }
    }
  }

  const Program &program;
  const Executor &executor;
  /// The first NaN or +inf, and the first -inf.
  std::optional<Finding> bad, masked;
};

} // namespace

std::optional<Finding> weft::rt::replayStep(const Program &program, Executor &executor) {
  Search search(program, executor);
  for (const auto *tensors : {&program.parameters, &program.optimizerState}) {
    for (const NamedTensor &tensor : *tensors) {
      search.look(-1, tensor.buffer);
    }
  }
  // All instructions run even after a finding, because partners wait in collectives.
  Expansion step(program, program.step);
  for (size_t index = 0; index <= executor.stoppedAt(); ++index) {
    if (executor.runStepInstruction(index) == Outcome::Stopped) {
      return {};
    }
    const std::vector<FrameUse> &frames = step.action(step.actionOf(index)).frames;
    for (const Operand &operand : step[index].operands) {
      if (operand.access != Access::Read) {
        search.look(int64_t(index), operand.buffer, program.frameOf(operand.buffer, frames));
      }
    }
  }
  std::optional<Finding> found = search.first();
  if (found && found->instruction >= 0) {
    const Instruction &one = step[size_t(found->instruction)];
    found->isReceived =
        one.opcode == Opcode::Collective && program.collectives[one.target].isAcrossClasses();
  }
  return found;
}

/// Returns " on rank 3 of class 1".
static std::string placeOf(const Program &program, const Finding &finding) {
  return concat(" on rank ", finding.rank,
                program.rankClasses > 1 ? concat(" of class ", program.rankClass) : "");
}

std::optional<Finding> weft::rt::earliest(std::span<const std::optional<Finding>> findings) {
  auto key = [](const Finding &finding) {
    bool isMask = std::isinf(finding.value) && finding.value < 0;
    return std::tuple(isMask, finding.isReceived, finding.instruction, finding.rank);
  };
  std::optional<Finding> best;
  for (const std::optional<Finding> &finding : findings) {
    if (finding && (!best || key(*finding) < key(*best))) {
      best = finding;
    }
  }
  return best;
}

std::string weft::rt::describe(const Program &program, const Finding &finding) {
  std::string value = std::isnan(finding.value) ? "nan" : finding.value > 0 ? "inf" : "-inf";
  if (finding.instruction >= 0) {
    Expansion step(program, program.step);
    const Action &action = step.action(step.actionOf(size_t(finding.instruction)));
    const uint32_t frame = program.frameOf(finding.buffer, action.frames);
    return concat("the first value that is not finite is ", value, ", element ", finding.element,
                  " of ", nameOf(program, finding.buffer, frame), ", written by step instruction ",
                  finding.instruction, " (", step.label(size_t(finding.instruction)), ")",
                  placeOf(program, finding));
  }
  for (const auto *tensors : {&program.parameters, &program.optimizerState}) {
    for (const NamedTensor &tensor : *tensors) {
      if (tensor.buffer == finding.buffer) {
        return concat("'", tensor.name, "' held ", value, " already before the step, in element ",
                      finding.element, " of its shard", placeOf(program, finding));
      }
    }
  }
  return "";
}
