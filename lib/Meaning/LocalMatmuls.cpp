//===- LocalMatmuls.cpp - matmuls of libraries, and FP8 -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LocalProgram.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace weft::meaning {

//===----------------------------------------------------------------------===//
// FP8: bytes times a factor are the quantized numbers
//===----------------------------------------------------------------------===//

/// Quantizing what the same format and maximum quantized before changes nothing.
ArrayId LocalOps::quantized(Attribute format, ArrayId input, ArrayId amax) {
  auto one = [&](ArrayId source) -> ArrayId {
    Print key = (Words() << format.getAsOpaquePointer() << arrays[amax].print).print();
    auto found = quantizations.find(source);
    if (found != quantizations.end() && found->second == key) {
      return source;
    }
    Print print = (Words() << uint64_t('Q') << key << arrays[source].print).print();
    ArrayId result = arrays.other(print, arrays[source].count);
    quantizations[result] = key;
    return result;
  };
  return arrays.mapSources(input, one, /*mayShift=*/true);
}

LocalValues LocalOps::encode(EncodeOp op, ArrayRef<LocalValue> operands) {
  ArrayId amax = operands[1].array;
  Attribute format = op.getFormatAttr();
  ArrayId factor = arrays.other(
      (Words() << uint64_t('I') << format.getAsOpaquePointer() << arrays[amax].print).print(), 1);
  ArrayId numbers = quantized(format, operands[0].array, amax);
  auto one = [&](ArrayId source) {
    return arrays.encoding(
        (Words() << uint64_t('B') << arrays[source].print << arrays[factor].print).print(), source,
        factor);
  };
  ArrayId bytes = arrays.mapSources(numbers, one, /*mayShift=*/true);
  LocalValues results;
  if (op.getRows()) {
    results.push_back({bytes, {}, {}});
  }
  if (op.getTurned()) {
    Sizes shape = shapeOf(op.getInput());
    SmallVector<int64_t> order;
    auto lead = int64_t(op.getLead()), rank = int64_t(shape.size());
    for (int64_t dim = 0; dim < rank; ++dim) {
      order.push_back((dim + lead) % rank);
    }
    std::optional<ArrayId> turned = arrays.transpose(bytes, shape, order);
    if (!turned) {
      return unknown(op, operands);
    }
    results.push_back({*turned, {}, {}});
  }
  results.push_back({factor, {}, {}});
  return results;
}

/// The numbers that `bytes` times `factor` are.
std::optional<ArrayId> LocalOps::decoded(ArrayId bytes, ArrayId factor) {
  bool isRight = true;
  auto one = [&](ArrayId source) {
    const auto &encoded = arrays[source].encoded;
    isRight = isRight && encoded && encoded->second == factor;
    return isRight ? encoded->first : source;
  };
  ArrayId numbers = arrays.mapSources(bytes, one, /*mayShift=*/true);
  return isRight ? std::optional(numbers) : std::nullopt;
}

/// Of a matmul: `rest` are its operands behind `a` and `b`, of which it drops the factors.
bool LocalOps::decode(ArrayId &a, ArrayId &b, ArrayRef<LocalValue> &rest) {
  std::optional<ArrayId> left = decoded(a, rest.drop_back().back().array);
  std::optional<ArrayId> right = decoded(b, rest.back().array);
  a = left.value_or(a);
  b = right.value_or(b);
  rest = rest.drop_back(2);
  return left && right;
}

//===----------------------------------------------------------------------===//
// Matmuls
//===----------------------------------------------------------------------===//

ScalarId LocalOps::tanhOfGelu(ScalarId x, double factor, double cube) {
  auto multiply = [&](ScalarId left, ScalarId right) {
    return arrays.combine(ScalarKind::Multiply, {left, right});
  };
  ScalarId cubed = multiply(arrays.constant(cube), multiply(x, multiply(x, x)));
  ScalarId inner = multiply(arrays.constant(factor), arrays.combine(ScalarKind::Add, {x, cubed}));
  return arrays.combine(ScalarKind::Other, {inner}, tanhFunction);
}

/// GELU by its tanh approximation, or its derivative, with constants of f32 or of f64.
ScalarId LocalOps::gelu(ScalarId x, bool isGradient, bool isSingle) {
  auto rounded = [&](double value) { return isSingle ? double(float(value)) : value; };
  double factor = rounded(0.7978845608028654), cube = rounded(0.044715);
  auto join = [&](ScalarKind kind, ScalarId left, ScalarId right) {
    return arrays.combine(kind, {left, right});
  };
  ScalarId t = tanhOfGelu(x, factor, cube), one = arrays.constant(1), half = arrays.constant(0.5);
  ScalarId first = join(ScalarKind::Multiply, half, join(ScalarKind::Add, one, t));
  if (!isGradient) {
    return join(ScalarKind::Multiply, x, first);
  }
  ScalarId slope = join(ScalarKind::Subtract, one, join(ScalarKind::Multiply, t, t));
  ScalarId squares =
      join(ScalarKind::Multiply, arrays.constant(cube),
           join(ScalarKind::Multiply, arrays.constant(3), join(ScalarKind::Multiply, x, x)));
  ScalarId inner =
      join(ScalarKind::Multiply, arrays.constant(factor), join(ScalarKind::Add, one, squares));
  ScalarId second = join(ScalarKind::Multiply, join(ScalarKind::Multiply, half, x),
                         join(ScalarKind::Multiply, slope, inner));
  return join(ScalarKind::Add, first, second);
}

/// What a matmul of so many columns makes of its product, with the operands behind A and B.
LocalValues LocalOps::epilogue(const rt::Epilogue &own, int64_t columns, ArrayId product,
                               ArrayRef<LocalValue> rest) {
  using Activation = rt::Epilogue::Activation;
  Nest nest{{arrays[product].count / columns, columns}, 2, {}};
  auto take = [&](ArrayId array, int64_t row) {
    Access access;
    access.array = array;
    access.strides = {row, 1};
    nest.operands.push_back(std::move(access));
  };
  take(product, columns);
  size_t next = 0;
  if (own.hasAddend) {
    take(rest[next++].array, columns);
  }
  if (own.hasBias) {
    take(rest[next++].array, 0);
  }
  bool isGradient = own.activation == Activation::GeluGradient;
  if (isGradient) {
    take(rest[next++].array, columns);
  }
  auto compute = [&](bool isActive, bool isSingle) {
    return arrays.compute(nest, [&](ArrayRef<ScalarId> in) {
      ScalarId sum = in[0];
      for (ScalarId term : in.drop_front().drop_back(isGradient ? 1 : 0)) {
        sum = arrays.combine(ScalarKind::Add, {sum, term});
      }
      if (isActive && isGradient) {
        sum = arrays.combine(ScalarKind::Multiply,
                             {sum, gelu(in.back(), /*isGradient=*/true, isSingle)});
      } else if (isActive) {
        sum = gelu(sum, /*isGradient=*/false, isSingle);
      }
      return SmallVector<ScalarId>{sum};
    })[0];
  };
  bool isActive = own.activation != Activation::None;
  ArrayId result = compute(isActive, /*isSingle=*/true);
  if (isActive && !isExpected(result)) {
    ArrayId other = compute(isActive, /*isSingle=*/false);
    result = isExpected(other) ? other : result;
  }
  LocalValues results = {{result, {}, {}}};
  if (own.hasAux && !isGradient) {
    results.push_back({compute(/*isActive=*/false, false), {}, {}});
  }
  return results;
}

MatmulBuffers::MatmulBuffers(const rt::Matmul &matmul, const rt::Instruction &instruction) {
  ArrayRef<rt::Operand> operands = instruction.operands;
  for (const rt::Operand &operand : operands.drop_back(matmul.workspaceBytes > 0 ? 1 : 0)) {
    (operand.access == rt::Access::Write ? written : read).push_back(operand.buffer);
  }
}

std::optional<LocalValues> LocalOps::matmul(const rt::Matmul &matmul,
                                            ArrayRef<LocalValue> operands) {
  ArrayId a = operands[0].array, b = operands[1].array;
  ArrayRef<LocalValue> rest = operands.drop_front(2);
  if (matmul.isFp8() && !decode(a, b, rest)) {
    return std::nullopt;
  }
  // A loop of the result, of A and of B for each of the batch, m, n and k.
  struct Index {
    int64_t extent, result, a, b;
    bool isSummed = false;
  };
  SmallVector<Index> indices = {
      {matmul.batch, matmul.strideC, matmul.strideA, matmul.strideB, matmul.isSum()},
      {matmul.m, matmul.ldc, matmul.transposeA ? 1 : matmul.lda, 0},
      {matmul.n, 1, 0, matmul.transposeB ? matmul.ldb : 1},
      {matmul.k, 0, matmul.transposeA ? matmul.lda : 1, matmul.transposeB ? 1 : matmul.ldb, true}};
  llvm::erase_if(indices, [](const Index &index) { return index.extent == 1; });
  llvm::sort(indices, [](const Index &left, const Index &right) {
    return left.isSummed != right.isSummed ? right.isSummed : left.result > right.result;
  });
  Product sum;
  sum.strides.resize(2);
  int64_t count = 1;
  for (const Index &index : indices) {
    sum.extents.push_back(index.extent);
    sum.strides[0].push_back(index.a);
    sum.strides[1].push_back(index.b);
    sum.kept += index.isSummed ? 0 : 1;
    count *= index.isSummed ? 1 : index.extent;
  }
  // The result must be dense, as its buffer is.
  for (const Index &index : ArrayRef(indices).take_front(sum.kept)) {
    if (count != index.result * index.extent) {
      return std::nullopt;
    }
    count = index.result;
  }
  LocalValues results = epilogue(matmul.epilogue, matmul.n, product(sum, {a, b}), rest);
  if (matmul.epilogue.sums != rt::Epilogue::Sums::None) {
    bool isA = matmul.epilogue.sums == rt::Epilogue::Sums::OfA;
    int64_t row = isA ? (matmul.transposeA ? 1 : matmul.lda) : (matmul.transposeB ? matmul.ldb : 1);
    int64_t column =
        isA ? (matmul.transposeA ? matmul.lda : 1) : (matmul.transposeB ? 1 : matmul.ldb);
    Product own{{isA ? matmul.m : matmul.n, matmul.k}, 1, {{row, column}}};
    results.push_back({product(own, {isA ? a : b}), {}, {}});
  }
  return results;
}

/// The same of an op: operands in the order in which it declares them.
std::optional<LocalValues> LocalOps::matmul(Operation *op, ArrayRef<LocalValue> operands) {
  using Activation = rt::Epilogue::Activation;
  ArrayId left = operands[0].array, right = operands[1].array;
  ArrayRef<LocalValue> rest = operands.drop_front(2);
  rt::Epilogue own;
  auto read = [&](auto matmul) {
    own.hasAddend = matmul.getAddend() != nullptr;
    own.hasBias = matmul.getBias() != nullptr;
    return matmul.getEquation();
  };
  llvm::StringRef text;
  Value sums;
  if (auto matmul = dyn_cast<MatmulOp>(op)) {
    text = read(matmul);
    own.hasAux = matmul.getKept() != nullptr;
    own.activation = matmul.getPreactivation() ? Activation::GeluGradient
                     : matmul.getGelu()        ? Activation::Gelu
                                               : Activation::None;
    sums = matmul.getSums();
  } else {
    text = read(cast<Fp8MatmulOp>(op));
    if (!decode(left, right, rest)) {
      return std::nullopt;
    }
  }
  Sizes shapes[] = {shapeOf(op->getOperand(0)), shapeOf(op->getOperand(1))};
  ArrayId product = equation(text, {left, right}, shapes);
  int64_t columns = own.hasBias ? arrays[rest[own.hasAddend ? 1 : 0].array].count : 1;
  LocalValues results = epilogue(own, columns, product, rest);
  if (sums) {
    llvm::StringRef letters = text.split(',').first, result = text.split("->").second;
    std::string kept;
    llvm::copy_if(letters, std::back_inserter(kept),
                  [&](char letter) { return result.contains(letter); });
    results.push_back({equation((letters + "->" + kept).str(), {left}, {shapes[0]}), {}, {}});
  }
  return results;
}

} // namespace weft::meaning
