//===- OutlineKernels.cpp - a function for each distinct kernel -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EqualKernels.h"
#include "OpKinds.h"
#include "Placement.h"
#include "weft/Pipeline/Schedule/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_OUTLINEKERNELSPASS
#include "weft/Pipeline/Schedule/Passes.h.inc"

namespace {

/// The inputs of the kernel for one op: first numbers, then tensors, each tensor once.
struct KernelInputs {
  SmallVector<Value> numbers;
  llvm::SetVector<Value> tensors;
  /// Arithmetic that moves into the kernel, in order.
  llvm::SetVector<Operation *> arithmetic;
};

bool isNumberInput(Value value) {
  return isa<BlockArgument>(value) || value.getDefiningOp<arith::ConstantOp>();
}

/// Adds the arithmetic that computes `value`, back to the function's arguments, which become
/// inputs. Constants of this arithmetic move along.
void collectArithmetic(Value value, KernelInputs &inputs) {
  Operation *op = value.getDefiningOp();
  if (!op) {
    if (!llvm::is_contained(inputs.numbers, value)) {
      inputs.numbers.push_back(value);
    }
    return;
  }
  if (!inputs.arithmetic.contains(op)) {
    for (Value operand : op->getOperands()) {
      collectArithmetic(operand, inputs);
    }
    inputs.arithmetic.insert(op);
  }
}

/// Builds kernels and finds equal ones.
class KernelTable {
public:
  KernelTable(ModuleOp module)
      : symbols(module), builder(OpBuilder::atBlockEnd(module.getBody())) {}

  /// Replaces `op` by a launch of its kernel. `tied` has one entry for each result: the number of
  /// an operand of `op`, or -1.
  void launch(Operation *op, ArrayRef<int64_t> tied);
  unsigned size() const { return count; }

private:
  func::FuncOp findOrInsert(func::FuncOp kernel, StringRef mnemonic);

  SymbolTable symbols;
  OpBuilder builder;
  EqualKernels kernels;
  unsigned count = 0;
  llvm::StringMap<unsigned> countOf;
};

func::FuncOp KernelTable::findOrInsert(func::FuncOp kernel, StringRef mnemonic) {
  if (func::FuncOp equal = kernels.findOrInsert(kernel); equal != kernel) {
    kernel->erase();
    return equal;
  }
  ++count;
  std::string name;
  do {
    name = ("kernel_" + mnemonic + "_" + Twine(countOf[mnemonic]++)).str();
  } while (symbols.lookup(name));
  kernel.setSymName(name);
  symbols.insert(kernel);
  return kernel;
}

/// Returns the inputs of the kernel of `op`.
KernelInputs collectInputs(Operation *op) {
  KernelInputs inputs;
  for (Value operand : op->getOperands()) {
    if (!operand.getType().isIndex()) {
      inputs.tensors.insert(operand);
    } else if (isNumberInput(operand)) {
      // Each number is an input of its own, so that kernels that differ only in numbers are equal,
      // even where two numbers happen to be the same value.
      inputs.numbers.push_back(operand);
    }
  }
  for (Value operand : op->getOperands()) {
    if (operand.getType().isIndex() && !isNumberInput(operand)) {
      collectArithmetic(operand, inputs);
    }
  }
  return inputs;
}

/// Fills the body of `kernel` with a copy of `op` that reads its arguments.
void buildBody(func::FuncOp kernel, Operation *op, const KernelInputs &inputs) {
  Block *body = kernel.addEntryBlock();
  OpBuilder builder = OpBuilder::atBlockBegin(body);
  IRMapping mapping;
  unsigned next = 0;
  for (Value number : inputs.numbers) {
    mapping.map(number, body->getArgument(next++));
  }
  for (Value tensor : inputs.tensors) {
    mapping.map(tensor, body->getArgument(next++));
  }
  for (Operation *arithmetic : inputs.arithmetic) {
    builder.clone(*arithmetic, mapping);
  }
  Operation *copy = builder.clone(*op, mapping);
  // Numbers that are inputs stand for one operand each.
  next = 0;
  for (OpOperand &operand : copy->getOpOperands()) {
    Value original = op->getOperand(operand.getOperandNumber());
    if (original.getType().isIndex() && isNumberInput(original)) {
      operand.set(body->getArgument(next++));
    }
  }
  func::ReturnOp::create(builder, op->getLoc(), copy->getResults());
}

void KernelTable::launch(Operation *op, ArrayRef<int64_t> tied) {
  op->removeAttr(kRecomputedAttrName); // The name of one op, which no kernel depends on.
  if (auto numbers = dyn_cast<KernelNumbersOpInterface>(op)) {
    numbers.turnNumbersIntoOperands();
  }
  KernelInputs inputs = collectInputs(op);
  SmallVector<Value> operands(inputs.numbers);
  operands.append(inputs.tensors.begin(), inputs.tensors.end());
  SmallVector<int64_t> kernelTied;
  for (int64_t operand : tied) {
    kernelTied.push_back(
        operand < 0 ? -1 : llvm::find(operands, op->getOperand(operand)) - operands.begin());
  }

  auto type = builder.getFunctionType(TypeRange(ValueRange(operands)), op->getResultTypes());
  auto kernel = func::FuncOp::create(op->getLoc(), "kernel", type);
  kernel.setPrivate();
  kernel->setAttr(kTiedAttrName, builder.getDenseI64ArrayAttr(kernelTied));
  buildBody(kernel, op, inputs);
  kernel = findOrInsert(kernel, op->getName().stripDialect());

  OpBuilder at(op);
  auto launch = LaunchOp::create(at, op->getLoc(), op->getResultTypes(), kernel.getSymName(),
                                 operands, kernelTied);
  op->replaceAllUsesWith(launch);
  op->erase();
}

struct OutlineKernelsPass : impl::OutlineKernelsPassBase<OutlineKernelsPass> {
  void runOnOperation() override {
    FailureOr<Ties> ties = findTies();
    if (failed(ties)) {
      return signalPassFailure();
    }
    KernelTable table(getOperation());
    for (auto function : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
      if (isKernel(function)) {
        continue;
      }
      outline(function, *ties, table);
      eraseDeadOps(function);
    }
    createdKernels += table.size();
  }

  /// Checks that no assignment still needs a copy.
  FailureOr<Ties> findTies() {
    ModuleSymbols symbols(getOperation());
    FailureOr<SmallVector<FlatSection, 3>> sections = linearizeSections(getOperation(), symbols);
    if (failed(sections)) {
      return failure();
    }
    Ties ties = decideTies(*sections);
    for (const FlatSection &section : *sections) {
      std::vector<Placing> placings = placeAssignments(section, ties);
      for (auto [assign, placing] : llvm::zip_equal(section.assigns, placings)) {
        AssignOp op = assign.op;
        if (placing == Placing::Copy) {
          return op.emitOpError("needs a copy; run copy-assignments first");
        }
      }
      for (auto [carry, placing] : llvm::zip_equal(section.carries, placeCarries(section, ties))) {
        if (placing == Placing::Copy) {
          func::ReturnOp op = carry.op;
          return op.emitOpError() << "needs a copy of operand " << carry.result
                                  << "; run copy-assignments first";
        }
      }
    }
    return ties;
  }

  void outline(func::FuncOp function, const Ties &ties, KernelTable &table) {
    SmallVector<Operation *> work;
    for (Block &block : function.getBody()) {
      for (Operation &op : block) {
        if (isKernelWork(&op)) {
          work.push_back(&op);
        }
      }
    }
    for (Operation *op : work) {
      auto it = ties.find(op);
      SmallVector<int64_t> tied =
          it == ties.end() ? SmallVector<int64_t>(op->getNumResults(), -1) : it->second;
      table.launch(op, tied);
      ++createdLaunches;
    }
  }
};

} // namespace
} // namespace weft
