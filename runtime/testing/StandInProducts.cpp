//===- StandInProducts.cpp - matrix products of a device that is none ----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "testing/StandInDevice.h"

#include "support/Random.h"

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
  return {rows, columns, product.ldb, product.strideB, product, product.typeOfB()};
}

static Matrices operandC(const Product &product) {
  return {product.m, product.n, product.ldc, product.strideC, product, product.resultType()};
}

static void checkProduct(const Product &product) {
  if (product.type == ElementType::I32 || product.type == ElementType::I64) {
    misuse("expected a product of f64, f32, bf16, f16 or eight bits, got one of ",
           nameOf(product.type));
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
  // What devices before sm_100 demand.
  bool isTurned = product.transposeA || !product.transposeB;
  if (product.isOfEightBits() && (isTurned || product.batch != 1)) {
    misuse("expected one product of eight bits with B alone transposed");
  }
  // What the library demands of a matrix for an activation.
  if (product.epilogue.hasAux && (product.ldc % 8 != 0 || product.batch != 1)) {
    misuse("expected one product with rows a multiple of 8 elements apart for an activation, got ",
           product.batch, " with ", product.ldc);
  }
}

/// The only way of a product; another product has another.
static ProductWay wayOf(const Product &p) {
  uint64_t hash =
      streamOf(concat(nameOf(p.type), nameOf(p.typeOfB()), p.m, ",", p.n, ",", p.k, ",", p.lda, ",",
                      p.ldb, ",", p.ldc, ",", p.batch, ",", p.workspaceBytes));
  return {{hash | 1, 1, 2, 3, 4, 5, 6, 7}};
}

void Device::nameProducts(const char **name) {
  checkOpen("asked for");
  *name = "products of a stand-in, 1";
}

void Device::prepareProduct(const Product *product, ProductWay *way, Handle *prepared) {
  checkOpen("prepared");
  checkProduct(*product);
  ProductWay own = wayOf(*product), none = {};
  if (std::memcmp(way, &none, sizeof none) != 0 && std::memcmp(way, &own, sizeof own) != 0) {
    misuse("expected a way to compute this product, got one of another");
  }
  *way = own;
  std::string error;
  LoadedProduct made = {call, *product};
  if (!settings.isIdle) {
    made.code = StandInProduct(*product, twins.cores, error);
  }
  if (!error.empty()) {
    misuse(error);
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

std::vector<Touch> Device::touchProduct(const Product &product, const ProductPlaces &at) {
  const Epilogue &epilogue = product.epilogue;
  std::vector<Touch> touches = {
      touchDevice(at.a, operandA(product).bytes(), Access::Read, "operand A"),
      touchDevice(at.b, operandB(product).bytes(), Access::Read, "operand B"),
      touchDevice(at.c, operandC(product).bytes(), Access::Write, "operand C")};
  checkRowsWritten(touches[0], product, /*isA=*/true);
  checkRowsWritten(touches[1], product, /*isA=*/false);
  auto touch = [&](bool isThere, Address address, uint64_t bytes, Access access, const char *what) {
    if (isThere) {
      touches.push_back(touchDevice(address, bytes, access, what));
      if (access == Access::Read) {
        checkWritten(touches.back());
      }
    }
  };
  uint64_t c = operandC(product).bytes(), size = sizeOf(product.resultType());
  bool isAuxRead = epilogue.activation == Epilogue::Activation::GeluGradient;
  int64_t sums = epilogue.sums == Epilogue::Sums::OfA ? product.m : product.n;
  touch(epilogue.hasAddend, at.addend, c, Access::Read, "the addend");
  touch(epilogue.hasBias, at.bias, uint64_t(product.n) * size, Access::Read, "the bias");
  touch(epilogue.hasAux, at.aux, c, isAuxRead ? Access::Read : Access::Write,
        "the matrix of the activation");
  touch(epilogue.sums != Epilogue::Sums::None, at.sums, uint64_t(sums) * size, Access::Write,
        "the sums");
  touch(product.isOfEightBits(), at.factorA, sizeof(float), Access::Read, "the factor of A");
  touch(product.isOfEightBits(), at.factorB, sizeof(float), Access::Read, "the factor of B");
  touch(product.workspaceBytes > 0, at.workspace, product.workspaceBytes, Access::Write,
        "the workspace");
  if (product.workspaceBytes > 0) {
    checkAlignment(touches.back(), kWorkspaceAlignment);
  }
  for (const Touch &touched : touches) {
    checkAlignment(touched, kProductAlignment);
  }
  return touches;
}

void Device::runProduct(Handle stream, Handle prepared, const ProductPlaces *places) {
  if (captures(stream, [=, this, at = *places](Handle on) { runProduct(on, prepared, &at); })) {
    return;
  }
  LoadedProduct &run = products.find(prepared);
  std::vector<Touch> touches = touchProduct(run.product, *places);
  Place place = enqueue(stream, "runProduct", touches, [at = *places, this, &run] {
    if (run.product.workspaceBytes > 0) {
      std::memset(memory.place(at.workspace), kPoison, run.product.workspaceBytes);
    }
    auto find = [&](Address address) -> void * {
      return address ? memory.place(address) : nullptr;
    };
    std::string error;
    if (!run.code.run({find(at.a), find(at.b), find(at.c), find(at.addend), find(at.bias),
                       find(at.aux), find(at.sums), find(at.factorA), find(at.factorB)},
                      error)) {
      misuse(error);
    }
  });
  run.uses.join(place);
}
