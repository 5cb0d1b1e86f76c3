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

/// Checks the instructions of one program.
class InstructionChecker {
public:
  explicit InstructionChecker(const Program &program) : program(program) {}

  Status check() {
    if (Status status = checkSection("init", program.init); !status) {
      return status;
    }
    if (Status status = checkSection("step", program.step); !status) {
      return status;
    }
    if (Status status = checkSection("evaluate", program.evaluate); !status) {
      return status;
    }
    if (Status status = checkEvaluate(); !status) {
      return status;
    }
    if (Status status = checkLimits("step", program.step); !status) {
      return status;
    }
    return checkLimits("evaluate", program.evaluate);
  }

private:
  Status checkSection(const char *section, const std::vector<Instruction> &instructions);
  Status checkWaits(const std::string &where, const std::vector<Instruction> &instructions,
                    size_t number);
  Status checkEvaluate();
  Status checkLimits(const char *section, const std::vector<Instruction> &instructions);
  Status checkTarget(const std::string &where, const Instruction &instruction);
  Status checkOperands(const std::string &where, const Instruction &instruction);
  Status checkMatmulOperands(const std::string &where, const Instruction &instruction);
  Status checkCollectiveOperands(const std::string &where, const Instruction &instruction);

  const Program &program;
};

Status InstructionChecker::checkSection(const char *section,
                                        const std::vector<Instruction> &instructions) {
  for (size_t i = 0; i < instructions.size(); ++i) {
    const Instruction &instruction = instructions[i];
    std::string where = concat(section, " instruction ", i);
    if (instruction.label >= program.labels.size()) {
      return makeError(where, " has label ", instruction.label, ", the program has ",
                       program.labels.size());
    }
    if (instruction.opcode == Opcode::Observe && &instructions == &program.init) {
      return makeError(where, " observes, which only step and evaluate may do");
    }
    for (double number :
         {instruction.cost.flops, instruction.cost.bytes, instruction.cost.seconds}) {
      if (!isAmount(number)) {
        return makeError(where, " costs ", number, ", expected a finite number, 0 or more");
      }
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
  if (instruction.opcode == Opcode::Observe && instruction.stream != Stream::Compute) {
    return makeError(where, " observes on ", nameOf(instruction.stream), ", expected compute");
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
  bool observes = program.evaluate.empty();
  for (size_t i = 0; i < program.evaluate.size(); ++i) {
    const Instruction &instruction = program.evaluate[i];
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
  }
  if (!observes) {
    return makeError("evaluate does not observe validation_loss");
  }
  return {};
}

/// Checks that, after each value with a limit, ranks decide together whether the run goes on.
Status InstructionChecker::checkLimits(const char *section,
                                       const std::vector<Instruction> &instructions) {
  bool agrees = false;
  for (size_t i = instructions.size(); i-- > 0;) {
    if (instructions[i].opcode != Opcode::Observe) {
      continue;
    }
    const Observation &observation = program.observations[instructions[i].target];
    agrees = agrees || decidesRun(observation);
    if (observation.limit > 0 && !agrees) {
      return makeError(section, " instruction ", i, " observes '", observation.name,
                       "', which has a limit, but no loss or gradient norm after it");
    }
  }
  return {};
}

Status InstructionChecker::checkTarget(const std::string &where, const Instruction &instruction) {
  const size_t counts[] = {program.kernels.size(), program.matmuls.size(),
                           program.collectives.size(), program.observations.size()};
  static constexpr const char *kinds[] = {"kernel", "matmul", "collective", "observation"};
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
  size_t expected = isMatmul ? program.matmuls[instruction.target].operandCount()
                    : instruction.opcode == Opcode::Collective ? 2
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
  uint32_t operand = instruction.operands[0].buffer, result = instruction.operands[1].buffer;
  if (operand == result && collective.kind != CollectiveKind::AllReduce) {
    return makeError(where, " has buffer ", operand, " as operand and result of ",
                     nameOf(collective.kind), "; only all-reduce may");
  }
  uint64_t size = elementCount(collective.shape);
  uint64_t resultSize = size;
  if (collective.kind == CollectiveKind::AllGather) {
    resultSize = saturatingMul(size, groupSize(program, collective.axes));
  } else if (collective.kind == CollectiveKind::ReduceScatter) {
    resultSize = size / groupSize(program, collective.axes);
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
