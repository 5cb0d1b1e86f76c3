//===- Matmuls.cpp - matmuls by cuBLASLt ----------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// cuBLASLt's matrices are column-major. A row-major matrix is the transposed one when read by
// columns; so the calls here compute transposed C = transposed op(B) times transposed op(A):
// B comes first, and nothing is moved.
//
// Sums are taken in float32 (in float64 for float64) and rounded once, as on the host. TF32
// is used only if the matmul allows it, and parts of a sum over k are never rounded before
// they are summed. Each FP8 operand has a scale factor in memory.
//
// To the library, a bias has one number for each row, which is our column, and its sums over
// operand B are our sums over A.
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/DataTypes.h"
#include "backends/cuda/Ones.h"
#include "backends/cuda/Parts.h"
#include "weft-rt/Program.h"

#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

using namespace weft::rt;
using namespace weft::rt::cuda;

namespace {

/// The number of algorithms to measure, of those that the library expects to be the fastest.
constexpr int kMostWays = 8;
/// The timed runs of each algorithm, after one untimed run; the shortest counts.
constexpr int kTimedRuns = 3;
/// A later algorithm must be faster by this factor, so that the choice, and with it the bits of
/// sums, is mostly the same the next time on this machine.
constexpr float kClearlyFaster = 0.97f;

std::string textOf(const Matmul &p) {
  return concat("a matmul of ", nameOf(p.type),
                p.typeOfB() == p.type ? "" : concat(" by ", nameOf(p.typeOfB())), " matrices of ",
                p.m, "x", p.k, " and ", p.k, "x", p.n,
                p.batch == 1 ? "" : concat(", ", p.batch, " of them"),
                p.epilogue.isAny() ? " with an epilogue" : "");
}

bool isEmpty(const Matmul &p) { return p.m == 0 || p.n == 0 || p.k == 0 || p.batch == 0; }

/// An object of the library, freed with this one.
template <typename T> using Owned = std::unique_ptr<T, cublasStatus_t (*)(T *)>;

struct Layout {
  ElementType type;
  int64_t rows, columns, ld, stride;
};

struct Prepared {
  Matmul matmul;
  Owned<cublasLtMatmulDescOpaque_t> operation{nullptr, matmuls().freeOperation};
  Owned<cublasLtMatrixLayoutOpaque_t> a{nullptr, matmuls().freeLayout};
  Owned<cublasLtMatrixLayoutOpaque_t> b{nullptr, matmuls().freeLayout};
  Owned<cublasLtMatrixLayoutOpaque_t> c{nullptr, matmuls().freeLayout};
  cublasLtMatmulAlgo_t way = {};

  bool isF64() const { return matmul.type == ElementType::F64; }
  /// Returns the number of library calls: matmuls that are summed run one after another.
  int64_t rounds() const { return matmul.isSum() ? matmul.batch : 1; }
  int64_t batch() const { return matmul.isSum() ? 1 : matmul.batch; }
};

//===----------------------------------------------------------------------===//
// Descriptors for the library
//===----------------------------------------------------------------------===//

CallResult describe(const Prepared &prepared, const Layout &layout,
                    Owned<cublasLtMatrixLayoutOpaque_t> &made) {
  cublasLtMatrixLayout_t raw = nullptr;
  if (CallResult failed =
          resultOf(matmuls().makeLayout(&raw, dataTypeOf(layout.type), uint64_t(layout.rows),
                                        uint64_t(layout.columns), layout.ld),
                   "cublasLtMatrixLayoutCreate for ", textOf(prepared.matmul))) {
    return failed;
  }
  made.reset(raw);
  if (prepared.batch() == 1) {
    return nullptr;
  }
  auto batch = int32_t(prepared.batch());
  int64_t stride = layout.stride;
  cublasStatus_t code =
      matmuls().setLayout(raw, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch);
  if (code == CUBLAS_STATUS_SUCCESS) {
    code = matmuls().setLayout(raw, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                               sizeof stride);
  }
  return resultOf(code, "cublasLtMatrixLayoutSetAttribute for ", textOf(prepared.matmul));
}

template <typename T>
CallResult setOperation(const Prepared &prepared, cublasLtMatmulDescAttributes_t attribute,
                        const T &value) {
  return resultOf(matmuls().setOperation(prepared.operation.get(), attribute, &value, sizeof value),
                  "cublasLtMatmulDescSetAttribute for ", textOf(prepared.matmul));
}

uint32_t epilogueOf(const Epilogue &epilogue) {
  using Activation = Epilogue::Activation;
  uint32_t bias = epilogue.hasBias ? CUBLASLT_EPILOGUE_BIAS : 0;
  switch (epilogue.activation) {
  case Activation::Gelu:
    return (epilogue.hasAux ? CUBLASLT_EPILOGUE_GELU_AUX : CUBLASLT_EPILOGUE_GELU) | bias;
  case Activation::GeluGradient:
    return CUBLASLT_EPILOGUE_DGELU;
  case Activation::None:
    break;
  }
  switch (epilogue.sums) {
  case Epilogue::Sums::OfA:
    return CUBLASLT_EPILOGUE_BGRADB;
  case Epilogue::Sums::OfB:
    return CUBLASLT_EPILOGUE_BGRADA;
  case Epilogue::Sums::None:
    return bias ? bias : uint32_t(CUBLASLT_EPILOGUE_DEFAULT);
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

/// Sets the addresses of scale factors, and of the epilogue's vector and matrix, in the operation.
CallResult setPlaces(const Prepared &prepared, const MatmulPlaces &at) {
  const Epilogue &epilogue = prepared.matmul.epilogue;
  CallResult failed = nullptr;
  if (epilogue.hasBias || epilogue.sums != Epilogue::Sums::None) {
    auto *vector = fromHandle<void>(epilogue.hasBias ? at.bias : at.sums);
    failed = setOperation(prepared, CUBLASLT_MATMUL_DESC_BIAS_POINTER, vector);
  }
  if (epilogue.hasAux && !failed) {
    failed =
        setOperation(prepared, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, fromHandle<void>(at.aux));
  }
  if (prepared.matmul.isFp8() && !failed) {
    failed =
        setOperation(prepared, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, fromHandle<void>(at.factorB));
    failed = failed ? failed
                    : setOperation(prepared, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER,
                                   fromHandle<void>(at.factorA));
  }
  return failed;
}

CallResult describeOperation(Prepared &prepared) {
  const Matmul &p = prepared.matmul;
  cublasLtMatmulDesc_t raw = nullptr;
  cublasComputeType_t compute = prepared.isF64() ? CUBLAS_COMPUTE_64F
                                : p.isTF32       ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                 : CUBLAS_COMPUTE_32F;
  cudaDataType_t scale = prepared.isF64() ? CUDA_R_64F : CUDA_R_32F;
  if (CallResult failed = resultOf(matmuls().makeOperation(&raw, compute, scale),
                                   "cublasLtMatmulDescCreate for ", textOf(p))) {
    return failed;
  }
  prepared.operation.reset(raw);
  CallResult failed =
      setOperation(prepared, CUBLASLT_MATMUL_DESC_TRANSA, p.transposeB ? CUBLAS_OP_T : CUBLAS_OP_N);
  failed = failed ? failed
                  : setOperation(prepared, CUBLASLT_MATMUL_DESC_TRANSB,
                                 p.transposeA ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (p.isFp8() && !failed) {
    failed = setOperation(prepared, CUBLASLT_MATMUL_DESC_FAST_ACCUM, int8_t(0));
  }
  if (p.epilogue.isMore() && !failed) {
    failed = setOperation(prepared, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogueOf(p.epilogue));
  }
  if (p.epilogue.hasAux && !failed) {
    failed = setOperation(prepared, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, p.ldc);
  }
  // Only the alignment of these addresses, and that they are not null, matters to the heuristic.
  MatmulPlaces aligned = {};
  aligned.bias = aligned.sums = aligned.aux = aligned.factorA = aligned.factorB = kAlignment;
  return failed ? failed : setPlaces(prepared, aligned);
}

/// Return the layouts of operands as the library sees them, with rows and columns exchanged.
Layout layoutOfA(const Matmul &p) {
  return {p.type, p.transposeA ? p.m : p.k, p.transposeA ? p.k : p.m, p.lda, p.strideA};
}
Layout layoutOfB(const Matmul &p) {
  return {p.typeOfB(), p.transposeB ? p.k : p.n, p.transposeB ? p.n : p.k, p.ldb, p.strideB};
}
Layout layoutOfC(const Matmul &p) { return {p.resultType(), p.n, p.m, p.ldc, p.strideC}; }

CallResult describeAll(Prepared &prepared) {
  const Matmul &p = prepared.matmul;
  CallResult failed = describeOperation(prepared);
  failed = failed ? failed : describe(prepared, layoutOfA(p), prepared.a);
  failed = failed ? failed : describe(prepared, layoutOfB(p), prepared.b);
  return failed ? failed : describe(prepared, layoutOfC(p), prepared.c);
}

/// Returns the alignment of an operand that the matmuls of a sum read at multiples of `stride`
/// elements.
uint32_t alignmentOf(const Matmul &p, int64_t stride) {
  uint64_t bytes = p.isSum() ? uint64_t(stride) * sizeOf(p.type) : 0;
  return uint32_t(std::gcd(kAlignment, bytes));
}

CallResult setWishes(cublasLtMatmulPreference_t wishes, const Matmul &p) {
  // Parts of a sum are kept in float32 until they are summed.
  uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto &value) {
    return resultOf(matmuls().setWishes(wishes, attribute, &value, sizeof value),
                    "cublasLtMatmulPreferenceSetAttribute");
  };
  CallResult failed = set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, p.workspaceBytes);
  failed = failed ? failed : set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions);
  const std::pair<cublasLtMatmulPreferenceAttributes_t, uint32_t> alignments[] = {
      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignmentOf(p, p.strideB)},
      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignmentOf(p, p.strideA)},
      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, uint32_t(kAlignment)},
      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, uint32_t(kAlignment)}};
  for (auto [attribute, alignment] : alignments) {
    failed = failed ? failed : set(attribute, alignment);
  }
  return failed;
}

/// Returns true if an algorithm splits k and may lose the rest of k that it cannot read in units of
/// 16 bytes (github.com/facebookexperimental/triton, 2767); a trial rounded to bf16 does not show
/// this.
bool mayLose(const Matmul &p, const cublasLtMatmulAlgo_t &way) {
  int32_t parts = 1;
  size_t written = 0;
  bool isHidden = p.resultType() != ElementType::F32 && p.resultType() != ElementType::F64;
  return isHidden && uint64_t(p.k) * sizeOf(p.type) % 16 != 0 &&
         matmuls().describeWay(&way, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &parts, sizeof parts,
                               &written) == CUBLAS_STATUS_SUCCESS &&
         parts > 1;
}

/// Finds algorithms, the fastest first, as the library expects.
CallResult findWays(const Device &device, const Prepared &prepared,
                    std::vector<cublasLtMatmulAlgo_t> &ways) {
  cublasLtMatmulPreference_t raw = nullptr;
  if (CallResult failed = resultOf(matmuls().makeWishes(&raw), "cublasLtMatmulPreferenceCreate")) {
    return failed;
  }
  Owned<cublasLtMatmulPreferenceOpaque_t> wishes(raw, matmuls().freeWishes);
  if (CallResult failed = setWishes(raw, prepared.matmul)) {
    return failed;
  }
  cublasLtMatmulHeuristicResult_t found[kMostWays] = {};
  int count = 0;
  cublasStatus_t code = matmuls().findWays(device.matmuls, prepared.operation.get(),
                                           prepared.b.get(), prepared.a.get(), prepared.c.get(),
                                           prepared.c.get(), raw, kMostWays, found, &count);
  for (int i = 0; code == CUBLAS_STATUS_SUCCESS && i < count; ++i) {
    if (found[i].state == CUBLAS_STATUS_SUCCESS && !mayLose(prepared.matmul, found[i].algo)) {
      ways.push_back(found[i].algo);
    }
  }
  if (code == CUBLAS_STATUS_SUCCESS && ways.empty()) {
    code = CUBLAS_STATUS_NOT_SUPPORTED;
  }
  return resultOf(code, "cublasLtMatmulAlgoGetHeuristic for ", textOf(prepared.matmul),
                  " with a workspace of ", bytesText(prepared.matmul.workspaceBytes));
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

/// The factors alpha and beta of the library's call.
struct Factors {
  float f32[2] = {1, 0};
  double f64[2] = {1, 0};

  const void *at(bool isF64, int i) const {
    return isF64 ? static_cast<const void *>(&f64[i]) : &f32[i];
  }
};

CallResult multiply(const Device &device, const Prepared &prepared, const cublasLtMatmulAlgo_t &way,
                    CUstream stream, const MatmulPlaces &at) {
  const Matmul &p = prepared.matmul;
  const Factors factors;
  if (CallResult failed = setPlaces(prepared, at)) {
    return failed;
  }
  for (int64_t i = 0; i < prepared.rounds(); ++i) {
    auto place = [&](Address base, int64_t stride) {
      return fromHandle<void>(base + uint64_t(i * stride) * sizeOf(p.type));
    };
    // A sum has one C, of a wide type (checkProgram), so that it is not rounded between calls.
    auto *c = fromHandle<void>(at.c);
    auto *before = p.epilogue.hasAddend ? fromHandle<void>(at.addend) : c;
    bool adds = i > 0 || p.epilogue.hasAddend;
    cublasStatus_t code = matmuls().multiply(
        device.matmuls, prepared.operation.get(), factors.at(prepared.isF64(), 0),
        place(at.b, p.strideB), prepared.b.get(), place(at.a, p.strideA), prepared.a.get(),
        factors.at(prepared.isF64(), adds ? 0 : 1), before, prepared.c.get(), c, prepared.c.get(),
        &way, fromHandle<void>(at.workspace), p.workspaceBytes, stream);
    if (code != CUBLAS_STATUS_SUCCESS) {
      return resultOf(code, "cublasLtMatmul for ", textOf(p));
    }
  }
  return nullptr;
}

/// Sets the elements of C to 0, for a matmul with k = 0. Memory between rows keeps its values.
CallResult clear(const Matmul &p, CUstream stream, Address c) {
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

/// Runs trials of a matmul on operands of its own.
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

  CallResult start() {
    const Matmul &p = prepared.matmul;
    CallResult failed =
        resultOf(driver().makeStream(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    failed = failed ? failed : resultOf(driver().makeEvent(&begin, 0), "cuEventCreate");
    failed = failed ? failed : resultOf(driver().makeEvent(&end, 0), "cuEventCreate");
    failed = failed ? failed : allocate(bytesOf(layoutOfA(p)), p.type, at.a);
    failed = failed ? failed : allocate(bytesOf(layoutOfB(p)), p.typeOfB(), at.b);
    const Epilogue &epilogue = p.epilogue;
    uint64_t c = bytesOf(layoutOfC(p)), size = sizeOf(p.resultType());
    uint64_t sums = uint64_t(epilogue.sums == Epilogue::Sums::OfA ? p.m : p.n) * size;
    failed = failed ? failed : allocate(c, p.resultType(), at.c);
    auto more = [&](bool isThere, uint64_t bytes, Address &address) {
      failed = failed || !isThere ? failed : allocate(bytes, p.resultType(), address);
    };
    if (p.isFp8()) {
      failed = failed ? failed : allocateFactor(kTrialFactorA, at.factorA);
      failed = failed ? failed : allocateFactor(kTrialFactorB, at.factorB);
    }
    more(epilogue.hasAddend, c, at.addend);
    more(epilogue.hasBias, uint64_t(p.n) * size, at.bias);
    more(epilogue.hasAux, c, at.aux);
    more(epilogue.sums != Epilogue::Sums::None, sums, at.sums);
    more(p.workspaceBytes > 0, p.workspaceBytes, at.workspace);
    return failed;
  }

  /// Measures the shortest of some runs; none if the library refuses after all or gives wrong
  /// results.
  CallResult time(const cublasLtMatmulAlgo_t &way, std::optional<float> &shortest) {
    for (int run = 0; run <= kTimedRuns; ++run) {
      if (CallResult failed = record(begin)) {
        return failed;
      }
      if (multiply(device, prepared, way, stream, at)) {
        return nullptr;
      }
      CallResult failed = record(end);
      failed = failed ? failed
                      : resultOf(driver().await(end), "cuEventSynchronize, trying ",
                                 textOf(prepared.matmul));
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
    bool isRight = true;
    CallResult failed = look(isRight);
    shortest = isRight ? shortest : std::nullopt;
    return failed;
  }

private:
  uint64_t bytesOf(const Layout &layout) const {
    uint64_t matrix = uint64_t((layout.columns - 1) * layout.ld + layout.rows);
    return (uint64_t(prepared.matmul.batch - 1) * uint64_t(layout.stride) + matrix) *
           sizeOf(layout.type);
  }

  /// Checks the first and the last element.
  CallResult look(bool &isRight) {
    const Matmul &p = prepared.matmul;
    Layout layout = layoutOfC(p);
    if (p.epilogue.activation != Epilogue::Activation::None || !isReadable(layout.type)) {
      return nullptr;
    }
    for (Address place : {at.c, at.c + bytesOf(layout) - sizeOf(layout.type)}) {
      double value = 0;
      if (CallResult failed = fetch(place, layout.type, value)) {
        return failed;
      }
      isRight = isRight && isOfOnes(p, value);
    }
    return nullptr;
  }

  CallResult fetch(Address place, ElementType type, double &value) {
    uint64_t bits = 0;
    CallResult failed =
        resultOf(driver().copyToHost(&bits, place, sizeOf(type), stream), "cuMemcpyDtoHAsync");
    failed = failed ? failed : record(end);
    failed = failed ? failed : resultOf(driver().await(end), "cuEventSynchronize");
    value = readNumber(bits, type);
    return failed;
  }

  CallResult allocate(uint64_t bytes, ElementType type, Address &address) {
    CUdeviceptr made = 0;
    bytes = (bytes + 7) / 8 * 8;
    if (CallResult failed = resultOf(driver().allocate(&made, bytes), "cuMemAlloc of ",
                                     bytesText(bytes), ", to try ", textOf(prepared.matmul))) {
      return failed;
    }
    memory.push_back(made);
    address = made;
    return fillWithOnes(made, bytes, type, stream);
  }

  CallResult allocateFactor(float factor, Address &address) {
    CallResult failed = allocate(sizeof factor, ElementType::F32, address);
    return failed ? failed : fillWithFactor(address, factor, stream);
  }

  CallResult record(CUevent at) { return resultOf(driver().record(at, stream), "cuEventRecord"); }

  const Device &device;
  const Prepared &prepared;
  CUstream stream = nullptr;
  CUevent begin = nullptr, end = nullptr;
  std::vector<Address> memory;
  MatmulPlaces at = {};
};

CallResult choose(const Device &device, Prepared &prepared,
                  const std::vector<cublasLtMatmulAlgo_t> &ways) {
  // Also run a single algorithm: the library loads its code at the first run.
  Trial trial(device, prepared);
  if (CallResult failed = trial.start()) {
    return failed;
  }
  std::optional<float> best;
  for (const cublasLtMatmulAlgo_t &way : ways) {
    std::optional<float> took;
    if (CallResult failed = trial.time(way, took)) {
      return failed;
    }
    if (took && (!best || *took < *best * kClearlyFaster)) {
      best = took;
      prepared.way = way;
    }
  }
  return best ? nullptr
              : say(concat("cublasLtMatmul refuses each of ", ways.size(),
                           " algorithms, or gives wrong results with it, for ",
                           textOf(prepared.matmul)));
}

//===----------------------------------------------------------------------===//
// The table's functions
//===----------------------------------------------------------------------===//

CallResult openMatmuls(Device &device) {
  if (device.matmuls) {
    return nullptr;
  }
  if (CallResult failed = resultOf(findMatmuls())) {
    return failed;
  }
  return resultOf(matmuls().make(&device.matmuls), "cublasLtCreate on device ", device.number);
}

CallResult nameMatmuls(Handle handle, const char **name) {
  Device *device = nullptr;
  CallResult failed = enter(handle, device);
  failed = failed ? failed : openMatmuls(*device);
  int version = 0;
  failed = failed ? failed : resultOf(driver().version(&version), "cuDriverGetVersion");
  if (!failed) {
    static const std::string text = concat("cuBLASLt ", matmuls().version(), ", driver ", version);
    *name = text.c_str();
  }
  return failed;
}

/// Collects the algorithms to try: those that the library proposes, or only the given one, if the
/// device supports it.
CallResult collectWays(const Device &device, const Prepared &prepared, const MatmulAlgorithm &given,
                       std::vector<cublasLtMatmulAlgo_t> &ways) {
  const MatmulAlgorithm none = {};
  if (std::memcmp(&given, &none, sizeof none) == 0) {
    return findWays(device, prepared, ways);
  }
  cublasLtMatmulAlgo_t way;
  static_assert(sizeof way == sizeof given && std::is_trivially_copyable_v<cublasLtMatmulAlgo_t>);
  std::memcpy(&way, &given, sizeof way);
  cublasLtMatmulHeuristicResult_t found = {};
  cublasStatus_t code =
      matmuls().checkWay(device.matmuls, prepared.operation.get(), prepared.b.get(),
                         prepared.a.get(), prepared.c.get(), prepared.c.get(), &way, &found);
  if (code == CUBLAS_STATUS_SUCCESS && found.workspaceSize > prepared.matmul.workspaceBytes) {
    code = CUBLAS_STATUS_NOT_SUPPORTED;
  }
  ways.push_back(way);
  return resultOf(code, "cublasLtMatmulAlgoCheck of a way that was chosen for ",
                  textOf(prepared.matmul));
}

CallResult prepareMatmul(Handle handle, const Matmul *matmul, MatmulAlgorithm *way,
                         Handle *prepared) {
  Device *device = nullptr;
  *prepared = 0;
  if (CallResult failed = enter(handle, device)) {
    return failed;
  }
  if (CallResult failed = openMatmuls(*device)) {
    return failed;
  }
  auto made = std::make_unique<Prepared>();
  made->matmul = *matmul;
  if (!isEmpty(*matmul)) {
    std::vector<cublasLtMatmulAlgo_t> ways;
    CallResult failed = describeAll(*made);
    failed = failed ? failed : collectWays(*device, *made, *way, ways);
    failed = failed ? failed : choose(*device, *made, ways);
    if (failed) {
      return failed;
    }
    std::memcpy(way, &made->way, sizeof *way);
  }
  *prepared = toHandle(made.release());
  return nullptr;
}

CallResult freeMatmul(Handle, Handle prepared) {
  delete fromHandle<Prepared>(prepared);
  return nullptr;
}

CallResult runMatmul(Handle handle, Handle stream, Handle prepared, const MatmulPlaces *places) {
  Device *device = nullptr;
  if (CallResult failed = enter(handle, device)) {
    return failed;
  }
  const Prepared &p = *fromHandle<Prepared>(prepared);
  auto *on = fromHandle<CUstream_st>(stream);
  return isEmpty(p.matmul) ? clear(p.matmul, on, places->c)
                           : multiply(*device, p, p.way, on, *places);
}

} // namespace

CallResult cuda::closeMatmuls(Device &device) {
  cublasLtHandle_t handle = std::exchange(device.matmuls, nullptr);
  return handle ? resultOf(matmuls().destroy(handle), "cublasLtDestroy") : nullptr;
}

void cuda::addMatmuls(DriverTable &library) {
  library.nameMatmuls = nameMatmuls;
  library.prepareMatmul = prepareMatmul;
  library.freeMatmul = freeMatmul;
  library.runMatmul = runMatmul;
}
