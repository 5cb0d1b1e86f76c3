//===- FuseEpilogues.cpp - merges maps into matmuls -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// This pass recognizes a map's function by its values: it evaluates the map's code, without
// roundings, for some numbers, and compares the results with those of an epilogue. So it does not
// matter how a model writes GELU or its derivative, nor how differentiation and merging change
// them.
//
// A matmul stays in its place, so that no value lives longer than before: the values that it adds
// must be computed before it.
//
//===----------------------------------------------------------------------===//

#include "OpKinds.h"
#include "weft/Dialect/Weft/IR/ElementTypes.h"
#include "weft/Dialect/Weft/IR/Fp8Ops.h"
#include "weft/Dialect/Weft/IR/MapBuilders.h"
#include "weft/Pipeline/Schedule/MatmulForm.h"
#include "weft/Pipeline/Schedule/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <numeric>

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_FUSEEPILOGUESPASS
#include "weft/Pipeline/Schedule/Passes.h.inc"

namespace {

//===----------------------------------------------------------------------===//
// Evaluation of maps
//===----------------------------------------------------------------------===//

using Numbers = ArrayRef<double>;

double tanhOfGelu(double x) { return std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)); }

double gelu(double x) { return 0.5 * x * (1 + tanhOfGelu(x)); }

double geluGradient(double x) {
  double t = tanhOfGelu(x);
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * 0.7978845608028654 * (1 + 3 * 0.044715 * x * x);
}

/// Returns the result of one scalar op; nothing for ops that no epilogue has.
std::optional<double> apply(Operation &op, Numbers x) {
  return TypeSwitch<Operation *, std::optional<double>>(&op)
      .Case([&](arith::AddFOp) { return x[0] + x[1]; })
      .Case([&](arith::SubFOp) { return x[0] - x[1]; })
      .Case([&](arith::MulFOp) { return x[0] * x[1]; })
      .Case([&](arith::DivFOp) { return x[0] / x[1]; })
      .Case([&](arith::NegFOp) { return -x[0]; })
      .Case([&](math::TanhOp) { return std::tanh(x[0]); })
      .Case<arith::ExtFOp, arith::TruncFOp>([&](Operation *) { return x[0]; })
      .Case([&](arith::ConstantOp constant) -> std::optional<double> {
        auto number = dyn_cast<FloatAttr>(constant.getValue());
        return number ? std::optional(number.getValueAsDouble()) : std::nullopt;
      })
      .Default(std::nullopt);
}

/// Returns the result of `map` for these operands.
std::optional<double> evaluate(MapOp map, Numbers arguments) {
  Block &body = map.getBody().front();
  llvm::DenseMap<Value, double> values;
  for (auto [argument, number] : llvm::zip_equal(body.getArguments(), arguments)) {
    values[argument] = number;
  }
  for (Operation &op : body.without_terminator()) {
    SmallVector<double, 2> operands;
    for (Value operand : op.getOperands()) {
      operands.push_back(values.lookup(operand));
    }
    std::optional<double> value = apply(op, operands);
    if (!value) {
      return std::nullopt;
    }
    values[op.getResult(0)] = *value;
  }
  return values.lookup(body.getTerminator()->getOperand(0));
}

/// Returns true if `map` computes `expected`, up to roundings of float32 constants.
bool computes(MapOp map, llvm::function_ref<double(Numbers)> expected) {
  constexpr int kSamples = 32;
  constexpr double kNear = 1e-6;
  uint32_t state = 1;
  for (int sample = 0; sample < kSamples; ++sample) {
    SmallVector<double, 4> arguments;
    for (unsigned i = 0; i < map.getNumOperands(); ++i) {
      state = state * 1664525u + 1013904223u;
      arguments.push_back(double(state >> 8) / (1 << 22) - 2); // From -2 to 2.
    }
    std::optional<double> value = evaluate(map, arguments);
    double wanted = expected(arguments);
    if (!value || !(std::abs(*value - wanted) <= kNear * (1 + std::abs(wanted)))) {
      return false;
    }
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Matmuls
//===----------------------------------------------------------------------===//

/// The parts of a matmul with its epilogue.
struct Parts {
  std::string equation;
  Value lhs, rhs, addend, bias, preactivation;
  /// Of an FP8 matmul.
  Value lhsFactor, rhsFactor;
  bool isGelu = false, isTF32 = false;
  RankedTensorType output, kept, sums;
};

/// Returns the parts of `op`: a contraction that is a matmul, or a matmul with an epilogue.
Parts partsOf(Operation *op) {
  Parts parts;
  auto takeCommon = [&](auto matmul) {
    parts.equation = matmul.getEquation().str();
    parts.lhs = matmul.getLhs();
    parts.rhs = matmul.getRhs();
    parts.addend = matmul.getAddend();
    parts.bias = matmul.getBias();
    parts.output = cast<RankedTensorType>(matmul.getOutput().getType());
  };
  if (auto contract = dyn_cast<ContractOp>(op)) {
    parts.equation = contract.getEquation().str();
    parts.lhs = contract.getInputs()[0];
    parts.rhs = contract.getInputs()[1];
    parts.isTF32 = contract.getTf32();
    parts.output = contract.getOutput().getType();
    return parts;
  }
  if (auto matmul = dyn_cast<Fp8MatmulOp>(op)) {
    takeCommon(matmul);
    parts.lhsFactor = matmul.getLhsFactor();
    parts.rhsFactor = matmul.getRhsFactor();
    return parts;
  }
  auto matmul = cast<MatmulOp>(op);
  takeCommon(matmul);
  parts.preactivation = matmul.getPreactivation();
  parts.isGelu = matmul.getGelu();
  parts.isTF32 = matmul.getTf32();
  parts.kept = matmul.getKept() ? parts.output : RankedTensorType();
  parts.sums =
      matmul.getSums() ? cast<RankedTensorType>(matmul.getSums().getType()) : RankedTensorType();
  return parts;
}

/// Builds a matmul of these parts in front of `op`, whose result the caller replaces.
Operation *replace(Operation *op, const Parts &parts) {
  OpBuilder builder(op);
  if (parts.lhsFactor) {
    return Fp8MatmulOp::create(builder, op->getLoc(), parts.output, parts.equation, parts.lhs,
                               parts.rhs, parts.addend, parts.bias, parts.lhsFactor,
                               parts.rhsFactor);
  }
  auto made =
      MatmulOp::create(builder, op->getLoc(), parts.output, parts.kept, parts.sums,
                       builder.getStringAttr(parts.equation), parts.lhs, parts.rhs, parts.addend,
                       parts.bias, parts.preactivation, parts.isGelu, parts.isTF32);
  if (auto before = dyn_cast<MatmulOp>(op); before && before.getSums()) {
    before.getSums().replaceAllUsesWith(made.getSums());
  }
  return made;
}

std::optional<MatmulForm> formOf(Operation *op) {
  if (auto contract = dyn_cast_or_null<ContractOp>(op)) {
    return classifyMatmul(contract);
  }
  if (auto matmul = dyn_cast_or_null<Fp8MatmulOp>(op)) {
    return classifyMatmul(matmul);
  }
  auto matmul = dyn_cast_or_null<MatmulOp>(op);
  return matmul ? classifyMatmul(matmul) : std::nullopt;
}

/// Returns true for one matmul, or a batch of them, to whose last result an epilogue can add.
bool takesAddend(Operation *op) {
  std::optional<MatmulForm> form = formOf(op);
  auto matmul = dyn_cast_or_null<MatmulOp>(op);
  return form && !form->matmul.isSum() &&
         !(matmul && (matmul.getGelu() || matmul.getPreactivation()));
}

/// Returns true for one matmul whose last result an epilogue can change.
bool isOpen(Operation *op) { return takesAddend(op) && formOf(op)->matmul.batch == 1; }

/// Returns true if the library supports epilogues other than additions: rows must begin at
/// multiples of 16 bytes, and of 8 elements, which the operand of GELU requires.
bool mayDoMore(const rt::Matmul &p) {
  auto isAligned = [&](int64_t ld, rt::ElementType type) {
    return ld % 8 == 0 && ld * int64_t(rt::sizeOf(type)) % 16 == 0;
  };
  return p.type != rt::ElementType::F64 && !p.isFp8() && isAligned(p.lda, p.type) &&
         isAligned(p.ldb, p.type) && isAligned(p.ldc, p.resultType()) && p.n % 8 == 0;
}

/// Returns true if `value` is computed before `op`.
bool isBefore(Value value, Operation *op) {
  Operation *def = value.getDefiningOp();
  return !def || def->getBlock() != op->getBlock() || def->isBeforeInBlock(op);
}

//===----------------------------------------------------------------------===//
// Maps that become part of matmuls
//===----------------------------------------------------------------------===//

/// The operation of a map on a matmul's result.
struct MapForm {
  enum class Kind : uint8_t { Sum, Gelu, GeluGradient } kind = Kind::Sum;
  /// The map's other operands: one of the map's shape, and one of its last dimensions.
  Value whole, spread;
};

AffineMap mapOf(MapOp map, unsigned number) {
  return cast<AffineMapAttr>(map.getMaps()[number]).getValue();
}

/// Returns true if an operand has the last dimensions of the space.
bool isTrailing(AffineMap map) {
  return map ==
         AffineMap::getMinorIdentityMap(map.getNumDims(), map.getNumResults(), map.getContext());
}

/// Sorts the operands of `map` except the matmul, number `matmul`; returns nothing if there are two
/// of a kind, or one of another kind.
std::optional<MapForm> sortOperands(MapOp map, unsigned matmul, int64_t columns) {
  MapForm form;
  for (auto [number, operand] : llvm::enumerate(map.getInputs())) {
    if (number == matmul) {
      continue;
    }
    auto type = cast<RankedTensorType>(operand.getType());
    bool isWhole = mapOf(map, number).isIdentity() && type == map.getOutputType();
    bool isSpread = isTrailing(mapOf(map, number)) && type.getNumElements() == columns &&
                    isa<FloatType>(type.getElementType());
    Value &place = isWhole ? form.whole : form.spread;
    if (place || (!isWhole && !isSpread)) {
      return std::nullopt;
    }
    place = operand;
  }
  return form;
}

/// Returns the operation of `map` on operand `matmul`, if an epilogue supports it.
std::optional<MapForm> classifyMap(MapOp map, unsigned matmul, int64_t columns) {
  if (map.getNumResults() != 1 || !mapOf(map, matmul).isIdentity()) {
    return std::nullopt;
  }
  std::optional<MapForm> form = sortOperands(map, matmul, columns);
  if (!form) {
    return std::nullopt;
  }
  auto sum = [](Numbers x) { return std::accumulate(x.begin(), x.end(), 0.0); };
  if (map.getNumOperands() > 1 && computes(map, sum)) {
    return form;
  }
  if (computes(map, [&](Numbers x) { return gelu(sum(x)); })) {
    form->kind = MapForm::Kind::Gelu;
    return form;
  }
  bool isPair = map.getNumOperands() == 2 && form->whole;
  if (isPair && computes(map, [&](Numbers x) { return x[matmul] * geluGradient(x[1 - matmul]); })) {
    form->kind = MapForm::Kind::GeluGradient;
    return form;
  }
  return std::nullopt;
}

struct FuseEpiloguesPass : impl::FuseEpiloguesPassBase<FuseEpiloguesPass> {
  void runOnOperation() override {
    if (!isForDevices(getOperation())) {
      return;
    }
    for (Block &block : getOperation().getBody()) {
      for (Operation &op : llvm::make_early_inc_range(block)) {
        if (auto map = dyn_cast<MapOp>(op)) {
          takeSum(map) || takeMap(map);
        }
      }
      // Listed first, since takeSums also erases a matmul, which may be the next op.
      SmallVector<ContractOp> sums;
      for (auto contract : block.getOps<ContractOp>()) {
        if (contract.getInputs().size() == 1) {
          sums.push_back(contract);
        }
      }
      llvm::for_each(sums, [&](ContractOp contract) { takeSums(contract); });
      eraseDeadOps(block);
    }
  }

  bool takeSum(MapOp map);
  bool takeMap(MapOp map);
  bool takeInto(Operation *matmul, MapOp map, const MapForm &form);
  bool takeSums(ContractOp sums);
};

/// Replaces `map` if it is a sum of matmuls and at most one other, earlier value: each matmul then
/// adds the result of the one before it.
bool FuseEpiloguesPass::takeSum(MapOp map) {
  SmallVector<Value> terms(map.getInputs());
  bool isWide = !isNarrow(map.getOutputType().getElementType());
  auto isTerm = [&](unsigned number) {
    return terms[number].getType() == map.getOutputType() && mapOf(map, number).isIdentity();
  };
  auto sum = [](Numbers x) { return std::accumulate(x.begin(), x.end(), 0.0); };
  if (map.getNumResults() != 1 || terms.size() < 2 || !isWide ||
      !llvm::all_of(llvm::seq<unsigned>(0, terms.size()), isTerm) || !computes(map, sum)) {
    return false;
  }
  auto isMatmulHere = [&](Value value) {
    Operation *def = value.getDefiningOp();
    return def && def->getBlock() == map->getBlock() && value.hasOneUse() && takesAddend(def) &&
           value == def->getResult(0) && !partsOf(def).addend;
  };
  llvm::sort(terms, [&](Value a, Value b) {
    bool isA = isMatmulHere(a), isB = isMatmulHere(b);
    return isA && isB ? a.getDefiningOp()->isBeforeInBlock(b.getDefiningOp()) : !isA && isB;
  });
  for (Value term : ArrayRef(terms).drop_front()) {
    if (!isMatmulHere(term) || !isBefore(terms[0], term.getDefiningOp())) {
      return false;
    }
  }
  Value before = terms[0];
  for (Value term : ArrayRef(terms).drop_front()) {
    Parts parts = partsOf(term.getDefiningOp());
    parts.addend = before;
    before = replace(term.getDefiningOp(), parts)->getResult(0);
    ++added;
  }
  map.getResult(0).replaceAllUsesWith(before);
  map.erase();
  return true;
}

bool FuseEpiloguesPass::takeMap(MapOp map) {
  for (auto [number, operand] : llvm::enumerate(map.getInputs())) {
    Operation *matmul = operand.getDefiningOp();
    if (!matmul || matmul->getBlock() != map->getBlock() || !isOpen(matmul) ||
        operand != matmul->getResult(0)) {
      continue;
    }
    rt::Matmul p = formOf(matmul)->matmul;
    std::optional<MapForm> form = classifyMap(map, number, p.n);
    // A result with other readers has to be kept, which only the epilogue of GELU can do.
    bool isKept = form && !operand.hasOneUse();
    bool mayKeep = isKept && form->kind == MapForm::Kind::Gelu && !form->whole && !form->spread &&
                   operand.getType() == map.getOutputType();
    if (form && (!isKept || mayKeep) && takeInto(matmul, map, *form)) {
      return true;
    }
  }
  return false;
}

bool FuseEpiloguesPass::takeInto(Operation *matmul, MapOp map, const MapForm &form) {
  Parts parts = partsOf(matmul);
  rt::Matmul p = formOf(matmul)->matmul;
  RankedTensorType before = parts.output;
  parts.output = map.getOutputType();
  bool isGradient = form.kind == MapForm::Kind::GeluGradient;
  Type element = parts.output.getElementType();
  // FP8 matmuls also have bf16 results, and besides additions only the epilogue of a bias for
  // these.
  Type narrow = p.isFp8() ? OpBuilder(matmul).getBF16Type() : getElementTypeOrSelf(parts.lhs);
  bool isTypeKnown = element == narrow || element.isF32();
  bool isSum = form.kind == MapForm::Kind::Sum;
  bool isAddition = isSum && !form.spread;
  p.isResultF32 = element != narrow;
  bool mayBeDone = isAddition || (p.isFp8() ? isSum && element == narrow : mayDoMore(p));
  // `before` is the type before the map; a narrow one has been rounded already.
  if (!isTypeKnown || (form.spread && parts.bias) || (form.whole && !isGradient && parts.addend) ||
      (isGradient && (parts.bias || parts.addend)) || !mayBeDone ||
      (form.whole && !isBefore(form.whole, matmul)) ||
      (form.spread && !isBefore(form.spread, matmul))) {
    return false;
  }
  OpBuilder builder(matmul);
  parts.bias = form.spread ? createCast(builder, map.getLoc(), form.spread, element) : parts.bias;
  (isGradient ? parts.preactivation : parts.addend) =
      form.whole ? form.whole : (isGradient ? parts.preactivation : parts.addend);
  parts.isGelu = form.kind == MapForm::Kind::Gelu;
  parts.kept = matmul->getResult(0).hasOneUse() ? RankedTensorType() : before;
  Operation *made = replace(matmul, parts);
  map.getResult(0).replaceAllUsesWith(made->getResult(0));
  map.erase();
  if (parts.kept) {
    matmul->getResult(0).replaceAllUsesWith(cast<MatmulOp>(made).getKept());
  }
  matmul->erase();
  ++fused;
  return true;
}

/// Merges sums of a matmul's operand over the contracted dimension into the matmul, as the gradient
/// of a bias, which is computed beside that of the weights.
bool FuseEpiloguesPass::takeSums(ContractOp sums) {
  SmallVector<StringRef> terms = sums.getTerms();
  Value input = sums.getInputs().front();
  for (Operation *user : input.getUsers()) {
    bool isCandidate = user != sums && user->getBlock() == sums->getBlock() && isOpen(user);
    Parts parts = isCandidate ? partsOf(user) : Parts();
    if (!isCandidate || parts.sums || parts.bias || parts.lhs == parts.rhs ||
        (input != parts.lhs && input != parts.rhs) || !mayDoMore(formOf(user)->matmul) ||
        parts.output.getElementType() != sums.getOutput().getType().getElementType()) {
      continue;
    }
    auto [operands, result] = StringRef(parts.equation).split("->");
    auto [lhs, rhs] = operands.split(',');
    StringRef term = input == parts.lhs ? lhs : rhs;
    std::string kept;
    for (auto [own, other] : llvm::zip_equal(term, terms[0])) {
      if (result.contains(own)) {
        kept.push_back(other);
      }
    }
    bool isLater = llvm::all_of(sums->getUsers(), [&](Operation *reader) {
      return reader->getBlock() == user->getBlock() && user->isBeforeInBlock(reader);
    });
    if (kept != terms[1] || !isLater) {
      continue;
    }
    if (input == parts.rhs) {
      parts.equation = (rhs + "," + lhs + "->" + result).str();
      std::swap(parts.lhs, parts.rhs);
    }
    parts.sums = sums.getOutput().getType();
    auto made = cast<MatmulOp>(replace(user, parts));
    user->getResult(0).replaceAllUsesWith(made.getOutput());
    sums.getOutput().replaceAllUsesWith(made.getSums());
    user->erase();
    sums.erase();
    ++summed;
    return true;
  }
  return false;
}

} // namespace
} // namespace weft
