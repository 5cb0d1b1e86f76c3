//===- MatmulRows.cpp - alignment of the rows of matmuls ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MatmulRows.h"

#include "weft/Dialect/Weft/IR/OpCost.h"
#include "weft/Pipeline/Schedule/MatmulForm.h"
#include "weft/Pipeline/Schedule/QuantizedValues.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/Support/MathExtras.h"

#include <array>

using namespace mlir;

namespace weft {
namespace {

int64_t bytesOf(rt::ElementType type) { return int64_t(rt::sizeOf(type)); }

/// The element types of two operands and the result.
using Elements = std::array<rt::ElementType, 3>;

Elements elementsOf(ContractOp op) {
  auto of = [](Value value) { return toElementType(getElementTypeOrSelf(value)); };
  return {of(op.getInputs()[0]), of(op.getInputs()[1]), of(op.getOutput())};
}

/// Returns the dimensions of the operands and the result, as factors.
std::array<ArrayRef<unsigned>, 3> factorsOf(const FactorRule &rule) {
  return {rule.operands[0], rule.operands[1], rule.results[0]};
}

std::optional<MatmulForm> formOf(ContractOp op, const FactorRule &rule, ArrayRef<int64_t> sizes,
                                 rt::ElementType element) {
  auto shapeOf = [&](ArrayRef<unsigned> factors) {
    return llvm::map_to_vector(factors, [&](unsigned factor) { return sizes[factor]; });
  };
  auto terms = llvm::to_vector(op.getTerms());
  return classifyMatmul(terms, shapeOf(rule.operands[0]), shapeOf(rule.operands[1]), element);
}

/// Returns the alignment of the operands' and the result's rows.
std::array<cost::Rows, 3> rowsOfTensors(ContractOp op, const FactorRule &rule,
                                        ArrayRef<int64_t> sizes, const Elements &elements) {
  constexpr std::array<cost::Rows, 3> aligned = {};
  auto isSurelyAligned = [&](ArrayRef<unsigned> factors, rt::ElementType element) {
    return factors.empty() || sizes[factors.back()] * bytesOf(element) % cost::kRowBytes == 0;
  };
  if (llvm::all_of(llvm::zip_equal(factorsOf(rule), elements), [&](auto tensor) {
        return isSurelyAligned(std::get<0>(tensor), std::get<1>(tensor));
      })) {
    return aligned;
  }
  std::optional<MatmulForm> form = formOf(op, rule, sizes, elements[0]);
  if (!form) {
    return aligned;
  }
  form->matmul.fp8B = elements[form->isSwapped ? 0 : 1];
  form->matmul.isResultF32 = elements[2] == rt::ElementType::F32;
  std::array<cost::Rows, 3> rows = cost::rowsOfMatrices(form->matmul);
  if (form->isSwapped) {
    std::swap(rows[0], rows[1]);
  }
  return rows;
}

/// Finds the unaligned matmuls of a module.
class Search {
public:
  Search(ModuleOp module, Dimensions &dimensions, llvm::function_ref<int64_t(uint32_t)> shardsOf)
      : module(module), symbols(module), dimensions(dimensions), values(module),
        shardsOf(shardsOf) {}

  llvm::MapVector<uint32_t, UnalignedClass> run() {
    for (auto function : module.getOps<func::FuncOp>()) {
      if (!function.isPrivate()) {
        countCalls(function);
      }
    }
    for (auto &[function, times] : calls) {
      cast<func::FuncOp>(function).walk([&, times = times](ContractOp op) { addRows(op, times); });
    }
    for (auto &[function, times] : calls) {
      cast<func::FuncOp>(function).walk(
          [&, times = times](ShardableOpInterface op) { addFlops(op, times); });
    }
    return std::move(found);
  }

private:
  void countCalls(func::FuncOp function) {
    calls[function] += 1;
    function.walk([&](CallOp call) { countCalls(symbols.lookup<func::FuncOp>(call.getCallee())); });
  }

  /// FP8 matmuls read one byte for each element of quantized operands.
  Elements elementsWithFp8(ContractOp op) {
    Elements elements = elementsOf(op);
    bool areQuantized = llvm::all_of(
        op.getInputs(), [&](Value value) { return values.formatOf(value).has_value(); });
    if (areQuantized) {
      elements[0] = elements[1] = rt::ElementType::F8E4M3;
    }
    return elements;
  }

  void addRows(ContractOp op, double times) {
    if (op.getInputs().size() != 2) {
      return;
    }
    FactorRule rule = cast<ShardableOpInterface>(op.getOperation()).getFactorRule();
    std::array<Value, 3> tensors = {op.getInputs()[0], op.getInputs()[1], op.getOutput()};
    SmallVector<int64_t> sizes =
        llvm::map_to_vector(rule.factors, [](const Factor &factor) { return factor.size; });
    for (auto [tensor, factors] : llvm::zip_equal(tensors, factorsOf(rule))) {
      for (auto [dim, factor] : llvm::enumerate(factors)) {
        int64_t shards = shardsOf(dimensions.classOf(tensor, int64_t(dim)));
        sizes[factor] =
            int64_t(llvm::divideCeil(uint64_t(rule.factors[factor].size), uint64_t(shards)));
      }
    }
    Elements elements = elementsWithFp8(op);
    llvm::SmallSet<uint32_t, 3> slow;
    for (auto [tensor, rows, element] :
         llvm::zip_equal(tensors, rowsOfTensors(op, rule, sizes, elements), elements)) {
      if (rows == cost::Rows::Unaligned) {
        int64_t last = cast<RankedTensorType>(tensor.getType()).getRank() - 1;
        uint32_t dimension = dimensions.classOf(tensor, last);
        int64_t &unit = found[dimension].unit;
        unit = std::max(unit, cost::kRowBytes / bytesOf(element));
        slow.insert(dimension);
      }
    }
    for (uint32_t dimension : slow) {
      found[dimension].unalignedFlops += times * costOf(op).flops.constant;
    }
  }

  void addFlops(ShardableOpInterface op, double times) {
    llvm::SmallSet<uint32_t, 8> classes;
    for (Value value : llvm::concat<Value>(llvm::to_vector(op->getOperands()),
                                           llvm::to_vector_of<Value>(op->getResults()))) {
      auto type = dyn_cast<RankedTensorType>(value.getType());
      for (int64_t dim = 0; type && dim < type.getRank(); ++dim) {
        classes.insert(dimensions.classOf(value, dim));
      }
    }
    for (uint32_t dimension : classes) {
      auto known = found.find(dimension);
      if (known != found.end()) {
        known->second.flops += times * costOf(op).flops.constant;
      }
    }
  }

  ModuleOp module;
  SymbolTable symbols;
  Dimensions &dimensions;
  QuantizedValues values;
  llvm::function_ref<int64_t(uint32_t)> shardsOf;
  llvm::MapVector<Operation *, double> calls;
  llvm::MapVector<uint32_t, UnalignedClass> found;
};

} // namespace

cost::Rows rowsOf(Operation *op, const FactorRule &rule, ArrayRef<int64_t> sizes) {
  auto contract = dyn_cast<ContractOp>(op);
  bool isUnaligned = contract && contract.getInputs().size() == 2 &&
                     llvm::is_contained(rowsOfTensors(contract, rule, sizes, elementsOf(contract)),
                                        cost::Rows::Unaligned);
  return isUnaligned ? cost::Rows::Unaligned : cost::Rows::Aligned;
}

std::optional<rt::Matmul> matmulOf(ContractOp op, const FactorRule &rule, ArrayRef<int64_t> sizes) {
  if (op.getInputs().size() != 2) {
    return std::nullopt;
  }
  std::optional<MatmulForm> form = formOf(op, rule, sizes, elementsOf(op)[0]);
  return form ? std::optional(form->matmul) : std::nullopt;
}

llvm::MapVector<uint32_t, UnalignedClass>
findUnalignedClasses(ModuleOp module, Dimensions &dimensions,
                     llvm::function_ref<int64_t(uint32_t)> shardsOf) {
  return Search(module, dimensions, shardsOf).run();
}

} // namespace weft
