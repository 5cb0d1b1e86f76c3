//===- Flatten.cpp - from the module to the instruction table -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Pipeline/Schedule/Flatten.h"
#include "weft/Dialect/Weft/IR/StageMarks.h"

#include "OpKinds.h"
#include "Placement.h"
#include "ProgramTables.h"
#include "weft/Dialect/Weft/IR/ElementTypes.h"
#include "weft/Dialect/Weft/IR/Sharding.h"
#include "weft/Schedule/Frames.h"
#include "weft/Schedule/Lifetimes.h"

using namespace mlir;
using namespace weft;

namespace {

constexpr uint32_t kNoBuffer = ~uint32_t(0);

/// Gives the values of one section their buffers, and writes its bodies and actions.
class SectionWriter {
public:
  /// The first `variableCount` buffers are those of the variables, in order.
  SectionWriter(const FlatSection &section, StringRef name, size_t variableCount,
                rt::Program &program, ProgramTables &tables)
      : section(section), name(name), program(program), tables(tables),
        bufferOf(section.values.size(), kNoBuffer), lastWrite(variableCount, -1),
        carryPlacings(weft::placeCarries(section, Ties())) {}

  LogicalResult write(std::vector<rt::Action> &actions) {
    for (auto [number, value] : llvm::enumerate(section.values)) {
      if (value.variable >= 0) {
        bufferOf[number] = value.variable;
      }
    }
    if (failed(placeVariables())) {
      return failure();
    }
    for (auto [time, op] : llvm::enumerate(section.ops)) {
      if (failed(placeCarries(time)) || failed(giveBuffers(op, time))) {
        return failure();
      }
    }
    if (failed(writeBodies(actions))) {
      return failure();
    }
    placeInFrames(actions);
    markCopies();
    markGradients();
    return success();
  }

private:
  bool isVariable(uint32_t buffer) const { return buffer < lastWrite.size(); }
  LogicalResult placeCarries(int32_t time);
  LogicalResult writeBodies(std::vector<rt::Action> &actions);
  LogicalResult writeBody(StringRef bodyName, int32_t begin, int32_t end);
  void placeInFrames(std::vector<rt::Action> &actions);
  LogicalResult placeVariables();
  int64_t findInPlace(const FlatOp &op, int32_t time, size_t position) const;
  LogicalResult giveBuffers(const FlatOp &op, int32_t time);
  LogicalResult shareBuffer(const FlatOp &op, int32_t time, uint32_t operand, uint32_t result);
  bool mayHold(uint32_t buffer, uint32_t result) const;
  uint32_t makeBuffer(const FlatValue &value);
  LogicalResult writeInstruction(const FlatOp &op, rt::Instruction &instruction);
  void writeOperands(const FlatOp &op, rt::Instruction &instruction);
  void addWorkspace(uint64_t bytes, rt::Instruction &instruction);
  void arrangeMatmul(const FlatOp &op, bool isSwapped, rt::Instruction &instruction);
  void markCopies();
  bool rounds(const FlatOp &op) const;
  void markGradients();

  const FlatSection &section;
  StringRef name;
  /// What labels of ops outside of calls begin with: the section's name, or nothing in a repeat.
  StringRef root = name;
  rt::Program &program;
  ProgramTables &tables;
  std::vector<uint32_t> bufferOf;
  /// The value that was last put into each variable's buffer, or -1.
  std::vector<int64_t> lastWrite;
  /// Of the section's carries, in order.
  std::vector<Placing> carryPlacings;
  /// While the ops of the repeat are placed: for each buffer of what calls pass on, the value that
  /// belongs there at their end.
  llvm::DenseMap<uint32_t, uint32_t> passedOn;
};

/// New values that are not tied go right where their variables lie.
LogicalResult SectionWriter::placeVariables() {
  std::vector<Placing> placings = placeAssignments(section, Ties());
  for (auto [assign, placing] : llvm::zip_equal(section.assigns, placings)) {
    if (placing == Placing::Copy) {
      AssignOp op = assign.op;
      return op.emitOpError("internal error: the value is not computed in its variable's place");
    }
    if (placing == Placing::Direct) {
      bufferOf[assign.value] = assign.variable;
    }
    if (placing != Placing::Kept) {
      lastWrite[assign.variable] = assign.value;
    }
  }
  return success();
}

/// What calls pass on goes where they got it from, which has a buffer when the repeat begins.
LogicalResult SectionWriter::placeCarries(int32_t time) {
  if (!section.repeat || (time != section.repeat->begin && time != section.repeat->end)) {
    return success();
  }
  passedOn.clear();
  if (time == section.repeat->end) {
    return success();
  }
  for (auto [carry, placing] : llvm::zip_equal(section.carries, carryPlacings)) {
    if (placing == Placing::Copy) {
      func::ReturnOp op = carry.op;
      return op.emitOpError() << "internal error: operand " << carry.result
                              << " is not computed where the next call expects it";
    }
    passedOn[bufferOf[carry.before]] = carry.after;
    if (placing == Placing::Direct) {
      bufferOf[carry.after] = bufferOf[carry.before];
    }
  }
  return success();
}

/// Bodies for what stands before and after the repeat, and those of the repeat, which actions run
/// for each micro-batch, or to gather and reduce between these.
LogicalResult SectionWriter::writeBodies(std::vector<rt::Action> &actions) {
  const int32_t end = section.ops.size();
  auto writeOnce = [&](int32_t begin, int32_t until, StringRef suffix) -> LogicalResult {
    if (begin == until) {
      return success();
    }
    actions.push_back({static_cast<uint32_t>(program.bodies.size())});
    return writeBody((name + suffix).str(), begin, until);
  };
  if (!section.repeat) {
    return writeOnce(0, end, "");
  }
  const FlatRepeat &repeat = *section.repeat;
  if (failed(writeOnce(0, repeat.first, "_begin"))) {
    return failure();
  }
  const auto first = static_cast<uint32_t>(program.bodies.size());
  for (const FlatAction &action : repeat.actions) {
    actions.push_back({first + action.body, action.microBatch});
  }
  root = "";
  for (auto [number, body] : llvm::enumerate(repeat.bodies)) {
    if (failed(writeBody(body.name, body.begin, repeat.endOf(number)))) {
      return failure();
    }
  }
  root = name;
  return writeOnce(repeat.last, end, "_end");
}

/// Lets what micro-batches leave to later actions of theirs lie in frames, as far as several are in
/// flight, and what is gathered for them.
void SectionWriter::placeInFrames(std::vector<rt::Action> &actions) {
  std::vector<bool> mayHaveFrames(program.buffers.size(), false);
  for (auto [number, value] : llvm::enumerate(section.values)) {
    if (section.isOfMicroBatch(value) || section.isGathered(value)) {
      mayHaveFrames[bufferOf[number]] = true;
    }
  }
  for (const FlatCarry &carry : section.carries) {
    mayHaveFrames[bufferOf[carry.before]] = false; // Of all micro-batches.
  }
  schedule::makeFrameSets(program, actions, mayHaveFrames);
}

LogicalResult SectionWriter::writeBody(StringRef bodyName, int32_t begin, int32_t end) {
  rt::Body body;
  body.name = bodyName.str();
  body.instructions.reserve(end - begin);
  for (const FlatOp &op : ArrayRef(section.ops).slice(begin, end - begin)) {
    if (failed(writeInstruction(op, body.instructions.emplace_back()))) {
      return failure();
    }
  }
  program.bodies.push_back(std::move(body));
  return success();
}

uint32_t SectionWriter::makeBuffer(const FlatValue &value) {
  auto type = cast<RankedTensorType>(value.type);
  rt::Buffer buffer;
  buffer.bytes = countBytes(type);
  buffer.type = toElementType(type.getElementType());
  program.buffers.push_back(buffer);
  return program.buffers.size() - 1;
}

/// Returns true if nothing else than `result` belongs in the buffer.
bool SectionWriter::mayHold(uint32_t buffer, uint32_t result) const {
  auto passed = passedOn.find(buffer);
  return passed != passedOn.end() ? passed->second == result
                                  : !isVariable(buffer) || lastWrite[buffer] == int64_t(result);
}

/// Lets `result` take over the buffer of `operand`, which nobody may read afterwards. If it is a
/// variable's, the result must be the value that the variable is assigned.
LogicalResult SectionWriter::shareBuffer(const FlatOp &op, int32_t time, uint32_t operand,
                                         uint32_t result) {
  uint32_t buffer = bufferOf[operand];
  if (!section.values[operand].endsAt(time)) {
    return op.op->emitOpError("internal error: a value is read after it was overwritten");
  }
  if (!mayHold(buffer, result)) {
    return op.op->emitOpError("internal error: overwrites a value that another must replace");
  }
  bufferOf[result] = buffer;
  return success();
}

/// Returns the operand that an op for a library computes in place of, because nothing reads it
/// afterwards, or -1.
int64_t SectionWriter::findInPlace(const FlatOp &op, int32_t time, size_t position) const {
  int64_t tied = inPlaceOperand(op.op, position);
  if (tied < 0) {
    return -1;
  }
  ArrayRef<uint32_t> operands = section.operandsOf(op);
  uint32_t operand = operands[tied], result = section.resultsOf(op)[position];
  bool isFree = section.values[operand].endsAt(time) && llvm::count(operands, operand) == 1 &&
                mayHold(bufferOf[operand], result);
  return isFree ? tied : -1;
}

LogicalResult SectionWriter::giveBuffers(const FlatOp &op, int32_t time) {
  ArrayRef<uint32_t> operands = section.operandsOf(op), results = section.resultsOf(op);
  auto launch = dyn_cast<LaunchOp>(op.op);
  for (auto [position, result] : llvm::enumerate(results)) {
    if (bufferOf[result] != kNoBuffer) {
      continue; // Direct.
    }
    int64_t tied = launch ? launch.getTied()[position] : findInPlace(op, time, position);
    if (tied < 0) {
      bufferOf[result] = makeBuffer(section.values[result]);
    } else if (failed(shareBuffer(op, time, operands[tied], result))) {
      return failure();
    }
  }
  return success();
}

LogicalResult SectionWriter::writeInstruction(const FlatOp &op, rt::Instruction &instruction) {
  FailureOr<ProgramTables::Target> target = tables.findTarget(op.op);
  if (failed(target)) {
    return failure();
  }
  instruction.opcode = target->opcode;
  instruction.target = target->number;
  instruction.label = tables.findLabel(op.op, root, section.paths[op.path]);
  instruction.cost = target->cost;
  writeOperands(op, instruction);
  if (target->opcode == rt::Opcode::Matmul) {
    arrangeMatmul(op, target->isSwapped, instruction);
  }
  for (uint32_t number : section.operandsOf(op)) {
    if (!section.values[number].type.isIndex()) {
      continue;
    }
    if (section.values[number].isMicroBatch) {
      instruction.immediates.push_back({0, /*addsMicroBatch=*/true});
      continue;
    }
    if (!section.values[number].constant) {
      return op.op->emitOpError("has a number whose value is not known");
    }
    instruction.immediates.push_back(*section.values[number].constant);
  }
  return success();
}

/// Tensor operands in order, then the results that have a buffer of their own, then a workspace
/// where there is one.
void SectionWriter::writeOperands(const FlatOp &op, rt::Instruction &instruction) {
  auto launch = dyn_cast<LaunchOp>(op.op);
  ArrayRef<uint32_t> operands = section.operandsOf(op);
  instruction.operands.reserve(op.op->getNumOperands() + op.op->getNumResults());
  for (auto [position, number] : llvm::enumerate(operands)) {
    if (!section.values[number].type.isIndex()) {
      bool isTied = launch && llvm::is_contained(launch.getTied(), static_cast<int64_t>(position));
      instruction.operands.push_back(
          {bufferOf[number], isTied ? rt::Access::ReadWrite : rt::Access::Read});
    }
  }
  for (auto [position, number] : llvm::enumerate(section.resultsOf(op))) {
    if (!launch || launch.getTied()[position] < 0) {
      instruction.operands.push_back({bufferOf[number], rt::Access::Write});
    }
  }
  if (launch && program.kernels[instruction.target].attention) {
    addWorkspace(program.kernels[instruction.target].attention->workspaceBytes, instruction);
  }
}

void SectionWriter::addWorkspace(uint64_t bytes, rt::Instruction &instruction) {
  if (bytes > 0) {
    // Integers: what is in it, no search for values that are not finite has to see.
    instruction.operands.push_back(
        {static_cast<uint32_t>(program.buffers.size()), rt::Access::Write});
    program.buffers.push_back({bytes, 0, rt::BufferClass::Workspace, false, rt::ElementType::I32});
  }
}

/// Puts C behind A and B, and a workspace of its own at the end, where the matmul has one.
void SectionWriter::arrangeMatmul(const FlatOp &op, bool isSwapped, rt::Instruction &instruction) {
  std::vector<rt::Operand> &operands = instruction.operands;
  auto result = operands.begin() + op.op->getNumOperands();
  std::rotate(operands.begin() + 2, result, result + 1);
  if (isSwapped) {
    std::swap(operands[0], operands[1]);
  }
  addWorkspace(program.matmuls[instruction.target].workspaceBytes, instruction);
}

/// Marks the buffers of values that are computed of parameters alone.
void SectionWriter::markCopies() {
  std::vector<bool> isCopy(section.values.size(), false);
  for (const FlatOp &op : section.ops) {
    bool hasParameter = false, hasOthers = false;
    for (uint32_t operand : section.operandsOf(op)) {
      const FlatValue &value = section.values[operand];
      bool isParameter =
          value.variable >= 0 && program.buffers[value.variable].kind == rt::BufferClass::Parameter;
      hasParameter |= isParameter || isCopy[operand];
      hasOthers |= !isParameter && !isCopy[operand] && !value.type.isIndex();
    }
    for (uint32_t result : section.resultsOf(op)) {
      isCopy[result] = hasParameter && !hasOthers;
    }
  }
  for (auto [number, buffer] : llvm::enumerate(bufferOf)) {
    if (isCopy[number] && !isVariable(buffer)) {
      program.buffers[buffer].kind = rt::BufferClass::ParameterCopy;
    }
  }
}

/// Returns true if `op` computes narrow values of one wide value alone.
bool SectionWriter::rounds(const FlatOp &op) const {
  auto operands = section.operandsOf(op), results = section.resultsOf(op);
  auto elementOf = [&](uint32_t value) { return getElementTypeOrSelf(section.values[value].type); };
  return isa<LaunchOp>(op.op) && operands.size() == 1 && elementOf(operands[0]).isF32() &&
         llvm::all_of(results, [&](uint32_t result) { return isNarrow(elementOf(result)); });
}

/// A gradient is what is observed as one, what that is moved or rounded from, and the sum so far
/// that a matmul adds it to.
void SectionWriter::markGradients() {
  std::vector<bool> isGradient(section.values.size(), false);
  for (const FlatOp &op : llvm::reverse(section.ops)) {
    auto observe = dyn_cast<ObserveOp>(op.op);
    auto isKnown = [&](uint32_t value) -> bool { return isGradient[value]; };
    bool gives =
        (tables.moves(op.op) || rounds(op)) && llvm::any_of(section.resultsOf(op), isKnown);
    if (gives || (observe && observe.getName().starts_with("gradient/"))) {
      for (uint32_t operand : section.operandsOf(op)) {
        isGradient[operand] = !section.values[operand].type.isIndex();
      }
    }
    auto matmul = dyn_cast<MatmulOp>(op.op);
    if (matmul && matmul.getAddend() && isGradient[section.resultsOf(op)[0]]) {
      unsigned addend = matmul.getAddendMutable().begin()->getOperandNumber();
      isGradient[section.operandsOf(op)[addend]] = true;
    }
  }
  for (auto [number, buffer] : llvm::enumerate(bufferOf)) {
    if (isGradient[number] && !isVariable(buffer)) {
      program.buffers[buffer].kind = rt::BufferClass::Gradient;
    }
  }
}

rt::BufferClass classOf(VariableRole role) {
  switch (role) {
  case VariableRole::Parameter:
  case VariableRole::Statistic: // Part of the model: loaded, saved and reported with it.
    return rt::BufferClass::Parameter;
  case VariableRole::Optimizer:
    return rt::BufferClass::Optimizer;
  case VariableRole::Input:
    return rt::BufferClass::Input;
  }
  llvm_unreachable("unknown role");
}

/// A persistent buffer and a name for each variable; buffer i is that of variable i.
LogicalResult writeVariables(const ModuleSymbols &symbols, MeshAttr mesh, rt::Program &program) {
  for (VariableOp variable : symbols.variables) {
    FailureOr<rt::TensorLayout> layout =
        toLayout(variable, variable.getType(), variable.getUnpadded(), mesh);
    if (failed(layout)) {
      return failure();
    }
    rt::Buffer buffer;
    buffer.bytes = countBytes(getLocalType(variable.getTensorType()));
    buffer.type = layout->type;
    buffer.kind = classOf(variable.getRole());
    buffer.persistent = true;
    std::vector<rt::NamedTensor> &tensors =
        buffer.kind == rt::BufferClass::Parameter   ? program.parameters
        : buffer.kind == rt::BufferClass::Optimizer ? program.optimizerState
                                                    : program.inputs;
    uint32_t number = program.buffers.size();
    tensors.push_back({variable.getSymName().str(), std::move(*layout), number});
    program.buffers.push_back(buffer);
  }
  return success();
}

rt::Program makeProgram(const ProgramInfo &info, MeshAttr mesh) {
  rt::Program program;
  program.modelName = info.modelName;
  program.planText = info.planText;
  program.planHash = info.planHash;
  program.globalBatch = info.globalBatch;
  program.microBatches = info.microBatches;
  program.sequenceLength = info.sequenceLength;
  program.vocabulary = info.vocabulary;
  program.documentEnd = info.documentEnd;
  program.defaultSteps = info.defaultSteps;
  program.defaultSeed = info.defaultSeed;
  program.stepFlops = info.stepFlops;
  for (auto [name, size] : llvm::zip_equal(mesh.getNames(), mesh.getSizes())) {
    program.mesh.push_back({name.str(), size});
  }
  return program;
}

} // namespace

FailureOr<rt::Program> weft::flatten(ModuleOp module, const ProgramInfo &info) {
  auto mesh = module->getAttrOfType<MeshAttr>(kMeshAttrName);
  if (!mesh) {
    return emitError(module.getLoc()) << "expected a mesh in '" << kMeshAttrName << "'";
  }
  ModuleSymbols symbols(module);
  FailureOr<SmallVector<FlatSection, 3>> sections = linearizeSections(module, symbols);
  rt::Program program = makeProgram(info, mesh);
  if (auto stages = module->getAttrOfType<IntegerAttr>(kStagesAttrName)) {
    program.rankClasses = static_cast<uint32_t>(stages.getInt());
    program.rankClass = static_cast<uint32_t>(markedStageOf(module).value_or(0));
  }
  if (failed(sections) || failed(writeVariables(symbols, mesh, program))) {
    return failure();
  }
  ProgramTables tables(program, mesh, symbols);
  const std::pair<StringRef, std::vector<rt::Action> *> lists[] = {
      {"init", &program.init}, {"step", &program.step}, {"evaluate", &program.evaluate}};
  for (auto [section, list] : llvm::zip(*sections, lists)) {
    auto [name, actions] = list;
    SectionWriter writer(section, name, symbols.variables.size(), program, tables);
    if (failed(writer.write(*actions))) {
      return failure();
    }
  }
  schedule::packArena(program);
  return program;
}
