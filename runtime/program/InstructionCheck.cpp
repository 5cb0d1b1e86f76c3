//===- InstructionCheck.cpp - checks of a program's instructions ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "program/ProgramCheck.h"
#include "support/CheckedMath.h"
#include "support/Text.h"

using namespace weft::rt;

namespace {

/// Checks the instructions of one program. Every method returns false after putting the fault into
/// `error`.
class InstructionChecker {
public:
  InstructionChecker(const Program &program, std::string &error) : program(program), error(error) {}

  bool check() {
    return checkSection("init", program.init) && checkSection("step", program.step) &&
           checkSection("evaluate", program.evaluate) && checkEvaluate() &&
           checkLimits("step", program.step) && checkLimits("evaluate", program.evaluate);
  }

private:
  bool checkSection(const char *section, const std::vector<Instruction> &instructions);
  bool checkWaits(const std::string &where, const std::vector<Instruction> &instructions,
                  size_t number);
  bool checkEvaluate();
  bool checkLimits(const char *section, const std::vector<Instruction> &instructions);
  bool checkTarget(const std::string &where, const Instruction &instruction);
  bool checkOperands(const std::string &where, const Instruction &instruction);
  bool checkMatmulOperands(const std::string &where, const Instruction &instruction);
  bool checkCollectiveOperands(const std::string &where, const Instruction &instruction);

  bool hasRoom(const std::string &where, uint32_t buffer, ElementType type, uint64_t elements) {
    return checkRoom(program, where, buffer, type, elements, error);
  }
  const Program &program;
  std::string &error;
};

bool InstructionChecker::checkSection(const char *section,
                                      const std::vector<Instruction> &instructions) {
  for (size_t i = 0; i < instructions.size(); ++i) {
    const Instruction &instruction = instructions[i];
    std::string where = concat(section, " instruction ", i);
    if (instruction.label >= program.labels.size()) {
      return fail(error, where, " has label ", instruction.label, ", the program has ",
                  program.labels.size());
    }
    if (instruction.opcode == Opcode::Observe && &instructions == &program.init) {
      return fail(error, where, " observes, which only step and evaluate may do");
    }
    for (double number :
         {instruction.cost.flops, instruction.cost.bytes, instruction.cost.seconds}) {
      if (!isAmount(number)) {
        return fail(error, where, " costs ", number, ", expected a finite number, 0 or more");
      }
    }
    if (!checkTarget(where, instruction) || !checkOperands(where, instruction) ||
        !checkWaits(where, instructions, i)) {
      return false;
    }
  }
  return true;
}

bool InstructionChecker::checkWaits(const std::string &where,
                                    const std::vector<Instruction> &instructions, size_t number) {
  const Instruction &instruction = instructions[number];
  if (instruction.opcode == Opcode::Observe && instruction.stream != Stream::Compute) {
    return fail(error, where, " observes on ", nameOf(instruction.stream), ", expected compute");
  }
  for (size_t i = 0; i < instruction.waits.size(); ++i) {
    uint32_t other = instruction.waits[i];
    if (other >= number || instructions[other].stream == instruction.stream) {
      return fail(error, where, " waits for instruction ", other,
                  ", expected an earlier one of another stream");
    }
    if (i > 0 && other <= instruction.waits[i - 1]) {
      return fail(error, where, " waits for instruction ", other, " after ",
                  instruction.waits[i - 1], ", expected ascending numbers");
    }
  }
  return true;
}

/// A validation must not change the training state.
bool InstructionChecker::checkEvaluate() {
  bool observes = program.evaluate.empty();
  for (size_t i = 0; i < program.evaluate.size(); ++i) {
    const Instruction &instruction = program.evaluate[i];
    for (const Operand &operand : instruction.operands) {
      if (operand.access != Access::Read && program.buffers[operand.buffer].persistent) {
        return fail(error, "evaluate instruction ", i, " writes buffer ", operand.buffer,
                    ", which is persistent");
      }
    }
    if (instruction.opcode == Opcode::Observe) {
      const std::string &name = program.observations[instruction.target].name;
      if (name != "validation_loss" && name != "logits" && !name.starts_with("validation_load/")) {
        return fail(error, "evaluate instruction ", i, " observes '", name,
                    "', expected validation_loss, validation_load or logits");
      }
      observes = observes || name == "validation_loss";
    }
  }
  return observes || fail(error, "evaluate does not observe validation_loss");
}

/// Checks that, after each value with a limit, ranks decide together whether the run goes on.
bool InstructionChecker::checkLimits(const char *section,
                                     const std::vector<Instruction> &instructions) {
  bool agrees = false;
  for (size_t i = instructions.size(); i-- > 0;) {
    if (instructions[i].opcode != Opcode::Observe) {
      continue;
    }
    const Observation &observation = program.observations[instructions[i].target];
    agrees = agrees || decidesRun(observation);
    if (observation.limit > 0 && !agrees) {
      return fail(error, section, " instruction ", i, " observes '", observation.name,
                  "', which has a limit, but no loss or gradient norm after it");
    }
  }
  return true;
}

bool InstructionChecker::checkTarget(const std::string &where, const Instruction &instruction) {
  const size_t counts[] = {program.kernels.size(), program.matmuls.size(),
                           program.collectives.size(), program.observations.size()};
  static constexpr const char *kinds[] = {"kernel", "matmul", "collective", "observation"};
  size_t opcode = size_t(instruction.opcode);
  if (instruction.target >= counts[opcode]) {
    return fail(error, where, " names ", kinds[opcode], " ", instruction.target,
                ", the program has ", counts[opcode]);
  }
  return true;
}

bool InstructionChecker::checkOperands(const std::string &where, const Instruction &instruction) {
  for (const Operand &operand : instruction.operands) {
    if (operand.buffer >= program.buffers.size()) {
      return fail(error, where, " names buffer ", operand.buffer, ", the program has ",
                  program.buffers.size());
    }
  }
  if (instruction.opcode == Opcode::Kernel) {
    // Only the code of other kernels knows the sizes that it needs.
    return !program.kernels[instruction.target].attention ||
           checkAttentionOperands(program, where, instruction, error);
  }
  bool isMatmul = instruction.opcode == Opcode::Matmul;
  size_t expected = isMatmul ? program.matmuls[instruction.target].operandCount()
                    : instruction.opcode == Opcode::Collective ? 2
                                                               : 1;
  if (instruction.operands.size() != expected) {
    return fail(error, where, " has ", instruction.operands.size(), " operands, expected ",
                expected);
  }
  if (isMatmul) {
    return checkMatmulOperands(where, instruction);
  }
  if (instruction.opcode == Opcode::Collective) {
    return checkCollectiveOperands(where, instruction);
  }
  const TensorLayout &layout = program.observations[instruction.target].layout;
  return hasRoom(where, instruction.operands[0].buffer, layout.type,
                 elementCount(localShape(layout, program.mesh)));
}

bool InstructionChecker::checkMatmulOperands(const std::string &where,
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
  auto next = instruction.operands.begin();
  auto holds = [&](bool isThere, ElementType type, uint64_t elements) {
    return !isThere || hasRoom(where, (next++)->buffer, type, elements);
  };
  ElementType result = matmul.resultType();
  bool isOfA = epilogue.sums == Epilogue::Sums::OfA;
  return holds(true, matmul.type, a) && holds(true, matmul.typeOfB(), b) &&
         holds(true, result, c) && holds(epilogue.hasAddend, result, c) &&
         holds(epilogue.hasBias, result, uint64_t(matmul.n)) && holds(epilogue.hasAux, result, c) &&
         holds(epilogue.sums != Epilogue::Sums::None, result,
               uint64_t(isOfA ? matmul.m : matmul.n)) &&
         holds(matmul.isFp8(), ElementType::F32, 1) && holds(matmul.isFp8(), ElementType::F32, 1) &&
         (matmul.workspaceBytes == 0 ||
          checkWorkspace(program, where, next->buffer, matmul.workspaceBytes, error));
}

bool InstructionChecker::checkCollectiveOperands(const std::string &where,
                                                 const Instruction &instruction) {
  const Collective &collective = program.collectives[instruction.target];
  uint32_t operand = instruction.operands[0].buffer, result = instruction.operands[1].buffer;
  if (operand == result && collective.kind != CollectiveKind::AllReduce) {
    return fail(error, where, " has buffer ", operand, " as operand and result of ",
                nameOf(collective.kind), "; only all-reduce may");
  }
  uint64_t size = elementCount(collective.shape);
  uint64_t resultSize = size;
  if (collective.kind == CollectiveKind::AllGather) {
    resultSize = saturatingMul(size, groupSize(program, collective.axes));
  } else if (collective.kind == CollectiveKind::ReduceScatter) {
    resultSize = size / groupSize(program, collective.axes);
  }
  return hasRoom(where, operand, collective.type, size) &&
         hasRoom(where, result, collective.type, resultSize);
}

} // namespace

bool weft::rt::checkInstructions(const Program &program, std::string &error) {
  return InstructionChecker(program, error).check();
}
