//===- BF16Product.cpp - a matrix product of bf16 by oneDNN ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/BF16Product.h"

#include "core/Text.h"

#include <cstring>
#include <dnnl.hpp>
#include <unordered_map>

// Of the OpenMP that oneDNN is built with; the header of the compiler at hand may be another's.
extern "C" void omp_set_num_threads(int count);

using namespace weft::rt;
using dnnl::memory;

struct BF16Product::Parts {
  dnnl::matmul primitive;
  dnnl::stream stream;
  memory a, b, c;
  /// Memory of the library's own for one run.
  std::unique_ptr<char[]> scratch;
  std::unordered_map<int, memory> arguments;
  Product product;
};

/// One operand: `batch` matrices whose rows, or if `transposed` columns, lie `ld` elements apart.
static memory::desc describe(const Product &product, int64_t rows, int64_t columns, int64_t ld,
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

static bool isOfNothing(const Product &p) {
  return p.m == 0 || p.n == 0 || p.k == 0 || p.batch == 0;
}

BF16Product::BF16Product(std::unique_ptr<Parts> parts) : parts(std::move(parts)) {}
BF16Product::~BF16Product() = default;

std::unique_ptr<BF16Product> BF16Product::make(const Product &p, std::string &error) try {
  auto parts = std::make_unique<Parts>();
  parts->product = p;
  if (isOfNothing(p)) {
    return std::unique_ptr<BF16Product>(new BF16Product(std::move(parts)));
  }
  omp_set_num_threads(1); // The library asks when it makes the code, and again when it runs it.
  dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  memory::desc a = describe(p, p.m, p.k, p.lda, p.strideA, p.transposeA, p.type);
  memory::desc b = describe(p, p.k, p.n, p.ldb, p.strideB, p.transposeB, p.type);
  memory::desc c = describe(p, p.m, p.n, p.ldc, p.strideC, false, p.resultType());
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  dnnl::matmul::primitive_desc form(dnnl::matmul::desc(a, b, c), attributes, engine);
  parts->primitive = dnnl::matmul(form);
  parts->stream = dnnl::stream(engine);
  parts->a = memory(a, engine, nullptr);
  parts->b = memory(b, engine, nullptr);
  parts->c = memory(c, engine, nullptr);
  parts->scratch = std::make_unique<char[]>(form.scratchpad_desc().get_size() + kAlignment);
  char *aligned = parts->scratch.get() + kAlignment -
                  reinterpret_cast<uintptr_t>(parts->scratch.get()) % kAlignment;
  parts->arguments = {{DNNL_ARG_SRC, parts->a},
                      {DNNL_ARG_WEIGHTS, parts->b},
                      {DNNL_ARG_DST, parts->c},
                      {DNNL_ARG_SCRATCHPAD, memory(form.scratchpad_desc(), engine, aligned)}};
  return std::unique_ptr<BF16Product>(new BF16Product(std::move(parts)));
} catch (const std::exception &thrown) {
  error = concat("oneDNN cannot multiply bf16 matrices of ", p.m, "x", p.k, " and ", p.k, "x", p.n,
                 ": ", thrown.what());
  return nullptr;
}

bool BF16Product::run(const void *a, const void *b, void *c, std::string &error) try {
  const Product &p = parts->product;
  if (isOfNothing(p)) {
    for (int64_t i = 0; i < p.batch * p.m && p.n != 0; ++i) {
      int64_t row = i / p.m * p.strideC + i % p.m * p.ldc;
      size_t bytes = sizeOf(p.resultType());
      std::memset(static_cast<char *>(c) + size_t(row) * bytes, 0, size_t(p.n) * bytes);
    }
    return true;
  }
  omp_set_num_threads(1);
  parts->a.set_data_handle(const_cast<void *>(a)); // The library only reads it.
  parts->b.set_data_handle(const_cast<void *>(b));
  parts->c.set_data_handle(c);
  parts->primitive.execute(parts->stream, parts->arguments);
  parts->stream.wait();
  return true;
} catch (const std::exception &thrown) {
  error = concat("oneDNN failed in a product of bf16 matrices: ", thrown.what());
  return false;
}
