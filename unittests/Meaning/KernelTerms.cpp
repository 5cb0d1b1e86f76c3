//===- KernelTerms.cpp - what kernels compute, as numbers ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelTerms.h"

#include "weft/Dialect/Weft/IR/AttributeNames.h"
#include "weft/Dialect/Weft/IR/Weft.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace weft::test {

static Term mixed(Term term) {
  term ^= term >> 31;
  term *= 0x9e3779b97f4a7c15u;
  term ^= term >> 29;
  term *= 0xbf58476d1ce4e5b9u;
  return term ^ term >> 32;
}

Term hashOf(std::span<const Term> terms) {
  Term hash = 0x243f6a8885a308d3u;
  for (Term term : terms) {
    hash = mixed(hash * 31 + term + 0x13198a2e03707344u);
  }
  return hash;
}

Term hashOf(std::string_view text) {
  Term hash = 1;
  for (char letter : text) {
    hash = mixed(hash + static_cast<unsigned char>(letter));
  }
  return hash;
}

namespace {

using Held = llvm::DenseMap<Value, Term>;

std::vector<Term> operandsOf(Operation &op, const Held &held) {
  std::vector<Term> terms;
  for (Value operand : op.getOperands()) {
    terms.push_back(held.lookup(operand));
  }
  return terms;
}

/// The result `number` of an op of which nothing else is known.
Term resultOf(Operation &op, std::vector<Term> operands, unsigned number) {
  std::string text;
  llvm::raw_string_ostream(text) << op.getName() << op.getAttrDictionary() << number;
  operands.push_back(hashOf(text));
  return hashOf(operands);
}

bool isZero(Operation &op) {
  auto fill = dyn_cast<FillOp>(op);
  return fill && !fill.getSeed() && fill.getValue().isZero();
}

std::vector<Term> evaluate(Block &block, Held &held);

std::vector<Term> evaluateMap(MapOp map, const Held &held) {
  Held inner = held;
  for (auto [argument, input, affine] :
       llvm::zip_equal(map.getBody().getArguments(), map.getInputs(),
                       map.getMaps().getAsValueRange<AffineMapAttr>())) {
    std::string text;
    llvm::raw_string_ostream(text) << affine;
    Term term = held.lookup(input);
    inner[argument] = affine.isIdentity() ? term : hashOf(std::vector<Term>{term, hashOf(text)});
  }
  return evaluate(map.getBody().front(), inner);
}

/// Returns what the block's terminator returns.
std::vector<Term> evaluate(Block &block, Held &held) {
  for (Operation &op : block) {
    std::vector<Term> operands = operandsOf(op, held);
    if (op.hasTrait<OpTrait::IsTerminator>()) {
      return operands;
    }
    std::vector<Term> results;
    if (auto map = dyn_cast<MapOp>(op)) {
      results = evaluateMap(map, held);
    } else if (isa<arith::AddFOp>(op)) {
      results = {operands[0] + operands[1]};
    } else if (isZero(op)) {
      results = {0};
    } else {
      if (isa<arith::MulFOp>(op)) {
        llvm::sort(operands);
      }
      for (unsigned number = 0; number < op.getNumResults(); ++number) {
        results.push_back(resultOf(op, operands, number));
      }
    }
    for (auto [result, term] : llvm::zip_equal(op.getResults(), results)) {
      held[result] = term;
    }
  }
  return {};
}

} // namespace

KernelTerms::KernelTerms(std::span<const ModuleOp> modules) {
  for (ModuleOp module : modules) {
    for (auto function : module.getOps<func::FuncOp>()) {
      if (function->hasAttr(kTiedAttrName)) {
        kernels[function.getSymName().str()] = function;
      }
    }
  }
}

std::vector<Term> KernelTerms::run(const std::string &kernel, std::span<const int64_t> numbers,
                                   std::span<const Term> tensors) {
  func::FuncOp function = kernels.at(kernel);
  std::vector<Term> call(tensors.begin(), tensors.end());
  call.insert(call.end(), numbers.begin(), numbers.end());
  call.push_back(hashOf(kernel));
  std::vector<Term> &results = known[hashOf(call)];
  if (!results.empty()) {
    return results;
  }
  Held held;
  size_t nextNumber = 0, nextTensor = 0;
  for (Value argument : function.getArguments()) {
    bool isNumber = argument.getType().isIndex();
    held[argument] =
        isNumber ? hashOf(std::vector<Term>{Term(numbers[nextNumber++])}) : tensors[nextTensor++];
  }
  return results = evaluate(function.getBody().front(), held);
}

std::vector<int64_t> KernelTerms::tiedOf(const std::string &kernel) const {
  func::FuncOp function = kernels.at(kernel);
  std::vector<int64_t> tied;
  for (int64_t place : function->getAttrOfType<DenseI64ArrayAttr>(kTiedAttrName).asArrayRef()) {
    // Numbers are no tensors.
    auto before = function.getArgumentTypes().take_front(size_t(std::max<int64_t>(place, 0)));
    tied.push_back(
        place < 0 ? -1 : place - llvm::count_if(before, [](Type type) { return type.isIndex(); }));
  }
  return tied;
}

size_t KernelTerms::tensorCount(const std::string &kernel) const {
  func::FuncOp function = kernels.at(kernel);
  return size_t(
      llvm::count_if(function.getArgumentTypes(), [](Type type) { return !type.isIndex(); }));
}

} // namespace weft::test
