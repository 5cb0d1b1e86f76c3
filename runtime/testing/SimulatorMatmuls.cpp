//===- SimulatorMatmuls.cpp - matmuls of a simulated device ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "testing/SimulatorDevice.h"

#include "support/Random.h"

#include <cstring>

using namespace weft::rt;
using namespace weft::rt::cuda;

/// The alignment that the libraries' fast kernels need.
static constexpr uint64_t kMatmulAlignment = 16;

namespace {

/// The layout of an operand in memory, in bytes.
struct Matrices {
  uint64_t rows, rowBytes, pitch, batch, stride;

  Matrices(int64_t rows, int64_t columns, int64_t ld, int64_t stride, const Matmul &matmul,
           ElementType type)
      : rows(uint64_t(rows)), rowBytes(uint64_t(columns) * sizeOf(type)),
        pitch(uint64_t(ld) * sizeOf(type)), batch(uint64_t(matmul.batch)),
        stride(uint64_t(stride) * sizeOf(type)) {}

  uint64_t bytes() const {
    return rows == 0 || rowBytes == 0 || batch == 0 ? 0 : (batch - 1) * stride + matrixBytes();
  }
  uint64_t matrixBytes() const { return (rows - 1) * pitch + rowBytes; }

  /// Calls `visit` with the offset of each row.
  template <typename Visit> void forEachRow(const Visit &visit) const {
    for (uint64_t matrix = 0; matrix < batch; ++matrix) {
      for (uint64_t row = 0; row < rows; ++row) {
        visit(matrix * stride + row * pitch);
      }
    }
  }
};

} // namespace

static Matrices operandA(const Matmul &matmul) {
  auto [rows, columns] =
      matmul.transposeA ? std::pair(matmul.k, matmul.m) : std::pair(matmul.m, matmul.k);
  return {rows, columns, matmul.lda, matmul.strideA, matmul, matmul.type};
}

static Matrices operandB(const Matmul &matmul) {
  auto [rows, columns] =
      matmul.transposeB ? std::pair(matmul.n, matmul.k) : std::pair(matmul.k, matmul.n);
  return {rows, columns, matmul.ldb, matmul.strideB, matmul, matmul.typeOfB()};
}

static Matrices operandC(const Matmul &matmul) {
  return {matmul.m, matmul.n, matmul.ldc, matmul.strideC, matmul, matmul.resultType()};
}

/// The library's requirements for FP8; that B alone is transposed, for devices before sm_100.
static void checkFp8(const Matmul &matmul) {
  if (matmul.transposeA || !matmul.transposeB || matmul.batch != 1) {
    misuse("expected one FP8 matmul with B alone transposed");
  }
  if (matmul.type == ElementType::F8E5M2 && matmul.typeOfB() == ElementType::F8E5M2) {
    misuse("expected an FP8 matmul with an operand of f8e4m3, got two of f8e5m2");
  }
  for (int64_t size : {matmul.m, matmul.n, matmul.k}) {
    if (size % 16 != 0) {
      misuse("expected sizes of an FP8 matmul to be multiples of 16, got ", size);
    }
  }
  for (const Matrices &matrices : {operandA(matmul), operandB(matmul), operandC(matmul)}) {
    if (matrices.pitch % kMatmulAlignment != 0) {
      misuse("expected rows of an FP8 matmul a multiple of ", kMatmulAlignment,
             " bytes apart, got ", matrices.pitch);
    }
  }
  if (matmul.epilogue.hasBias && matmul.resultType() != ElementType::BF16) {
    misuse("expected a bf16 result of an FP8 matmul with a bias, got ",
           nameOf(matmul.resultType()));
  }
}

/// The library's requirements for epilogues other than an addition.
static void checkEpilogue(const Matmul &matmul) {
  if (matmul.type == ElementType::F64) {
    misuse("expected a matmul of f64 without an epilogue");
  }
  if (matmul.epilogue.hasAux && (matmul.ldc % 8 != 0 || matmul.batch != 1)) {
    misuse("expected one matmul with rows a multiple of 8 elements apart for an activation, got ",
           matmul.batch, " with ", matmul.ldc);
  }
  if (matmul.batch != 1) {
    misuse("expected one matmul with an epilogue, got ", matmul.batch);
  }
}

static void checkMatmul(const Matmul &matmul) {
  if (matmul.type == ElementType::I32 || matmul.type == ElementType::I64) {
    misuse("expected a matmul of f64, f32, bf16, f16 or FP8, got one of ", nameOf(matmul.type));
  }
  for (int64_t size : {matmul.m, matmul.n, matmul.k, matmul.batch}) {
    if (size < 1) {
      misuse("expected sizes of at least 1, got ", size);
    }
  }
  for (const Matrices &matrices : {operandA(matmul), operandB(matmul), operandC(matmul)}) {
    if (matrices.pitch < matrices.rowBytes) {
      misuse("expected rows at least ", matrices.rowBytes, " bytes apart, got ", matrices.pitch);
    }
  }
  Matrices results = operandC(matmul);
  if (matmul.batch > 1 && !matmul.isSum() && results.stride < results.matrixBytes()) {
    misuse("expected results at least ", results.matrixBytes(), " bytes apart, got ",
           results.stride);
  }
  if (matmul.isFp8()) {
    checkFp8(matmul);
  }
  if (matmul.epilogue.isMore()) {
    checkEpilogue(matmul);
  }
}

/// Returns the only algorithm of a matmul; it differs between matmuls.
static MatmulAlgorithm wayOf(const Matmul &p) {
  uint64_t hash =
      streamOf(concat(nameOf(p.type), nameOf(p.typeOfB()), p.m, ",", p.n, ",", p.k, ",", p.lda, ",",
                      p.ldb, ",", p.ldc, ",", p.batch, ",", p.workspaceBytes));
  return {{hash | 1, 1, 2, 3, 4, 5, 6, 7}};
}

void Device::nameMatmuls(const char **name) {
  checkOpen("asked for");
  *name = "matmuls of a simulator, 1";
}

void Device::prepareMatmul(const Matmul *matmul, MatmulAlgorithm *way, Handle *prepared) {
  checkOpen("prepared");
  checkMatmul(*matmul);
  MatmulAlgorithm own = wayOf(*matmul), none = {};
  if (std::memcmp(way, &none, sizeof none) != 0 && std::memcmp(way, &own, sizeof own) != 0) {
    misuse("expected a way to compute this matmul, got one of another");
  }
  *way = own;
  LoadedMatmul made = {call, *matmul};
  if (!settings.isIdle) {
    Result<SimulatorMatmul> code = SimulatorMatmul::make(*matmul, counterparts.cores);
    if (!code) {
      misuse(code.error().message);
    }
    made.code = std::move(*code);
  }
  *prepared = matmuls.add(std::move(made));
}

void Device::freeMatmul(Handle prepared) {
  checkOpen("freed");
  checkIdle("the matmul", matmuls.find(prepared).uses);
  matmuls.remove(prepared);
}

/// Fails unless the read part of each row was written; a matrix may have more columns than the
/// matmul reads.
void Device::checkRowsWritten(const Touch &touch, const Matmul &matmul, bool isA) {
  if (memory.isWritten(touch.begin, touch.end)) {
    return;
  }
  Matrices matrices = isA ? operandA(matmul) : operandB(matmul);
  matrices.forEachRow([&](uint64_t offset) {
    uint64_t begin = touch.begin + offset;
    checkWritten({begin, begin + matrices.rowBytes, Access::Read, touch.what});
  });
}

std::vector<Touch> Device::touchMatmul(const Matmul &matmul, const MatmulPlaces &at) {
  const Epilogue &epilogue = matmul.epilogue;
  std::vector<Touch> touches = {
      touchDevice(at.a, operandA(matmul).bytes(), Access::Read, "operand A"),
      touchDevice(at.b, operandB(matmul).bytes(), Access::Read, "operand B"),
      touchDevice(at.c, operandC(matmul).bytes(), Access::Write, "operand C")};
  bool isInPlace = epilogue.hasAddend && at.addend == at.c;
  if (isInPlace) {
    touches[2].access = Access::ReadWrite;
    checkWritten(touches[2]);
  }
  checkRowsWritten(touches[0], matmul, /*isA=*/true);
  checkRowsWritten(touches[1], matmul, /*isA=*/false);
  auto touch = [&](bool isThere, Address address, uint64_t bytes, Access access, const char *what) {
    if (isThere) {
      touches.push_back(touchDevice(address, bytes, access, what));
      if (access == Access::Read) {
        checkWritten(touches.back());
      }
    }
  };
  uint64_t c = operandC(matmul).bytes(), size = sizeOf(matmul.resultType());
  bool isAuxRead = epilogue.activation == Epilogue::Activation::GeluGradient;
  int64_t sums = epilogue.sums == Epilogue::Sums::OfA ? matmul.m : matmul.n;
  touch(epilogue.hasAddend && !isInPlace, at.addend, c, Access::Read, "the addend");
  touch(epilogue.hasBias, at.bias, uint64_t(matmul.n) * size, Access::Read, "the bias");
  touch(epilogue.hasAux, at.aux, c, isAuxRead ? Access::Read : Access::Write,
        "the matrix of the activation");
  touch(epilogue.sums != Epilogue::Sums::None, at.sums, uint64_t(sums) * size, Access::Write,
        "the sums");
  touch(matmul.isFp8(), at.factorA, sizeof(float), Access::Read, "the factor of A");
  touch(matmul.isFp8(), at.factorB, sizeof(float), Access::Read, "the factor of B");
  touch(matmul.workspaceBytes > 0, at.workspace, matmul.workspaceBytes, Access::Write,
        "the workspace");
  if (matmul.workspaceBytes > 0) {
    checkAlignment(touches.back(), kWorkspaceAlignment);
  }
  for (const Touch &touched : touches) {
    checkAlignment(touched, kMatmulAlignment);
  }
  return touches;
}

void Device::runMatmul(Handle stream, Handle prepared, const MatmulPlaces *places) {
  if (captures(stream, [=, this, at = *places](Handle on) { runMatmul(on, prepared, &at); })) {
    return;
  }
  LoadedMatmul &run = matmuls.find(prepared);
  std::vector<Touch> touches = touchMatmul(run.matmul, *places);
  Place place = enqueue(stream, "runMatmul", touches, [at = *places, this, &run] {
    if (run.matmul.workspaceBytes > 0) {
      std::memset(memory.place(at.workspace), kPoison, run.matmul.workspaceBytes);
    }
    auto find = [&](Address address) -> void * {
      return address ? memory.place(address) : nullptr;
    };
    Status status =
        run.code.run({find(at.a), find(at.b), find(at.c), find(at.addend), find(at.bias),
                      find(at.aux), find(at.sums), find(at.factorA), find(at.factorB)});
    if (!status) {
      misuse(status.error().message);
    }
  });
  run.uses.join(place);
}
