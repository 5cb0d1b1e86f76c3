//===- BF16Product.cpp - a matrix product of bf16 by oneDNN ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/BF16Product.h"

#include "core/BFloat16.h"
#include "core/Text.h"

#include <dnnl.hpp>
#include <unordered_map>

// Of the OpenMP that oneDNN is built with; the header of the compiler at hand may be another's.
extern "C" void omp_set_num_threads(int count);

using namespace weft::rt;
using dnnl::memory;

namespace {

/// One operand: `batch` matrices whose rows, or if `transposed` columns, lie `ld` elements apart.
memory::desc describe(const Product &product, int64_t rows, int64_t columns, int64_t ld,
                      int64_t stride, bool transposed, ElementType type) {
  auto element = type == ElementType::F32 ? memory::data_type::f32 : memory::data_type::bf16;
  memory::dims shape = {rows, columns};
  memory::dims strides = {transposed ? 1 : ld, transposed ? ld : 1};
  if (product.batch != 1) {
    shape.insert(shape.begin(), product.batch);
    strides.insert(strides.begin(), stride);
  }
  return {shape, element, strides};
}

class LibraryProduct : public BF16Product {
public:
  /// Throws what the library throws.
  explicit LibraryProduct(const ProductPiece &given)
      : piece(given), engine(dnnl::engine::kind::cpu, 0), stream(engine) {
    const Product &p = piece.product;
    omp_set_num_threads(1); // The library asks when it makes the code, and again when it runs it.
    memory::desc descA = describe(p, p.m, p.k, p.lda, p.strideA, p.transposeA, p.type);
    memory::desc descB = describe(p, p.k, p.n, p.ldb, p.strideB, p.transposeB, p.type);
    memory::desc descC = describe(p, p.m, p.n, p.ldc, p.strideC, false, p.resultType());
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    dnnl::matmul::primitive_desc form(dnnl::matmul::desc(descA, descB, descC), attributes, engine);
    primitive = dnnl::matmul(form);
    a = memory(descA, engine, nullptr);
    b = memory(descB, engine, nullptr);
    c = memory(descC, engine, nullptr);
    scratch = std::make_unique<char[]>(form.scratchpad_desc().get_size() + kAlignment);
    char *aligned =
        scratch.get() + kAlignment - reinterpret_cast<uintptr_t>(scratch.get()) % kAlignment;
    arguments = {{DNNL_ARG_SRC, a},
                 {DNNL_ARG_WEIGHTS, b},
                 {DNNL_ARG_DST, c},
                 {DNNL_ARG_SCRATCHPAD, memory(form.scratchpad_desc(), engine, aligned)}};
  }

  bool run(const void *dataA, const void *dataB, void *dataC, std::string &error) override try {
    omp_set_num_threads(1);
    // The library only reads A and B.
    a.set_data_handle(const_cast<BFloat16 *>(static_cast<const BFloat16 *>(dataA)) + piece.offsetA);
    b.set_data_handle(const_cast<BFloat16 *>(static_cast<const BFloat16 *>(dataB)) + piece.offsetB);
    c.set_data_handle(static_cast<char *>(dataC) +
                      size_t(piece.offsetC) * sizeOf(piece.product.resultType()));
    primitive.execute(stream, arguments);
    stream.wait();
    return true;
  } catch (const std::exception &thrown) {
    error = concat("oneDNN failed in a product of bf16 matrices: ", thrown.what());
    return false;
  }

private:
  const ProductPiece piece;
  dnnl::engine engine;
  dnnl::stream stream;
  dnnl::matmul primitive;
  memory a, b, c;
  /// Memory of the library's own for one run.
  std::unique_ptr<char[]> scratch;
  std::unordered_map<int, memory> arguments;
};

/// Elements from the first to the last of a matrix.
size_t extentOf(int64_t rows, int64_t columns, int64_t ld) {
  return rows == 0 || columns == 0 ? 0 : size_t((rows - 1) * ld + columns);
}

/// One matrix at a time, on float32 copies.
class WidenedProduct : public BF16Product {
public:
  explicit WidenedProduct(const ProductPiece &given)
      : piece(given), product(piece.product), wide{product, 0, 0, 0} {
    const Product &p = product;
    wide.product.type = ElementType::F32;
    wide.product.isResultF32 = false;
    wide.product.batch = 1;
    a.resize(p.transposeA ? extentOf(p.k, p.m, p.lda) : extentOf(p.m, p.k, p.lda));
    b.resize(p.transposeB ? extentOf(p.n, p.k, p.ldb) : extentOf(p.k, p.n, p.ldb));
    if (!p.isResultF32) {
      c.resize(extentOf(p.m, p.n, p.ldc));
    }
  }

  bool run(const void *dataA, const void *dataB, void *dataC, std::string &) override {
    for (int64_t i = 0; i < product.batch; ++i) {
      widen(static_cast<const BFloat16 *>(dataA) + piece.offsetA + i * product.strideA, a);
      widen(static_cast<const BFloat16 *>(dataB) + piece.offsetB + i * product.strideB, b);
      int64_t atC = piece.offsetC + i * product.strideC;
      if (product.isResultF32) {
        runProduct(wide, a.data(), b.data(), static_cast<float *>(dataC) + atC);
      } else {
        runProduct(wide, a.data(), b.data(), c.data());
        round(static_cast<BFloat16 *>(dataC) + atC);
      }
    }
    return true;
  }

private:
  static void widen(const BFloat16 *from, std::vector<float> &to) {
    for (size_t i = 0; i < to.size(); ++i) {
      to[i] = float(from[i]);
    }
  }

  /// What lies between the rows stays as it is.
  void round(BFloat16 *to) const {
    for (int64_t row = 0; row < product.m; ++row) {
      for (int64_t column = 0; column < product.n; ++column) {
        int64_t at = row * product.ldc + column;
        to[at] = BFloat16(c[size_t(at)]);
      }
    }
  }

  const ProductPiece piece;
  const Product &product;
  ProductPiece wide;
  std::vector<float> a, b, c;
};

} // namespace

std::unique_ptr<BF16Product> BF16Product::make(const ProductPiece &piece, std::string &error) try {
  const Product &p = piece.product;
  try {
    if (p.m != 0 && p.n != 0 && p.k != 0 && p.batch != 0) { // Empty ones are none for oneDNN.
      return std::make_unique<LibraryProduct>(piece);
    }
  } catch (const dnnl::error &thrown) {
    if (thrown.status != dnnl_unimplemented) {
      throw;
    }
  }
  return std::make_unique<WidenedProduct>(piece);
} catch (const std::exception &thrown) {
  const Product &p = piece.product;
  error = concat("cannot prepare a product of bf16 matrices of ", p.m, "x", p.k, " and ", p.k, "x",
                 p.n, ": ", thrown.what());
  return nullptr;
}
