//===- QuantizedValues.cpp - formats and scales of quantized values -------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Pipeline/Schedule/QuantizedValues.h"

#include "OpKinds.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace weft;

namespace {

/// A result of a split, to be matched with an operand of a concat.
struct Part {
  unsigned number;
  int64_t dim;
  SmallVector<int64_t> sizes;
};

} // namespace

static SmallVector<int64_t> sizesOf(ValueRange values, int64_t dim) {
  return llvm::map_to_vector(
      values, [&](Value value) { return cast<RankedTensorType>(value.getType()).getDimSize(dim); });
}

/// Returns the operand that `op` only moves, whole or in part; null if `op` does more.
static Value findMoved(Operation *op) {
  auto contract = dyn_cast<ContractOp>(op);
  bool isMoved =
      isa<ReshapeOp, ReshardOp, AllGatherOp, AllToAllOp, ExtractOp, PermuteOp, SliceOp, SplitOp>(
          op) ||
      (contract && contract.getInputs().size() == 1 && isRearrangement(contract));
  return isMoved ? op->getOperand(0) : Value();
}

/// Returns true if `op` keeps all elements along dimension `dim` in their places.
static bool keepsDim(Operation *op, int64_t dim) {
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<AllGatherOp, SliceOp>([&](auto op) { return int64_t(op.getDim()) != dim; })
      .Case([&](AllToAllOp op) {
        return int64_t(op.getSplit()) != dim && int64_t(op.getConcat()) != dim;
      })
      .Case([&](ExtractOp op) { return op.isWhole(dim); })
      .Case([&](ContractOp op) {
        return op.getTerms()[0].find(op.getTerms()[1][dim]) == size_t(dim);
      })
      .Case<PermuteOp, ReshardOp>([](Operation *) { return true; })
      .Default(false);
}

/// Returns the operand of `concat` that equals `part`, or null if the sizes differ.
static Value findPart(ConcatOp concat, const Part &part) {
  bool isSame =
      int64_t(concat.getDim()) == part.dim && sizesOf(concat.getInputs(), part.dim) == part.sizes;
  return isSame ? concat.getInputs()[part.number] : Value();
}

/// Returns the value in the same function that `value` was moved from, perhaps as a part of it. A
/// concat that is split again in the same way, as for buckets, is traced to the operand; the search
/// stops at other concats.
static Value findSource(Value value) {
  SmallVector<Part> parts;
  bool arePlacesKnown = true;
  while (Operation *op = value.getDefiningOp()) {
    Value next = findMoved(op);
    if (auto split = dyn_cast<SplitOp>(op)) {
      auto dim = int64_t(split.getDim());
      parts.push_back(
          {cast<OpResult>(value).getResultNumber(), dim, sizesOf(split.getOutputs(), dim)});
    } else if (auto concat = dyn_cast<ConcatOp>(op); concat && arePlacesKnown && !parts.empty()) {
      next = findPart(concat, parts.pop_back_val());
    } else {
      arePlacesKnown &=
          llvm::all_of(parts, [&](const Part &part) { return keepsDim(op, part.dim); });
    }
    if (!next) {
      break;
    }
    value = next;
  }
  return value;
}

QuantizedValues::QuantizedValues(ModuleOp module) : module(module), symbols(module) { findCalls(); }

void QuantizedValues::findCalls() {
  calls.clear();
  module.walk([&](CallOp call) { calls[symbols.lookup(call.getCallee())].push_back(call); });
}

std::optional<QuantizedValues::Port> QuantizedValues::argumentOf(Value value) const {
  auto argument = dyn_cast<BlockArgument>(value);
  auto function =
      argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : func::FuncOp();
  return function && calls.contains(function)
             ? std::optional(Port(function, argument.getArgNumber()))
             : std::nullopt;
}

std::optional<QuantizedValues::Port> QuantizedValues::resultOf(Value value) const {
  auto call = value.getDefiningOp<CallOp>();
  auto function = call ? symbols.lookup<func::FuncOp>(call.getCallee()) : func::FuncOp();
  return function && !function.isExternal()
             ? std::optional(Port(function, cast<OpResult>(value).getResultNumber()))
             : std::nullopt;
}

static Value returned(func::FuncOp function, unsigned number) {
  return function.front().getTerminator()->getOperand(number);
}

std::optional<Float8> QuantizedValues::formatOf(Value value) {
  // A value on a cycle of calls has no format while the search is at it, and therefore none at all.
  auto [known, isNew] = formats.try_emplace(value);
  if (!isNew) {
    return known->second;
  }
  std::optional<Float8> format = findFormat(findSource(value));
  formats[value] = format;
  return format;
}

std::optional<Float8> QuantizedValues::findFormat(Value source) {
  if (auto quantize = source.getDefiningOp<QuantizeOp>()) {
    bool isWide = getElementTypeOrSelf(quantize.getAmax()).isF32();
    return isWide ? std::optional(quantize.getFormat()) : std::nullopt;
  }
  if (std::optional<Port> result = resultOf(source)) {
    return formatOf(returned(result->first, result->second));
  }
  std::optional<Float8> format;
  if (std::optional<Port> argument = argumentOf(source)) {
    for (CallOp call : calls.find(argument->first)->second) {
      std::optional<Float8> own = formatOf(call.getOperands()[argument->second]);
      if (!own || (format && format != own)) {
        return std::nullopt;
      }
      format = own;
    }
  }
  return format;
}

bool QuantizedValues::isAnyQuantized(Value value) const {
  SmallVector<Value> open = {value};
  llvm::DenseSet<Value> seen;
  while (!open.empty()) {
    Value next = open.pop_back_val();
    if (!seen.insert(next).second) {
      continue;
    }
    Operation *op = next.getDefiningOp();
    if (auto quantize = dyn_cast_or_null<QuantizeOp>(op);
        quantize && getElementTypeOrSelf(quantize.getAmax()).isF32()) {
      return true;
    }
    if (auto concat = dyn_cast_or_null<ConcatOp>(op)) {
      llvm::append_range(open, concat.getInputs());
    } else if (Value moved = op ? findMoved(op) : Value()) {
      open.push_back(moved);
    } else if (std::optional<Port> result = resultOf(next)) {
      open.push_back(returned(result->first, result->second));
    } else if (std::optional<Port> argument = argumentOf(next)) {
      for (CallOp call : calls.find(argument->first)->second) {
        open.push_back(call.getOperands()[argument->second]);
      }
    }
  }
  return false;
}

void QuantizedValues::bring(Value value) {
  Value source = findSource(value);
  if (std::optional<Port> result = resultOf(source)) {
    if (results.try_emplace(*result).second) {
      bring(returned(result->first, result->second));
    }
  } else if (std::optional<Port> argument = argumentOf(source)) {
    if (arguments.try_emplace(*argument).second) {
      for (CallOp call : calls.find(argument->first)->second) {
        bring(call.getOperands()[argument->second]);
      }
    }
  }
}

Value QuantizedValues::amaxOf(Value value) const {
  Value source = findSource(value);
  if (auto quantize = source.getDefiningOp<QuantizeOp>()) {
    return quantize.getAmax();
  }
  if (std::optional<Port> result = resultOf(source)) {
    return source.getDefiningOp()->getResult(results.lookup(*result));
  }
  std::optional<Port> argument = argumentOf(source);
  return argument->first.getArgument(arguments.lookup(*argument));
}

void QuantizedValues::materialize() {
  formats.clear();
  Type scalar = RankedTensorType::get({}, Float32Type::get(module.getContext()));
  for (auto &[port, number] : arguments) {
    func::FuncOp function = port.first;
    number = function.getNumArguments();
    // It has as many arguments as its type says, and none has attributes.
    (void)function.insertArgument(number, scalar, {}, function.getLoc());
  }
  llvm::MapVector<Operation *, unsigned> more;
  for (auto &[port, number] : results) {
    number = port.first.getNumResults() + more[port.first]++;
  }
  // Calls first, since a call may return a value that another one takes.
  for (auto [function, count] : more) {
    for (CallOp call : calls.find(function)->second) {
      SmallVector<Type> types(call.getResultTypes());
      types.append(count, scalar);
      OpBuilder builder(call);
      auto made = CallOp::create(builder, call.getLoc(), types, call.getCalleeAttr(),
                                 call.getLabelAttr(), call.getOperands());
      call->replaceAllUsesWith(made->getResults().drop_back(count));
      call.erase();
    }
  }
  findCalls();
  for (const auto &[port, number] : results) {
    Operation *end = func::FuncOp(port.first).front().getTerminator();
    end->insertOperands(number, amaxOf(end->getOperand(port.second)));
  }
  for (auto [function, count] : more) {
    auto grown = cast<func::FuncOp>(function);
    grown.setFunctionType(FunctionType::get(module.getContext(), grown.getArgumentTypes(),
                                            grown.front().getTerminator()->getOperandTypes()));
  }
  for (const auto &[port, number] : arguments) {
    for (CallOp call : calls.find(port.first)->second) {
      call->insertOperands(number, amaxOf(call.getOperands()[port.second]));
    }
  }
}
