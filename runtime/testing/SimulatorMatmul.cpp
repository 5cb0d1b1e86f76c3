//===- SimulatorMatmul.cpp - computes a simulated device's matmul ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "testing/SimulatorMatmul.h"

#include "support/Float16.h"
#include "support/Float8.h"

#include <algorithm>
#include <cmath>

using namespace weft::rt;
using namespace weft::rt::cuda;

using Activation = Epilogue::Activation;
using Sums = Epilogue::Sums;

static double tanhOfGelu(double x) {
  return std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x));
}

static float gelu(double x) { return float(0.5 * x * (1 + tanhOfGelu(x))); }

static float geluGradient(double x) {
  double t = tanhOfGelu(x);
  return float(0.5 * (1 + t) +
               0.5 * x * (1 - t * t) * 0.7978845608028654 * (1 + 3 * 0.044715 * x * x));
}

/// Return the index of an element of A or B in memory; `k` is the index of the sum.
static size_t placeInA(const Matmul &p, int64_t i, int64_t row, int64_t k) {
  return size_t(i * p.strideA + (p.transposeA ? k * p.lda + row : row * p.lda + k));
}
static size_t placeInB(const Matmul &p, int64_t i, int64_t k, int64_t column) {
  return size_t(i * p.strideB + (p.transposeB ? column * p.ldb + k : k * p.ldb + column));
}

/// Calls `visit` with each row and column of each C, and the element's index in memory.
template <typename Visit> static void forEachOfC(const Matmul &p, const Visit &visit) {
  for (int64_t i = 0; i < p.batch; ++i) {
    for (int64_t row = 0; row < p.m; ++row) {
      for (int64_t column = 0; column < p.n; ++column) {
        visit(i, row, column, size_t(i * p.strideC + row * p.ldc + column));
      }
    }
  }
}

/// Computes a matmul of float64, whose only epilogue is an addend.
static void multiply(const Matmul &p, const MatmulData &at) {
  const auto *a = static_cast<const double *>(at.a), *b = static_cast<const double *>(at.b);
  const auto *addend = p.epilogue.hasAddend ? static_cast<const double *>(at.addend) : nullptr;
  auto *c = static_cast<double *>(at.c);
  forEachOfC(p, [&](int64_t i, int64_t row, int64_t column, size_t place) {
    double sum = 0;
    for (int64_t k = 0; k < p.k; ++k) {
      sum += a[placeInA(p, i, row, k)] * b[placeInB(p, i, k, column)];
    }
    double before = addend ? addend[place] : p.isSum() && i > 0 ? c[place] : 0;
    c[place] = before + sum;
  });
}

/// Sums an operand over k, for each row of A or column of B.
template <typename T, typename C>
static void sumOperand(const Matmul &p, const void *operand, C *sums) {
  bool isOfA = p.epilogue.sums == Sums::OfA;
  const T *from = static_cast<const T *>(operand);
  for (int64_t i = 0; i < (isOfA ? p.m : p.n); ++i) {
    float sum = 0;
    for (int64_t k = 0; k < p.k; ++k) {
      sum += float(from[isOfA ? placeInA(p, 0, i, k) : placeInB(p, 0, k, i)]);
    }
    sums[i] = C(sum);
  }
}

/// Calls `body` with a number of `type`, one of the types of matmuls.
template <typename Body> static void withNumber(ElementType type, const Body &body) {
  switch (type) {
  case ElementType::BF16:
    return body(BFloat16());
  case ElementType::F16:
    return body(Float16());
  default:
    return body(float());
  }
}

template <typename C>
static void finish(const Matmul &p, const std::vector<float> &wide, const MatmulData &at) {
  const C *addend = p.epilogue.hasAddend ? static_cast<const C *>(at.addend) : nullptr;
  const C *bias = p.epilogue.hasBias ? static_cast<const C *>(at.bias) : nullptr;
  C *aux = p.epilogue.hasAux ? static_cast<C *>(at.aux) : nullptr;
  C *c = static_cast<C *>(at.c);
  Activation activation = p.epilogue.activation;
  size_t next = 0;
  forEachOfC(p, [&](int64_t, int64_t, int64_t column, size_t place) {
    float value = wide[next++];
    value += addend ? float(addend[place]) : 0;
    value += bias ? float(bias[column]) : 0;
    if (activation == Activation::GeluGradient) {
      value *= geluGradient(double(float(aux[place])));
    } else if (activation == Activation::Gelu) {
      if (aux) {
        aux[place] = C(value);
      }
      value = gelu(double(value));
    }
    c[place] = C(value);
  });
  if (p.epilogue.sums != Sums::None) {
    const void *operand = p.epilogue.sums == Sums::OfA ? at.a : at.b;
    withNumber(p.type, [&](auto number) {
      sumOperand<decltype(number)>(p, operand, static_cast<C *>(at.sums));
    });
  }
}

Result<SimulatorMatmul> SimulatorMatmul::make(const Matmul &matmul, int64_t cores) {
  SimulatorMatmul made;
  made.matmul = matmul;
  if (matmul.type == ElementType::F64) {
    return made;
  }
  Matmul form = matmul;
  if (matmul.isFp8()) {
    // Bytes times a power of two are exact in bf16.
    form.type = ElementType::BF16;
    made.a.resize(size_t((matmul.m - 1) * matmul.lda + matmul.k));
    made.b.resize(size_t((matmul.n - 1) * matmul.ldb + matmul.k));
  }
  if (matmul.epilogue.isAny()) {
    form.epilogue = {};
    form.isResultF32 = isNarrow(form.type);
    form.ldc = std::max<int64_t>(matmul.n, 1);
    form.strideC = matmul.m * matmul.n;
    made.wide.resize(size_t(matmul.batch * matmul.m * matmul.n));
  }
  for (const MatmulPart &part : cutMatmul(form, cores)) {
    Result<std::unique_ptr<PreparedMatmul>> prepared = PreparedMatmul::make(part);
    if (!prepared) {
      return prepared.error();
    }
    made.parts.push_back(std::move(*prepared));
  }
  return made;
}

static void widenBytes(ElementType type, const void *bytes, const void *factor,
                       std::vector<BFloat16> &to) {
  float numbers[256];
  for (int bits = 0; bits < 256; ++bits) {
    numbers[bits] = decodeF8(type, uint8_t(bits)) * *static_cast<const float *>(factor);
  }
  const auto *from = static_cast<const uint8_t *>(bytes);
  for (BFloat16 &number : to) {
    number = BFloat16(numbers[*from++]);
  }
}

Status SimulatorMatmul::run(const MatmulData &at) {
  if (matmul.type == ElementType::F64) {
    multiply(matmul, at);
    return {};
  }
  bool isPlain = !matmul.epilogue.isAny();
  const void *lhs = at.a, *rhs = at.b;
  if (matmul.isFp8()) {
    widenBytes(matmul.type, at.a, at.factorA, a);
    widenBytes(matmul.typeOfB(), at.b, at.factorB, b);
    lhs = a.data();
    rhs = b.data();
  }
  for (const std::unique_ptr<PreparedMatmul> &part : parts) {
    if (Status status = part->run(lhs, rhs, isPlain ? at.c : wide.data()); !status) {
      return status;
    }
  }
  if (!isPlain) {
    withNumber(matmul.resultType(),
               [&](auto number) { finish<decltype(number)>(matmul, wide, at); });
  }
  return {};
}
