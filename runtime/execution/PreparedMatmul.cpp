//===- PreparedMatmul.cpp - a matmul by oneDNN ------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "execution/PreparedMatmul.h"

#include "support/BFloat16.h"
#include "support/Float16.h"
#include "support/LibraryCall.h"
#include "support/Text.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <dnnl.hpp>
#include <mutex>
#include <new>
#include <optional>
#include <span>

// Declared here for the OpenMP that oneDNN is built with; the compiler's header may
// be that of another one.
extern "C" void omp_set_num_threads(int count);

using namespace weft::rt;
using dnnl::memory;

namespace {

/// One operand: `batch` matrices whose rows, or if `transposed` columns, lie `ld` elements apart.
memory::desc describe(const Matmul &matmul, int64_t rows, int64_t columns, int64_t ld,
                      int64_t stride, bool transposed, ElementType type) {
  auto element = type == ElementType::F32    ? memory::data_type::f32
                 : type == ElementType::BF16 ? memory::data_type::bf16
                                             : memory::data_type::f16;
  memory::dims shape = {rows, columns};
  memory::dims strides = {transposed ? 1 : ld, transposed ? ld : 1};
  if (matmul.batch != 1) {
    shape.insert(shape.begin(), matmul.batch);
    strides.insert(strides.begin(), stride);
  }
  return {shape, element, strides};
}

/// Returns at least `needed` bytes of scratch memory for a run by the calling thread, or null if
/// memory is short. Each thread has one block for all matmuls, as it runs one at a time.
char *scratchOfThread(size_t needed) {
  thread_local std::unique_ptr<char[]> memory;
  thread_local size_t bytes = 0;
  if (!memory || bytes < needed) {
    memory.reset();
    memory.reset(new (std::nothrow) char[needed + kAlignment]);
    bytes = memory ? needed : 0;
  }
  return !memory
             ? nullptr
             : memory.get() + kAlignment - reinterpret_cast<uintptr_t>(memory.get()) % kAlignment;
}

/// Rounds a number of bytes up to whole cache lines.
size_t wholeLines(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

class LibraryMatmul : public PreparedMatmul {
public:
  /// Throws the library's exceptions.
  explicit LibraryMatmul(const MatmulPart &given)
      : part(given), engine(dnnl::engine::kind::cpu, 0), stream(engine) {
    Matmul p = part.matmul;
    // Matmuls that share an operand or are added up run one after another.
    if (p.strideA == 0 || p.strideB == 0 || p.strideC == 0) {
      rounds = p.batch;
      p.batch = 1;
    }
    omp_set_num_threads(1); // The library asks when it makes the code, and again when it runs it.
    memory::desc descA = describe(p, p.m, p.k, p.lda, p.strideA, p.transposeA, p.type);
    memory::desc descB = describe(p, p.k, p.n, p.ldb, p.strideB, p.transposeB, p.type);
    memory::desc descC = describe(p, p.m, p.n, p.ldc, p.strideC, false, p.resultType());
    dnnl::matmul::desc form(descA, descB, descC);
    a = memory(descA, engine, nullptr);
    b = memory(descB, engine, nullptr);
    c = memory(descC, engine, nullptr);
    overwriting = makeCode(form, /*adds=*/false);
    if (rounds > 1 && p.strideC == 0) {
      adding = makeCode(form, /*adds=*/true);
    }
  }

  size_t scratchBytes() const override { return needed; }

  Status run(const void *dataA, const void *dataB, void *dataC) override try {
    omp_set_num_threads(1);
    const Matmul &p = part.matmul;
    for (int64_t i = 0; i < rounds; ++i) {
      // The library only reads A and B.
      a.set_data_handle(at(const_cast<void *>(dataA), part.offsetA + i * p.strideA, p.type));
      b.set_data_handle(at(const_cast<void *>(dataB), part.offsetB + i * p.strideB, p.type));
      c.set_data_handle(at(dataC, part.offsetC + i * p.strideC, p.resultType()));
      execute(i > 0 && adding ? *adding : overwriting);
    }
    stream.wait();
    return {};
  } catch (const std::exception &thrown) {
    return makeError("oneDNN failed in a matmul of ", nameOf(part.matmul.type),
                     " matrices: ", thrown.what());
  }

private:
  struct Code {
    dnnl::matmul matmul;
    memory scratch;
    std::array<dnnl_exec_arg_t, 4> arguments;
  };

  static void *at(void *data, int64_t offset, ElementType type) {
    return static_cast<char *>(data) + size_t(offset) * sizeOf(type);
  }

  Code makeCode(const dnnl::matmul::desc &form, bool adds) {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (adds) {
      dnnl::post_ops sum;
      sum.append_sum();
      attributes.set_post_ops(sum);
    }
    // The library's cache shares the code of equal matmuls between threads. Preparing matmuls one
    // at a time makes this visible to sanitizers.
    static std::mutex one;
    std::lock_guard lock(one);
    dnnl::matmul::primitive_desc code(form, attributes, engine);
    needed = std::max(needed, code.scratchpad_desc().get_size());
    memory scratch(code.scratchpad_desc(), engine, nullptr);
    return {dnnl::matmul(code),
            scratch,
            {{{DNNL_ARG_SRC, a.get()},
              {DNNL_ARG_WEIGHTS, b.get()},
              {DNNL_ARG_DST, c.get()},
              {DNNL_ARG_SCRATCHPAD, scratch.get()}}}};
  }

  void execute(Code &code) {
    char *scratch = scratchOfThread(needed);
    if (!scratch) {
      throw std::bad_alloc();
    }
    code.scratch.set_data_handle(scratch);
    // The C++ interface would copy the arguments into a vector.
    LibraryCall call;
    dnnl::error::wrap_c_api(dnnl_primitive_execute(code.matmul.get(), stream.get(),
                                                   int(code.arguments.size()),
                                                   code.arguments.data()),
                            "could not execute a matmul");
  }

  const MatmulPart part;
  int64_t rounds = 1;
  size_t needed = 0;
  dnnl::engine engine;
  dnnl::stream stream;
  memory a, b, c;
  Code overwriting;
  std::optional<Code> adding;
};

/// An empty C, or sums without terms, which oneDNN refuses.
class EmptyMatmul : public PreparedMatmul {
public:
  explicit EmptyMatmul(const MatmulPart &given) : part(given) {}

  size_t scratchBytes() const override { return 0; }

  Status run(const void *, const void *, void *data) override {
    const Matmul &p = part.matmul;
    size_t size = sizeOf(p.resultType());
    for (int64_t i = 0; i < p.batch * p.m; ++i) {
      int64_t row = part.offsetC + i / p.m * p.strideC + i % p.m * p.ldc;
      std::memset(static_cast<char *>(data) + size_t(row) * size, 0, size_t(p.n) * size);
    }
    return {};
  }

private:
  const MatmulPart part;
};

/// Returns the number of elements from the first to the last of a matrix.
size_t extentOf(int64_t rows, int64_t columns, int64_t ld) {
  return rows == 0 || columns == 0 ? 0 : size_t((rows - 1) * ld + columns);
}

/// Rounds to 10 fraction bits, to nearest, ties away from zero; infinities and NaNs stay.
float roundToTF32(float value) {
  auto bits = std::bit_cast<uint32_t>(value);
  constexpr uint32_t kExponent = 0x7f800000;
  return (bits & kExponent) == kExponent ? value : std::bit_cast<float>((bits + 0x1000) & ~0x1fffu);
}

/// Multiplies one matrix at a time on float32 copies: widened, or rounded to tf32. The copies are
/// scratch memory, behind that of the library.
class CopyingMatmul : public PreparedMatmul {
public:
  /// Throws the library's exceptions.
  explicit CopyingMatmul(const MatmulPart &given)
      : part(given), matmul(part.matmul), wide(widened(matmul)) {
    const Matmul &p = matmul;
    countA = p.transposeA ? extentOf(p.k, p.m, p.lda) : extentOf(p.m, p.k, p.lda);
    countB = p.transposeB ? extentOf(p.n, p.k, p.ldb) : extentOf(p.k, p.n, p.ldb);
    countC = p.resultType() != ElementType::F32 || p.isSum() ? extentOf(p.m, p.n, p.ldc) : 0;
  }

  size_t scratchBytes() const override {
    size_t bytes = wholeLines(wide.scratchBytes());
    for (size_t count : {countA, countB, countC}) {
      bytes += wholeLines(count * sizeof(float));
    }
    return bytes;
  }

  Status run(const void *dataA, const void *dataB, void *dataC) override {
    char *memory = scratchOfThread(scratchBytes());
    if (!memory) {
      return makeError("no memory for copies of the operands of a matmul, ",
                       bytesText(scratchBytes()));
    }
    memory += wholeLines(wide.scratchBytes());
    auto take = [&](size_t count) {
      std::span<float> taken(reinterpret_cast<float *>(memory), count);
      memory += wholeLines(taken.size_bytes());
      return taken;
    };
    std::span<float> a = take(countA), b = take(countB), c = take(countC);
    for (int64_t i = 0; i < matmul.batch; ++i) {
      takeCopy(dataA, part.offsetA + i * matmul.strideA, a);
      takeCopy(dataB, part.offsetB + i * matmul.strideB, b);
      int64_t atC = part.offsetC + i * matmul.strideC;
      bool adds = matmul.isSum() && i > 0;
      bool isWide = matmul.resultType() == ElementType::F32;
      float *given = isWide ? static_cast<float *>(dataC) + atC : nullptr;
      float *wideC = isWide && !adds ? given : c.data();
      if (Status status = wide.run(a.data(), b.data(), wideC); !status) {
        return status;
      }
      if (adds) {
        add(c, given);
      }
      if (!isWide) {
        matmul.type == ElementType::BF16 ? round(c, static_cast<BFloat16 *>(dataC) + atC)
                                         : round(c, static_cast<Float16 *>(dataC) + atC);
      }
    }
    return {};
  }

private:
  /// One matmul of the batch in float32, on operands that begin at 0.
  static MatmulPart widened(Matmul matmul) {
    matmul.type = ElementType::F32;
    matmul.isResultF32 = matmul.isTF32 = false;
    matmul.batch = 1;
    return {matmul, 0, 0, 0};
  }

  void takeCopy(const void *data, int64_t offset, std::span<float> to) const {
    if (matmul.isTF32) {
      return copy<float>(data, offset, to, roundToTF32);
    }
    auto widen = [](auto narrow) { return float(narrow); };
    return matmul.type == ElementType::BF16 ? copy<BFloat16>(data, offset, to, widen)
                                            : copy<Float16>(data, offset, to, widen);
  }
  template <typename From, typename Convert>
  static void copy(const void *data, int64_t offset, std::span<float> to, Convert convert) {
    const From *from = static_cast<const From *>(data) + offset;
    for (size_t i = 0; i < to.size(); ++i) {
      to[i] = convert(from[i]);
    }
  }

  /// Leaves the elements between rows unchanged.
  template <typename To> void round(std::span<const float> from, To *to) const {
    forEachOfC([&](size_t at) { to[at] = To(from[at]); });
  }
  void add(std::span<const float> from, float *to) const {
    forEachOfC([&](size_t at) { to[at] += from[at]; });
  }
  template <typename Code> void forEachOfC(Code code) const {
    for (int64_t row = 0; row < matmul.m; ++row) {
      for (int64_t column = 0; column < matmul.n; ++column) {
        code(size_t(row * matmul.ldc + column));
      }
    }
  }

  const MatmulPart part;
  const Matmul &matmul;
  LibraryMatmul wide;
  /// The elements of the copies; no C if the library writes the result itself.
  size_t countA = 0, countB = 0, countC = 0;
};

/// Throws the library's exceptions.
std::unique_ptr<PreparedMatmul> makeOnHost(const MatmulPart &part) {
  const Matmul &p = part.matmul;
  if (p.m == 0 || p.n == 0 || p.k == 0 || p.batch == 0) {
    return std::make_unique<EmptyMatmul>(part);
  }
  if (p.isTF32) {
    return std::make_unique<CopyingMatmul>(part);
  }
  try {
    return std::make_unique<LibraryMatmul>(part);
  } catch (const dnnl::error &thrown) {
    if (thrown.status != dnnl_unimplemented || !isNarrow(p.type)) {
      throw;
    }
  }
  return std::make_unique<CopyingMatmul>(part);
}

} // namespace

void PreparedMatmul::prepareThread(size_t scratchBytes) {
  scratchOfThread(scratchBytes); // If memory is short, the first run that needs it says so.
  omp_set_num_threads(1);
}

Result<std::unique_ptr<PreparedMatmul>> PreparedMatmul::make(const MatmulPart &part) {
  const Matmul &p = part.matmul;
  if (p.type == ElementType::F64 || p.isFp8() || p.epilogue.isAny()) {
    return makeError("a matmul of ", nameOf(p.type), " matrices",
                     p.epilogue.isAny() ? " with an epilogue" : "",
                     " is for CUDA devices, not for this processor");
  }
  try {
    return makeOnHost(part);
  } catch (const std::exception &thrown) {
    return makeError("cannot prepare a matmul of ", nameOf(p.type), " matrices of ", p.m, "x", p.k,
                     " and ", p.k, "x", p.n, ": ", thrown.what());
  }
}
