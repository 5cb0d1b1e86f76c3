//===- Orthogonalize.cpp - the orthogonal part of matrices, nearly ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Orthogonalize.h"

#include "weft/Dialect/Weft/IR/MapBuilders.h"

using namespace mlir;

namespace weft {
namespace {

/// a, b and c of the iteration, from https://kellerjordan.github.io/posts/muon.
constexpr double kCoefficients[] = {3.4445, -4.7750, 2.0315};
/// Added to a matrix's norm before the division, as in the same source.
constexpr double kEpsilon = 1e-7;

class Iteration {
public:
  Iteration(OpBuilder &builder, Location loc, RankedTensorType type, const MatrixView &view)
      : builder(builder), loc(loc), type(type), batch(view.getBatch()),
        all(batch + view.getRowDims() + view.getColumnDims()),
        sumsColumns(view.getRows() <= view.getColumns()),
        side(sumsColumns ? view.getRowDims() : view.getColumnDims()),
        other(letters(side.size(), static_cast<char>('a' + all.size()))),
        third(letters(side.size(), static_cast<char>('a' + all.size() + side.size()))) {}

  /// Divides each matrix by its norm, so that no singular value is above 1.
  Value normalize(Value matrix) {
    Value squares = contract(all + "," + all + "->" + batch, matrix, matrix);
    SmallVector<AffineExpr> dims;
    for (size_t dim = 0; dim < batch.size(); ++dim) {
      dims.push_back(builder.getAffineDimExpr(dim));
    }
    SmallVector<AffineMap> maps = {builder.getMultiDimIdentityMap(all.size()),
                                   AffineMap::get(all.size(), 0, dims, builder.getContext())};
    return MapOp::create(builder, loc, TypeRange{type}, ValueRange{matrix, squares}, maps,
                         [](OpBuilder &inner, Location at, ValueRange in) {
                           Value norm = math::SqrtOp::create(inner, at, in[1]);
                           Value epsilon = arith::ConstantOp::create(
                               inner, at, inner.getFloatAttr(norm.getType(), kEpsilon));
                           Value safe = arith::AddFOp::create(inner, at, norm, epsilon);
                           return SmallVector<Value>{arith::DivFOp::create(inner, at, in[0], safe)};
                         })
        .getResult(0);
  }

  /// Builds aX + (bA + cA²)X with A = XXᵀ. For matrices with more rows than columns, XᵀX stands on
  /// the other side instead, which is smaller.
  Value step(Value matrix) {
    Value gram =
        contract(all + "," + replaced(other) + "->" + batch + side + other, matrix, matrix);
    Value square =
        contract(batch + side + third + "," + batch + third + other + "->" + batch + side + other,
                 gram, gram);
    Value factor = combine(gram, kCoefficients[1], square, kCoefficients[2]);
    Value moved =
        contract(batch + side + other + "," + replaced(other) + "->" + all, factor, matrix);
    return combine(matrix, kCoefficients[0], moved, 1);
  }

private:
  /// The dimensions of a matrix with these letters for its shorter side.
  std::string replaced(const std::string &letters) const {
    std::string dims = all;
    return dims.replace(all.find(side, batch.size()), side.size(), letters);
  }

  Value contract(const std::string &equation, Value a, Value b) {
    StringRef terms = equation;
    auto [inputs, result] = terms.split("->");
    auto [first, second] = inputs.split(",");
    SmallVector<int64_t> shape;
    for (char letter : result) {
      bool isOfFirst = first.contains(letter);
      auto operand = cast<RankedTensorType>((isOfFirst ? a : b).getType());
      shape.push_back(operand.getDimSize((isOfFirst ? first : second).find(letter)));
    }
    return ContractOp::create(builder, loc, type.clone(shape), equation, ValueRange{a, b});
  }

  /// Builds fa + gb, elementwise; f and g are numbers.
  Value combine(Value a, double f, Value b, double g) {
    return createMap(builder, loc, a.getType(), {a, b},
                     [&](OpBuilder &inner, Location at, ValueRange in) {
                       auto scaled = [&](Value value, double factor) -> Value {
                         Value constant = arith::ConstantOp::create(
                             inner, at, inner.getFloatAttr(value.getType(), factor));
                         return arith::MulFOp::create(inner, at, constant, value);
                       };
                       Value second = g == 1 ? in[1] : scaled(in[1], g);
                       return SmallVector<Value>{
                           arith::AddFOp::create(inner, at, scaled(in[0], f), second)};
                     })
        .getResult(0);
  }

  OpBuilder &builder;
  Location loc;
  RankedTensorType type;
  std::string batch, all;
  bool sumsColumns;
  /// Letters of the shorter side, and two more for each of its dimensions.
  std::string side, other, third;
};

} // namespace

MatrixView::MatrixView(RankedTensorType type, ArrayRef<int64_t> matrix) {
  std::string all = letters(type.getRank());
  batch = all.substr(0, matrix[0]);
  rowDims = all.substr(matrix[0], matrix[1]);
  columnDims = all.substr(matrix[0] + matrix[1]);
  ArrayRef<int64_t> shape = type.getShape().drop_front(matrix[0]);
  rows = llvm::product_of(shape.take_front(matrix[1]));
  columns = llvm::product_of(shape.drop_front(matrix[1]));
}

Value createOrthogonal(OpBuilder &builder, Location loc, Value tensor, const MatrixView &view,
                       int64_t iterations) {
  Iteration iteration(builder, loc, cast<RankedTensorType>(tensor.getType()), view);
  Value matrix = iteration.normalize(tensor);
  for (int64_t number = 0; number < iterations; ++number) {
    matrix = iteration.step(matrix);
  }
  return matrix;
}

} // namespace weft
