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
// Matrices of one type with the same dimensions, of all layers, are orthogonalized as one batch,
// whose number of the matrix is a dimension like others: data-parallel ranks may each take some
// matrices, which are exchanged by all-to-alls, as no single matrix gives them enough work.
//
//===----------------------------------------------------------------------===//

#include "Arithmetic.h"
#include "LossScale.h"
#include "UpdateRules.h"

#include "weft/Dialect/Weft/IR/ElementTypes.h"

#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"

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

/// Iterates on matrices of `type`. Matmuls and maps compute in its wide type.
class Iteration {
public:
  Iteration(OpBuilder &builder, Location loc, RankedTensorType type, const MatrixView &view)
      : builder(builder), loc(loc), type(type), wide(wideTypeOf(type.getElementType())),
        batch(view.getBatch()), all(batch + view.getRowDims() + view.getColumnDims()),
        sumsColumns(view.getRows() <= view.getColumns()),
        side(sumsColumns ? view.getRowDims() : view.getColumnDims()),
        other(letters(side.size(), static_cast<char>('a' + all.size()))),
        third(letters(side.size(), static_cast<char>('a' + all.size() + side.size()))) {}

  /// Divides each matrix by its norm, so that no singular value is above 1.
  Value normalize(Value matrix) {
    Value squares = contract(all + "," + all + "->" + batch, matrix, matrix, wide);
    SmallVector<AffineExpr> dims;
    for (size_t dim = 0; dim < batch.size(); ++dim) {
      dims.push_back(builder.getAffineDimExpr(dim));
    }
    SmallVector<AffineMap> maps = {builder.getMultiDimIdentityMap(all.size()),
                                   AffineMap::get(all.size(), 0, dims, builder.getContext())};
    return MapOp::create(builder, loc, TypeRange{type}, ValueRange{matrix, squares}, maps,
                         [&](OpBuilder &inner, Location at, ValueRange in) {
                           Arithmetic a(inner, at, wide);
                           Value norm = a.add(a.sqrt(in[1]), a.constant(kEpsilon));
                           return rounded(inner, at, a.div(a.take(in[0]), norm));
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

  SmallVector<Value> rounded(OpBuilder &inner, Location at, Value value) {
    return {castScalar(inner, at, value, type.getElementType())};
  }

  Value contract(const std::string &equation, Value a, Value b) {
    return contract(equation, a, b, type.getElementType());
  }

  Value contract(const std::string &equation, Value a, Value b, Type element) {
    StringRef terms = equation;
    auto [inputs, result] = terms.split("->");
    auto [first, second] = inputs.split(",");
    SmallVector<int64_t> shape;
    for (char letter : result) {
      bool isOfFirst = first.contains(letter);
      auto operand = cast<RankedTensorType>((isOfFirst ? a : b).getType());
      shape.push_back(operand.getDimSize((isOfFirst ? first : second).find(letter)));
    }
    return ContractOp::create(builder, loc, RankedTensorType::get(shape, element), equation,
                              ValueRange{a, b});
  }

  /// Builds fa + gb, elementwise; f and g are numbers.
  Value combine(Value a, double f, Value b, double g) {
    return createMap(builder, loc, a.getType(), {a, b},
                     [&](OpBuilder &inner, Location at, ValueRange in) {
                       Arithmetic of(inner, at, wide);
                       Value first = of.mul(of.constant(f), of.take(in[0])),
                             second = of.take(in[1]);
                       second = g == 1 ? second : of.mul(of.constant(g), second);
                       return rounded(inner, at, of.add(first, second));
                     })
        .getResult(0);
  }

  OpBuilder &builder;
  Location loc;
  RankedTensorType type;
  Type wide;
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

/// For each dimension of `type`, itself; the first together with a new one before it.
SmallVector<ReassociationIndices> behindNew(RankedTensorType type) {
  SmallVector<ReassociationIndices> groups = {{0}};
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    (dim == 0 ? groups.back() : groups.emplace_back()).push_back(dim + 1);
  }
  return groups;
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
    return others->update(schedule, byNorm, parameter, gradient, states, variable);
  }

  RankedTensorType getDirectionType(VariableOp variable) override {
    RankedTensorType type = variable.getTensorType();
    return !variable.getMatrix()           ? RankedTensorType()
           : optimizer.getIteratesInBf16() ? type.clone(builder.getBF16Type())
                                           : type;
  }

  SmallVector<Value> begin(const ByNorm &byNorm, Value gradient, ValueRange states,
                           VariableOp variable) override;
  SmallVector<Value> join(ValueRange directions, VariableOp like) override;
  Value end(ValueRange schedule, const ByNorm &byNorm, Value parameter, Value direction,
            VariableOp variable) override;

private:
  std::unique_ptr<UpdateRule> others;
};

SmallVector<Value> MuonRule::begin(const ByNorm &byNorm, Value gradient, ValueRange states,
                                   VariableOp variable) {
  double beta = optimizer.getMomentum().convertToDouble();
  auto [scale, finite] = byNorm;
  SmallVector<Value> inputs = {states[0], gradient};
  addPresent(inputs, byNorm);
  RankedTensorType direction = getDirectionType(variable);
  MapOp moved = createMap(
      builder, loc, {direction, states[0].getType()}, inputs,
      [&](OpBuilder &inner, Location at, ValueRange in) {
        Arithmetic a(inner, at, in[0].getType());
        Value g = a.take(in[1]);
        g = scale ? a.mul(g, a.take(in[2])) : g;
        Value m = a.add(a.mul(a.constant(beta), in[0]), g);
        Value ahead = optimizer.getNesterov() ? a.add(g, a.mul(a.constant(beta), m)) : m;
        m = finite ? selectFinite(inner, at, in.back(), m, in[0]) : m;
        return SmallVector<Value>{castScalar(inner, at, ahead, direction.getElementType()), m};
      });
  return {moved.getResult(0), moved.getResult(1)};
}

/// Orthogonalizes matrices as one batch.
SmallVector<Value> MuonRule::join(ValueRange directions, VariableOp like) {
  RankedTensorType type = getDirectionType(like);
  ArrayRef<int64_t> matrix = *like.getMatrix();
  auto iterations = static_cast<int64_t>(optimizer.getIterations());
  if (directions.size() == 1) {
    return {createOrthogonal(builder, loc, directions[0], MatrixView(type, matrix), iterations)};
  }
  SmallVector<int64_t> shape = {1};
  llvm::append_range(shape, type.getShape());
  RankedTensorType one = type.clone(shape);
  shape[0] = static_cast<int64_t>(directions.size());
  RankedTensorType batch = type.clone(shape);
  ArrayAttr groups = getReassociationIndicesAttribute(builder, behindNew(type));
  auto numbered = llvm::map_to_vector(directions, [&](Value direction) -> Value {
    return ReshapeOp::create(builder, loc, one, direction, groups);
  });
  Value stacked = ConcatOp::create(builder, loc, batch, numbered, /*dim=*/0);
  Value orthogonal = createOrthogonal(builder, loc, stacked,
                                      MatrixView(batch, {matrix[0] + 1, matrix[1]}), iterations);
  auto split = SplitOp::create(builder, loc, SmallVector<Type>(directions.size(), one), orthogonal,
                               /*dim=*/0);
  return llvm::map_to_vector(split.getOutputs(), [&](Value number) -> Value {
    return ReshapeOp::create(builder, loc, type, number, groups);
  });
}

Value MuonRule::end(ValueRange schedule, const ByNorm &byNorm, Value parameter, Value direction,
                    VariableOp variable) {
  double decay = decayOf(variable);
  MatrixView view(variable.getTensorType(), *variable.getMatrix());
  auto rows = static_cast<double>(view.getRows()), columns = static_cast<double>(view.getColumns());
  double size = optimizer.getScale() == MuonScale::RMS ? 0.2 * std::sqrt(std::max(rows, columns))
                                                       : std::sqrt(std::max(1.0, rows / columns));
  Value finite = byNorm.finite;
  SmallVector<Value> inputs = {parameter, direction, schedule[0]};
  addPresent(inputs, {Value(), finite});
  return createMap(builder, loc, parameter.getType(), inputs,
                   [&](OpBuilder &inner, Location at, ValueRange in) {
                     Arithmetic a(inner, at, in[0].getType());
                     Value move = a.mul(a.constant(size), a.take(in[1]));
                     if (decay != 0) {
                       move = a.add(move, a.mul(a.constant(decay), in[0]));
                     }
                     Value weight = a.sub(in[0], a.mul(a.take(in[2]), move));
                     return SmallVector<Value>{
                         finite ? selectFinite(inner, at, in.back(), weight, in[0]) : weight};
                   })
      .getResult(0);
}

} // namespace

std::unique_ptr<UpdateRule> makeMuonRule(OpBuilder &builder, Location loc, OptimizerOp optimizer) {
  return std::make_unique<MuonRule>(builder, loc, optimizer);
}

} // namespace weft
