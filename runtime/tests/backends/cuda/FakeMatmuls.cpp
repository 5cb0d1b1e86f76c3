//===- FakeMatmuls.cpp - a fake cuBLASLt with plain loops ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "support/BFloat16.h"
#include "support/Float8.h"
#include "tests/backends/cuda/FakeCuda.h"
#include "tests/backends/cuda/FakeFaults.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cublasLt.h>
#include <dlfcn.h>
#include <type_traits>
#include <vector>

using weft::rt::BFloat16;
using weft::rt::Float8E4M3;
using weft::rt::Float8E5M2;

namespace {

/// The type of the C++ compiler.
__extension__ typedef _Float16 Float16;

struct Operation {
  cublasOperation_t first = CUBLAS_OP_N, second = CUBLAS_OP_N;
  bool isTF32 = false;
  bool isF64 = false;
  uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void *vector = nullptr, *matrix = nullptr;
  int64_t matrixLd = 0;
  const float *firstFactor = nullptr, *secondFactor = nullptr;
  /// The library's default.
  int8_t isFast = 1;

  bool has(uint32_t parts) const { return (epilogue & parts) == parts; }
  bool isWhole() const {
    bool hasVector = has(CUBLASLT_EPILOGUE_BIAS) || has(CUBLASLT_EPILOGUE_BGRADA) ||
                     has(CUBLASLT_EPILOGUE_BGRADB);
    return (vector || !hasVector) && (matrix || !has(128)) && matrixLd % 8 == 0;
  }
};

struct Layout {
  cudaDataType type;
  uint64_t rows, columns;
  int64_t ld;
  int32_t batch = 1;
  int64_t stride = 0;

  /// The place of an element, as the operation reads it.
  size_t at(int64_t which, uint64_t row, uint64_t column, cublasOperation_t as) const {
    if (as == CUBLAS_OP_T) {
      std::swap(row, column);
    }
    return size_t(which * stride) + size_t(column) * size_t(ld) + size_t(row);
  }
  uint64_t rowsAs(cublasOperation_t as) const { return as == CUBLAS_OP_N ? rows : columns; }
  uint64_t columnsAs(cublasOperation_t as) const { return as == CUBLAS_OP_N ? columns : rows; }
  double read(const void *data, size_t place) const {
    return type == CUDA_R_64F       ? static_cast<const double *>(data)[place]
           : type == CUDA_R_32F     ? static_cast<const float *>(data)[place]
           : type == CUDA_R_16F     ? float(static_cast<const Float16 *>(data)[place])
           : type == CUDA_R_8F_E4M3 ? float(static_cast<const Float8E4M3 *>(data)[place])
           : type == CUDA_R_8F_E5M2 ? float(static_cast<const Float8E5M2 *>(data)[place])
                                    : float(static_cast<const BFloat16 *>(data)[place]);
  }
  bool isFp8() const { return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2; }
  void write(void *data, size_t place, double value) const {
    if (type == CUDA_R_64F) {
      static_cast<double *>(data)[place] = value;
    } else if (type == CUDA_R_32F) {
      static_cast<float *>(data)[place] = float(value);
    } else if (type == CUDA_R_16F) {
      static_cast<Float16 *>(data)[place] = Float16(value);
    } else {
      static_cast<BFloat16 *>(data)[place] = BFloat16(float(value));
    }
  }
};

/// Returns true if the library would take these operands: checks its requirements for FP8, and that
/// only FP8 operands have scale factors.
bool areTaken(const Operation &as, const Layout &a, const Layout &b, const Layout &c) {
  if (!a.isFp8() && !b.isFp8()) {
    return !as.firstFactor && !as.secondFactor;
  }
  bool areWhole = true;
  for (const Layout *layout : {&a, &b, &c}) {
    areWhole &= layout->rows % 16 == 0 && layout->columns % 16 == 0 && layout->ld % 16 == 0;
  }
  return a.isFp8() && b.isFp8() && areWhole && as.firstFactor && as.secondFactor && !as.isFast &&
         as.first == CUBLAS_OP_T && as.second == CUBLAS_OP_N &&
         (a.type == CUDA_R_8F_E4M3 || b.type == CUDA_R_8F_E4M3) &&
         (c.type == CUDA_R_16BF || (c.type == CUDA_R_32F && !as.has(CUBLASLT_EPILOGUE_BIAS)));
}

struct Wishes {
  uint64_t workspaceBytes = 0;
  uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK, alignment = 256;
};
/// The alignment in the last preferences.
uint32_t heardAlignment = 0;

/// Multiplies like devices that truncate to tf32.
double multiplied(double value, bool isTF32) {
  return isTF32 ? std::bit_cast<float>(std::bit_cast<uint32_t>(float(value)) & ~0x1fffu) : value;
}

/// Marks algorithms that this file made.
constexpr uint64_t kMark = 77;

std::vector<float> ways = {1};
int taken = -1, wrong = -1, split = -1, forgetsFirst = -1, forgetsSecond = -1;

template <typename T, typename Made> cublasStatus_t give(Made **made, T value) {
  *made = reinterpret_cast<Made *>(new T(value));
  ++fakeFaults.left;
  return CUBLAS_STATUS_SUCCESS;
}
template <typename T> cublasStatus_t drop(void *made) {
  delete static_cast<T *>(made);
  --fakeFaults.left;
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T> const T &read(const void *given) { return *static_cast<const T *>(given); }

double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}
/// Computes the gradient by differences, which is exact enough for the tests.
double geluGradient(double x) { return (gelu(x + 1e-5) - gelu(x - 1e-5)) / 2e-5; }

/// Applies the epilogue to one element.
double finish(const Operation &as, const Layout &result, uint64_t row, uint64_t column,
              double sum) {
  if (as.has(CUBLASLT_EPILOGUE_BIAS)) {
    sum += result.read(as.vector, row);
  }
  size_t place = size_t(column) * size_t(as.matrixLd) + size_t(row);
  if (as.epilogue == CUBLASLT_EPILOGUE_DGELU) {
    return sum * geluGradient(result.read(as.matrix, place));
  }
  if (as.has(CUBLASLT_EPILOGUE_GELU_AUX)) {
    result.write(as.matrix, place, sum);
  }
  return as.has(CUBLASLT_EPILOGUE_GELU) ? gelu(sum) : sum;
}

/// Sums of the rows of the first operand, or the columns of the second.
void sumUp(const Operation &as, const Layout &of, const Layout &result, const void *data) {
  bool isFirst = as.epilogue == CUBLASLT_EPILOGUE_BGRADA;
  cublasOperation_t how = isFirst ? as.first : as.second;
  uint64_t count = isFirst ? of.rowsAs(how) : of.columnsAs(how);
  uint64_t k = isFirst ? of.columnsAs(how) : of.rowsAs(how);
  for (uint64_t i = 0; i < count; ++i) {
    double sum = 0;
    for (uint64_t j = 0; j < k; ++j) {
      sum += of.read(data, isFirst ? of.at(0, i, j, how) : of.at(0, j, i, how));
    }
    result.write(as.vector, i, sum);
  }
}

} // namespace

void weft_fake_ways(const float *milliseconds, int count) {
  ways.assign(milliseconds, milliseconds + count);
}
void weft_fake_faults(int wrongWay, int splitWay) {
  wrong = wrongWay;
  split = splitWay;
}
void weft_fake_forgets(int first, int second) {
  forgetsFirst = first;
  forgetsSecond = second;
}
uint32_t weft_fake_alignment() { return heardAlignment; }
int weft_fake_taken() { return taken; }

#define FAKE_CALL()                                                                                \
  if (int code = fakeFaults.call(__func__)) {                                                      \
    return cublasStatus_t(code);                                                                   \
  }

extern "C" {

const char *cublasLtGetStatusString(cublasStatus_t status) {
  switch (status) {
#define STATUS(name)                                                                               \
  case name:                                                                                       \
    return #name;
    STATUS(CUBLAS_STATUS_NOT_INITIALIZED)
    STATUS(CUBLAS_STATUS_ALLOC_FAILED)
    STATUS(CUBLAS_STATUS_INVALID_VALUE)
    STATUS(CUBLAS_STATUS_ARCH_MISMATCH)
    STATUS(CUBLAS_STATUS_EXECUTION_FAILED)
    STATUS(CUBLAS_STATUS_NOT_SUPPORTED)
#undef STATUS
  default:
    return "another status";
  }
}
size_t cublasLtGetVersion() { return 130100; }
cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
  FAKE_CALL();
  return give<int>(handle, 0);
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  FAKE_CALL();
  return drop<int>(handle);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *made, cublasComputeType_t type,
                                        cudaDataType_t scale) {
  FAKE_CALL();
  Operation operation;
  operation.isF64 = type == CUBLAS_COMPUTE_64F;
  operation.isTF32 = type == CUBLAS_COMPUTE_32F_FAST_TF32;
  give(made, operation);
  bool isKnown = operation.isF64
                     ? scale == CUDA_R_64F
                     : (type == CUBLAS_COMPUTE_32F || operation.isTF32) && scale == CUDA_R_32F;
  return isKnown ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t operation,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t size) {
  FAKE_CALL();
  auto &of = *reinterpret_cast<Operation *>(operation);
  auto take = [&](auto &field) {
    field = read<std::remove_reference_t<decltype(field)>>(value);
    return size == sizeof field ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
  };
  switch (attribute) {
  case CUBLASLT_MATMUL_DESC_TRANSA:
    return take(of.first);
  case CUBLASLT_MATMUL_DESC_TRANSB:
    return take(of.second);
  case CUBLASLT_MATMUL_DESC_EPILOGUE:
    return take(of.epilogue);
  case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
    return take(of.vector);
  case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
    return take(of.matrix);
  case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
    return take(of.matrixLd);
  case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
    return take(of.firstFactor);
  case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
    return take(of.secondFactor);
  case CUBLASLT_MATMUL_DESC_FAST_ACCUM:
    return take(of.isFast);
  default:
    return CUBLAS_STATUS_INVALID_VALUE;
  }
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t made) {
  FAKE_CALL();
  return drop<Operation>(made);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *made, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t ld) {
  FAKE_CALL();
  return uint64_t(ld) < rows ? CUBLAS_STATUS_INVALID_VALUE
                             : give(made, Layout{type, rows, columns, ld});
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void *value, size_t size) {
  FAKE_CALL();
  auto &of = *reinterpret_cast<Layout *>(layout);
  if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT && size == sizeof of.batch) {
    of.batch = read<int32_t>(value);
  } else if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET && size == sizeof of.stride) {
    of.stride = read<int64_t>(value);
  } else {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t made) {
  FAKE_CALL();
  return drop<Layout>(made);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *made) {
  FAKE_CALL();
  return give(made, Wishes());
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t wishes,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t size) {
  FAKE_CALL();
  auto &of = *reinterpret_cast<Wishes *>(wishes);
  if (size != (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES ? 8 : 4)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  switch (attribute) {
  case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
    of.workspaceBytes = read<uint64_t>(value);
    break;
  case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
    of.reductions = read<uint32_t>(value);
    break;
  default:
    of.alignment = std::min(of.alignment, read<uint32_t>(value));
  }
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t made) {
  FAKE_CALL();
  return drop<Wishes>(made);
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t,
                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                       const cublasLtMatmulAlgo_t *way,
                                       cublasLtMatmulHeuristicResult_t *result) {
  FAKE_CALL();
  bool isOurs = way->data[7] == kMark && way->data[0] < ways.size();
  result->workspaceSize = size_t(way->data[0]) << 8;
  return isOurs ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *way,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute,
                                                    void *value, size_t size, size_t *written) {
  FAKE_CALL();
  int32_t parts = int(way->data[0]) == split ? 4 : 1;
  *written = sizeof parts;
  bool isKnown = attribute == CUBLASLT_ALGO_CONFIG_SPLITK_NUM && size == sizeof parts;
  *static_cast<int32_t *>(value) = isKnown ? parts : 0;
  return isKnown ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t wishes, int most,
                                              cublasLtMatmulHeuristicResult_t found[], int *count) {
  FAKE_CALL();
  const auto &wished = *reinterpret_cast<Wishes *>(wishes);
  const auto &as = *reinterpret_cast<Operation *>(operation);
  if (!as.isWhole() || !areTaken(as, *reinterpret_cast<Layout *>(a), *reinterpret_cast<Layout *>(b),
                                 *reinterpret_cast<Layout *>(c))) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (wished.reductions != CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE || wished.alignment > 64) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  heardAlignment = wished.alignment;
  *count = std::min(most, int(ways.size()));
  for (int i = 0; i < *count; ++i) {
    found[i].state = CUBLAS_STATUS_SUCCESS;
    found[i].algo.data[0] = uint64_t(i);
    found[i].algo.data[7] = kMark;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t operation, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t layoutA, const void *b,
                              cublasLtMatrixLayout_t layoutB, const void *beta, const void *c,
                              cublasLtMatrixLayout_t layoutC, void *d, cublasLtMatrixLayout_t,
                              const cublasLtMatmulAlgo_t *way, void *, size_t, cudaStream_t) {
  FAKE_CALL();
  const auto &as = *reinterpret_cast<Operation *>(operation);
  const auto &left = *reinterpret_cast<Layout *>(layoutA);
  const auto &right = *reinterpret_cast<Layout *>(layoutB);
  const auto &result = *reinterpret_cast<Layout *>(layoutC);
  taken = int(way->data[0]);
  if (left.columnsAs(as.first) != right.rowsAs(as.second) || left.rowsAs(as.first) != result.rows ||
      right.columnsAs(as.second) != result.columns || left.batch != result.batch ||
      right.batch != result.batch || ways[size_t(taken)] < 0 || !as.isWhole() ||
      !areTaken(as, left, right, result)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  auto elapse = reinterpret_cast<decltype(&weft_fake_elapse)>(
      dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), "weft_fake_elapse"));
  elapse(ways[size_t(taken)]);
  auto factor = [&](const void *given) {
    return as.isF64 ? read<double>(given) : double(read<float>(given));
  };
  for (int64_t i = 0; i < result.batch; ++i) {
    for (uint64_t row = 0; row < result.rows; ++row) {
      for (uint64_t column = 0; column < result.columns; ++column) {
        double sum = 0;
        for (uint64_t k = 0; k + (taken == wrong) < left.columnsAs(as.first); ++k) {
          sum += multiplied(left.read(a, left.at(i, row, k, as.first)), as.isTF32) *
                 multiplied(right.read(b, right.at(i, k, column, as.second)), as.isTF32);
        }
        size_t place = result.at(i, row, column, CUBLAS_OP_N);
        sum *= as.firstFactor && taken != forgetsFirst ? double(*as.firstFactor) : 1;
        sum *= as.secondFactor && taken != forgetsSecond ? double(*as.secondFactor) : 1;
        sum *= factor(alpha);
        sum += factor(beta) == 0 ? 0 : factor(beta) * result.read(c, place);
        result.write(d, place, finish(as, result, row, column, sum));
      }
    }
  }
  if (as.epilogue == CUBLASLT_EPILOGUE_BGRADA || as.epilogue == CUBLASLT_EPILOGUE_BGRADB) {
    bool isFirst = as.epilogue == CUBLASLT_EPILOGUE_BGRADA;
    sumUp(as, isFirst ? left : right, result, isFirst ? a : b);
  }
  return CUBLAS_STATUS_SUCCESS;
}
}
