//===- ProofShapes.cpp - instructions fit the buffers they use ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProofParts.h"

#include <algorithm>
#include <array>
#include <optional>

using namespace weft;
using namespace weft::schedule;

namespace {

/// The largest size of a real tensor. Larger sizes mean a damaged table; sums below must not
/// overflow.
constexpr int64_t kMaxElements = int64_t(1) << 48;

/// Returns the product of `sizes`, or nothing if one is not positive or the product is too large.
std::optional<int64_t> countElements(std::span<const int64_t> sizes) {
  int64_t count = 1;
  for (int64_t size : sizes) {
    if (size < 1 || size > kMaxElements / count) {
      return std::nullopt;
    }
    count *= size;
  }
  return count;
}

/// One index of a stored matrix: the number of steps, and their stride.
struct Stride {
  int64_t size, step;
};

/// Returns n if the indices visit each of the elements 0 to n - 1 exactly once; else nothing.
std::optional<int64_t> countIfDense(std::array<Stride, 3> strides) {
  std::sort(strides.begin(), strides.end(), [](const Stride &a, const Stride &b) {
    return a.step != b.step ? a.step < b.step : a.size < b.size;
  });
  int64_t count = 1;
  for (const Stride &stride : strides) {
    if (stride.size == 1) {
      continue;
    }
    if (stride.size < 1 || stride.step != count || stride.size > kMaxElements / count) {
      return std::nullopt;
    }
    count *= stride.size;
  }
  return count;
}

class ShapeCheck {
public:
  ShapeCheck(const rt::Program &program, Diagnostics &diagnostics)
      : program(program), diagnostics(diagnostics) {}

  void run() {
    checkNamed(program.parameters);
    checkNamed(program.optimizerState);
    checkNamed(program.inputs);
    for (const BodyUse &use : findBodyUses(program)) {
      const std::vector<rt::Instruction> &instructions = program.bodies[use.body].instructions;
      for (size_t i = 0; i < instructions.size(); ++i) {
        problem.clear();
        check(instructions[i]);
        if (!problem.empty()) {
          diagnostics.add(describeInstruction(program, use.section, use.begin + i) + " " + problem);
        }
      }
    }
  }

private:
  void checkNamed(const std::vector<rt::NamedTensor> &tensors) {
    for (const rt::NamedTensor &tensor : tensors) {
      std::optional<int64_t> elements = countElements(localShape(tensor.layout, program.mesh));
      uint64_t bytes = program.buffers[tensor.buffer].bytes;
      if (!elements || *elements * sizeOf(tensor.layout.type) != bytes) {
        diagnostics.add("'" + tensor.name + "' does not fit its buffer of " +
                        std::to_string(bytes) + " bytes");
      }
    }
  }

  void check(const rt::Instruction &instruction) {
    switch (instruction.opcode) {
    case rt::Opcode::Kernel:
      return;
    case rt::Opcode::Matmul:
      return checkMatmul(instruction, program.matmuls[instruction.target]);
    case rt::Opcode::Collective:
      return checkCollective(instruction, program.collectives[instruction.target]);
    case rt::Opcode::Observe:
      return checkObserve(instruction, program.observations[instruction.target]);
    case rt::Opcode::Agree:
      return; // Has no operands.
    }
    problem = "has an unknown opcode";
  }

  /// Checks that the operands are exactly these.
  bool expectOperands(const rt::Instruction &instruction, std::vector<rt::Access> accesses) {
    bool equal = std::equal(
        accesses.begin(), accesses.end(), instruction.operands.begin(), instruction.operands.end(),
        [](rt::Access access, const rt::Operand &operand) { return access == operand.access; });
    if (!equal || !instruction.immediates.empty()) {
      problem = "has operands or immediates of the wrong number or access";
      return false;
    }
    return true;
  }

  void expectElements(const rt::Instruction &instruction, size_t operand, rt::ElementType type,
                      std::optional<int64_t> elements) {
    uint64_t bytes = program.buffers[instruction.operands[operand].buffer].bytes;
    if (problem.empty() && (!elements || *elements * rt::sizeOf(type) != bytes)) {
      problem = "needs " +
                (elements ? std::to_string(*elements * rt::sizeOf(type)) + " bytes"
                          : std::string("a dense tensor")) +
                " in operand " + std::to_string(operand) + ", got " + std::to_string(bytes) +
                " bytes";
    }
  }

  static std::vector<rt::Access> accessesOf(const rt::Matmul &p) {
    std::vector<rt::Access> accesses = {rt::Access::Read, rt::Access::Read, rt::Access::Write};
    accesses.insert(accesses.end(), p.epilogue.hasAddend + p.epilogue.hasBias, rt::Access::Read);
    if (p.epilogue.hasAux) {
      bool isRead = p.epilogue.activation == rt::Epilogue::Activation::GeluGradient;
      accesses.push_back(isRead ? rt::Access::Read : rt::Access::Write);
    }
    accesses.insert(accesses.end(), p.epilogue.sums != rt::Epilogue::Sums::None, rt::Access::Write);
    accesses.insert(accesses.end(), p.isFp8() ? 2 : 0, rt::Access::Read);
    accesses.insert(accesses.end(), p.workspaceBytes > 0, rt::Access::Write);
    return accesses;
  }

  /// Checks the operands after C. A matrix among them has C's layout.
  void checkEpilogue(const rt::Instruction &instruction, const rt::Matmul &p) {
    std::optional<int64_t> c =
        countIfDense({{{p.strideC == 0 ? 1 : p.batch, p.strideC}, {p.m, p.ldc}, {p.n, 1}}});
    size_t operand = 3;
    auto expect = [&](bool isThere, std::optional<int64_t> elements) {
      if (isThere) {
        expectElements(instruction, operand++, p.resultType(), elements);
      }
    };
    expect(p.epilogue.hasAddend, c);
    expect(p.epilogue.hasBias, p.n);
    expect(p.epilogue.hasAux, c);
    expect(p.epilogue.sums != rt::Epilogue::Sums::None,
           p.epilogue.sums == rt::Epilogue::Sums::OfA ? p.m : p.n);
    for (int factor = 0; factor < (p.isFp8() ? 2 : 0); ++factor) {
      expectElements(instruction, operand++, rt::ElementType::F32, 1);
    }
    uint64_t bytes = operand < instruction.operands.size()
                         ? program.buffers[instruction.operands[operand].buffer].bytes
                         : 0;
    if (problem.empty() && bytes != p.workspaceBytes) {
      problem = "needs a workspace of " + std::to_string(p.workspaceBytes) +
                " bytes, the buffer has " + std::to_string(bytes);
    }
  }

  void checkMatmul(const rt::Instruction &instruction, const rt::Matmul &p) {
    if (!expectOperands(instruction, accessesOf(p))) {
      return;
    }
    int64_t rowsA = p.transposeA ? p.k : p.m, columnsA = p.transposeA ? p.m : p.k;
    int64_t rowsB = p.transposeB ? p.n : p.k, columnsB = p.transposeB ? p.k : p.n;
    // An operand that all matmuls share counts once.
    auto batchOf = [&](int64_t stride) { return stride == 0 ? int64_t(1) : p.batch; };
    expectElements(
        instruction, 0, p.type,
        countIfDense({{{batchOf(p.strideA), p.strideA}, {rowsA, p.lda}, {columnsA, 1}}}));
    expectElements(
        instruction, 1, p.typeOfB(),
        countIfDense({{{batchOf(p.strideB), p.strideB}, {rowsB, p.ldb}, {columnsB, 1}}}));
    expectElements(instruction, 2, p.resultType(),
                   countIfDense({{{batchOf(p.strideC), p.strideC}, {p.m, p.ldc}, {p.n, 1}}}));
    checkEpilogue(instruction, p);
    if (p.lda < columnsA || p.ldb < columnsB || p.ldc < p.n) {
      problem = "has rows that are longer than their stride";
    }
    if (p.batch < 1 || (p.batch > 1 && p.strideA == 0 && p.strideB == 0)) {
      problem = "is a batch of " + std::to_string(p.batch) + " matmuls that are all the same";
    }
  }

  void checkCollective(const rt::Instruction &instruction, const rt::Collective &collective) {
    if (collective.kind == rt::CollectiveKind::Transfer) {
      bool isSender = program.rankClass == collective.classes.front();
      if (expectOperands(instruction, {isSender ? rt::Access::Read : rt::Access::Write})) {
        expectElements(instruction, 0, collective.type, countElements(collective.shape));
      }
      return;
    }
    if (!expectOperands(instruction, {rt::Access::Read, rt::Access::Write})) {
      return;
    }
    auto ranks = static_cast<int64_t>(program.groupSize(collective));
    std::vector<int64_t> result = collective.shape;
    bool moves = rt::changesShape(collective.kind);
    bool isAllToAll = collective.kind == rt::CollectiveKind::AllToAll;
    if (moves &&
        (collective.dim >= result.size() ||
         (isAllToAll && (collective.dim2 >= result.size() || collective.dim2 == collective.dim)))) {
      problem = "moves along a dimension that its operand does not have";
      return;
    }
    if (collective.kind == rt::CollectiveKind::AllGather) {
      result[collective.dim] *= ranks;
    } else if (moves && result[collective.dim] % ranks != 0) {
      problem = "cannot cut dimension " + std::to_string(collective.dim) + " into " +
                std::to_string(ranks) + " equal shards";
      return;
    } else if (moves) {
      result[collective.dim] /= ranks;
      result[collective.dim2] *= isAllToAll ? ranks : 1;
    }
    expectElements(instruction, 0, collective.type, countElements(collective.shape));
    expectElements(instruction, 1, collective.type, countElements(result));
  }

  void checkObserve(const rt::Instruction &instruction, const rt::Observation &observation) {
    if (expectOperands(instruction, {rt::Access::Read})) {
      expectElements(instruction, 0, observation.layout.type,
                     countElements(localShape(observation.layout, program.mesh)));
    }
  }

  const rt::Program &program;
  Diagnostics &diagnostics;
  std::string problem;
};

} // namespace

void weft::schedule::checkShapes(const rt::Program &program, Diagnostics &diagnostics) {
  ShapeCheck(program, diagnostics).run();
}
