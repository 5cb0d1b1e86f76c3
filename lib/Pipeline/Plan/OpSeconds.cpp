//===- OpSeconds.cpp - seconds of an op's options -------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpSeconds.h"

#include "MatmulRows.h"

#include "weft/Dialect/Weft/IR/Sharding.h"

#include <algorithm>
#include <array>
#include <tuple>

using namespace mlir;

namespace weft {

desc::Precision precisionOf(Operation *op) {
  if (auto matmul = dyn_cast<ContractOp>(op); matmul && matmul.getTf32()) {
    return desc::Precision::TF32;
  }
  unsigned bits = 64;
  bool isF16 = false;
  for (Type type : llvm::concat<const Type>(llvm::to_vector<4>(op->getOperandTypes()),
                                            llvm::to_vector<4>(op->getResultTypes()))) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (tensor && isa<FloatType>(tensor.getElementType()) && tensor.getRank() > 0) {
      bits = std::min(bits, tensor.getElementTypeBitWidth());
      isF16 |= tensor.getElementType().isF16();
    }
  }
  return bits == 64   ? desc::Precision::F64
         : bits == 32 ? desc::Precision::F32
         : isF16      ? desc::Precision::F16
                      : desc::Precision::BF16;
}

std::optional<cost::AttentionShape> shapeOf(const std::optional<OpCost::RateFactors> &factors,
                                            const FactorRule &rule,
                                            llvm::function_ref<int64_t(unsigned)> partsOf) {
  if (!factors ||
      (factors->queries && partsOf(*factors->queries) > 1 && partsOf(factors->positions) == 1)) {
    return std::nullopt;
  }
  auto sizeOf = [&](unsigned factor) { return rule.factors[factor].size / partsOf(factor); };
  return cost::AttentionShape{sizeOf(factors->positions), sizeOf(factors->features)};
}

OpSeconds::OpSeconds(ShardableOpInterface op, const FactorRule &rule, LayoutSpaces &spaces,
                     const cost::Predictor *machine, ByteSeconds *byteSeconds)
    : op(op), machine(machine), byteSeconds(byteSeconds), kind(op->getName().stripDialect()),
      rule(rule), precision(precisionOf(op)) {
  double whole = 0;
  auto valueOf = [&](Type type, std::optional<size_t> sameAs = std::nullopt) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor) {
      return std::optional<Value>();
    }
    auto bytes = double(countBytes(tensor));
    whole += sameAs ? 0 : bytes;
    return std::optional(Value{&spaces.of(type), bytes, sameAs});
  };
  for (auto [number, value] : llvm::enumerate(op->getOperands())) {
    auto first = size_t(llvm::find(op->getOperands(), value) - op->getOperands().begin());
    operands.push_back(
        valueOf(value.getType(), first < number ? std::optional(first) : std::nullopt));
  }
  for (Type type : op->getResultTypes()) {
    results.push_back(valueOf(type));
  }
  OpCost cost = costOf(op);
  flops = cost.flops.constant;
  bytesPerTouched = cost.bytes.constant / std::max(whole, 1.0);
  rateFactors = cost.rateFactors;
  if (operands.size() == 2 && results.size() == 1 && operands[0] && operands[1]) {
    sides.emplace();
    bool sums = false;
    for (unsigned factor = 0; factor < rule.factors.size(); ++factor) {
      bool lhs = llvm::is_contained(rule.operands[0], factor);
      bool rhs = llvm::is_contained(rule.operands[1], factor);
      bool result = llvm::is_contained(rule.results[0], factor);
      if (lhs + rhs + result < 2) {
        sides.reset();
        return;
      }
      sums |= !result;
      sides->push_back(!result ? Side::K : !rhs ? Side::M : !lhs ? Side::N : Side::Batch);
    }
    if (!sums) {
      sides.reset();
    }
  }
}

double OpSeconds::touched(const OpOption &option) const {
  double bytes = 0;
  auto add = [&](ArrayRef<std::optional<Value>> values, ArrayRef<uint32_t> layouts) {
    for (auto [value, layout] : llvm::zip(values, layouts)) {
      // What is an operand twice is read once, unless each has a layout of its own.
      bool isCounted = value && value->sameAs && layouts[*value->sameAs] == layout;
      bytes += value && !isCounted ? value->bytes / double(value->space->shards(layout)) : 0;
    }
  };
  add(operands, option.operands);
  add(results, option.results);
  return bytes;
}

double OpSeconds::of(const OpOption &option) const {
  double bytes = bytesPerTouched * touched(option), parts = 1;
  for (auto [factor, ofFactor] : llvm::zip(rule.factors, option.parts)) {
    // A permuted factor is cut by its partner's axes.
    parts *= factor.kind == FactorKind::Permutation ? 1 : double(ofFactor);
  }
  if (!machine) {
    // Only bytes sent count; among equal plans, the one that computes less wins.
    return 1e-9 * (flops / parts + bytes);
  }
  if (!sides) {
    auto shape = shapeOf(rateFactors, rule, [&](unsigned factor) { return option.parts[factor]; });
    return machine->kernel(kind, precision, flops / parts, bytes, shape);
  }
  SmallVector<int64_t> shards = shardsOf(option);
  std::array<int64_t, 4> sizes = {1, 1, 1, 1};
  for (auto [shard, side] : llvm::zip_equal(shards, *sides)) {
    sizes[size_t(side)] *= shard;
  }
  if (std::optional<double> seconds =
          byteSeconds ? byteSeconds->of(op, rule, shards) : std::nullopt) {
    return *seconds;
  }
  auto [batch, m, n, k] = sizes;
  return machine->matmul(precision, m, n, k, batch, bytes, rowsOf(op, rule, shards));
}

SmallVector<int64_t> OpSeconds::shardsOf(const OpOption &option) const {
  SmallVector<int64_t> shards;
  for (auto [factor, parts] : llvm::zip(rule.factors, option.parts)) {
    shards.push_back(factor.size / parts);
  }
  return shards;
}

std::optional<rt::Matmul> OpSeconds::matmulWith(ArrayRef<int64_t> sizes) const {
  auto contract = dyn_cast<ContractOp>(op);
  return machine && contract && sides ? matmulOf(contract, rule, sizes) : std::nullopt;
}

double OpSeconds::least(const OpOption &option) const {
  std::optional<rt::Matmul> matmul = matmulWith(shardsOf(option));
  // A product of a matrix and a vector can become part of a sum where no library computes it.
  if (!matmul || matmul->m == 1 || matmul->n == 1) {
    return 0;
  }
  auto [m, n, k, batch] = std::tuple(matmul->m, matmul->n, matmul->k, matmul->batch);
  double operations = 2.0 * double(m) * double(n) * double(k) * double(batch);
  // Loops instead of a library, as for float64 on the host.
  double seconds = machine->kernel(kind, precision, operations, /*bytes=*/0);
  auto consider = [&](desc::Precision of) {
    // FP8 matmuls may compute the transposed result.
    seconds = std::min({seconds, machine->matmul(of, m, n, k, batch, /*bytes=*/0),
                        machine->matmul(of, n, m, k, batch, /*bytes=*/0)});
  };
  consider(precision);
  if (byteSeconds) {
    consider(desc::Precision::F8);
  }
  return seconds;
}

/// Returns true if axes of a mesh with these sizes leave a rank less of a padded factor of `size`
/// than even shards do, over any of these axes.
static bool gainsByPadding(int64_t size, ArrayRef<int64_t> mesh) {
  // For each set of axes, the product of their sizes, and the most even shards over some of them.
  SmallVector<int64_t> products = {1}, even = {1};
  for (size_t set = 1; set < size_t(1) << mesh.size(); ++set) {
    size_t last = llvm::Log2_64(set);
    products.push_back(products[set ^ size_t(1) << last] * mesh[last]);
    even.push_back(size % products[set] == 0 ? products[set] : 1);
    for (size_t axis = 0; axis < mesh.size(); ++axis) {
      even[set] = set >> axis & 1 ? std::max(even[set], even[set ^ size_t(1) << axis]) : even[set];
    }
    if (size / even[set] > llvm::divideCeilSigned(size, products[set])) {
      return true;
    }
  }
  return false;
}

double OpSeconds::leastPadded(ArrayRef<int64_t> mesh) const {
  bool gains = llvm::any_of(
      rule.factors, [&](const Factor &factor) { return gainsByPadding(factor.size, mesh); });
  return gains ? leastShared(mesh) : std::numeric_limits<double>::infinity();
}

double OpSeconds::leastShared(ArrayRef<int64_t> mesh) const {
  auto sizes = llvm::map_to_vector(rule.factors, [](const Factor &factor) { return factor.size; });
  std::optional<rt::Matmul> matmul = matmulWith(sizes);
  int64_t ranks = llvm::product_of(mesh);
  // A rank may be left with a vector, as in least().
  if (!matmul || matmul->m <= ranks || matmul->n <= ranks) {
    return 0;
  }
  double operations = 2.0 * double(matmul->m) * double(matmul->n) * double(matmul->k) *
                      double(matmul->batch) / double(ranks);
  double seconds = std::min(machine->kernel(kind, precision, operations, /*bytes=*/0),
                            machine->leastMatmul(precision, operations));
  return byteSeconds ? std::min(seconds, machine->leastMatmul(desc::Precision::F8, operations))
                     : seconds;
}

} // namespace weft
