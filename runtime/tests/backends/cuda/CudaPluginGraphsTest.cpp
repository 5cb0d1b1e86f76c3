//===- CudaPluginGraphsTest.cpp - CUDA's graphs, without a device ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/backends/cuda/CudaPlugin.h"

using namespace weft::rt;

namespace {

class FakeGraphs : public FakeCuda {
protected:
  DriverTable::Handle capture() {
    DriverTable::Handle graph = 0;
    EXPECT_EQ(textOf(cuda.beginCapture(device, stream)), "success");
    EXPECT_EQ(textOf(cuda.endCapture(device, stream, &graph)), "success");
    EXPECT_NE(graph, 0u);
    return graph;
  }
};

TEST_F(FakeGraphs, AreLaunchedAsOftenAsOneLikes) {
  DriverTable::Handle graph = capture();
  EXPECT_EQ(textOf(cuda.launchGraph(device, stream, graph)), "success");
  EXPECT_EQ(textOf(cuda.launchGraph(device, stream, graph)), "success");
  EXPECT_EQ(*reinterpret_cast<float *>(graph), 2);
  EXPECT_EQ(textOf(cuda.freeGraph(device, graph)), "success");
}

TEST_F(FakeGraphs, MayBeForgotten) {
  EXPECT_EQ(textOf(cuda.beginCapture(device, stream)), "success");
  EXPECT_EQ(textOf(cuda.endCapture(device, stream, nullptr)), "success");
  EXPECT_EQ(textOf(cuda.freeGraph(device, capture())), "success"); // Another may come.
  EXPECT_EQ(textOf(cuda.beginCapture(device, stream)), "success");
  fail("cuStreamEndCapture", kInvalidValue);
  EXPECT_EQ(textOf(cuda.endCapture(device, stream, nullptr)),
            "cuStreamEndCapture: CUDA_ERROR_INVALID_VALUE (in words)");
}

TEST_F(FakeGraphs, CountWordsUp) {
  uint32_t word = 41;
  EXPECT_EQ(textOf(cuda.countProgress(device, stream, &word)),
            "expected beginCapture before countProgress");
  EXPECT_EQ(textOf(cuda.freeGraph(device, capture())), "success");
  EXPECT_EQ(textOf(cuda.countProgress(device, stream, &word)), "success");
  EXPECT_EQ(word, 42u);
  fail("cuLaunchKernel", kIllegalAddress);
  EXPECT_EQ(textOf(cuda.countProgress(device, stream, &word)),
            "cuLaunchKernel of 'weft_count': CUDA_ERROR_ILLEGAL_ADDRESS (in words)");
}

/// A sealed device refuses these, like all calls that a step must not make.
TEST_F(FakeGraphs, AreNotMadeOnASealedDevice) {
  DriverTable::Handle graph = capture(), made = 0;
  DriverTable::Address address = 0;
  uint64_t bytes = 0;
  bool isThere = false;
  EXPECT_EQ(textOf(cuda.seal(device)), "success");
  for (const std::string &refused :
       {textOf(cuda.beginCapture(device, stream)), textOf(cuda.freeGraph(device, graph)),
        textOf(cuda.makeEvent(device, &made)), textOf(cuda.makeTimer(device, &made)),
        textOf(cuda.makeUrgentStream(device, &made)), textOf(cuda.freeMemory(device, &bytes)),
        textOf(cuda.reserveLocal(device, 8, &isThere)),
        textOf(cuda.allocate(device, 8, &address))}) {
    EXPECT_EQ(refused, "nothing may be made, prepared or freed on a sealed device");
  }
  EXPECT_EQ(textOf(cuda.launchGraph(device, stream, graph)), "success");
  finish();
  EXPECT_EQ(textOf(cuda.unseal(device)), "success");
  EXPECT_EQ(textOf(cuda.freeGraph(device, graph)), "success");
}

TEST_F(FakeGraphs, SayWhatFails) {
  DriverTable::Handle graph = 7;
  for (const char *function : {"cuModuleLoadDataEx", "cuFuncLoad"}) {
    fail(function, kInvalidValue);
    EXPECT_EQ(textOf(cuda.beginCapture(device, stream)),
              std::string(function) + " of 'weft_count': CUDA_ERROR_INVALID_VALUE (in words)");
  }
  fail("cuStreamBeginCapture_v2", kInvalidValue);
  EXPECT_EQ(textOf(cuda.beginCapture(device, stream)),
            "cuStreamBeginCapture: CUDA_ERROR_INVALID_VALUE (in words)");
  for (auto [function, told] : {std::pair("cuStreamEndCapture", "cuStreamEndCapture"),
                                {"cuGraphInstantiateWithFlags", "cuGraphInstantiate"},
                                {"cuGraphUpload", "cuGraphUpload"}}) {
    graph = 7;
    EXPECT_EQ(textOf(cuda.beginCapture(device, stream)), "success");
    fail(function, kInvalidValue);
    EXPECT_EQ(textOf(cuda.endCapture(device, stream, &graph)),
              std::string(told) + ": CUDA_ERROR_INVALID_VALUE (in words)");
    EXPECT_EQ(graph, 0u);
  }
  graph = capture();
  fail("cuGraphLaunch", kIllegalAddress);
  EXPECT_EQ(textOf(cuda.launchGraph(device, stream, graph)),
            "cuGraphLaunch: CUDA_ERROR_ILLEGAL_ADDRESS (in words)");
  EXPECT_EQ(textOf(cuda.freeGraph(device, graph)), "success");
  graph = capture();
  ++lost;
  fail("cuGraphExecDestroy", kInvalidValue);
  EXPECT_EQ(textOf(cuda.freeGraph(device, graph)),
            "cuGraphExecDestroy: CUDA_ERROR_INVALID_VALUE (in words)");
  delete reinterpret_cast<float *>(graph);
}

} // namespace
