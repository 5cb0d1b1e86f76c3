//===- Muon.cpp - the update rule of Muon ---------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Muon replaces a matrix with the singular value decomposition U S Vᵀ by U Vᵀ. Newton-Schulz
// iterations approximate U Vᵀ by matmuls alone: X ← aX + bXXᵀX + c(XXᵀ)²X moves every singular
// value between 0 and 1 towards 1. With the coefficients of Jordan et al. (Muon, 2024) five
// iterations move all but the smallest to between 0.7 and 1.2, which suffices for an optimizer.
//
//===----------------------------------------------------------------------===//

#include "Arithmetic.h"
#include "LossScale.h"
#include "UpdateRules.h"

using namespace mlir;

namespace weft {
namespace {

/// A tensor as a batch of matrices: its first dimensions number the matrices, the next ones are the
/// rows together, and the others the columns.
class MatrixView {
public:
  /// `matrix` is the attribute of this name of a variable.
  MatrixView(RankedTensorType type, ArrayRef<int64_t> matrix) {
    std::string all = letters(type.getRank());
    batch = all.substr(0, matrix[0]);
    rowDims = all.substr(matrix[0], matrix[1]);
    columnDims = all.substr(matrix[0] + matrix[1]);
    ArrayRef<int64_t> shape = type.getShape().drop_front(matrix[0]);
    rows = llvm::product_of(shape.take_front(matrix[1]));
    columns = llvm::product_of(shape.drop_front(matrix[1]));
  }

  int64_t getRows() const { return rows; }
  int64_t getColumns() const { return columns; }
  /// Letters of the dimensions that number matrices, of rows, and of columns.
  const std::string &getBatch() const { return batch; }
  const std::string &getRowDims() const { return rowDims; }
  const std::string &getColumnDims() const { return columnDims; }

private:
  int64_t rows = 1, columns = 1;
  std::string batch, rowDims, columnDims;
};

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

/// Divides each matrix of `tensor` by its norm, and builds `iterations` of Newton-Schulz for it.
/// All matmuls are contractions, so that plans may cut the tensor in any dimension.
Value createOrthogonal(OpBuilder &builder, Location loc, Value tensor, const MatrixView &view,
                       int64_t iterations) {
  Iteration iteration(builder, loc, cast<RankedTensorType>(tensor.getType()), view);
  Value matrix = iteration.normalize(tensor);
  for (int64_t number = 0; number < iterations; ++number) {
    matrix = iteration.step(matrix);
  }
  return matrix;
}

/// Matrices have a momentum; AdamW updates all other parameters.
class MuonRule : public UpdateRule {
public:
  MuonRule(OpBuilder &builder, Location loc, OptimizerOp optimizer)
      : UpdateRule(builder, loc, optimizer), others(makeAdamWRule(builder, loc, optimizer)) {}

  SmallVector<StringRef> getStates(VariableOp variable) override {
    return variable.getMatrix() ? SmallVector<StringRef>{"momentum"} : others->getStates(variable);
  }

  SmallVector<Value> corrections(Value step) override { return others->corrections(step); }

  SmallVector<Value> update(ValueRange schedule, const ByNorm &byNorm, Value parameter,
                            Value gradient, ValueRange states, VariableOp variable) override {
    return variable.getMatrix()
               ? updateMatrix(schedule[0], byNorm, parameter, gradient, states[0], variable)
               : others->update(schedule, byNorm, parameter, gradient, states, variable);
  }

private:
  /// The momentum and the new weight are separate maps, as the matmuls of the iteration stand
  /// between them.
  SmallVector<Value> updateMatrix(Value rate, const ByNorm &byNorm, Value parameter, Value gradient,
                                  Value momentum, VariableOp variable);

  std::unique_ptr<UpdateRule> others;
};

SmallVector<Value> MuonRule::updateMatrix(Value rate, const ByNorm &byNorm, Value parameter,
                                          Value gradient, Value momentum, VariableOp variable) {
  double decay = decayOf(variable);
  double beta = optimizer.getMomentum().convertToDouble();
  auto [scale, finite] = byNorm;
  SmallVector<Value> inputs = {momentum, gradient}, ofWeight;
  addPresent(inputs, byNorm);
  Type type = parameter.getType();
  MapOp moved = createMap(
      builder, loc, {type, type}, inputs, [&](OpBuilder &inner, Location at, ValueRange in) {
        Arithmetic a(inner, at, in[0].getType());
        Value g = a.take(in[1]);
        g = scale ? a.mul(g, a.take(in[2])) : g;
        Value m = a.add(a.mul(a.constant(beta), in[0]), g);
        Value ahead = optimizer.getNesterov() ? a.add(g, a.mul(a.constant(beta), m)) : m;
        m = finite ? selectFinite(inner, at, in.back(), m, in[0]) : m;
        return SmallVector<Value>{m, ahead};
      });
  MatrixView view(cast<RankedTensorType>(type), *variable.getMatrix());
  Value orthogonal = createOrthogonal(builder, loc, moved.getResult(1), view,
                                      static_cast<int64_t>(optimizer.getIterations()));
  auto rows = static_cast<double>(view.getRows()), columns = static_cast<double>(view.getColumns());
  double size = optimizer.getScale() == MuonScale::RMS ? 0.2 * std::sqrt(std::max(rows, columns))
                                                       : std::sqrt(std::max(1.0, rows / columns));
  ofWeight = {parameter, orthogonal, rate};
  addPresent(ofWeight, {Value(), finite});
  Value updated =
      createMap(builder, loc, type, ofWeight, [&](OpBuilder &inner, Location at, ValueRange in) {
        Arithmetic a(inner, at, in[0].getType());
        Value move = a.mul(a.constant(size), in[1]);
        if (decay != 0) {
          move = a.add(move, a.mul(a.constant(decay), in[0]));
        }
        Value weight = a.sub(in[0], a.mul(a.take(in[2]), move));
        return SmallVector<Value>{finite ? selectFinite(inner, at, in.back(), weight, in[0])
                                         : weight};
      }).getResult(0);
  return {updated, moved.getResult(0)};
}

} // namespace

std::unique_ptr<UpdateRule> makeMuonRule(OpBuilder &builder, Location loc, OptimizerOp optimizer) {
  return std::make_unique<MuonRule>(builder, loc, optimizer);
}

} // namespace weft
