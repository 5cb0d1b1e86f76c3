//===- ValueNumbering.cpp - values by the ops that give them --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ValueNumbering.h"

#include "weft-rt/BufferPlaces.h"
#include "weft-rt/Expansion.h"
#include "weft/Dialect/Weft/IR/AttributeNames.h"

using namespace mlir;

namespace weft::meaning {

namespace {

using Numbers = std::vector<Print>;

/// The numbers of what a section leaves, and of what it transferred, in order.
struct Outcome {
  std::map<std::string, Print> variables;
  std::map<std::string, Numbers> observed;
  std::map<Route, Numbers> sent, received;

  bool operator==(const Outcome &other) const = default;

  /// The number of what comes next on a route.
  Print receive(const Route &route) {
    Numbers &known = received[route];
    Words words;
    words << uint64_t('T') << uint64_t(route.from) << uint64_t(route.number)
          << uint64_t(known.size());
    return known.emplace_back(words.print());
  }
};

Print numberOfVariable(StringRef name) { return (Words() << uint64_t('V') << name).print(); }

//===----------------------------------------------------------------------===//
// What ops and instructions compute
//===----------------------------------------------------------------------===//

/// A function of a use's operands.
struct Function {
  Print name;
  /// The second operand counts before the first.
  bool isSwapped = false;
  /// It does not matter which of the first two operands comes first.
  bool isSymmetric = false;

  /// The numbers of the results of a use.
  void number(SmallVectorImpl<Print> &operands, MutableArrayRef<Print> results) const {
    auto isLess = [](const Print &left, const Print &right) {
      return std::tie(left.first, left.second) < std::tie(right.first, right.second);
    };
    if (isSwapped || (isSymmetric && isLess(operands[1], operands[0]))) {
      std::swap(operands[0], operands[1]);
    }
    Words words;
    words << name;
    for (const Print &operand : operands) {
      words << operand;
    }
    Print use = words.print();
    for (auto [place, result] : llvm::enumerate(results)) {
      result = place == 0 ? use : (Words() << use << uint64_t(place)).print();
    }
  }
};

Function ofKernel(StringRef name) { return {(Words() << uint64_t('L') << name).print()}; }

/// Names functions by what they make of arrays of which nothing is known but their places among
/// the operands.
class Functions {
public:
  Functions(Arrays &arrays, LocalOps &ops) : arrays(arrays), ops(ops) {}

  /// None if the op is no matmul and no collective.
  std::optional<Function> of(Operation *op) {
    SmallVector<int64_t> counts;
    for (Type type : op->getOperandTypes()) {
      if (!isa<ShapedType>(type)) {
        return std::nullopt;
      }
      counts.push_back(countOf(type));
    }
    auto evaluate = [&](ArrayRef<LocalValue> operands) {
      return std::optional(ops.evaluate(op, operands));
    };
    if (isa<ContractOp, MatmulOp, Fp8MatmulOp>(op) && counts.size() > 1) {
      return ofMatmul(counts, isa<Fp8MatmulOp>(op), evaluate);
    }
    return LocalOps::isCollective(op) ? nameOf(evaluate(make(counts))) : std::nullopt;
  }

  std::optional<Function> of(const rt::Matmul &matmul, ArrayRef<int64_t> counts) {
    return ofMatmul(counts, matmul.isFp8(),
                    [&](ArrayRef<LocalValue> operands) { return ops.matmul(matmul, operands); });
  }

  std::optional<Function> of(const rt::Collective &collective, int64_t count) {
    return nameOf(LocalValues{ops.collective(collective, make({count})[0])});
  }

private:
  ArrayId make(size_t place, int64_t count) {
    return arrays.other((Words() << uint64_t('o') << uint64_t(place) << uint64_t(count)).print(),
                        count);
  }

  LocalValues make(ArrayRef<int64_t> counts, bool isSwapped = false) {
    LocalValues values;
    for (auto [place, count] : llvm::enumerate(counts)) {
      values.push_back({make(isSwapped && place < 2 ? 1 - place : place, count), {}, {}});
    }
    return values;
  }

  std::optional<Function> nameOf(const std::optional<LocalValues> &results) {
    if (!results) {
      return std::nullopt;
    }
    Words words;
    for (const LocalValue &result : *results) {
      words << arrays[result.array].print;
    }
    return Function{words.print()};
  }

  /// A table may have the operands of a matmul in another order than its op: the order counts whose
  /// name is the lesser. In FP8 each has its factor, at the end, and there is one order.
  template <typename Evaluate>
  std::optional<Function> ofMatmul(ArrayRef<int64_t> counts, bool isFp8, Evaluate evaluate) {
    LocalValues operands = make(counts);
    if (isFp8) {
      for (size_t place : {0, 1}) {
        ArrayId &own = operands[place].array;
        ArrayId factor = operands[operands.size() - 2 + place].array;
        Print bytes = (Words() << arrays[own].print << arrays[factor].print).print();
        own = arrays.encoding(bytes, own, factor);
      }
      return nameOf(evaluate(operands));
    }
    std::optional<Function> inOrder = nameOf(evaluate(operands));
    std::optional<Function> swapped = nameOf(evaluate(make(counts, /*isSwapped=*/true)));
    if (!inOrder || !swapped) {
      return std::nullopt;
    }
    inOrder->isSymmetric = inOrder->name == swapped->name;
    swapped->isSwapped = true;
    bool isLess = std::tie(swapped->name.first, swapped->name.second) <
                  std::tie(inOrder->name.first, inOrder->name.second);
    return isLess ? swapped : inOrder;
  }

  Arrays &arrays;
  LocalOps &ops;
};

//===----------------------------------------------------------------------===//
// The module
//===----------------------------------------------------------------------===//

class ModuleNumbering {
public:
  ModuleNumbering(ModuleOp module, uint32_t rankClass, Functions &functions)
      : functions(functions), symbols(module), rankClass(rankClass) {}

  /// None if a function has an op whose uses have no number.
  std::optional<Outcome> run(StringRef section) {
    outcome = {};
    auto function = symbols.lookup<func::FuncOp>(section);
    return !function || run(function, {}) ? std::optional(std::move(outcome)) : std::nullopt;
  }

private:
  /// The use of an op, by places among the function's values.
  struct Use {
    Operation *op;
    /// Of what is no call and no transfer, not assigned and not observed.
    Function function;
    SmallVector<uint32_t, 8> operands;
    uint32_t firstResult;
  };

  /// A function with the places of its values in a row.
  struct Body {
    /// The numbers of variables and constants.
    Numbers start;
    SmallVector<uint32_t> arguments, results;
    std::vector<Use> uses;
  };

  std::optional<Body> read(func::FuncOp function);
  bool readOp(Operation *op, Body &body, llvm::DenseMap<Value, uint32_t> &places);
  std::optional<Numbers> run(func::FuncOp function, ArrayRef<Print> arguments);
  /// False if a call has an op whose uses have no number.
  bool run(const Use &use, SmallVectorImpl<Print> &operands, MutableArrayRef<Print> results);

  Functions &functions;
  SymbolTable symbols;
  uint32_t rankClass;
  /// Calls refer to their bodies while others are read.
  std::map<Operation *, std::optional<Body>> bodies;
  Outcome outcome;
};

bool ModuleNumbering::readOp(Operation *op, Body &body, llvm::DenseMap<Value, uint32_t> &places) {
  auto firstResult = uint32_t(body.start.size());
  if (isa<ReshapeOp, ConstrainOp, TransferOp>(op)) {
    places[op->getResult(0)] = places.lookup(op->getOperand(0));
    return true;
  }
  for (auto [number, result] : llvm::enumerate(op->getResults())) {
    places[result] = firstResult + number;
  }
  body.start.resize(firstResult + op->getNumResults());
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto value = dyn_cast<IntegerAttr>(constant.getValue());
    body.start.back() = value ? Print::of(value.getInt()) : Print();
    return bool(value);
  }
  if (auto read = dyn_cast<ReadOp>(op)) {
    body.start.back() = numberOfVariable(read.getVariable());
    return true;
  }
  if (isa<AgreeOp>(op)) {
    return true; // Gives no value.
  }
  Use use{op, {}, {}, firstResult};
  for (Value operand : op->getOperands()) {
    use.operands.push_back(places.lookup(operand));
  }
  if (auto launch = dyn_cast<LaunchOp>(op)) {
    use.function = ofKernel(launch.getKernel());
  } else if (!isa<CallOp, AssignOp, ObserveOp, SendOp, ReceiveOp>(op)) {
    std::optional<Function> known = functions.of(op);
    if (!known) {
      return false;
    }
    use.function = *known;
  }
  body.uses.push_back(std::move(use));
  return true;
}

std::optional<ModuleNumbering::Body> ModuleNumbering::read(func::FuncOp function) {
  Body body;
  llvm::DenseMap<Value, uint32_t> places;
  Block &block = function.getBody().front();
  for (Value argument : block.getArguments()) {
    body.arguments.push_back(uint32_t(body.start.size()));
    places[argument] = body.arguments.back();
    body.start.emplace_back();
  }
  for (Operation &op : block.without_terminator()) {
    if (!readOp(&op, body, places)) {
      return std::nullopt;
    }
  }
  for (Value result : block.getTerminator()->getOperands()) {
    body.results.push_back(places.lookup(result));
  }
  return body;
}

bool ModuleNumbering::run(const Use &use, SmallVectorImpl<Print> &operands,
                          MutableArrayRef<Print> results) {
  if (auto call = dyn_cast<CallOp>(use.op)) {
    std::optional<Numbers> own = run(symbols.lookup<func::FuncOp>(call.getCallee()), operands);
    if (own) {
      llvm::copy(*own, results.begin());
    }
    return own.has_value();
  }
  if (auto assign = dyn_cast<AssignOp>(use.op)) {
    outcome.variables[assign.getVariable().str()] = operands[0];
  } else if (auto observe = dyn_cast<ObserveOp>(use.op)) {
    outcome.observed[observe.getName().str()].push_back(operands[0]);
  } else if (auto send = dyn_cast<SendOp>(use.op)) {
    Route route{rankClass, uint32_t(send.getTo()), uint32_t(send.getNumber())};
    outcome.sent[route].push_back(operands[0]);
  } else if (auto receive = dyn_cast<ReceiveOp>(use.op)) {
    results[0] =
        outcome.receive({uint32_t(receive.getFrom()), rankClass, uint32_t(receive.getNumber())});
  } else {
    use.function.number(operands, results);
  }
  return true;
}

std::optional<Numbers> ModuleNumbering::run(func::FuncOp function, ArrayRef<Print> arguments) {
  auto known = bodies.find(function);
  if (known == bodies.end()) {
    known = bodies.emplace(function, read(function)).first;
  }
  if (!known->second) {
    return std::nullopt;
  }
  const Body &body = *known->second;
  Numbers values = body.start;
  for (auto [place, argument] : llvm::zip_equal(body.arguments, arguments)) {
    values[place] = argument;
  }
  SmallVector<Print> operands;
  for (const Use &use : body.uses) {
    operands.clear();
    for (uint32_t place : use.operands) {
      operands.push_back(values[place]);
    }
    MutableArrayRef<Print> results(values.data() + use.firstResult, use.op->getNumResults());
    if (!run(use, operands, results)) {
      return std::nullopt;
    }
  }
  Numbers results;
  for (uint32_t place : body.results) {
    results.push_back(values[place]);
  }
  return results;
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

class TableNumbering {
public:
  TableNumbering(ModuleOp scheduled, const rt::Program &program, Functions &functions)
      : program(program), places(program), functions(functions), symbols(scheduled),
        kernels(program.kernels.size()), matmuls(program.matmuls.size()),
        collectives(program.collectives.size()) {}

  /// None if an instruction is not as its target has to be.
  std::optional<Outcome> run(const std::vector<rt::Action> &actions);

private:
  struct Kernel {
    Function function;
    ArrayRef<int64_t> tied;
    size_t numbers = 0, tensors = 0;
  };

  /// What an operand of the action holds.
  Print &heldIn(uint32_t buffer) { return held[places.find(buffer, action->frames)]; }
  int64_t countIn(uint32_t buffer) const {
    return int64_t(program.buffers[buffer].bytes / rt::sizeOf(program.buffers[buffer].type));
  }
  bool execute(const rt::Instruction &instruction);
  bool executeKernel(const rt::Instruction &instruction);
  bool executeMatmul(const rt::Instruction &instruction);
  bool executeCollective(const rt::Instruction &instruction);
  bool executeTransfer(const rt::Instruction &instruction);
  std::optional<Kernel> readKernel(StringRef name);

  const rt::Program &program;
  const rt::BufferPlaces places;
  Functions &functions;
  SymbolTable symbols;
  /// Of targets that were used.
  std::vector<std::optional<Kernel>> kernels;
  std::vector<std::optional<Function>> matmuls, collectives;
  /// Of each place.
  Numbers held;
  /// What runs the instructions.
  const rt::Action *action = nullptr;
  SmallVector<Print> operands, results;
  Outcome outcome;
};

std::optional<TableNumbering::Kernel> TableNumbering::readKernel(StringRef name) {
  auto function = symbols.lookup<func::FuncOp>(name);
  if (!function) {
    return std::nullopt;
  }
  Kernel kernel{ofKernel(name), {}};
  kernel.tied = function->getAttrOfType<DenseI64ArrayAttr>(kTiedAttrName).asArrayRef();
  for (Type type : function.getArgumentTypes()) {
    ++(type.isIndex() ? kernel.numbers : kernel.tensors);
  }
  return kernel;
}

/// Numbers come first, then tensors; results that are tied lie where their operand lay. `tied`
/// counts numbers, too.
bool TableNumbering::executeKernel(const rt::Instruction &instruction) {
  std::optional<Kernel> &kernel = kernels[instruction.target];
  if (!kernel) {
    kernel = readKernel(program.kernels[instruction.target].name);
  }
  if (!kernel || instruction.immediates.size() != kernel->numbers) {
    return false;
  }
  for (int64_t number : rt::immediatesOf(instruction, *action)) {
    operands.push_back(Print::of(number));
  }
  for (size_t place = 0; place < kernel->tensors; ++place) {
    operands.push_back(heldIn(instruction.operands[place].buffer));
  }
  results.resize(kernel->tied.size());
  kernel->function.number(operands, results);
  size_t next = kernel->tensors;
  for (auto [result, tie] : llvm::zip_equal(results, kernel->tied)) {
    size_t place = tie < 0 ? next++ : size_t(tie) - kernel->numbers;
    heldIn(instruction.operands[place].buffer) = result;
  }
  return true;
}

bool TableNumbering::executeMatmul(const rt::Instruction &instruction) {
  const rt::Matmul &matmul = program.matmuls[instruction.target];
  MatmulBuffers buffers(matmul, instruction);
  std::optional<Function> &function = matmuls[instruction.target];
  if (!function) {
    auto counts = llvm::map_to_vector(buffers.read, [&](uint32_t own) { return countIn(own); });
    function = functions.of(matmul, counts);
  }
  if (!function) {
    return false;
  }
  for (uint32_t buffer : buffers.read) {
    operands.push_back(heldIn(buffer));
  }
  results.resize(buffers.written.size());
  function->number(operands, results);
  for (auto [buffer, result] : llvm::zip_equal(buffers.written, results)) {
    heldIn(buffer) = result;
  }
  return true;
}

bool TableNumbering::executeTransfer(const rt::Instruction &instruction) {
  std::optional<Route> route = routeOf(program.collectives[instruction.target], program);
  if (!route) {
    return false;
  }
  Print &own = heldIn(instruction.operands.front().buffer);
  if (route->from == program.rankClass) {
    outcome.sent[*route].push_back(own);
  } else {
    own = outcome.receive(*route);
  }
  return true;
}

bool TableNumbering::executeCollective(const rt::Instruction &instruction) {
  if (program.collectives[instruction.target].isAcrossClasses()) {
    return executeTransfer(instruction);
  }
  uint32_t read = instruction.operands.front().buffer;
  std::optional<Function> &function = collectives[instruction.target];
  if (!function) {
    function = functions.of(program.collectives[instruction.target], countIn(read));
  }
  if (!function) {
    return false;
  }
  operands.push_back(heldIn(read));
  results.resize(1);
  function->number(operands, results);
  heldIn(instruction.operands.back().buffer) = results[0];
  return true;
}

bool TableNumbering::execute(const rt::Instruction &instruction) {
  operands.clear();
  switch (instruction.opcode) {
  case rt::Opcode::Kernel:
    return executeKernel(instruction);
  case rt::Opcode::Matmul:
    return executeMatmul(instruction);
  case rt::Opcode::Collective:
    return executeCollective(instruction);
  case rt::Opcode::Observe: {
    const rt::Observation &observation = program.observations[instruction.target];
    outcome.observed[observation.name].push_back(heldIn(instruction.operands[0].buffer));
    return true;
  }
  case rt::Opcode::Agree:
    return true; // Gives no value.
  }
  llvm_unreachable("unknown opcode");
}

std::optional<Outcome> TableNumbering::run(const std::vector<rt::Action> &actions) {
  outcome = {};
  held.assign(places.size(), Print());
  const std::vector<rt::NamedTensor> *lists[] = {&program.parameters, &program.optimizerState,
                                                 &program.inputs};
  for (const auto *list : lists) {
    for (const rt::NamedTensor &tensor : *list) {
      held[places.find(tensor.buffer)] = numberOfVariable(tensor.name);
    }
  }
  rt::Expansion instructions(program, actions);
  for (auto it = instructions.begin(); it != instructions.end(); ++it) {
    action = &it.by();
    if (!execute(*it)) {
      return std::nullopt;
    }
  }
  for (const auto *list : lists) {
    for (const rt::NamedTensor &tensor : *list) {
      outcome.variables[tensor.name] = held[places.find(tensor.buffer)];
    }
  }
  return std::move(outcome);
}

} // namespace

bool isTableOf(ModuleOp scheduled, const rt::Program &program, Arrays &arrays, LocalOps &ops) {
  Functions functions(arrays, ops);
  ModuleNumbering module(scheduled, program.rankClass, functions);
  TableNumbering table(scheduled, program, functions);
  const std::pair<StringRef, const std::vector<rt::Action> *> sections[] = {
      {"init", &program.init}, {"step", &program.step}, {"evaluate", &program.evaluate}};
  for (auto [name, actions] : sections) {
    std::optional<Outcome> wanted = module.run(name), got = table.run(*actions);
    if (!wanted || !got) {
      return false;
    }
    for (const auto &[variable, number] : got->variables) {
      wanted->variables.try_emplace(variable, numberOfVariable(variable));
    }
    if (*wanted != *got) {
      return false;
    }
  }
  return true;
}

} // namespace weft::meaning
