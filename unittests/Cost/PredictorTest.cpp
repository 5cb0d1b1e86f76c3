//===- PredictorTest.cpp - how long work takes on a machine -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Cost/Predictor.h"

#include <gtest/gtest.h>

using namespace weft;
using namespace weft::cost;
using desc::CollectiveKind;
using desc::Precision;

namespace {

/// Round numbers: 1 Gflop/s, 1 GB/s of memory, a link of 1 us and 100 MB/s.
desc::MachineSpec sheet() {
  desc::MachineSpec machine;
  machine.nodes = 2;
  machine.devicesPerNode = 4;
  machine.device.peakFlopsF32 = 1e9;
  machine.device.memoryBandwidth = 1e9;
  machine.nodeLink = {"bus", 1e-6, 1e8};
  machine.clusterLink = {"net", 1e-5, 1e7};
  return machine;
}

TEST(Predictor, TakesTheDataSheetWhereNothingWasMeasured) {
  Predictor predictor(sheet());
  // 2 * 100 * 100 * 100 * 3 operations.
  EXPECT_DOUBLE_EQ(predictor.product(Precision::F32, 100, 100, 100, 3, 1), 6e-3);
  // So few operations that memory decides.
  EXPECT_DOUBLE_EQ(predictor.product(Precision::F32, 1000, 1000, 1, 1, 8e6), 8e-3);
  EXPECT_DOUBLE_EQ(predictor.kernel("map", Precision::F32, 1e6, 1e3), 1e-3);
  EXPECT_DOUBLE_EQ(predictor.kernel("map", Precision::F32, 1e3, 1e6), 1e-3);
  EXPECT_EQ(predictor.kernel("map", Precision::F32, 0, 0), 0);
}

TEST(Predictor, CollectivesFollowTheRingFormulas) {
  Predictor predictor(sheet());
  Group four{4, false}, across{4, true};
  double a = 1e-6, b = 1e6, w = 1e8;
  EXPECT_DOUBLE_EQ(predictor.collective(CollectiveKind::AllReduce, four, b),
                   2 * 3 * (a + b / (4 * w)));
  EXPECT_DOUBLE_EQ(predictor.collective(CollectiveKind::ReduceScatter, four, b),
                   3 * (a + b / (4 * w)));
  EXPECT_DOUBLE_EQ(predictor.collective(CollectiveKind::AllGather, four, b), 3 * (a + b / w));
  EXPECT_DOUBLE_EQ(predictor.collective(CollectiveKind::AllToAll, four, b), 3 * (a + b / (4 * w)));
  EXPECT_DOUBLE_EQ(predictor.collective(CollectiveKind::AllGather, across, b),
                   3 * (1e-5 + b / 1e7));
  EXPECT_EQ(predictor.collective(CollectiveKind::AllReduce, {1, false}, b), 0);
  EXPECT_DOUBLE_EQ(predictor.rendezvous(four), 1e-6);
  EXPECT_EQ(predictor.rendezvous({1, false}), 0);
}

TEST(Predictor, TakesMeasuredRates) {
  desc::MachineSpec machine = sheet();
  desc::MeasuredSpec &measured = machine.device.measured;
  measured.products = {{Precision::F32, 64, 64, 64, 1e8}, {Precision::F64, 64, 64, 64, 1e7}};
  measured.memory = {{1000, 1e10}, {1000000, 1e8}};
  measured.kernels = {{"attention", Precision::F32, 1e7}};
  measured.launchSeconds = 1e-5;
  Predictor predictor(machine);
  double flops = 2 * 64 * 64 * 64;
  EXPECT_DOUBLE_EQ(predictor.product(Precision::F32, 64, 64, 64, 1, 1), flops / 1e8 + 1e-5);
  EXPECT_DOUBLE_EQ(predictor.product(Precision::F64, 64, 64, 64, 2, 1), 2 * flops / 1e7 + 1e-5);
  EXPECT_DOUBLE_EQ(predictor.kernel("attention", Precision::F32, 1e6, 1), 0.1 + 1e-5);
  EXPECT_DOUBLE_EQ(predictor.kernel("norm", Precision::F32, 1e6, 1), 1e-3 + 1e-5);
  EXPECT_DOUBLE_EQ(predictor.kernel("map", Precision::F32, 0, 1e6), 1e-2 + 1e-5);
  EXPECT_DOUBLE_EQ(predictor.kernel("map", Precision::F32, 0, 1e3), 1e-7 + 1e-5);
}

TEST(Predictor, TakesMeasuredCollectives) {
  desc::MachineSpec machine = sheet();
  machine.device.measured.collectives = {{CollectiveKind::AllReduce, 2, 1000, 1e-5},
                                         {CollectiveKind::AllReduce, 2, 9000, 5e-5},
                                         {CollectiveKind::AllReduce, 4, 1000, 3e-5}};
  machine.device.measured.rendezvousSeconds = 7e-6;
  Predictor predictor(machine);
  Group two{2, false}, three{3, false};
  auto allReduce = [&](Group group, double bytes) {
    return predictor.collective(CollectiveKind::AllReduce, group, bytes);
  };
  EXPECT_DOUBLE_EQ(allReduce(two, 1000), 1e-5);
  EXPECT_DOUBLE_EQ(allReduce(two, 10), 1e-5);    // All latency.
  EXPECT_DOUBLE_EQ(allReduce(two, 5000), 3e-5);  // On the line between.
  EXPECT_DOUBLE_EQ(allReduce(two, 18000), 1e-4); // In proportion.
  EXPECT_DOUBLE_EQ(allReduce({4, false}, 1000), 3e-5);
  // Three are nearer to four; a ring of three sends 4/3 operands, one of four 3/2.
  EXPECT_DOUBLE_EQ(allReduce(three, 1000), 3e-5 * (4.0 / 3) / (3.0 / 2));
  // What was not measured, and what leaves the node, goes by the link.
  EXPECT_DOUBLE_EQ(predictor.collective(CollectiveKind::AllGather, two, 1e6), 1e-6 + 1e6 / 1e8);
  EXPECT_DOUBLE_EQ(allReduce({2, true}, 1e6), 2 * (1e-5 + 1e6 / (2 * 1e7)));
  EXPECT_DOUBLE_EQ(predictor.rendezvous(two), 7e-6);
}

} // namespace
