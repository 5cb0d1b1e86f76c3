//===- Products.cpp - matrix products by cuBLASLt -------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// cuBLASLt reads matrices by columns. What is stored by rows is, read by columns, the
// transposed; so it is asked for the transposed C = the transposed op(B) times the
// transposed op(A): B comes first, and nothing is moved.
//
// All is summed in float32 and rounded once, as on the host; TF32 is only allowed where
// the product says so, and parts of a sum over k are never rounded before they are added up.
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/Parts.h"
#include "weft-rt/Program.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

using namespace weft::rt;
using namespace weft::rt::cuda;

namespace {

/// Ways to compute a product that are tried, of those that the library expects to be the fastest.
constexpr int kMostWays = 8;
/// Each is run once, then timed so often, of which the shortest counts.
constexpr int kTimedRuns = 3;
/// A later way has to be faster by so much: for the same machine the choice, and with it the bits
/// of sums, should be the same next time.
constexpr float kClearlyFaster = 0.97f;

std::string textOf(const Product &p) {
  return concat("a product of ", nameOf(p.type), " matrices of ", p.m, "x", p.k, " and ", p.k, "x",
                p.n, p.batch == 1 ? "" : concat(", ", p.batch, " of them"));
}

bool isEmpty(const Product &p) { return p.m == 0 || p.n == 0 || p.k == 0 || p.batch == 0; }

/// Of the library, freed with the object.
template <typename T> using Owned = std::unique_ptr<T, cublasStatus_t (*)(T *)>;

struct Layout {
  ElementType type;
  int64_t rows, columns, ld, stride;
};

struct Prepared {
  Product product;
  uint64_t workspaceBytes = 0;
  Owned<cublasLtMatmulDescOpaque_t> operation{nullptr, products().freeOperation};
  Owned<cublasLtMatrixLayoutOpaque_t> a{nullptr, products().freeLayout};
  Owned<cublasLtMatrixLayoutOpaque_t> b{nullptr, products().freeLayout};
  Owned<cublasLtMatrixLayoutOpaque_t> c{nullptr, products().freeLayout};
  cublasLtMatmulAlgo_t way = {};

  /// Products that are added up go one after another.
  int64_t rounds() const { return product.isSum() ? product.batch : 1; }
  int64_t batch() const { return product.isSum() ? 1 : product.batch; }
};

//===----------------------------------------------------------------------===//
// What the library is told
//===----------------------------------------------------------------------===//

Result describe(const Prepared &prepared, const Layout &layout,
                Owned<cublasLtMatrixLayoutOpaque_t> &made) {
  cudaDataType_t type = layout.type == ElementType::F32    ? CUDA_R_32F
                        : layout.type == ElementType::BF16 ? CUDA_R_16BF
                                                           : CUDA_R_16F;
  cublasLtMatrixLayout_t raw = nullptr;
  if (Result failed = resultOf(products().makeLayout(&raw, type, uint64_t(layout.rows),
                                                     uint64_t(layout.columns), layout.ld),
                               "cublasLtMatrixLayoutCreate for ", textOf(prepared.product))) {
    return failed;
  }
  made.reset(raw);
  if (prepared.batch() == 1) {
    return nullptr;
  }
  auto batch = int32_t(prepared.batch());
  int64_t stride = layout.stride;
  cublasStatus_t code =
      products().setLayout(raw, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch);
  if (code == CUBLAS_STATUS_SUCCESS) {
    code = products().setLayout(raw, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                sizeof stride);
  }
  return resultOf(code, "cublasLtMatrixLayoutSetAttribute for ", textOf(prepared.product));
}

Result describeOperation(Prepared &prepared) {
  const Product &p = prepared.product;
  cublasLtMatmulDesc_t raw = nullptr;
  cublasComputeType_t compute = p.isTF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  if (Result failed = resultOf(products().makeOperation(&raw, compute, CUDA_R_32F),
                               "cublasLtMatmulDescCreate for ", textOf(p))) {
    return failed;
  }
  prepared.operation.reset(raw);
  cublasOperation_t first = p.transposeB ? CUBLAS_OP_T : CUBLAS_OP_N;
  cublasOperation_t second = p.transposeA ? CUBLAS_OP_T : CUBLAS_OP_N;
  cublasStatus_t code =
      products().setOperation(raw, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first);
  if (code == CUBLAS_STATUS_SUCCESS) {
    code = products().setOperation(raw, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second);
  }
  return resultOf(code, "cublasLtMatmulDescSetAttribute for ", textOf(p));
}

/// As read by columns: rows and columns of what is stored, the other way round.
Layout layoutOfA(const Product &p) {
  return {p.type, p.transposeA ? p.m : p.k, p.transposeA ? p.k : p.m, p.lda, p.strideA};
}
Layout layoutOfB(const Product &p) {
  return {p.type, p.transposeB ? p.k : p.n, p.transposeB ? p.n : p.k, p.ldb, p.strideB};
}
Layout layoutOfC(const Product &p) { return {p.resultType(), p.n, p.m, p.ldc, p.strideC}; }

Result describeAll(Prepared &prepared) {
  const Product &p = prepared.product;
  Result failed = describeOperation(prepared);
  failed = failed ? failed : describe(prepared, layoutOfA(p), prepared.a);
  failed = failed ? failed : describe(prepared, layoutOfB(p), prepared.b);
  return failed ? failed : describe(prepared, layoutOfC(p), prepared.c);
}

Result setWishes(cublasLtMatmulPreference_t wishes, uint64_t workspaceBytes) {
  // Parts of a sum are kept in float32 until they are added up.
  uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  auto alignment = uint32_t(kAlignment);
  auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto &value) {
    return resultOf(products().setWishes(wishes, attribute, &value, sizeof value),
                    "cublasLtMatmulPreferenceSetAttribute");
  };
  Result failed = set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspaceBytes);
  failed = failed ? failed : set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions);
  for (auto attribute :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    failed = failed ? failed : set(attribute, alignment);
  }
  return failed;
}

/// In the order of what the library expects of them.
Result findWays(const Device &device, const Prepared &prepared,
                std::vector<cublasLtMatmulAlgo_t> &ways) {
  cublasLtMatmulPreference_t raw = nullptr;
  if (Result failed = resultOf(products().makeWishes(&raw), "cublasLtMatmulPreferenceCreate")) {
    return failed;
  }
  Owned<cublasLtMatmulPreferenceOpaque_t> wishes(raw, products().freeWishes);
  if (Result failed = setWishes(raw, prepared.workspaceBytes)) {
    return failed;
  }
  cublasLtMatmulHeuristicResult_t found[kMostWays] = {};
  int count = 0;
  cublasStatus_t code = products().findWays(device.products, prepared.operation.get(),
                                            prepared.b.get(), prepared.a.get(), prepared.c.get(),
                                            prepared.c.get(), raw, kMostWays, found, &count);
  for (int i = 0; code == CUBLAS_STATUS_SUCCESS && i < count; ++i) {
    if (found[i].state == CUBLAS_STATUS_SUCCESS) {
      ways.push_back(found[i].algo);
    }
  }
  if (code == CUBLAS_STATUS_SUCCESS && ways.empty()) {
    code = CUBLAS_STATUS_NOT_SUPPORTED;
  }
  return resultOf(code, "cublasLtMatmulAlgoGetHeuristic for ", textOf(prepared.product),
                  " with a workspace of ", bytesText(prepared.workspaceBytes));
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

struct Places {
  Address a = 0, b = 0, c = 0, workspace = 0;
};

Result multiply(const Device &device, const Prepared &prepared, const cublasLtMatmulAlgo_t &way,
                CUstream stream, const Places &at) {
  const Product &p = prepared.product;
  const float one = 1, none = 0;
  for (int64_t i = 0; i < prepared.rounds(); ++i) {
    auto place = [&](Address base, int64_t stride) {
      return fromHandle<void>(base + uint64_t(i * stride) * sizeOf(p.type));
    };
    // A sum has one C, which is float32 (checkProgram): nothing is rounded on the way.
    auto *c = fromHandle<void>(at.c);
    cublasStatus_t code = products().multiply(
        device.products, prepared.operation.get(), &one, place(at.b, p.strideB), prepared.b.get(),
        place(at.a, p.strideA), prepared.a.get(), i == 0 ? &none : &one, c, prepared.c.get(), c,
        prepared.c.get(), &way, fromHandle<void>(at.workspace), prepared.workspaceBytes, stream);
    if (code != CUBLAS_STATUS_SUCCESS) {
      return resultOf(code, "cublasLtMatmul for ", textOf(p));
    }
  }
  return nullptr;
}

/// Sums of nothing, or none at all; what lies between the rows stays as it is.
Result clear(const Product &p, CUstream stream, Address c) {
  uint64_t size = sizeOf(p.resultType());
  for (int64_t i = 0; p.m > 0 && p.n > 0 && i < p.batch; ++i) {
    CUresult code = driver().fillRows(c + uint64_t(i * p.strideC) * size, uint64_t(p.ldc) * size, 0,
                                      uint64_t(p.n) * size, uint64_t(p.m), stream);
    if (code != CUDA_SUCCESS) {
      return resultOf(code, "cuMemsetD2D8Async for ", textOf(p));
    }
  }
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Trying
//===----------------------------------------------------------------------===//

/// Runs a product on memory of its own, which goes with the object.
class Trial {
public:
  Trial(const Device &device, const Prepared &prepared) : device(device), prepared(prepared) {}

  ~Trial() {
    for (Address address : memory) {
      driver().free(address);
    }
    for (CUevent event : {begin, end}) {
      if (event) {
        driver().freeEvent(event);
      }
    }
    if (stream) {
      driver().freeStream(stream);
    }
  }

  Result start() {
    const Product &p = prepared.product;
    Result failed =
        resultOf(driver().makeStream(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    failed = failed ? failed : resultOf(driver().makeEvent(&begin, 0), "cuEventCreate");
    failed = failed ? failed : resultOf(driver().makeEvent(&end, 0), "cuEventCreate");
    failed = failed ? failed : allocate(bytesOf(layoutOfA(p)), at.a);
    failed = failed ? failed : allocate(bytesOf(layoutOfB(p)), at.b);
    failed = failed ? failed : allocate(bytesOf(layoutOfC(p)), at.c);
    if (!failed && prepared.workspaceBytes > 0) {
      failed = allocate(prepared.workspaceBytes, at.workspace);
    }
    return failed;
  }

  /// The shortest of some runs; none where the library does not want to after all.
  Result time(const cublasLtMatmulAlgo_t &way, std::optional<float> &shortest) {
    for (int run = 0; run <= kTimedRuns; ++run) {
      if (Result failed = record(begin)) {
        return failed;
      }
      if (multiply(device, prepared, way, stream, at)) {
        return nullptr;
      }
      Result failed = record(end);
      failed = failed ? failed
                      : resultOf(driver().await(end), "cuEventSynchronize, trying ",
                                 textOf(prepared.product));
      float took = 0;
      failed =
          failed ? failed : resultOf(driver().elapsed(&took, begin, end), "cuEventElapsedTime");
      if (failed) {
        return failed;
      }
      if (run > 0 && (!shortest || took < *shortest)) {
        shortest = took;
      }
    }
    return nullptr;
  }

private:
  uint64_t bytesOf(const Layout &layout) const {
    uint64_t matrix = uint64_t((layout.columns - 1) * layout.ld + layout.rows);
    return (uint64_t(prepared.product.batch - 1) * uint64_t(layout.stride) + matrix) *
           sizeOf(layout.type);
  }

  Result allocate(uint64_t bytes, Address &address) {
    CUdeviceptr made = 0;
    if (Result failed = resultOf(driver().allocate(&made, bytes), "cuMemAlloc of ",
                                 bytesText(bytes), ", to try ", textOf(prepared.product))) {
      return failed;
    }
    memory.push_back(made);
    address = made;
    // Small positive numbers, of either type: unlike zeros they make the device work.
    return resultOf(driver().fill(made, 0x3c, bytes, stream), "cuMemsetD8Async of ",
                    bytesText(bytes));
  }

  Result record(CUevent event) { return resultOf(driver().record(event, stream), "cuEventRecord"); }

  const Device &device;
  const Prepared &prepared;
  CUstream stream = nullptr;
  CUevent begin = nullptr, end = nullptr;
  std::vector<Address> memory;
  Places at;
};

Result choose(const Device &device, Prepared &prepared,
              const std::vector<cublasLtMatmulAlgo_t> &ways) {
  // Of one way as well: the library loads its code at the first run, which is to be now.
  Trial trial(device, prepared);
  if (Result failed = trial.start()) {
    return failed;
  }
  std::optional<float> best;
  for (const cublasLtMatmulAlgo_t &way : ways) {
    std::optional<float> took;
    if (Result failed = trial.time(way, took)) {
      return failed;
    }
    if (took && (!best || *took < *best * kClearlyFaster)) {
      best = took;
      prepared.way = way;
    }
  }
  return best ? nullptr
              : say(concat("cublasLtMatmul refuses each of the ways that were proposed for ",
                           textOf(prepared.product), ", which are ", ways.size()));
}

//===----------------------------------------------------------------------===//
// The table's functions
//===----------------------------------------------------------------------===//

Result openProducts(Device &device) {
  std::string error;
  if (device.products) {
    return nullptr;
  }
  if (!findProducts(error)) {
    return say(error);
  }
  return resultOf(products().make(&device.products), "cublasLtCreate on device ", device.number);
}

Result prepareProduct(Handle handle, const Product *product, uint64_t workspaceBytes,
                      Handle *prepared) {
  Device *device = nullptr;
  *prepared = 0;
  if (Result failed = enter(handle, device)) {
    return failed;
  }
  if (Result failed = openProducts(*device)) {
    return failed;
  }
  auto made = std::make_unique<Prepared>();
  made->product = *product;
  made->workspaceBytes = workspaceBytes;
  if (!isEmpty(*product)) {
    std::vector<cublasLtMatmulAlgo_t> ways;
    Result failed = describeAll(*made);
    failed = failed ? failed : findWays(*device, *made, ways);
    failed = failed ? failed : choose(*device, *made, ways);
    if (failed) {
      return failed;
    }
  }
  *prepared = toHandle(made.release());
  return nullptr;
}

Result freeProduct(Handle, Handle prepared) {
  delete fromHandle<Prepared>(prepared);
  return nullptr;
}

Result runProduct(Handle handle, Handle stream, Handle prepared, Address a, Address b, Address c,
                  Address workspace) {
  Device *device = nullptr;
  if (Result failed = enter(handle, device)) {
    return failed;
  }
  const Prepared &p = *fromHandle<Prepared>(prepared);
  auto *on = fromHandle<CUstream_st>(stream);
  return isEmpty(p.product) ? clear(p.product, on, c)
                            : multiply(*device, p, p.way, on, {a, b, c, workspace});
}

} // namespace

Result cuda::closeProducts(Device &device) {
  cublasLtHandle_t handle = std::exchange(device.products, nullptr);
  return handle ? resultOf(products().destroy(handle), "cublasLtDestroy") : nullptr;
}

void cuda::addProducts(Library &library) {
  library.prepareProduct = prepareProduct;
  library.freeProduct = freeProduct;
  library.runProduct = runProduct;
}
