//===- StandInProducts.cpp - matrix products of a device that is none ----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/StandInDevice.h"

#include <cstring>

using namespace weft::rt;
using namespace weft::rt::cuda;

/// What the libraries' fast code takes as given.
static constexpr uint64_t kProductAlignment = 16;

namespace {

/// How an operand lies in memory, in bytes.
struct Matrices {
  uint64_t rows, rowBytes, pitch, batch, stride;

  Matrices(int64_t rows, int64_t columns, int64_t ld, int64_t stride, const Product &product,
           ElementType type)
      : rows(uint64_t(rows)), rowBytes(uint64_t(columns) * sizeOf(type)),
        pitch(uint64_t(ld) * sizeOf(type)), batch(uint64_t(product.batch)),
        stride(uint64_t(stride) * sizeOf(type)) {}

  uint64_t bytes() const {
    return rows == 0 || rowBytes == 0 || batch == 0
               ? 0
               : (batch - 1) * stride + (rows - 1) * pitch + rowBytes;
  }

  /// Calls `visit` with where each row begins.
  template <typename Visit> void forEachRow(const Visit &visit) const {
    for (uint64_t matrix = 0; matrix < batch; ++matrix) {
      for (uint64_t row = 0; row < rows; ++row) {
        visit(matrix * stride + row * pitch);
      }
    }
  }
};

} // namespace

static Matrices operandA(const Product &product) {
  auto [rows, columns] =
      product.transposeA ? std::pair(product.k, product.m) : std::pair(product.m, product.k);
  return {rows, columns, product.lda, product.strideA, product, product.type};
}

static Matrices operandB(const Product &product) {
  auto [rows, columns] =
      product.transposeB ? std::pair(product.n, product.k) : std::pair(product.k, product.n);
  return {rows, columns, product.ldb, product.strideB, product, product.type};
}

static Matrices operandC(const Product &product) {
  return {product.m, product.n, product.ldc, product.strideC, product, product.resultType()};
}

static void checkProduct(const Product &product) {
  if (product.type != ElementType::F32 && !isNarrow(product.type)) {
    misuse("expected a product of f32, bf16 or f16, got one of ", nameOf(product.type));
  }
  for (int64_t size : {product.m, product.n, product.k, product.batch}) {
    if (size < 1) {
      misuse("expected sizes of at least 1, got ", size);
    }
  }
  for (const Matrices &matrices : {operandA(product), operandB(product), operandC(product)}) {
    if (matrices.pitch < matrices.rowBytes) {
      misuse("expected rows at least ", matrices.rowBytes, " bytes apart, got ", matrices.pitch);
    }
  }
}

void Device::prepareProduct(const Product *product, uint64_t workspaceBytes, Handle *prepared) {
  checkOpen("prepared");
  checkProduct(*product);
  LoadedProduct made;
  made.call = call;
  made.product = *product;
  made.workspaceBytes = workspaceBytes;
  for (const ProductPiece &piece : cutProduct(*product, twins.cores)) {
    std::string error;
    made.pieces.push_back(PreparedProduct::make(piece, error));
    if (!made.pieces.back()) {
      misuse(error);
    }
  }
  *prepared = products.add(std::move(made));
}

void Device::freeProduct(Handle prepared) {
  checkOpen("freed");
  checkIdle("the product", products.find(prepared).uses);
  products.remove(prepared);
}

/// A row may be of a matrix that has more columns than are read, of which the others are nobody's.
void Device::checkRowsWritten(const Touch &touch, const Product &product, bool isA) {
  if (memory.isWritten(touch.begin, touch.end)) {
    return;
  }
  Matrices matrices = isA ? operandA(product) : operandB(product);
  matrices.forEachRow([&](uint64_t offset) {
    uint64_t begin = touch.begin + offset;
    checkWritten({begin, begin + matrices.rowBytes, Access::Read, touch.what});
  });
}

void Device::runProduct(Handle stream, Handle prepared, Address a, Address b, Address c,
                        Address workspace) {
  LoadedProduct &run = products.find(prepared);
  std::vector<Touch> touches = {
      touchDevice(a, operandA(run.product).bytes(), Access::Read, "operand A"),
      touchDevice(b, operandB(run.product).bytes(), Access::Read, "operand B"),
      touchDevice(c, operandC(run.product).bytes(), Access::Write, "operand C")};
  checkRowsWritten(touches[0], run.product, /*isA=*/true);
  checkRowsWritten(touches[1], run.product, /*isA=*/false);
  if (run.workspaceBytes > 0) {
    touches.push_back(touchDevice(workspace, run.workspaceBytes, Access::Write, "the workspace"));
  }
  for (const Touch &touch : touches) {
    checkAlignment(touch, kProductAlignment);
  }
  Place place = enqueue(stream, "runProduct", touches, [=, this, &run] {
    if (run.workspaceBytes > 0) {
      std::memset(memory.place(workspace), kPoison, run.workspaceBytes);
    }
    std::string error;
    for (const std::unique_ptr<PreparedProduct> &piece : run.pieces) {
      if (!piece->run(memory.place(a), memory.place(b), memory.place(c), error)) {
        misuse(error);
      }
    }
  });
  run.uses.join(place);
}
