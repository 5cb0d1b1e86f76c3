//===- EncodeMatmuls.cpp - makes FP8 matmuls ------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A matmul's operand may have been quantized in another function, and moved by a collective since.
// Its scale then becomes an argument or a result of functions.
//
//===----------------------------------------------------------------------===//

#include "OpKinds.h"
#include "weft/Description/Machine.h"
#include "weft/Dialect/Weft/IR/AttributeNames.h"
#include "weft/Dialect/Weft/IR/Fp8Ops.h"
#include "weft/Pipeline/Schedule/Fp8Matmuls.h"
#include "weft/Pipeline/Schedule/MatmulForm.h"
#include "weft/Pipeline/Schedule/Passes.h"
#include "weft/Pipeline/Schedule/QuantizedValues.h"

#include "mlir/IR/TypeUtilities.h"

#include <array>
#include <string>
#include <vector>

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_ENCODEMATMULSPASS
#include "weft/Pipeline/Schedule/Passes.h.inc"

namespace {

/// An operand of a matmul.
struct Side : ByteOperand {
  Value value;
};

/// A matmul of quantized operands, and in `refusal` why it cannot be an FP8 matmul.
struct Candidate {
  ContractOp contract;
  Side lhs, rhs;
  std::string refusal;
};

/// Builds the ops that compute bytes, once for each value and block.
class Encoder {
public:
  explicit Encoder(QuantizedValues &values) : values(values) {}

  void need(const Side &side, Operation *user) {
    Needs &one = needs[{side.value, user->getBlock()}];
    one.format = *side.format;
    one.hasRows |= side.lead == 0;
    if (side.lead > 0 && !llvm::is_contained(one.leads, side.lead)) {
      one.leads.push_back(side.lead);
    }
    one.first = !one.first || user->isBeforeInBlock(one.first) ? user : one.first;
  }

  void encode() {
    for (auto &[place, one] : needs) {
      Value amax = values.amaxOf(place.first);
      one.leads.resize(std::max<size_t>(one.leads.size(), 1)); // 0 for rows alone.
      for (int64_t lead : one.leads) {
        one.made.push_back(create(place.first, amax, one, lead));
      }
    }
  }

  /// Returns the bytes of `side` in `block`, and their factor.
  std::pair<Value, Value> get(const Side &side, Block *block) {
    for (EncodeOp made : needs.find({side.value, block})->second.made) {
      Value bytes = side.lead == 0                                      ? made.getRows()
                    : static_cast<int64_t>(made.getLead()) == side.lead ? made.getTurned()
                                                                        : Value();
      if (bytes) {
        return {bytes, made.getFactor()};
      }
    }
    llvm_unreachable("bytes that nobody has asked for");
  }

  /// Computes bytes from the inputs of quantizations that have no other readers.
  void foldQuantizations();

private:
  struct Needs {
    Float8 format = Float8::E4M3;
    bool hasRows = false;
    SmallVector<int64_t> leads;
    Operation *first = nullptr;
    SmallVector<EncodeOp> made;
  };

  EncodeOp create(Value value, Value amax, const Needs &one, int64_t lead) {
    OpBuilder builder(one.first);
    auto type = cast<RankedTensorType>(value.getType());
    RankedTensorType bytes = type.clone(elementTypeOf(builder.getContext(), one.format));
    SmallVector<int64_t> shape(type.getShape());
    std::rotate(shape.begin(), shape.begin() + lead, shape.end());
    bool hasRows = one.hasRows && one.made.empty();
    return EncodeOp::create(builder, value.getLoc(), hasRows ? bytes : RankedTensorType(),
                            lead > 0 ? bytes.clone(shape) : RankedTensorType(),
                            scalarType(builder.getContext()), one.format, value, amax, lead);
  }

  QuantizedValues &values;
  llvm::MapVector<std::pair<Value, Block *>, Needs> needs;
};

/// Returns true if only `weft.encode` ops read `value` or its reshapes.
bool isForBytesAlone(Value value) {
  return llvm::all_of(value.getUsers(), [](Operation *user) {
    return isa<EncodeOp>(user) || (isa<ReshapeOp>(user) && isForBytesAlone(user->getResult(0)));
  });
}

/// Returns `value`, which is `quantize` or a reshape of it, with the quantization left out.
Value viewInput(Value value, QuantizeOp quantize) {
  auto reshape = value.getDefiningOp<ReshapeOp>();
  if (!reshape) {
    return quantize.getInput();
  }
  Value input = viewInput(reshape->getOperand(0), quantize);
  OpBuilder builder(reshape);
  Operation *view = builder.clone(*reshape);
  view->setOperand(0, input);
  view->getResult(0).setType(
      cast<RankedTensorType>(value.getType()).clone(getElementTypeOrSelf(input)));
  return view->getResult(0);
}

void Encoder::foldQuantizations() {
  for (auto &[place, one] : needs) {
    Value source = place.first;
    while (auto reshape = source.getDefiningOp<ReshapeOp>()) {
      source = reshape->getOperand(0);
    }
    auto quantize = source.getDefiningOp<QuantizeOp>();
    if (!quantize || !isForBytesAlone(source)) {
      continue;
    }
    Value input = viewInput(place.first, quantize);
    for (EncodeOp made : one.made) {
      made.getInputMutable().assign(input);
    }
  }
}

struct EncodeMatmulsPass : impl::EncodeMatmulsPassBase<EncodeMatmulsPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto target = module->getAttrOfType<StringAttr>(kTargetAttrName);
    if (!target || target.getValue() != "cuda") {
      return markAllAnalysesPreserved();
    }
    FailureOr<bool> isThere = hasMatmuls();
    if (failed(isThere)) {
      return signalPassFailure();
    }
    QuantizedValues values(module);
    std::vector<Candidate> candidates = collect(values);
    for (Candidate &one : candidates) {
      one.refusal = *isThere ? one.refusal : "the machine has no rate for F8";
    }
    report(candidates);
    std::erase_if(candidates, [](const Candidate &one) { return !one.refusal.empty(); });
    if (candidates.empty()) {
      return;
    }
    for (const Candidate &one : candidates) {
      values.bring(one.lhs.value);
      values.bring(one.rhs.value);
    }
    values.materialize();
    replace(candidates, values);
  }

  FailureOr<bool> hasMatmuls();
  std::vector<Candidate> collect(QuantizedValues &values);
  void report(ArrayRef<Candidate> candidates);
  void replace(MutableArrayRef<Candidate> candidates, QuantizedValues &values);
};

/// Returns true if the machine has FP8 matmuls, or if there is no machine.
FailureOr<bool> EncodeMatmulsPass::hasMatmuls() {
  if (machine.empty()) {
    return true;
  }
  auto spec = desc::parseMachine(machine);
  if (!spec) {
    return getOperation().emitError() << getArgument() << ": " << desc::str(spec.diagnostics());
  }
  return spec->device.peakFlopsF8.has_value();
}

std::vector<Candidate> EncodeMatmulsPass::collect(QuantizedValues &values) {
  std::vector<Candidate> candidates;
  getOperation().walk([&](ContractOp contract) {
    if (!classifyMatmul(contract)) {
      return;
    }
    Candidate one{contract, {}, {}, {}};
    for (auto [number, side] : llvm::enumerate(std::array{&one.lhs, &one.rhs})) {
      Value value = contract.getInputs()[number];
      *side = {{values.formatOf(value), 0, contract.getTerms()[number].str(),
                SmallVector<int64_t>(cast<RankedTensorType>(value.getType()).getShape())},
               value};
    }
    bool areKnown = one.lhs.format && one.rhs.format;
    if (!areKnown && llvm::none_of(contract.getInputs(),
                                   [&](Value value) { return values.isAnyQuantized(value); })) {
      return;
    }
    one.refusal = formFp8Matmul(one.lhs, one.rhs, contract.getTerms()[2]).refusal;
    candidates.push_back(one);
  });
  return candidates;
}

/// Warns about each reason for which matmuls stay as they are.
void EncodeMatmulsPass::report(ArrayRef<Candidate> candidates) {
  llvm::MapVector<StringRef, SmallVector<ContractOp>> refused;
  for (const Candidate &one : candidates) {
    if (!one.refusal.empty()) {
      refused[one.refusal].push_back(one.contract);
    }
  }
  for (auto &[reason, contracts] : refused) {
    contracts.front().emitWarning("encode-matmuls: ")
        << contracts.size() << " of " << candidates.size()
        << " FP8 matmuls stay in 16 or 32 bits, the first of them here: " << reason;
  }
}

void EncodeMatmulsPass::replace(MutableArrayRef<Candidate> candidates, QuantizedValues &values) {
  Encoder encoder(values);
  for (Candidate &one : candidates) {
    // QuantizedValues::materialize has replaced results of calls.
    one.lhs.value = one.contract.getInputs()[0];
    one.rhs.value = one.contract.getInputs()[1];
    encoder.need(one.lhs, one.contract);
    encoder.need(one.rhs, one.contract);
  }
  encoder.encode();
  for (const Candidate &one : candidates) {
    ContractOp contract = one.contract;
    OpBuilder builder(contract);
    auto [lhs, lhsFactor] = encoder.get(one.lhs, contract->getBlock());
    auto [rhs, rhsFactor] = encoder.get(one.rhs, contract->getBlock());
    std::string equation = one.lhs.term + "," + one.rhs.term + "->" + contract.getTerms()[2].str();
    auto matmul =
        Fp8MatmulOp::create(builder, contract.getLoc(), contract.getOutput().getType(), equation,
                            lhs, rhs, /*addend=*/Value(), /*bias=*/Value(), lhsFactor, rhsFactor);
    contract.getOutput().replaceAllUsesWith(matmul.getOutput());
    contract.erase();
    ++encoded;
  }
  encoder.foldQuantizations();
  for (func::FuncOp function : getOperation().getOps<func::FuncOp>()) {
    eraseDeadOps(function);
  }
}

} // namespace
} // namespace weft
