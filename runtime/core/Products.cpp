//===- Products.cpp - matrix products by library ----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/Products.h"

#include <cblas.h>

using namespace weft::rt;

static void gemm(const Product &p, const double *a, const double *b, double *c) {
  cblas_dgemm(CblasRowMajor, p.transposeA ? CblasTrans : CblasNoTrans,
              p.transposeB ? CblasTrans : CblasNoTrans, blasint(p.m), blasint(p.n), blasint(p.k), 1,
              a, blasint(p.lda), b, blasint(p.ldb), 0, c, blasint(p.ldc));
}

static void gemm(const Product &p, const float *a, const float *b, float *c) {
  cblas_sgemm(CblasRowMajor, p.transposeA ? CblasTrans : CblasNoTrans,
              p.transposeB ? CblasTrans : CblasNoTrans, blasint(p.m), blasint(p.n), blasint(p.k), 1,
              a, blasint(p.lda), b, blasint(p.ldb), 0, c, blasint(p.ldc));
}

template <typename T>
static void runBatch(const Product &product, const void *a, const void *b, void *c) {
  if (product.m == 0 || product.n == 0) {
    return; // Nothing to write; the library refuses such sizes in some builds.
  }
  for (int64_t i = 0; i < product.batch; ++i) {
    gemm(product, static_cast<const T *>(a) + i * product.strideA,
         static_cast<const T *>(b) + i * product.strideB,
         static_cast<T *>(c) + i * product.strideC);
  }
}

void weft::rt::prepareProducts() { openblas_set_num_threads(1); }

void weft::rt::runProduct(const Product &product, const void *a, const void *b, void *c) {
  if (product.type == ElementType::F64) {
    runBatch<double>(product, a, b, c);
  } else {
    runBatch<float>(product, a, b, c);
  }
}
