//===- Evaluation.cpp - a program's values, as terms of the whole ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Evaluation.h"

#include "weft/Dialect/Weft/IR/Sharding.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace weft::meaning {

std::string describe(Operation *op, llvm::StringRef label) {
  std::string text = op->getName().stripDialect().str();
  if (!label.empty()) {
    text += " of " + label.str();
  }
  if (auto name = op->getLoc()->findInstanceOf<NameLoc>()) {
    text += " (" + name.getName().str() + ")";
  }
  return text;
}

uint32_t Evaluation::fail(Operation *op, llvm::StringRef label, const llvm::Twine &reason) {
  Value value;
  value.fault = uint32_t(faults.size()) + 1;
  faults.push_back({op->getLoc(), describe(op, label), reason.str()});
  return values.numberOf(std::move(value));
}

Evaluation::Ids Evaluation::failAll(Operation *op, llvm::StringRef label,
                                    const llvm::Twine &reason) {
  return Ids(op->getNumResults(), fail(op, label, reason));
}

bool Evaluation::isPadded(const Dim &dim) {
  if (dim.start == kUnknown || dim.end == kEndless) {
    return false;
  }
  return dim.order ? dim.order.getSize() > dim.end
                   : ranks.greatest(dim.start) + dim.length > dim.end;
}

bool Evaluation::isZeroBeyond(const Dim &dim) { return !isPadded(dim) || dim.beyond == 0.0; }

uint32_t Evaluation::keep(Value value) {
  for (Dim &dim : value.dims) {
    if (!isPadded(dim)) {
      dim.beyond.reset();
    }
  }
  return values.numberOf(std::move(value));
}

uint32_t Evaluation::keepNumber(uint32_t number) {
  Value value;
  value.number = number;
  return values.numberOf(std::move(value));
}

TermId Evaluation::termOf(Operation *op, llvm::StringRef label, Term term) {
  term.location = op->getLoc();
  return terms.numberOf(std::move(term), [&] { return describe(op, label); });
}

std::optional<uint32_t> Evaluation::startOf(RankedTensorType type, int64_t dim) {
  ShardingAttr sharding = getSharding(type);
  if (!sharding) {
    return ranks.constant(0);
  }
  ArrayAttr axes = sharding.getDims()[dim];
  std::optional<uint32_t> shard = ranks.shard(axes);
  const Groups *groups = axes.empty() ? nullptr : ranks.groups(axes);
  int64_t length = type.getDimSize(unsigned(dim)) / (groups ? groups->size() : 1);
  return shard ? std::optional(ranks.multiply(*shard, ranks.constant(length))) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Ops that have no letters
//===----------------------------------------------------------------------===//

Evaluation::Ids Evaluation::evaluateIndex(Operation *op, ArrayRef<uint32_t> operands,
                                          llvm::StringRef label) {
  auto numberOf = [&](unsigned operand) { return values[operands[operand]].number; };
  std::optional<uint32_t> number;
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto integer = dyn_cast<IntegerAttr>(constant.getValue());
    number = integer ? std::optional(ranks.constant(integer.getInt())) : std::nullopt;
  } else if (auto index = dyn_cast<AxisIndexOp>(op)) {
    number = ranks.coordinate(index.getAxisAttr());
  } else if (isa<arith::AddIOp>(op)) {
    number = ranks.add(numberOf(0), numberOf(1));
  } else if (isa<arith::SubIOp>(op)) {
    number = ranks.add(numberOf(0), numberOf(1), -1);
  } else if (isa<arith::MulIOp>(op)) {
    number = ranks.multiply(numberOf(0), numberOf(1));
  }
  return number ? Ids{keepNumber(*number)} : failAll(op, label, "is no number that is known");
}

/// The program before Plan does not know the size of the batch. Its inputs have the sizes that
/// they have after Plan; the first two dimensions of a stack of micro-batches are the batch.
uint32_t Evaluation::read(ReadOp op, llvm::StringRef label) {
  auto variable = symbols.lookupNearestSymbolFrom<VariableOp>(op, op.getVariableAttr());
  RankedTensorType type = variable.getTensorType(), local = cast<RankedTensorType>(op.getType());
  auto given = inputs.find(variable.getSymName());
  bool isInput = variable.getRole() == VariableRole::Input;
  Value value;
  Term term{op->getName().getIdentifier(),
            0,
            op.getVariableAttr(),
            type.getElementType(),
            {},
            {},
            {},
            {},
            op.getLoc(),
            label.str()};
  value.isStacked = given != inputs.end() && int64_t(given->second.size()) + 1 == type.getRank();
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    bool isMicroBatch = value.isStacked && dim == 0;
    int64_t ofTerm = dim - int64_t(value.isStacked);
    int64_t unpadded =
        variable.getUnpadded() ? (*variable.getUnpadded())[dim] : type.getDimSize(unsigned(dim));
    int64_t size = given == inputs.end() || isMicroBatch ? unpadded : given->second[ofTerm];
    std::optional<uint32_t> start = startOf(type, dim);
    if (!start) {
      return fail(op, label, "is cut over axes that the mesh does not have");
    }
    Dim made{isMicroBatch ? -1 : ofTerm,
             *start,
             local.isDynamicDim(unsigned(dim)) ? size : local.getDimSize(unsigned(dim)),
             value.isStacked && dim == 1 ? unpadded : size,
             size,
             ZigzagAttr(),
             isInput ? std::nullopt : std::optional(0.0)};
    value.dims.push_back(made);
    if (!isMicroBatch) {
      term.letters.push_back(ofTerm);
      term.sizes.push_back(size);
    }
  }
  value.term = termOf(op, label, std::move(term));
  return keep(std::move(value));
}

uint32_t Evaluation::select(SelectOp op, ArrayRef<uint32_t> operands, llvm::StringRef label) {
  Value value = values[operands[0]];
  uint32_t index = values[operands[1]].number;
  bool isThere = llvm::all_of(ranks.values(index), [&](int64_t number) {
    return number >= 0 && number < value.dims[0].length;
  });
  if (!isThere) {
    return fail(op, label, "takes no micro-batch of an input");
  }
  value.isStacked = false;
  value.dims.erase(value.dims.begin());
  // Until here, the batch was that of one micro-batch.
  Dim &batch = value.dims[0];
  int64_t samples = batch.end;
  std::optional<int64_t> constant = ranks.asConstant(index);
  if (isPadded(batch) && !constant) {
    return fail(op, label, "takes a padded micro-batch");
  }
  batch.end = isPadded(batch) ? (*constant + 1) * samples : batch.size;
  batch.start = ranks.add(batch.start, index, samples);
  return keep(std::move(value));
}

uint32_t Evaluation::reorder(ReorderOp op, ArrayRef<uint32_t> operands, llvm::StringRef label) {
  Value value = values[operands[0]];
  Dim &dim = value.dims[op.getDim()];
  if (dim.start == kUnknown) {
    dim.length = cast<RankedTensorType>(op.getType()).getDimSize(unsigned(op.getDim()));
    return keep(std::move(value));
  }
  ZigzagAttr before = op.getInverse() ? op.getOrder() : ZigzagAttr();
  if (dim.order != before || ranks.asConstant(dim.start) != 0 ||
      dim.length != op.getOrder().getSize()) {
    return fail(op, label, "needs all positions, in the order that it changes");
  }
  dim.order = op.getInverse() ? ZigzagAttr() : op.getOrder();
  dim.start = op.getOffset() ? values[operands[1]].number : ranks.constant(0);
  dim.length = cast<RankedTensorType>(op.getType()).getDimSize(unsigned(op.getDim()));
  return keep(std::move(value));
}

/// Elements behind the end of the whole, which every rank has.
std::optional<uint32_t> Evaluation::addPadding(PadOp op, const Value &input) {
  Value value = input;
  for (auto [number, dim] : llvm::enumerate(value.dims)) {
    if (op.getHigh()[number] == 0 && op.getLow()[number] == 0 && op.getInterior()[number] == 0) {
      continue;
    }
    bool isAtEnd = op.getLow()[number] == 0 && op.getInterior()[number] == 0 && !dim.order &&
                   dim.start != kUnknown && ranks.asConstant(dim.start) == 0 &&
                   dim.length == dim.size && dim.end == dim.size;
    if (!isAtEnd) {
      return std::nullopt;
    }
    dim.length += op.getHigh()[number];
    dim.beyond = op.getValue().convertToDouble();
  }
  return keep(std::move(value));
}

std::optional<uint32_t> Evaluation::removePadding(ExtractOp op, const Value &input) {
  Value value = input;
  ArrayRef<int64_t> sizes = cast<RankedTensorType>(op.getType()).getShape();
  for (auto [number, dim] : llvm::enumerate(value.dims)) {
    bool isAll = op.getOffsets()[number] == 0 && op.getStrides()[number] == 1 &&
                 (sizes[number] == dim.length || dim.ofTerm < 0);
    bool isPadding = op.getOffsets()[number] == 0 && op.getStrides()[number] == 1 && !dim.order &&
                     dim.start != kUnknown && ranks.asConstant(dim.start) == 0 &&
                     sizes[number] == dim.size && dim.end == dim.size;
    if (!isAll && !isPadding) {
      return std::nullopt;
    }
    dim.length = sizes[number];
  }
  return keep(std::move(value));
}

/// The same elements by other names: no term of its own.
uint32_t Evaluation::transpose(ContractOp op, const Value &input) {
  SmallVector<llvm::StringRef> equation = op.getTerms();
  Value value = input;
  for (auto [dim, letter] : llvm::zip_equal(value.dims, equation[1])) {
    dim = input.dims[equation[0].find(letter)];
  }
  return keep(std::move(value));
}

uint32_t Evaluation::constantFill(FillOp op) {
  auto type = cast<RankedTensorType>(op.getType());
  Value value;
  // As a constant of the scalar ops would be.
  value.term =
      terms.constant(FloatAttr::get(type.getElementType(), op.getValue().convertToDouble()));
  for (int64_t size : type.getShape()) {
    Dim dim;
    dim.length = ShapedType::isDynamic(size) ? -1 : size;
    value.dims.push_back(dim);
  }
  return keep(std::move(value));
}

static bool isCollective(Operation *op) {
  return isa<AllReduceOp, AllGatherOp, ReduceScatterOp, AllToAllOp, PermuteOp, SliceOp, PartialOp>(
      op);
}

Evaluation::Ids Evaluation::evaluate(Operation *op, ArrayRef<uint32_t> operands,
                                     llvm::StringRef label) {
  for (uint32_t operand : operands) {
    if (values[operand].fault) {
      return Ids(op->getNumResults(), operand);
    }
    bool isTotal = values[operand].total && !takesTotal(op, values[operand]);
    bool isMoved = isa<SelectOp, ReorderOp>(op) || isCollective(op);
    if (isTotal || (values[operand].isStacked && !isMoved)) {
      return failAll(op, label, "takes what all micro-batches have for what one has");
    }
  }
  if (llvm::all_of(op->getResultTypes(), [](Type type) { return type.isIndex(); })) {
    return evaluateIndex(op, operands, label);
  }
  if (isCollective(op)) {
    return {collective(op, operands, label)};
  }
  auto contract = dyn_cast<ContractOp>(op);
  bool isTransposition =
      contract && contract.getInputs().size() == 1 &&
      contract.getType().getRank() == int64_t(values[operands[0]].dims.size()) &&
      contract.getType().getElementType() == getElementTypeOrSelf(contract.getInputs()[0]);
  auto fill = dyn_cast<FillOp>(op);
  if (isTransposition) {
    return {transpose(contract, values[operands[0]])};
  }
  if (fill && fill.getDistribution() == Distribution::Constant) {
    return {constantFill(fill)};
  }
  Ids special = llvm::TypeSwitch<Operation *, Ids>(op)
                    .Case([&](MapOp own) { return map(own, operands, label); })
                    .Case([&](ReadOp own) { return Ids{read(own, label)}; })
                    .Case([&](SelectOp own) {
                      bool isStacked = values[operands[0]].isStacked;
                      return isStacked ? Ids{select(own, operands, label)} : Ids();
                    })
                    .Case([&](ReshapeOp own) { return Ids{reshape(own, operands, label)}; })
                    .Case<ConstrainOp, TransferOp>([&](Operation *) { return Ids{operands[0]}; })
                    .Default([](Operation *) { return Ids(); });
  if (!special.empty()) {
    return special;
  }
  auto isOfWhole = [&](const Ids &results) {
    const Value &value = values[results[0]];
    return !value.fault && terms.isOfWhole(value.term);
  };
  Ids best;
  for (const OpMeaning &meaning : meaningsOf(op)) {
    Ids results = apply(op, meaning, operands, label);
    bool isFirst = best.empty(), isRight = isOfWhole(results);
    best = isFirst || isRight ? results : best;
    if (isRight) {
      break;
    }
  }
  // What the program before Plan does not do changes only how ranks store a value.
  std::optional<uint32_t> stored;
  if (!best.empty() && !isOfWhole(best)) {
    stored = llvm::TypeSwitch<Operation *, std::optional<uint32_t>>(op)
                 .Case([&](ReorderOp own) { return reorder(own, operands, label); })
                 .Case([&](PadOp own) { return addPadding(own, values[operands[0]]); })
                 .Case([&](ExtractOp own) { return removePadding(own, values[operands[0]]); })
                 .Default([](Operation *) { return std::nullopt; });
  }
  if (stored) {
    return {*stored};
  }
  return best.empty() ? failAll(op, label, "is an op whose meaning the proof does not know") : best;
}

} // namespace weft::meaning
