//===- CudnnPlansTest.cpp - cuDNN's plans for attention, without a device --===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The real cuDNN makes plans for absent devices from their properties: it checks that it
// supports them, compiles its kernels, and reports their workspace. Nothing is computed.
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/AttentionGraph.h"
#include "support/Text.h"
#include "tests/backends/cuda/AttentionTrial.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <dlfcn.h>
#include <iomanip>
#include <iostream>
#include <vector>

using namespace weft::rt;
using namespace weft::rt::cuda;
using testing::HasSubstr;

namespace {

/// The properties that differ between devices, from NVIDIA's data sheets and from the table of
/// technical specifications by compute capability in the CUDA programming guide.
struct Kind {
  int32_t architecture;
  const char *name;
  int64_t processors, sharedBytes, cacheBytes;
};

const Kind kA100 = {80, "NVIDIA A100-SXM4-80GB", 108, 163 << 10, 40 << 20};
const Kind kH200 = {90, "NVIDIA H200", 132, 227 << 10, 50 << 20};
const Kind kB200 = {100, "NVIDIA B200", 148, 227 << 10, 126 << 20};

/// Returns the properties as cuDNN writes them for an open device.
std::string propertiesOf(const Kind &kind) {
  return concat(
      R"({"deviceVer":)", kind.architecture * 10, R"(,"multiProcessorCount":)", kind.processors,
      R"(,"maxSharedMemoryPerBlockOptin":)", kind.sharedBytes, R"(,"l2CacheSize":)",
      kind.cacheBytes, R"(,"deviceName":")", kind.name,
      R"(","driverVer":13000,"cudaDeviceId":0,"maxGridSize":[2147483647,65535,65535],)",
      R"("maxBlockSize":[1024,1024,64],"regsPerBlock":65536,"smClockRateKHz":1410000,)",
      R"("memClockRateKHz":2619000,"warpSize":32,"maxSharedMemoryPerBlock":49152,)",
      R"("reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,"pciDeviceId":0,)",
      R"("maxCtasPerSM":32,"maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,"isTccDriver":0,)",
      R"("supportCoopLaunch":1,"totalGlobalMem":80000000000})");
}

/// An attention, its rank on the only axis of a mesh, and its turn.
struct Case {
  const char *name;
  Attention attention;
  int64_t rank = 0, turn = 0;
};

/// Makes a causal attention of whole sequences.
Attention whole(int64_t batch, int64_t length, int64_t keyHeads, int64_t group, int64_t features) {
  Attention a;
  a.batch = batch;
  a.queries = a.keys = length;
  a.keyHeads = keyHeads;
  a.group = group;
  a.features = a.valueFeatures = features;
  a.scale = 0.125;
  a.isCausal = true;
  return a;
}

/// Makes ring attention on four ranks, each with 2048 positions.
Attention ring(bool isZigzag) {
  Attention a = whole(1, 2048, 4, 4, 128);
  a.firstQuery.strides = a.firstKey.strides = {2048};
  a.turn = 0;
  a.turns = 4;
  if (isZigzag) {
    a.chunks = 8;
    a.chunkLength = 1024;
  }
  return a;
}

Case llama1B() { return {"llama-1b", whole(2, 4096, 8, 4, 64)}; }
Case llamaTiny() { return {"llama-tiny", whole(16, 128, 2, 2, 32)}; }
Case latent() { // As DeepSeek-V3 has it.
  Case one = {"latent", whole(1, 4096, 16, 1, 192)};
  one.attention.valueFeatures = 128;
  return one;
}
Case window() {
  Case one = {"window", whole(1, 8192, 2, 4, 128)};
  one.attention.window = 4096;
  return one;
}
Case bothDirections() {
  Case one = {"both directions", whole(16, 197, 12, 1, 64)};
  one.attention.isCausal = false;
  return one;
}
Case gathered() {
  Case one = {"gathered keys", whole(1, 1024, 4, 4, 128), 2};
  one.attention.keys = 4096;
  one.attention.firstQuery.strides = {1024};
  return one;
}
Case earlierKeys() { return {"ring, an earlier rank's keys", ring(false), 2, 1}; }
Case ownChunks() { return {"zigzag, the own keys", ring(true), 2, 0}; }
Case halfOfKeys() { return {"zigzag, half of an earlier rank's keys", ring(true), 2, 1}; }
Case halfOfQueries() { return {"zigzag, half of the queries", ring(true), 2, 3}; }

/// Sets the fields that a program would set.
Attention complete(Attention a, bool isBackward, bool hasDocuments) {
  a.isBackward = isBackward;
  for (uint32_t role = 0; role < a.roles(); ++role) {
    a.operands.push_back(role);
  }
  if (hasDocuments) {
    a.starts = uint32_t(a.roles());
  }
  a.workspaceBytes = attentionWorkspace(a);
  return a;
}

class CudnnPlans : public testing::Test {
protected:
  void SetUp() override {
    if (Status status = findCudnn(); !status) {
      GTEST_SKIP() << status.error().message;
    }
    // Other versions of cuDNN may support more or less.
    void *library = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_NOLOAD);
    auto version = reinterpret_cast<size_t (*)()>(dlsym(library, "cudnnGetVersion"));
    if (version() / 100 != 919) {
      GTEST_SKIP() << "expected cuDNN 9.19, found " << version();
    }
  }

  /// Returns the reason why cuDNN has no plan that fits into the workspace, or "".
  std::string refusalOf(const Kind &kind, const Case &one, bool isBackward, bool hasDocuments,
                        bool isDeterministic) {
    Attention a = complete(one.attention, isBackward, hasDocuments);
    auto part = attentionPart(a, std::vector{one.rank}, std::vector{one.turn});
    if (!part) {
      return "no part";
    }
    auto graph = AttentionGraph::make(a, *part, {nullptr, propertiesOf(kind), kind.architecture},
                                      isDeterministic, a.workspaceBytes - stagedBytes(a));
    std::string refusal = graph ? "" : graph.error().message;
    std::cout << std::left << std::setw(40) << one.name << "sm_" << std::setw(4)
              << kind.architecture << (isBackward ? "backward" : "forward")
              << (hasDocuments ? " documents" : "") << (isDeterministic ? " deterministic" : "")
              << ": " << (graph ? bytesText((*graph)->workspaceBytes()) : refusal) << std::endl;
    return refusal;
  }

  std::string refusalOf(const Kind &kind, const Case &one, bool isBackward,
                        bool hasDocuments = false) {
    return refusalOf(kind, one, isBackward, hasDocuments, /*isDeterministic=*/false);
  }
  /// Returns the reason for deterministic gradients.
  std::string refusalOfSameBits(const Kind &kind, const Case &one, bool hasDocuments = false) {
    return refusalOf(kind, one, /*isBackward=*/true, hasDocuments, /*isDeterministic=*/true);
  }
};

TEST_F(CudnnPlans, OfHopperAreThereForAll) {
  const Case cases[] = {{"gpt2-124m", whole(8, 1024, 12, 1, 64)},
                        {"llama3-70b tp=8", whole(1, 8192, 1, 8, 128)},
                        llama1B(),
                        llamaTiny(),
                        latent(),
                        window(),
                        bothDirections(),
                        gathered(),
                        earlierKeys(),
                        ownChunks(),
                        halfOfKeys(),
                        halfOfQueries()};
  for (const Case &one : cases) {
    for (bool isBackward : {false, true}) {
      EXPECT_EQ(refusalOf(kH200, one, isBackward), "") << one.name;
    }
  }
}

TEST_F(CudnnPlans, OfOtherArchitecturesAreThere) {
  for (const Case &one : {llama1B(), window(), bothDirections(), ownChunks()}) {
    for (bool isBackward : {false, true}) {
      EXPECT_EQ(refusalOf(kA100, one, isBackward), "") << one.name;
      EXPECT_EQ(refusalOf(kB200, one, isBackward), "") << one.name;
    }
  }
  EXPECT_EQ(refusalOf(kB200, latent(), /*isBackward=*/true), "");
  EXPECT_THAT(refusalOf(kA100, latent(), /*isBackward=*/true),
              HasSubstr("hidden_dim should be less than or equal to 128"));
}

TEST_F(CudnnPlans, OfDocumentsAreThere) {
  for (const Case &one : {llama1B(), latent(), window(), gathered(), earlierKeys(), ownChunks(),
                          halfOfKeys(), halfOfQueries()}) {
    for (bool isBackward : {false, true}) {
      EXPECT_EQ(refusalOf(kH200, one, isBackward, /*hasDocuments=*/true), "") << one.name;
    }
  }
  for (const Case &one : {llama1B(), ownChunks()}) {
    EXPECT_EQ(refusalOf(kB200, one, /*isBackward=*/false, /*hasDocuments=*/true), "");
    EXPECT_EQ(refusalOf(kB200, one, /*isBackward=*/true, /*hasDocuments=*/true), "");
  }
  EXPECT_EQ(refusalOf(kA100, llama1B(), /*isBackward=*/false, /*hasDocuments=*/true), "");
  EXPECT_THAT(refusalOf(kA100, llama1B(), /*isBackward=*/true, /*hasDocuments=*/true),
              HasSubstr("Only 2 sq broadcasted vectors are supported on SM80"));
}

/// The cases that are compared on devices, see AttentionTrial.h.
TEST_F(CudnnPlans, OfTrialsAreThere) {
  for (const AttentionCase &tried : attentionCases()) {
    for (bool isBackward : {false, true}) {
      Attention a = complete(tried.attention, isBackward, !tried.starts.empty());
      auto graph = AttentionGraph::make(a, tried.part, {nullptr, propertiesOf(kH200), 90}, false,
                                        a.workspaceBytes - stagedBytes(a));
      EXPECT_TRUE(graph) << tried.name << ": " << graph.error().message;
    }
  }
}

/// Deterministic gradients need a workspace of queries by keys, except on B200.
TEST_F(CudnnPlans, WithTheSameBitsAreFew) {
  EXPECT_EQ(refusalOfSameBits(kH200, llamaTiny()), "");
  EXPECT_EQ(refusalOfSameBits(kH200, llamaTiny(), /*hasDocuments=*/true), "");
  EXPECT_THAT(refusalOfSameBits(kH200, llama1B()),
              HasSubstr("No execution plans support the graph., with a workspace of"));
  EXPECT_EQ(refusalOfSameBits(kB200, llama1B()), "");
  EXPECT_THAT(refusalOfSameBits(kB200, llama1B(), /*hasDocuments=*/true),
              HasSubstr("cuDNN refuses: "));
}

} // namespace
