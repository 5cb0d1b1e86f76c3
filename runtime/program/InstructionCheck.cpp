//===- InstructionCheck.cpp - checks of a program's instructions ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "program/ProgramCheck.h"
#include "support/CheckedMath.h"
#include "support/Text.h"
#include "weft-rt/Expansion.h"

#include <algorithm>

using namespace weft::rt;

namespace {

/// Checks the instructions of one program.
class InstructionChecker {
public:
  explicit InstructionChecker(const Program &program) : program(program) {}

  Status check() {
    for (const Body &body : program.bodies) {
      if (Status status = checkBody(body); !status) {
        return status;
      }
    }
    const std::pair<const char *, const std::vector<Action> *> sections[] = {
        {"init", &program.init}, {"step", &program.step}, {"evaluate", &program.evaluate}};
    for (auto [name, actions] : sections) {
      if (Status status = checkActions(name, *actions); !status) {
        return status;
      }
    }
    if (Status status = checkEvaluate(); !status) {
      return status;
    }
    for (auto [name, actions] : sections) {
      if (Status status = checkAgreement(name, *actions); !status) {
        return status;
      }
    }
    return {};
  }

private:
  Status checkBody(const Body &body);
  Status checkActions(const char *section, const std::vector<Action> &actions);
  Status checkWaits(const std::string &where, const std::vector<Instruction> &instructions,
                    size_t number);
  Status checkEvaluate();
  Status checkAgreement(const char *section, const std::vector<Action> &actions);
  bool mayEndRun(const Instruction &instruction) const;
  Status checkTarget(const std::string &where, const Instruction &instruction);
  Status checkOperands(const std::string &where, const Instruction &instruction);
  Status checkMatmulOperands(const std::string &where, const Instruction &instruction);
  Status checkCollectiveOperands(const std::string &where, const Instruction &instruction);

  const Program &program;
};

/// Checks and reports walk through all instructions of a section.
static constexpr uint64_t kMostInstructions = uint64_t(1) << 28;

/// Returns the number of the first instruction that `isOne` is true of; none if there is none.
static std::optional<size_t> findFirst(const Body &body, bool (*isOne)(const Instruction &)) {
  auto found = std::find_if(body.instructions.begin(), body.instructions.end(), isOne);
  return found == body.instructions.end()
             ? std::nullopt
             : std::optional(size_t(found - body.instructions.begin()));
}

static bool observes(const Instruction &instruction) {
  return instruction.opcode == Opcode::Observe;
}

static bool needsMicroBatch(const Instruction &instruction) {
  return std::any_of(instruction.immediates.begin(), instruction.immediates.end(),
                     [](const Immediate &immediate) { return immediate.addsMicroBatch; });
}

Status InstructionChecker::checkActions(const char *section, const std::vector<Action> &actions) {
  std::vector<std::optional<size_t>> observing, needing;
  std::vector<std::vector<FrameSetUse>> framed;
  for (const Body &body : program.bodies) {
    framed.push_back(findFrameSetUses(program, body));
    observing.push_back(findFirst(body, observes));
    needing.push_back(findFirst(body, needsMicroBatch));
  }
  uint64_t count = 0;
  for (size_t i = 0; i < actions.size(); ++i) {
    const Action &action = actions[i];
    auto where = [&] { return concat(section, " action ", i); };
    if (action.body >= program.bodies.size()) {
      return makeError(where(), " runs body ", action.body, ", the program has ",
                       program.bodies.size());
    }
    const Body &body = program.bodies[action.body];
    if (action.microBatch &&
        (*action.microBatch < 0 || *action.microBatch >= program.microBatches)) {
      return makeError(where(), " is for micro-batch ", *action.microBatch, ", the program has ",
                       program.microBatches);
    }
    if (observing[action.body] && &actions == &program.init) {
      return makeError(body.name, " instruction ", *observing[action.body],
                       " observes, which only step and evaluate may do");
    }
    if (needing[action.body] && !action.microBatch) {
      return makeError(where(), " is for no micro-batch, but ", body.name, " instruction ",
                       *needing[action.body], " needs the number of one");
    }
    count += body.instructions.size();
  }
  if (count > kMostInstructions) {
    return makeError(section, " runs ", count, " instructions, expected at most ",
                     kMostInstructions);
  }
  for (size_t i = 0; i < actions.size(); ++i) {
    if (Status status = checkFrames(program, section, i, actions[i], framed[actions[i].body]);
        !status) {
      return status;
    }
  }
  return {};
}

Status InstructionChecker::checkBody(const Body &body) {
  const std::vector<Instruction> &instructions = body.instructions;
  for (size_t i = 0; i < instructions.size(); ++i) {
    const Instruction &instruction = instructions[i];
    std::string where = concat(body.name, " instruction ", i);
    if (instruction.label >= program.labels.size()) {
      return makeError(where, " has label ", instruction.label, ", the program has ",
                       program.labels.size());
    }
    const Cost &cost = instruction.cost;
    for (double number : {cost.flops, cost.bytes, cost.seconds}) {
      if (!isAmount(number)) {
        return makeError(where, " costs ", number, ", expected a finite number, 0 or more");
      }
    }
    if (!(cost.share >= 0 && cost.share <= 1)) {
      return makeError(where, " takes ", cost.share,
                       " of the rate of computation, expected a number from 0 to 1");
    }
    if (Status status = checkTarget(where, instruction); !status) {
      return status;
    }
    if (Status status = checkOperands(where, instruction); !status) {
      return status;
    }
    if (Status status = checkWaits(where, instructions, i); !status) {
      return status;
    }
  }
  return {};
}

Status InstructionChecker::checkWaits(const std::string &where,
                                      const std::vector<Instruction> &instructions, size_t number) {
  const Instruction &instruction = instructions[number];
  bool isOfHost = instruction.opcode == Opcode::Observe || instruction.opcode == Opcode::Agree;
  if (isOfHost && instruction.stream != Stream::Compute) {
    return makeError(where, instruction.opcode == Opcode::Agree ? " agrees" : " observes", " on ",
                     nameOf(instruction.stream), ", expected compute");
  }
  for (size_t i = 0; i < instruction.waits.size(); ++i) {
    uint32_t other = instruction.waits[i];
    if (other >= number || instructions[other].stream == instruction.stream) {
      return makeError(where, " waits for instruction ", other,
                       ", expected an earlier one of another stream");
    }
    if (i > 0 && other <= instruction.waits[i - 1]) {
      return makeError(where, " waits for instruction ", other, " after ", instruction.waits[i - 1],
                       ", expected ascending numbers");
    }
  }
  return {};
}

/// A validation must not change the training state.
Status InstructionChecker::checkEvaluate() {
  // The first class reports.
  bool observes = program.evaluate.empty() || program.rankClass > 0;
  size_t i = 0;
  for (const Instruction &instruction : Expansion(program, program.evaluate)) {
    for (const Operand &operand : instruction.operands) {
      if (operand.access != Access::Read && program.buffers[operand.buffer].persistent) {
        return makeError("evaluate instruction ", i, " writes buffer ", operand.buffer,
                         ", which is persistent");
      }
    }
    if (instruction.opcode == Opcode::Observe) {
      const std::string &name = program.observations[instruction.target].name;
      if (name != "validation_loss" && name != "logits" && !name.starts_with("validation_load/")) {
        return makeError("evaluate instruction ", i, " observes '", name,
                         "', expected validation_loss, validation_load or logits");
      }
      observes = observes || name == "validation_loss";
    }
    ++i;
  }
  if (!observes) {
    return makeError("evaluate does not observe validation_loss");
  }
  return {};
}

/// Checks that ranks agree once, after all that may end the run, and that a section has changed
/// nothing lasting by then.
Status InstructionChecker::checkAgreement(const char *section, const std::vector<Action> &actions) {
  std::optional<size_t> asked, written, agreed;
  size_t number = 0;
  for (const Instruction &instruction : Expansion(program, actions)) {
    auto lasts = [&](const Operand &operand) {
      return operand.access != Access::Read && program.buffers[operand.buffer].persistent;
    };
    bool writes = std::any_of(instruction.operands.begin(), instruction.operands.end(), lasts);
    written = written || !writes ? written : std::optional(number);
    if (instruction.opcode == Opcode::Agree) {
      if (agreed || written) {
        return makeError(section, " instruction ", number, " agrees to go on, after instruction ",
                         agreed ? *agreed : *written,
                         agreed ? " did, expected once in a section"
                                : " wrote a persistent buffer");
      }
      agreed = number;
    } else if (mayEndRun(instruction)) {
      asked = number;
    }
    ++number;
  }
  if (!asked || (agreed && *agreed > *asked)) {
    return {};
  }
  const Instruction &last = Expansion(program, actions)[*asked];
  return makeError(section, " instruction ", *asked, " observes '",
                   program.observations[last.target].name,
                   "', but ranks do not agree to go on after it");
}

/// Returns true if the instruction observes a value that can end the run.
bool InstructionChecker::mayEndRun(const Instruction &instruction) const {
  return instruction.opcode == Opcode::Observe &&
         (decidesRun(program.observations[instruction.target]) ||
          program.observations[instruction.target].limit > 0);
}

Status InstructionChecker::checkTarget(const std::string &where, const Instruction &instruction) {
  const size_t counts[] = {program.kernels.size(), program.matmuls.size(),
                           program.collectives.size(), program.observations.size(), 1};
  static constexpr const char *kinds[] = {"kernel", "matmul", "collective", "observation",
                                          "agreement"};
  size_t opcode = size_t(instruction.opcode);
  if (instruction.target >= counts[opcode]) {
    return makeError(where, " names ", kinds[opcode], " ", instruction.target, ", the program has ",
                     counts[opcode]);
  }
  return {};
}

Status InstructionChecker::checkOperands(const std::string &where, const Instruction &instruction) {
  for (const Operand &operand : instruction.operands) {
    if (operand.buffer >= program.buffers.size()) {
      return makeError(where, " names buffer ", operand.buffer, ", the program has ",
                       program.buffers.size());
    }
  }
  if (instruction.opcode == Opcode::Kernel) {
    // Only the code of other kernels knows the sizes that it needs.
    if (!program.kernels[instruction.target].attention) {
      return {};
    }
    return checkAttentionOperands(program, where, instruction);
  }
  bool isMatmul = instruction.opcode == Opcode::Matmul;
  bool isTransfer = instruction.opcode == Opcode::Collective &&
                    program.collectives[instruction.target].kind == CollectiveKind::Transfer;
  size_t expected = isMatmul ? program.matmuls[instruction.target].operandCount()
                    : instruction.opcode == Opcode::Agree                     ? 0
                    : instruction.opcode == Opcode::Collective && !isTransfer ? 2
                                                                              : 1;
  if (instruction.operands.size() != expected) {
    return makeError(where, " has ", instruction.operands.size(), " operands, expected ", expected);
  }
  if (isMatmul) {
    return checkMatmulOperands(where, instruction);
  }
  if (instruction.opcode == Opcode::Collective) {
    return checkCollectiveOperands(where, instruction);
  }
  if (instruction.opcode == Opcode::Agree) {
    return {};
  }
  const TensorLayout &layout = program.observations[instruction.target].layout;
  return checkRoom(program, where, instruction.operands[0].buffer, layout.type,
                   elementCount(localShape(layout, program.mesh)));
}

Status InstructionChecker::checkMatmulOperands(const std::string &where,
                                               const Instruction &instruction) {
  const Matmul &matmul = program.matmuls[instruction.target];
  // The elements from the beginning of the first matrix to the end of the last.
  auto extent = [&](int64_t rows, int64_t columns, int64_t ld, int64_t stride) -> uint64_t {
    if (rows == 0 || columns == 0 || matmul.batch == 0) {
      return 0;
    }
    uint64_t matrix = saturatingAdd(saturatingMul(uint64_t(rows - 1), uint64_t(ld)), columns);
    return saturatingAdd(saturatingMul(uint64_t(matmul.batch - 1), uint64_t(stride)), matrix);
  };
  uint64_t a = matmul.transposeA ? extent(matmul.k, matmul.m, matmul.lda, matmul.strideA)
                                 : extent(matmul.m, matmul.k, matmul.lda, matmul.strideA);
  uint64_t b = matmul.transposeB ? extent(matmul.n, matmul.k, matmul.ldb, matmul.strideB)
                                 : extent(matmul.k, matmul.n, matmul.ldb, matmul.strideB);
  uint64_t c = extent(matmul.m, matmul.n, matmul.ldc, matmul.strideC);
  const Epilogue &epilogue = matmul.epilogue;
  ElementType result = matmul.resultType();
  bool sums = epilogue.sums != Epilogue::Sums::None;
  int64_t sumCount = epilogue.sums == Epilogue::Sums::OfA ? matmul.m : matmul.n;
  struct Need {
    bool isThere;
    ElementType type;
    uint64_t elements;
  };
  const Need needs[] = {{true, matmul.type, a},
                        {true, matmul.typeOfB(), b},
                        {true, result, c},
                        {epilogue.hasAddend, result, c},
                        {epilogue.hasBias, result, uint64_t(matmul.n)},
                        {epilogue.hasAux, result, c},
                        {sums, result, uint64_t(sumCount)},
                        {matmul.isFp8(), ElementType::F32, 1},
                        {matmul.isFp8(), ElementType::F32, 1}};
  auto next = instruction.operands.begin();
  for (const auto &[isThere, type, elements] : needs) {
    if (!isThere) {
      continue;
    }
    if (Status status = checkRoom(program, where, (next++)->buffer, type, elements); !status) {
      return status;
    }
  }
  if (matmul.workspaceBytes == 0) {
    return {};
  }
  return checkWorkspace(program, where, next->buffer, matmul.workspaceBytes);
}

Status InstructionChecker::checkCollectiveOperands(const std::string &where,
                                                   const Instruction &instruction) {
  const Collective &collective = program.collectives[instruction.target];
  uint32_t operand = instruction.operands.front().buffer,
           result = instruction.operands.back().buffer;
  if (collective.kind == CollectiveKind::Transfer) {
    bool isSender = program.rankClass == collective.classes.front();
    Access access = isSender ? Access::Read : Access::Write;
    if (instruction.operands.front().access != access) {
      return makeError(where, isSender ? " sends a buffer that it does not read"
                                       : " receives a buffer that it does not write");
    }
    return checkRoom(program, where, operand, collective.type, elementCount(collective.shape));
  }
  if (operand == result && collective.kind != CollectiveKind::AllReduce) {
    return makeError(where, " has buffer ", operand, " as operand and result of ",
                     nameOf(collective.kind), "; only all-reduce may");
  }
  uint64_t size = elementCount(collective.shape);
  uint64_t resultSize = size;
  if (collective.kind == CollectiveKind::AllGather) {
    resultSize = saturatingMul(size, program.groupSize(collective));
  } else if (collective.kind == CollectiveKind::ReduceScatter) {
    resultSize = size / program.groupSize(collective);
  }
  if (Status status = checkRoom(program, where, operand, collective.type, size); !status) {
    return status;
  }
  return checkRoom(program, where, result, collective.type, resultSize);
}

} // namespace

Status weft::rt::checkInstructions(const Program &program) {
  return InstructionChecker(program).check();
}
