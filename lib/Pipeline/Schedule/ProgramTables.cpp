//===- ProgramTables.cpp - the tables that instructions refer to ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProgramTables.h"

#include "AttentionForm.h"
#include "KernelWork.h"
#include "OpKinds.h"
#include "weft/Dialect/Weft/IR/Fp8Ops.h"
#include "weft/Dialect/Weft/IR/OpCosts.h"
#include "weft/Dialect/Weft/IR/Sharding.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace weft;

namespace {

std::vector<uint32_t> toAxes(ArrayAttr axes, MeshAttr mesh) {
  std::vector<uint32_t> numbers;
  for (StringAttr axis : axes.getAsRange<StringAttr>()) {
    numbers.push_back(mesh.getIndex(axis));
  }
  return numbers;
}

/// Returns the numbers as text, for use as a key.
std::string join(char kind, ArrayRef<int64_t> numbers) {
  std::string key(1, kind);
  for (int64_t number : numbers) {
    key += std::to_string(number) + ",";
  }
  return key;
}

/// Returns the bytes of all tensors in `types`.
double bytesOf(TypeRange types) {
  double bytes = 0;
  for (Type type : types) {
    if (auto tensor = dyn_cast<RankedTensorType>(type)) {
      bytes += countBytes(tensor);
    }
  }
  return bytes;
}

std::optional<MatmulForm> formOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, std::optional<MatmulForm>>(op)
      .Case<ContractOp, MatmulOp, Fp8MatmulOp>([](auto op) { return classifyMatmul(op); });
}

/// For joined ops returns the first names and the number of the others; else returns one name.
std::string findNames(Location loc) {
  constexpr size_t kShown = 2;
  auto bucket = dyn_cast<FusedLocWith<UnitAttr>>(loc);
  llvm::SetVector<StringRef> names;
  for (Location part : bucket ? bucket.getLocations() : ArrayRef(loc)) {
    names.insert(findName(part));
  }
  size_t hidden = names.size() - std::min(names.size(), kShown);
  std::string text = llvm::join(names.getArrayRef().take_front(kShown), ", ");
  return hidden == 0 ? text : text + " and " + std::to_string(hidden) + " more";
}

} // namespace

FailureOr<rt::TensorLayout>
weft::toLayout(Operation *op, Type type, std::optional<ArrayRef<int64_t>> unpadded, MeshAttr mesh) {
  ShardingAttr sharding = getSharding(type);
  if (!sharding || sharding.getMesh() != mesh || !sharding.isReduced()) {
    return op->emitOpError() << "expected a layout with a sharding on " << mesh
                             << " and nothing pending, got " << type;
  }
  auto tensor = cast<RankedTensorType>(type);
  rt::TensorLayout layout;
  layout.type = toElementType(tensor.getElementType());
  ArrayRef<int64_t> shape = unpadded.value_or(tensor.getShape());
  layout.globalShape.assign(shape.begin(), shape.end());
  if (unpadded) {
    layout.paddedShape.assign(tensor.getShape().begin(), tensor.getShape().end());
  }
  for (ArrayAttr axes : sharding.getDims()) {
    layout.dimAxes.push_back(toAxes(axes, mesh));
  }
  return layout;
}

FailureOr<ProgramTables::Target> ProgramTables::findTarget(Operation *op) {
  auto it = targets.find(op);
  auto observe = dyn_cast<ObserveOp>(op);
  // Each observation has an entry of its own, but a limit has one for all micro-batches.
  if (it != targets.end() && (!observe || observe.getLimit())) {
    return it->second;
  }
  FailureOr<Target> target = makeTarget(op);
  if (succeeded(target)) {
    target->cost = costOf(op);
    targets[op] = *target;
  }
  return target;
}

Operation *ProgramTables::mainWorkOf(LaunchOp op) const {
  Operation *work = findMainWork(symbols.functions.lookup(op.getKernelAttr().getAttr()));
  return work ? work : op.getOperation();
}

SmallVector<Operation *> ProgramTables::workOf(LaunchOp op) const {
  SmallVector<Operation *> work = findWork(symbols.functions.lookup(op.getKernelAttr().getAttr()));
  return work.empty() ? SmallVector<Operation *>{op} : work;
}

rt::Cost ProgramTables::costOf(Operation *op) const {
  if (auto launch = dyn_cast<LaunchOp>(op)) {
    rt::Cost all;
    SmallVector<Operation *> ops = workOf(launch);
    for (Operation *work : ops) {
      rt::Cost cost = costOfWork(work);
      all.flops += cost.flops;
      all.bytes += cost.bytes;
      for (Value operand : work->getOperands()) {
        // What another op of the kernel computes is neither written nor read.
        bool isInside = llvm::is_contained(ops, operand.getDefiningOp());
        all.bytes -= isInside ? 2 * bytesOf(operand.getType()) : 0;
      }
    }
    return all;
  }
  return costOfWork(op);
}

rt::Cost ProgramTables::costOfWork(Operation *op) const {
  if (isa<MatmulOp, Fp8MatmulOp>(op)) {
    std::optional<MatmulForm> form = formOf(op);
    const rt::Matmul p = form ? form->matmul : rt::Matmul();
    return {2 * double(p.m) * double(p.n) * double(p.k),
            bytesOf(op->getOperandTypes()) + bytesOf(op->getResultTypes())};
  }
  if (auto encode = dyn_cast<EncodeOp>(op)) {
    double elements =
        static_cast<double>(cast<RankedTensorType>(encode.getInput().getType()).getNumElements());
    return {kQuantizeFlops * elements,
            bytesOf(op->getOperandTypes()) + bytesOf(op->getResultTypes())};
  }
  if (isa<ShardableOpInterface>(op)) {
    OpCost cost = weft::costOf(op);
    return {cost.flops.constant, cost.bytes.constant};
  }
  if (!isCommunication(op) && !isPure(op)) {
    return {}; // Looks at something, and neither computes nor moves it.
  }
  // Moves data: writes its result and reads as much; between ranks it reads a larger operand whole.
  double operand = bytesOf(op->getOperandTypes()), result = bytesOf(op->getResultTypes());
  return {0, (isCommunication(op) ? std::max(operand, result) : result) + result};
}

FailureOr<ProgramTables::Target> ProgramTables::makeTarget(Operation *op) {
  if (auto launch = dyn_cast<LaunchOp>(op)) {
    return makeKernel(launch);
  }
  if (auto observe = dyn_cast<ObserveOp>(op)) {
    return makeObservation(observe);
  }
  if (isa<AgreeOp>(op)) {
    return Target{rt::Opcode::Agree, 0};
  }
  if (isa<SendOp, ReceiveOp>(op)) {
    return makeTransfer(op);
  }
  if (isCommunication(op)) {
    return makeCollective(op);
  }
  if (isMatmul(op)) {
    return makeMatmul(op);
  }
  return op->emitOpError("does not become an instruction; run verify-schedule first");
}

ProgramTables::Target ProgramTables::makeKernel(LaunchOp op) {
  auto [it, isNew] = numbers.try_emplace(("k" + op.getKernel()).str(), program.kernels.size());
  if (isNew) {
    Operation *work = mainWorkOf(op);
    SmallVector<std::string> details;
    for (Operation *member : workOf(op)) {
      std::string ops = scalarOps(*member);
      if (!ops.empty() && !llvm::is_contained(details, ops)) {
        details.push_back(std::move(ops));
      }
    }
    func::FuncOp kernel = symbols.functions.lookup(op.getKernelAttr().getAttr());
    program.kernels.push_back({op.getKernel().str(), work->getName().stripDialect().str(),
                               llvm::join(details, ", "), classifyAttention(kernel, work, mesh)});
  }
  return {rt::Opcode::Kernel, it->second};
}

FailureOr<ProgramTables::Target> ProgramTables::makeMatmul(Operation *op) {
  std::optional<MatmulForm> form = formOf(op);
  if (!form) {
    return op->emitOpError("expected one matmul of two matrices, which a library computes");
  }
  rt::Matmul &p = form->matmul;
  p.workspaceBytes = isForDevices(op) ? workspaceBytes(p) : 0;
  const rt::Epilogue &e = p.epilogue;
  std::string key = join('p', {static_cast<int64_t>(p.type),
                               p.transposeA,
                               p.transposeB,
                               p.m,
                               p.n,
                               p.k,
                               p.lda,
                               p.ldb,
                               p.ldc,
                               p.batch,
                               p.strideA,
                               p.strideB,
                               p.strideC,
                               p.isResultF32,
                               p.isTF32,
                               static_cast<int64_t>(p.fp8B),
                               e.hasAddend,
                               e.hasBias,
                               static_cast<int64_t>(e.activation),
                               e.hasAux,
                               static_cast<int64_t>(e.sums)});
  auto [it, isNew] = numbers.try_emplace(key, program.matmuls.size());
  if (isNew) {
    program.matmuls.push_back(p);
  }
  return Target{rt::Opcode::Matmul, it->second, form->isSwapped};
}

FailureOr<ProgramTables::Target> ProgramTables::makeCollective(Operation *op) {
  rt::Collective collective;
  ReductionKind reduction = ReductionKind::Sum;
  MeshAttr ownMesh;
  auto setGroup = [&](auto typed, rt::CollectiveKind kind) {
    collective.kind = kind;
    ownMesh = typed.getMesh();
    collective.axes = toAxes(typed.getAxes(), ownMesh);
  };
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](AllReduceOp typed) {
        setGroup(typed, rt::CollectiveKind::AllReduce);
        reduction = typed.getReduction();
      })
      .Case([&](AllGatherOp typed) {
        setGroup(typed, rt::CollectiveKind::AllGather);
        collective.dim = typed.getDim();
      })
      .Case([&](ReduceScatterOp typed) {
        setGroup(typed, rt::CollectiveKind::ReduceScatter);
        collective.dim = typed.getDim();
        reduction = typed.getReduction();
      })
      .Case([&](AllToAllOp typed) {
        setGroup(typed, rt::CollectiveKind::AllToAll);
        collective.dim = typed.getSplit();
        collective.dim2 = typed.getConcat();
      })
      .Case([&](PermuteOp typed) {
        setGroup(typed, rt::CollectiveKind::Permute);
        collective.sources.assign(typed.getSources().begin(), typed.getSources().end());
      });
  if (reduction == ReductionKind::LogSumExp) {
    return op->emitOpError("reduces by logsumexp, expected sum or max after partition");
  }
  if (ownMesh != mesh) {
    return op->emitOpError() << "is on " << ownMesh << ", expected the module's " << mesh;
  }
  collective.reduction =
      reduction == ReductionKind::Max ? rt::ReductionKind::Max : rt::ReductionKind::Sum;
  auto type = cast<RankedTensorType>(op->getOperand(0).getType());
  collective.type = toElementType(type.getElementType());
  collective.shape.assign(type.getShape().begin(), type.getShape().end());

  std::vector<int64_t> parts = {static_cast<int64_t>(collective.kind),
                                static_cast<int64_t>(collective.reduction),
                                static_cast<int64_t>(collective.type),
                                collective.dim,
                                collective.dim2,
                                static_cast<int64_t>(collective.axes.size())};
  parts.insert(parts.end(), collective.axes.begin(), collective.axes.end());
  parts.insert(parts.end(), collective.sources.begin(), collective.sources.end());
  parts.insert(parts.end(), collective.shape.begin(), collective.shape.end());
  auto [it, isNew] = numbers.try_emplace(join('c', parts), program.collectives.size());
  if (isNew) {
    program.collectives.push_back(std::move(collective));
  }
  return Target{rt::Opcode::Collective, it->second};
}

/// Both stages describe a transfer in the same way; the number tells it from others.
ProgramTables::Target ProgramTables::makeTransfer(Operation *op) {
  auto send = dyn_cast<SendOp>(op);
  auto receive = dyn_cast<ReceiveOp>(op);
  auto type =
      cast<RankedTensorType>(send ? send.getInput().getType() : receive.getOutput().getType());
  rt::Collective transfer;
  transfer.kind = rt::CollectiveKind::Transfer;
  transfer.type = toElementType(type.getElementType());
  transfer.shape.assign(type.getShape().begin(), type.getShape().end());
  transfer.number = static_cast<uint32_t>(send ? send.getNumber() : receive.getNumber());
  uint32_t from = send ? program.rankClass : static_cast<uint32_t>(receive.getFrom());
  uint32_t to = send ? static_cast<uint32_t>(send.getTo()) : program.rankClass;
  transfer.classes = {from, to};
  auto [it, isNew] =
      numbers.try_emplace("t" + std::to_string(transfer.number), program.collectives.size());
  if (isNew) {
    program.collectives.push_back(std::move(transfer));
  }
  return {rt::Opcode::Collective, it->second};
}

FailureOr<ProgramTables::Target> ProgramTables::makeObservation(ObserveOp op) {
  if (!op.getLayout()) {
    return op.emitOpError("has no layout after partition");
  }
  FailureOr<rt::TensorLayout> layout = toLayout(op, *op.getLayout(), op.getUnpadded(), mesh);
  if (failed(layout)) {
    return failure();
  }
  auto [it, isNew] = numbers.try_emplace(("o" + op.getName()).str(), program.observations.size());
  if (!isNew) {
    return op.emitOpError() << "observes '" << op.getName() << "' a second time";
  }
  auto number = [](std::optional<APFloat> value) { return value ? value->convertToDouble() : 0.0; };
  program.observations.push_back(
      {op.getName().str(), std::move(*layout), number(op.getLimit()), number(op.getMean())});
  return Target{rt::Opcode::Observe, it->second};
}

std::string ProgramTables::describe(Operation *op) {
  // A launch is described by what its kernel computes.
  StringRef kind = op->getName().stripDialect();
  if (auto launch = dyn_cast<LaunchOp>(op)) {
    kind = mainWorkOf(launch)->getName().stripDialect();
  }
  std::string name = findNames(op->getLoc());
  return name + (name.empty() ? "(" : " (") + kind.str() + ")";
}

bool ProgramTables::moves(Operation *op) const {
  auto launch = dyn_cast<LaunchOp>(op);
  return launch ? llvm::all_of(workOf(launch), isRearrangement) : isCommunication(op);
}

uint32_t ProgramTables::findLabel(Operation *op, StringRef section, StringRef path) {
  auto [description, isNew] = descriptions.try_emplace(op);
  if (isNew) {
    description->second = describe(op);
  }
  StringRef prefix = path.empty() ? section : path;
  StringRef separator = prefix.empty()                                    ? ""
                        : StringRef(description->second).starts_with("(") ? " "
                                                                          : "/";
  SmallString<128> label;
  (prefix + separator + description->second).toVector(label);
  auto [it, isNewLabel] = labels.try_emplace(label, program.labels.size());
  if (isNewLabel) {
    program.labels.push_back(label.str().str());
  }
  return it->second;
}
