//===- BF16Product.cpp - a matrix product of bf16 by oneDNN ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/BF16Product.h"

#include "core/BFloat16.h"
#include "core/Text.h"

#include <algorithm>
#include <atomic>
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

/// The most memory of its own that the library wants for one run of any product made so far.
std::atomic<size_t> mostScratch = 0;

/// Memory for one run by the calling thread: each thread has one such piece, as it runs one product
/// at a time, and many products are made.
char *scratchOfThread() {
  thread_local std::unique_ptr<char[]> memory;
  thread_local size_t bytes = 0;
  if (size_t needed = mostScratch; !memory || bytes < needed) {
    memory.reset();
    memory = std::make_unique_for_overwrite<char[]>(needed + kAlignment);
    bytes = needed;
  }
  return memory.get() + kAlignment - reinterpret_cast<uintptr_t>(memory.get()) % kAlignment;
}

/// A batch of which A, B or C is shared is run one by one: the library's batches are not for that.
class LibraryProduct : public BF16Product {
public:
  /// Throws what the library throws.
  explicit LibraryProduct(const ProductPiece &given)
      : piece(given), engine(dnnl::engine::kind::cpu, 0), stream(engine) {
    Product p = piece.product;
    if (p.batch > 1 && (p.strideA == 0 || p.strideB == 0 || p.strideC == 0)) {
      runs = p.batch;
      p.batch = 1;
    }
    omp_set_num_threads(1); // The library asks when it makes the code, and again when it runs it.
    memory::desc descA = describe(p, p.m, p.k, p.lda, p.strideA, p.transposeA, p.type);
    memory::desc descB = describe(p, p.k, p.n, p.ldb, p.strideB, p.transposeB, p.type);
    memory::desc descC = describe(p, p.m, p.n, p.ldc, p.strideC, false, p.resultType());
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    dnnl::matmul::primitive_desc form(dnnl::matmul::desc(descA, descB, descC), attributes, engine);
    primitive = adding = dnnl::matmul(form);
    size_t needed = form.scratchpad_desc().get_size();
    if (piece.product.isSum()) {
      dnnl::post_ops sum;
      sum.append_sum(1.0f);
      attributes.set_post_ops(sum);
      dnnl::matmul::primitive_desc addingForm(dnnl::matmul::desc(descA, descB, descC), attributes,
                                              engine);
      adding = dnnl::matmul(addingForm);
      addingScratch = memory(addingForm.scratchpad_desc(), engine, nullptr);
      needed = std::max(needed, addingForm.scratchpad_desc().get_size());
    }
    a = memory(descA, engine, nullptr);
    b = memory(descB, engine, nullptr);
    c = memory(descC, engine, nullptr);
    scratch = memory(form.scratchpad_desc(), engine, nullptr);
    for (size_t most = mostScratch; most < needed;) {
      mostScratch.compare_exchange_weak(most, needed);
    }
    arguments = {{DNNL_ARG_SRC, a},
                 {DNNL_ARG_WEIGHTS, b},
                 {DNNL_ARG_DST, c},
                 {DNNL_ARG_SCRATCHPAD, scratch}};
  }

  bool run(const void *dataA, const void *dataB, void *dataC, std::string &error) override try {
    omp_set_num_threads(1);
    const Product &p = piece.product;
    auto *firstA = const_cast<BFloat16 *>(static_cast<const BFloat16 *>(dataA)) + piece.offsetA;
    auto *firstB = const_cast<BFloat16 *>(static_cast<const BFloat16 *>(dataB)) + piece.offsetB;
    auto *firstC = static_cast<char *>(dataC) + size_t(piece.offsetC) * sizeOf(p.resultType());
    scratch.set_data_handle(scratchOfThread());
    if (addingScratch) {
      addingScratch.set_data_handle(scratchOfThread());
    }
    for (int64_t i = 0; i < runs; ++i) {
      // The library only reads A and B.
      a.set_data_handle(firstA + i * p.strideA);
      b.set_data_handle(firstB + i * p.strideB);
      c.set_data_handle(firstC + size_t(i * p.strideC) * sizeOf(p.resultType()));
      bool adds = i > 0 && p.isSum();
      arguments[DNNL_ARG_SCRATCHPAD] = adds ? addingScratch : scratch;
      (adds ? adding : primitive).execute(stream, arguments);
    }
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
  int64_t runs = 1;
  /// The second adds to C.
  dnnl::matmul primitive, adding;
  memory a, b, c, scratch, addingScratch;
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
    wide.product.strideA = wide.product.strideB = wide.product.strideC = 0;
    a.resize(p.transposeA ? extentOf(p.k, p.m, p.lda) : extentOf(p.m, p.k, p.lda));
    b.resize(p.transposeB ? extentOf(p.n, p.k, p.ldb) : extentOf(p.k, p.n, p.ldb));
    if (!p.isResultF32 || p.isSum()) {
      c.resize(extentOf(p.m, p.n, p.ldc));
    }
  }

  bool run(const void *dataA, const void *dataB, void *dataC, std::string &) override {
    for (int64_t i = 0; i < product.batch; ++i) {
      widen(static_cast<const BFloat16 *>(dataA) + piece.offsetA + i * product.strideA, a);
      widen(static_cast<const BFloat16 *>(dataB) + piece.offsetB + i * product.strideB, b);
      int64_t atC = piece.offsetC + i * product.strideC;
      auto *wideC = static_cast<float *>(dataC) + atC;
      if (product.isSum() && i > 0) {
        runProduct(wide, a.data(), b.data(), c.data());
        add(wideC);
      } else if (product.isResultF32) {
        runProduct(wide, a.data(), b.data(), wideC);
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
    forEachOfC([&](size_t at) { to[at] = BFloat16(c[at]); });
  }
  void add(float *to) const {
    forEachOfC([&](size_t at) { to[at] += c[at]; });
  }
  template <typename Code> void forEachOfC(Code code) const {
    for (int64_t row = 0; row < product.m; ++row) {
      for (int64_t column = 0; column < product.n; ++column) {
        code(size_t(row * product.ldc + column));
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
