//===- AttentionForm.cpp - attention for a library ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionForm.h"

#include "weft/Dialect/Weft/IR/AttributeNames.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace weft;

namespace {

/// Adds `factor` times `value` to `offset`; returns false if an AttentionOffset cannot express it.
bool addTo(rt::AttentionOffset &offset, Value value, int64_t factor, MeshAttr mesh) {
  llvm::APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant))) {
    return constant.isZero() || factor == 0; // Nobody needs others.
  }
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    // Numbers come first.
    offset.immediates.push_back(argument.getArgNumber());
    return factor == 1;
  }
  if (auto index = value.getDefiningOp<AxisIndexOp>()) {
    offset.strides.resize(mesh.getSizes().size());
    offset.strides[mesh.getIndex(index.getAxisAttr())] += factor;
    return true;
  }
  if (auto sum = value.getDefiningOp<arith::AddIOp>()) {
    return addTo(offset, sum.getLhs(), factor, mesh) && addTo(offset, sum.getRhs(), factor, mesh);
  }
  auto product = value.getDefiningOp<arith::MulIOp>();
  return product && matchPattern(product.getRhs(), m_ConstantInt(&constant)) &&
         addTo(offset, product.getLhs(), factor * constant.getSExtValue(), mesh);
}

template <typename OpTy> bool setPositions(rt::Attention &form, OpTy op, MeshAttr mesh) {
  if (op.getAxes() || !op.getDropout().isZero()) {
    return false;
  }
  int64_t keys = op.getGlobalShape() ? op.getGlobalShape()->back() : form.keys;
  form.isCausal = !op.getBidirectional();
  form.window = std::min<int64_t>(op.getWindow().value_or(0), keys);
  form.window = form.window == keys ? 0 : form.window;
  if (auto order = op.getOrderAttr()) {
    form.chunks = order.getChunks();
    form.chunkLength = order.getLength();
    if (form.isCausal && form.keys == order.getSize() && form.chunks > 2) {
      return false; // A chunk sees keys from all over.
    }
  }
  if (!op.getOffsets().empty() &&
      (!addTo(form.firstQuery, op.getOffsets().drop_back().back(), 1, mesh) ||
       !addTo(form.firstKey, op.getOffsets().back(), 1, mesh))) {
    return false;
  }
  if (op.getTurn()) {
    auto turn = dyn_cast<BlockArgument>(op.getTurn());
    if (!turn) {
      return false;
    }
    form.turn = turn.getArgNumber();
    form.turns = op.getTurns() ? static_cast<int64_t>(*op.getTurns())
                               : llvm::divideCeil(keys, std::max<int64_t>(form.keys, 1));
  }
  return true;
}

/// Sets in `form` the operands of the instruction that are the tensors of `op`, in the order of
/// roles.
bool setOperands(rt::Attention &form, func::FuncOp kernel, Operation *op, Value starts) {
  int64_t numbers = llvm::count_if(kernel.getArgumentTypes(), llvm::IsaPred<IndexType>);
  unsigned inputs = form.isBackward ? rt::Attention::QueryGradient : rt::Attention::Output;
  for (Value operand : op->getOperands().take_front(inputs)) {
    auto argument = dyn_cast<BlockArgument>(operand);
    if (!argument) {
      return false;
    }
    form.operands.push_back(argument.getArgNumber() - numbers);
  }
  if (starts) {
    auto argument = dyn_cast<BlockArgument>(starts);
    if (!argument) {
      return false;
    }
    form.starts = argument.getArgNumber() - numbers;
  }
  auto tied = kernel->getAttrOfType<DenseI64ArrayAttr>(kTiedAttrName);
  int64_t next = kernel.getNumArguments() - numbers;
  for (auto [result, place] : llvm::enumerate(tied.asArrayRef())) {
    form.operands.push_back(place < 0 ? next++ : place - numbers);
    bool isOutput = !form.isBackward && result == 0;
    if (place >= 0 && !(isOutput && form.operands.back() == form.operands[rt::Attention::Query])) {
      return false;
    }
  }
  return true;
}

template <typename OpTy>
std::optional<rt::Attention> classify(OpTy op, bool isBackward, func::FuncOp kernel,
                                      MeshAttr mesh) {
  auto query = cast<RankedTensorType>(op.getQuery().getType());
  if (!query.getElementType().isBF16()) {
    return std::nullopt;
  }
  rt::Attention form;
  form.isBackward = isBackward;
  form.areResultsWide = getElementTypeOrSelf(op->getResult(0)).isF32();
  form.batch = query.getDimSize(0);
  form.queries = query.getDimSize(1);
  form.keyHeads = query.getDimSize(2);
  form.group = query.getDimSize(3);
  form.features = query.getDimSize(4);
  form.keys = cast<RankedTensorType>(op.getKey().getType()).getDimSize(1);
  form.valueFeatures = cast<RankedTensorType>(op.getValue().getType()).getDimSize(3);
  form.scale = op.getScale().convertToDouble();
  if (query.getNumElements() == 0 || form.keys == 0 || form.valueFeatures == 0 ||
      !setPositions(form, op, mesh) || !setOperands(form, kernel, op, op.getStarts())) {
    return std::nullopt;
  }
  bool isForDevices = kernel->template getParentOfType<ModuleOp>()->hasAttr(kTargetAttrName);
  form.workspaceBytes = isForDevices ? rt::attentionWorkspace(form) : 0;
  return form;
}

} // namespace

std::optional<rt::Attention> weft::classifyAttention(func::FuncOp kernel, Operation *work,
                                                     MeshAttr mesh) {
  if (auto forward = dyn_cast<AttentionOp>(work)) {
    return classify(forward, /*isBackward=*/false, kernel, mesh);
  }
  auto backward = dyn_cast<AttentionGradOp>(work);
  return backward ? classify(backward, /*isBackward=*/true, kernel, mesh) : std::nullopt;
}
