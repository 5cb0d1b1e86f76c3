//===- RealLibrariesTest.cpp - what CUDA's libraries say without a device -===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// cuBLASLt makes no handle without a device, but its descriptors need none: they check attributes
// and their sizes. The fake of the other tests must refuse the sizes that the library refuses.
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/Calls.h"

#include <array>
#include <dlfcn.h>
#include <gtest/gtest.h>

using namespace weft::rt::cuda;

namespace {

/// A library, or null where it is not installed.
void *load(const char *file) { return dlopen(file, RTLD_NOW | RTLD_LOCAL); }

template <typename Function> Function find(void *library, const char *name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

/// The names after the headers' macros are expanded.
#define WEFT_NAME(field, function) WEFT_NAME_OF(function),
#define WEFT_NAME_OF(function) #function
constexpr const char *kMatmulFunctions[] = {WEFT_MATMUL_FUNCTIONS(WEFT_NAME)};
constexpr const char *kCommunicationFunctions[] = {WEFT_COMMUNICATION_FUNCTIONS(WEFT_NAME)};

/// Descriptors of one library.
class Descriptors {
public:
  explicit Descriptors(void *library) : library(library) {
    auto makeOperation =
        find<decltype(&cublasLtMatmulDescCreate)>(library, "cublasLtMatmulDescCreate");
    auto makeLayout =
        find<decltype(&cublasLtMatrixLayoutCreate)>(library, "cublasLtMatrixLayoutCreate");
    auto makeWishes =
        find<decltype(&cublasLtMatmulPreferenceCreate)>(library, "cublasLtMatmulPreferenceCreate");
    EXPECT_EQ(makeOperation(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(makeLayout(&layout, CUDA_R_8F_E4M3, 16, 16, 16), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(makeWishes(&wishes), CUBLAS_STATUS_SUCCESS);
  }

  ~Descriptors() {
    find<decltype(&cublasLtMatmulDescDestroy)>(library, "cublasLtMatmulDescDestroy")(operation);
    find<decltype(&cublasLtMatrixLayoutDestroy)>(library, "cublasLtMatrixLayoutDestroy")(layout);
    find<decltype(&cublasLtMatmulPreferenceDestroy)>(library,
                                                     "cublasLtMatmulPreferenceDestroy")(wishes);
  }

  /// Return true if the library takes `size` bytes, all 0, for an attribute.
  bool takes(cublasLtMatmulDescAttributes_t attribute, size_t size) const {
    auto set =
        find<decltype(&cublasLtMatmulDescSetAttribute)>(library, "cublasLtMatmulDescSetAttribute");
    return set(operation, attribute, kZeros.data(), size) == CUBLAS_STATUS_SUCCESS;
  }
  bool takes(cublasLtMatrixLayoutAttribute_t attribute, size_t size) const {
    auto set = find<decltype(&cublasLtMatrixLayoutSetAttribute)>(
        library, "cublasLtMatrixLayoutSetAttribute");
    // A batch has at least one matrix.
    const std::array<int32_t, 4> one = {1};
    return set(layout, attribute, one.data(), size) == CUBLAS_STATUS_SUCCESS;
  }
  bool takes(cublasLtMatmulPreferenceAttributes_t attribute, size_t size) const {
    auto set = find<decltype(&cublasLtMatmulPreferenceSetAttribute)>(
        library, "cublasLtMatmulPreferenceSetAttribute");
    const std::array<uint32_t, 4> sixteen = {16};
    return set(wishes, attribute, sixteen.data(), size) == CUBLAS_STATUS_SUCCESS;
  }

private:
  static constexpr std::array<char, 16> kZeros = {};

  void *library;
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t layout = nullptr;
  cublasLtMatmulPreference_t wishes = nullptr;
};

/// Expects that both libraries take `right` bytes for each attribute, and no other size.
template <typename Attribute>
void expectSizes(const Descriptors &real, const Descriptors &fake,
                 std::initializer_list<std::pair<Attribute, size_t>> attributes) {
  for (auto [attribute, right] : attributes) {
    for (size_t size : {1, 2, 4, 8, 16}) {
      EXPECT_EQ(real.takes(attribute, size), size == right)
          << "the library, attribute " << int(attribute) << ", " << size << " bytes";
      EXPECT_EQ(fake.takes(attribute, size), size == right)
          << "the fake, attribute " << int(attribute) << ", " << size << " bytes";
    }
  }
}

TEST(RealMatmuls, TakeAttributesOfTheFakesSizes) {
  void *library = load("libcublasLt.so.13"), *fake = load(FAKE_MATMULS);
  ASSERT_TRUE(fake) << dlerror();
  if (!library) {
    GTEST_SKIP() << "there is no libcublasLt.so.13";
  }
  Descriptors real(library), ours(fake);
  expectSizes<cublasLtMatmulDescAttributes_t>(real, ours,
                                              {{CUBLASLT_MATMUL_DESC_TRANSA, 4},
                                               {CUBLASLT_MATMUL_DESC_TRANSB, 4},
                                               {CUBLASLT_MATMUL_DESC_FAST_ACCUM, 1},
                                               {CUBLASLT_MATMUL_DESC_EPILOGUE, 4},
                                               {CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, 8},
                                               {CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, 8},
                                               {CUBLASLT_MATMUL_DESC_BIAS_POINTER, 8},
                                               {CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, 8},
                                               {CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, 8}});
  expectSizes<cublasLtMatrixLayoutAttribute_t>(
      real, ours,
      {{CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 4}, {CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 8}});
  expectSizes<cublasLtMatmulPreferenceAttributes_t>(
      real, ours,
      {{CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 8},
       {CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, 4},
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, 4},
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, 4},
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, 4},
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, 4}});
}

TEST(RealMatmuls, HaveAllFunctions) {
  void *library = load("libcublasLt.so.13");
  if (!library) {
    GTEST_SKIP() << "there is no libcublasLt.so.13";
  }
  for (const char *name : kMatmulFunctions) {
    EXPECT_TRUE(dlsym(library, name)) << name;
  }
}

TEST(RealCommunication, HasAllFunctionsAndTheHeadersVersion) {
  void *library = load("libnccl.so.2");
  if (!library) {
    GTEST_SKIP() << "there is no libnccl.so.2";
  }
  for (const char *name : kCommunicationFunctions) {
    EXPECT_TRUE(dlsym(library, name)) << name;
  }
  int version = 0;
  EXPECT_EQ(find<decltype(&ncclGetVersion)>(library, "ncclGetVersion")(&version), ncclSuccess);
  EXPECT_EQ(version, NCCL_VERSION_CODE);
}

} // namespace
