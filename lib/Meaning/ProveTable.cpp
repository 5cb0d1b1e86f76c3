//===- ProveTable.cpp - the instruction table computes what Partition left ----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Meaning/ProveTable.h"

#include "LocalProgram.h"
#include "ProveFunctions.h"

#include "weft-rt/BufferPlaces.h"
#include "weft-rt/Expansion.h"
#include "weft/Dialect/Weft/IR/AttributeNames.h"
#include "weft/Dialect/Weft/IR/Sharding.h"

using namespace mlir;

namespace weft {
namespace meaning {
namespace {

class TableComparison {
public:
  TableComparison(ModuleOp local, ModuleOp scheduled, const rt::Program &program)
      : local(local), program(program), places(program),
        mesh(local->getAttrOfType<MeshAttr>(kMeshAttrName)), ops(arrays, mesh),
        expected(local, ops), kernels(scheduled, ops) {}

  LogicalResult run();

private:
  /// Which instruction made an array, and of what.
  struct Origin {
    const rt::Instruction *instruction;
    const rt::Action *action;
    SmallVector<ArrayId, 4> operands;
  };
  struct Section {
    StringRef name;
    const std::vector<rt::Action> &actions;
  };

  LogicalResult compare(const Section &section, const SectionResult &expectedResult);
  LogicalResult execute(const rt::Instruction &instruction);
  LogicalResult executeKernel(const rt::Instruction &instruction);
  LogicalResult executeMatmul(const rt::Instruction &instruction);
  LogicalResult compareVariable(StringRef section, const rt::NamedTensor &tensor,
                                const SectionResult &expectedResult);
  /// What an operand of the action holds.
  ArrayId &heldIn(uint32_t buffer) { return held[places.find(buffer, action->frame)]; }
  void write(const rt::Instruction &instruction, uint32_t buffer, ArrayId array);
  /// The first instruction, on the way to `array`, that computes something that is not expected of
  /// what is.
  const Origin *firstOther(ArrayId array) const;
  LogicalResult report(const Twine &value, ArrayId got);
  LogicalResult reportAt(const rt::Instruction &instruction, const Twine &reason);

  ModuleOp local;
  const rt::Program &program;
  const rt::BufferPlaces places;
  MeshAttr mesh;
  Arrays arrays;
  LocalOps ops;
  LocalModule expected, kernels;
  /// What each place holds.
  std::vector<ArrayId> held;
  SectionResult got;
  /// What runs the instructions.
  const rt::Action *action = nullptr;
  llvm::DenseMap<ArrayId, Origin> origins;
  SmallVector<ArrayId, 4> reading;
};

LogicalResult TableComparison::reportAt(const rt::Instruction &instruction, const Twine &reason) {
  return emitError(local.getLoc(), "prove-meaning: ")
         << rt::labelOf(program, instruction, *action) << " " << reason;
}

const TableComparison::Origin *TableComparison::firstOther(ArrayId array) const {
  const Origin *found = nullptr;
  for (bool isDone = false; !isDone;) {
    auto origin = origins.find(array);
    if (origin == origins.end()) {
      break;
    }
    found = &origin->second;
    isDone = true;
    for (ArrayId operand : origin->second.operands) {
      if (!ops.isExpected(operand) && operand < array) {
        array = operand;
        isDone = false;
        break;
      }
    }
  }
  return found;
}

LogicalResult TableComparison::report(const Twine &value, ArrayId wrong) {
  const Origin *origin = firstOther(wrong);
  InFlightDiagnostic error = emitError(local.getLoc(), "prove-meaning: ") << value;
  error << " is not what the module after Partition says";
  if (origin) {
    error << "; the first instruction that computes something else is "
          << rt::labelOf(program, *origin->instruction, *origin->action);
  }
  return error;
}

void TableComparison::write(const rt::Instruction &instruction, uint32_t buffer, ArrayId array) {
  heldIn(buffer) = array;
  origins.try_emplace(array, Origin{&instruction, action, reading});
}

/// Numbers come first, then tensors; results that are tied lie where their operand lay.
LogicalResult TableComparison::executeKernel(const rt::Instruction &instruction) {
  const std::string &name = program.kernels[instruction.target].name;
  func::FuncOp kernel = kernels.lookup(name);
  if (!kernel) {
    return reportAt(instruction, "runs a kernel that the module does not have: " + name);
  }
  auto tied = kernel->getAttrOfType<DenseI64ArrayAttr>(kTiedAttrName).asArrayRef();
  std::vector<int64_t> numbers = rt::immediatesOf(instruction, *action);
  LocalValues arguments;
  SmallVector<uint32_t> buffers;
  size_t nextNumber = 0, nextOperand = 0;
  for (Type type : kernel.getArgumentTypes()) {
    if (type.isIndex()) {
      arguments.push_back(LocalValue::of(numbers[nextNumber++]));
      buffers.push_back(0);
    } else {
      buffers.push_back(instruction.operands[nextOperand++].buffer);
      arguments.push_back({heldIn(buffers.back()), {}, {}});
      reading.push_back(heldIn(buffers.back()));
    }
  }
  LocalValues results = kernels.call(kernel, arguments);
  for (auto [result, tie] : llvm::zip_equal(results, tied)) {
    uint32_t buffer = tie < 0 ? instruction.operands[nextOperand++].buffer : buffers[tie];
    write(instruction, buffer, result.array);
  }
  return success();
}

LogicalResult TableComparison::executeMatmul(const rt::Instruction &instruction) {
  const rt::Matmul &matmul = program.matmuls[instruction.target];
  LocalValues operands;
  MatmulBuffers buffers(matmul, instruction);
  for (uint32_t buffer : buffers.read) {
    operands.push_back({heldIn(buffer), {}, {}});
    reading.push_back(heldIn(buffer));
  }
  std::optional<LocalValues> results = ops.matmul(matmul, operands);
  if (!results || results->size() != buffers.written.size()) {
    return reportAt(instruction, "is no matmul of what its operands hold");
  }
  for (auto [buffer, result] : llvm::zip_equal(buffers.written, *results)) {
    write(instruction, buffer, result.array);
  }
  return success();
}

LogicalResult TableComparison::execute(const rt::Instruction &instruction) {
  reading.clear();
  switch (instruction.opcode) {
  case rt::Opcode::Kernel:
    return executeKernel(instruction);
  case rt::Opcode::Matmul:
    return executeMatmul(instruction);
  case rt::Opcode::Collective: {
    ArrayId operand = heldIn(instruction.operands[0].buffer);
    reading.push_back(operand);
    LocalValue result = ops.collective(program.collectives[instruction.target], {operand, {}, {}});
    write(instruction, instruction.operands.back().buffer, result.array);
    return success();
  }
  case rt::Opcode::Observe: {
    const rt::Observation &observation = program.observations[instruction.target];
    got.observed[observation.name].push_back(heldIn(instruction.operands[0].buffer));
    return success();
  }
  }
  llvm_unreachable("unknown opcode");
}

LogicalResult TableComparison::compareVariable(StringRef section, const rt::NamedTensor &tensor,
                                               const SectionResult &expectedResult) {
  VariableOp variable = expected.variable(tensor.name);
  auto assigned = expectedResult.variables.find(tensor.name);
  ArrayId wanted =
      assigned != expectedResult.variables.end()
          ? assigned->second
          : ops.variable(tensor.name, countOf(getLocalType(variable.getTensorType()))).array;
  if (held[places.find(tensor.buffer)] == wanted) {
    return success();
  }
  return report("the value of '" + tensor.name + "' after " + section,
                held[places.find(tensor.buffer)]);
}

LogicalResult TableComparison::compare(const Section &section,
                                       const SectionResult &expectedResult) {
  got = {};
  held.assign(places.size(), ops.variable("nothing yet", 0).array);
  const std::vector<rt::NamedTensor> *tensors[] = {&program.parameters, &program.optimizerState,
                                                   &program.inputs};
  for (const auto *list : tensors) {
    for (const rt::NamedTensor &tensor : *list) {
      VariableOp variable = expected.variable(tensor.name);
      int64_t count = variable ? countOf(getLocalType(variable.getTensorType())) : 0;
      held[places.find(tensor.buffer)] = ops.variable(tensor.name, count).array;
    }
  }
  rt::Expansion instructions(program, section.actions);
  for (auto it = instructions.begin(); it != instructions.end(); ++it) {
    action = &it.by();
    if (failed(execute(*it))) {
      return failure();
    }
  }
  for (const auto &[name, values] : expectedResult.observed) {
    const std::vector<ArrayId> &own = got.observed[name];
    auto other = std::mismatch(values.begin(), values.end(), own.begin(), own.end());
    if (other.first != values.end() || other.second != own.end()) {
      return report("the observed value '" + name + "' of " + section.name,
                    other.second != own.end() ? *other.second : 0);
    }
  }
  if (got.observed.size() != expectedResult.observed.size()) {
    return emitError(local.getLoc(), "prove-meaning: ")
           << section.name << " observes " << got.observed.size() << " values, expected "
           << expectedResult.observed.size();
  }
  for (const auto *list : tensors) {
    for (const rt::NamedTensor &tensor : *list) {
      if (failed(compareVariable(section.name, tensor, expectedResult))) {
        return failure();
      }
    }
  }
  return success();
}

LogicalResult TableComparison::run() {
  const Section sections[] = {
      {"init", program.init}, {"step", program.step}, {"evaluate", program.evaluate}};
  std::vector<SectionResult> results;
  for (const Section &section : sections) {
    func::FuncOp function = expected.lookup(section.name);
    results.push_back(function ? expected.run(function) : SectionResult());
  }
  ops.endExpected();
  for (auto [section, result] : llvm::zip_equal(sections, results)) {
    if (failed(compare(section, result))) {
      return failure();
    }
  }
  return success();
}

bool isLayout(const rt::TensorLayout &layout, MeshAttr mesh, VariableOp variable) {
  RankedTensorType type = variable.getTensorType();
  ShardingAttr sharding = getSharding(type);
  if (!sharding || layout.dimAxes.size() != sharding.getDims().size() ||
      ArrayRef(layout.cutShape()) != type.getShape() ||
      ArrayRef(layout.globalShape) != variable.getUnpadded().value_or(type.getShape())) {
    return false;
  }
  for (auto [numbers, axes] : llvm::zip_equal(layout.dimAxes, sharding.getDims())) {
    if (numbers.size() != axes.size()) {
      return false;
    }
    for (auto [number, axis] : llvm::zip_equal(numbers, axes.getAsRange<StringAttr>())) {
      if (mesh.getNames()[number] != axis) {
        return false;
      }
    }
  }
  return true;
}

LogicalResult compareLayouts(ModuleOp local, const rt::Program &program) {
  auto mesh = local->getAttrOfType<MeshAttr>(kMeshAttrName);
  SymbolTable symbols(local);
  for (const auto *list : {&program.parameters, &program.optimizerState, &program.inputs}) {
    for (const rt::NamedTensor &tensor : *list) {
      auto variable = symbols.lookup<VariableOp>(tensor.name);
      if (!variable || !isLayout(tensor.layout, mesh, variable)) {
        return emitError(local.getLoc(), "prove-meaning: the program has '")
               << tensor.name << "' in another layout than the module after Partition";
      }
    }
  }
  return success();
}

} // namespace
} // namespace meaning

LogicalResult proveTable(ModuleOp local, ModuleOp scheduled, const rt::Program &program) {
  if (failed(meaning::compareLayouts(local, program))) {
    return failure();
  }
  if (meaning::proveFunctions(local, scheduled, program)) {
    return success();
  }
  // Instruction by instruction, across functions; this also says where the fault is.
  return meaning::TableComparison(local, scheduled, program).run();
}

} // namespace weft
