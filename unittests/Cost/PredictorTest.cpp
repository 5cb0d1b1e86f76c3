//===- PredictorTest.cpp - tests of predicted times -------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Cost/Predictor.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace weft;
using namespace weft::cost;
using desc::Precision;
using rt::CollectiveKind;

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
  EXPECT_DOUBLE_EQ(predictor.matmul(Precision::F32, 100, 100, 100, 3, 1), 6e-3);
  // So few operations that memory decides.
  EXPECT_DOUBLE_EQ(predictor.matmul(Precision::F32, 1000, 1000, 1, 1, 8e6), 8e-3);
  EXPECT_DOUBLE_EQ(predictor.kernel("map", Precision::F32, 1e6, 1e3), 1e-3);
  EXPECT_DOUBLE_EQ(predictor.kernel("map", Precision::F32, 1e3, 1e6), 1e-3);
  EXPECT_EQ(predictor.kernel("map", Precision::F32, 0, 0), 0);
}

TEST(Predictor, NoShapeOfAMatmulTakesLessThanTheLeast) {
  desc::MachineSpec machine = sheet();
  EXPECT_DOUBLE_EQ(Predictor(machine).leastMatmul(Precision::F32, 1e6), 1e-3);
  machine.device.measured.matmuls = {{Precision::F32, 64, 64, 64, 5e8},
                                     {Precision::F32, 512, 64, 128, 2e9},
                                     {Precision::F32, 512, 512, 512, 1e9}};
  Predictor predictor(machine);
  EXPECT_DOUBLE_EQ(predictor.leastMatmul(Precision::F32, 1e6), 0.5e-3);
  // TF32 has no rate of its own.
  EXPECT_DOUBLE_EQ(predictor.leastMatmul(Precision::TF32, 1e6), 0.5e-3);
  for (int64_t m = 1; m <= 4096; m *= 3) {
    for (int64_t k = 1; k <= 4096; k *= 5) {
      EXPECT_LE(predictor.leastMatmul(Precision::F32, 2.0 * double(m) * 96 * double(k) * 4),
                predictor.matmul(Precision::F32, m, 96, k, 4, 0));
    }
  }
}

TEST(Predictor, CollectivesFollowTheirFormulas) {
  Predictor predictor(sheet());
  Group four{4}, across{4, 4};
  double a = 1e-6, b = 1e6, w = 1e8;
  EXPECT_DOUBLE_EQ(predictor.collective(CollectiveKind::AllReduce, four, b),
                   4 * a + 6 * b / (4 * w));
  EXPECT_DOUBLE_EQ(predictor.collective(CollectiveKind::ReduceScatter, four, b),
                   2 * a + 3 * b / (4 * w));
  EXPECT_DOUBLE_EQ(predictor.collective(CollectiveKind::AllGather, four, b), 2 * a + 3 * b / w);
  EXPECT_DOUBLE_EQ(predictor.collective(CollectiveKind::AllGather, {3}, b), 2 * a + 2 * b / w);
  EXPECT_DOUBLE_EQ(predictor.collective(CollectiveKind::AllToAll, four, b), 3 * (a + b / (4 * w)));
  EXPECT_DOUBLE_EQ(predictor.collective(CollectiveKind::AllGather, across, b),
                   3 * (1e-5 + b / 1e7));
  EXPECT_EQ(predictor.collective(CollectiveKind::AllReduce, {1}, b), 0);
  EXPECT_DOUBLE_EQ(predictor.rendezvous(four), 1e-6);
  EXPECT_EQ(predictor.rendezvous({1}), 0);
}

TEST(Predictor, APermuteSendsAShardOnce) {
  Predictor predictor(sheet());
  EXPECT_DOUBLE_EQ(predictor.collective(CollectiveKind::Permute, {4}, 1e6), 1e-6 + 1e6 / 1e8);
  EXPECT_DOUBLE_EQ(predictor.collective(CollectiveKind::Permute, {4, 2}, 1e6), 1e-5 + 1e6 / 1e7);
}

TEST(Predictor, ATransferTakesAsLongAsAPermuteOfTwo) {
  desc::MachineSpec machine = sheet();
  Predictor plain(machine);
  EXPECT_DOUBLE_EQ(plain.collective(CollectiveKind::Transfer, {2}, 1e6), 1e-6 + 1e6 / 1e8);
  EXPECT_DOUBLE_EQ(plain.collective(CollectiveKind::Transfer, {2, 2}, 1e6), 1e-5 + 1e6 / 1e7);
  machine.device.measured.collectives = {{CollectiveKind::Permute, 2, 1000, 1e-3},
                                         {CollectiveKind::Permute, 2, 2000, 3e-3}};
  EXPECT_DOUBLE_EQ(Predictor(machine).collective(CollectiveKind::Transfer, {2}, 1500), 2e-3);
}

TEST(Predictor, RanksOfANodeShareTheWayBetweenNodes) {
  Predictor predictor(sheet());
  // Two nodes of four ranks: a ring of eight crosses twice, and four rings run side by side.
  Group group{8, 2};
  double a = 1e-6, far = 1e-5, b = 8e6, w = 1e8, between = 1e7;
  EXPECT_DOUBLE_EQ(predictor.collective(CollectiveKind::ReduceScatter, group, b),
                   2 * far + 5 * a + 7.0 / 8 * b / (4 * between));
  // Of seven parts four go to the other node.
  EXPECT_DOUBLE_EQ(predictor.collective(CollectiveKind::AllToAll, group, b),
                   4 * far + 3 * a + b / 8 * 4 / between);
  // With fast links between nodes those within are the slower.
  desc::MachineSpec machine = sheet();
  machine.clusterLink->bandwidth = 1e9;
  EXPECT_DOUBLE_EQ(Predictor(machine).collective(CollectiveKind::AllGather, group, b),
                   2 * far + 5 * a + 7 * b / w);
}

TEST(PlaceGroup, CountsRanksAndNodes) {
  std::vector<int64_t> mesh = {4, 2, 4};
  auto place = [&](std::vector<uint32_t> axes, int64_t devicesPerNode) {
    Group group = placeGroup(mesh, axes, devicesPerNode);
    return std::pair(group.ranks, group.nodes);
  };
  EXPECT_EQ(place({2}, 8), std::pair(int64_t(4), int64_t(1)));
  EXPECT_EQ(place({1, 2}, 8), std::pair(int64_t(8), int64_t(1)));
  EXPECT_EQ(place({0}, 8), std::pair(int64_t(4), int64_t(4)));
  EXPECT_EQ(place({2, 0}, 8), std::pair(int64_t(16), int64_t(4)));
  EXPECT_EQ(place({0, 1, 2}, 8), std::pair(int64_t(32), int64_t(4)));
  EXPECT_EQ(place({0, 1, 2}, 32), std::pair(int64_t(32), int64_t(1)));
  // Nodes of three: ranks 0 to 3 lie on two, and so do some others.
  EXPECT_EQ(place({2}, 3), std::pair(int64_t(4), int64_t(2)));
  EXPECT_EQ(place({1, 2}, 3), std::pair(int64_t(8), int64_t(4)));
  EXPECT_EQ(place({}, 3), std::pair(int64_t(1), int64_t(1)));
}

TEST(Predictor, AnAllReduceBetweenNodesIsOneWithinThem) {
  Predictor predictor(sheet());
  Group group{32, 8};
  // A short one takes the latency of both.
  EXPECT_DOUBLE_EQ(predictor.collective(CollectiveKind::AllReduce, group, 4),
                   2 * 3 * 1e-5 + 2 * 2 * 1e-6 + 6.0 / 4 * 4 / 1e8);
  // A long one waits for the links between nodes, four side by side.
  EXPECT_DOUBLE_EQ(predictor.collective(CollectiveKind::AllReduce, group, 1e9),
                   2 * 3 * 1e-5 + 14.0 / 8 * 1e9 / 4e7);
  // With fast links between nodes those within are the slower.
  desc::MachineSpec machine = sheet();
  machine.clusterLink->bandwidth = 1e9;
  EXPECT_DOUBLE_EQ(Predictor(machine).collective(CollectiveKind::AllReduce, group, 1e9),
                   2 * 3 * 1e-5 + 2 * 2 * 1e-6 + 6.0 / 4 * 1e9 / 1e8);
}

TEST(Predictor, TakesMeasuredCollectivesBetweenNodes) {
  desc::MachineSpec machine = sheet();
  machine.device.measured.collectives = {{CollectiveKind::AllReduce, 8, 1000, 1e-3, 2},
                                         {CollectiveKind::AllReduce, 8, 2000, 3e-3, 2}};
  Predictor predictor(machine), plain(sheet());
  auto allReduce = [&](Group group, double bytes) {
    return predictor.collective(CollectiveKind::AllReduce, group, bytes);
  };
  EXPECT_DOUBLE_EQ(allReduce({8, 2}, 1500), 2e-3);
  // On more nodes as much longer as the formula says.
  EXPECT_DOUBLE_EQ(allReduce({32, 8}, 1500),
                   2e-3 * plain.collective(CollectiveKind::AllReduce, {32, 8}, 1500) /
                       plain.collective(CollectiveKind::AllReduce, {8, 2}, 1500));
  // Other numbers of ranks on a node, one node, and other kinds were not measured.
  for (Group group : {Group{2, 2}, Group{4, 2}, Group{4}}) {
    EXPECT_DOUBLE_EQ(allReduce(group, 1500),
                     plain.collective(CollectiveKind::AllReduce, group, 1500));
  }
  EXPECT_DOUBLE_EQ(predictor.collective(CollectiveKind::AllGather, {8, 2}, 1500),
                   plain.collective(CollectiveKind::AllGather, {8, 2}, 1500));
}

TEST(Predictor, TakesMeasuredRates) {
  desc::MachineSpec machine = sheet();
  desc::MeasuredSpec &measured = machine.device.measured;
  measured.matmuls = {{Precision::F32, 64, 64, 64, 1e8}, {Precision::F64, 64, 64, 64, 1e7}};
  measured.memory = {{1000, 1e10}, {1000000, 1e8}};
  measured.kernels = {{"attention", Precision::F32, 1e7}};
  measured.launchSeconds = 1e-5;
  Predictor predictor(machine);
  double flops = 2 * 64 * 64 * 64;
  EXPECT_DOUBLE_EQ(predictor.matmul(Precision::F32, 64, 64, 64, 1, 1), flops / 1e8 + 1e-5);
  EXPECT_DOUBLE_EQ(predictor.matmul(Precision::F64, 64, 64, 64, 2, 1), 2 * flops / 1e7 + 1e-5);
  EXPECT_DOUBLE_EQ(predictor.kernel("attention", Precision::F32, 1e6, 1), 0.1 + 1e-5);
  EXPECT_DOUBLE_EQ(predictor.kernel("norm", Precision::F32, 1e6, 1), 1e-3 + 1e-5);
  // Kernels that read bf16 compute in float32, unless their rate was measured.
  EXPECT_DOUBLE_EQ(predictor.kernel("attention", Precision::BF16, 1e6, 1), 0.1 + 1e-5);
  EXPECT_DOUBLE_EQ(predictor.kernel("norm", Precision::BF16, 1e6, 1), 1e-3 + 1e-5);
  // Unknown rates of TF32 and F16 are those of float32.
  EXPECT_DOUBLE_EQ(predictor.matmul(Precision::TF32, 64, 64, 64, 1, 1), flops / 1e8 + 1e-5);
  EXPECT_DOUBLE_EQ(predictor.matmul(Precision::F16, 64, 64, 64, 1, 1), flops / 1e8 + 1e-5);
  EXPECT_DOUBLE_EQ(predictor.kernel("attention", Precision::F16, 1e6, 1), 0.1 + 1e-5);
  machine.device.peakFlopsTF32 = 4e9;
  EXPECT_DOUBLE_EQ(Predictor(machine).matmul(Precision::TF32, 64, 64, 64, 1, 1),
                   flops / 4e9 + 1e-5);
  machine.device.measured.kernels.push_back({"attention", Precision::BF16, 1e8});
  EXPECT_DOUBLE_EQ(Predictor(machine).kernel("attention", Precision::BF16, 1e6, 1), 1e-2 + 1e-5);
  machine.device.peakFlopsF32.reset();
  machine.device.peakFlopsBF16 = 1e8;
  EXPECT_DOUBLE_EQ(Predictor(machine).kernel("norm", Precision::BF16, 1e6, 1), 1e-2 + 1e-5);
  EXPECT_DOUBLE_EQ(predictor.kernel("map", Precision::F32, 0, 1e6), 1e-2 + 1e-5);
  EXPECT_DOUBLE_EQ(predictor.kernel("map", Precision::F32, 0, 1e3), 1e-7 + 1e-5);
}

TEST(Predictor, EveryKernelBeginsAndEnds) {
  desc::MachineSpec machine = sheet();
  machine.device.measured.launchSeconds = 1e-6;
  machine.device.measured.kernelSeconds = 2e-6;
  machine.device.measured.memory = {{1000, 1e9}};
  Predictor predictor(machine);
  EXPECT_DOUBLE_EQ(predictor.kernel("map", Precision::F32, 0, 0), 3e-6);
  EXPECT_DOUBLE_EQ(predictor.kernel("map", Precision::F32, 0, 4), 4e-9 + 3e-6);
  EXPECT_DOUBLE_EQ(predictor.kernel("map", Precision::F32, 1e6, 1e3), 1e-3 + 3e-6);
  EXPECT_DOUBLE_EQ(predictor.matmul(Precision::F32, 10, 10, 10, 1, 1), 2e-6 + 3e-6);
  EXPECT_DOUBLE_EQ(predictor.matmul(Precision::F32, 10, 10, 10, 1, 1e6), 1e-3 + 3e-6);
}

TEST(Predictor, KindsReadAndWriteAtTheirOwnRates) {
  desc::MachineSpec machine = sheet();
  machine.device.measured.kernels = {{"norm", Precision::F32, 1e8, 5e8},
                                     {"norm", Precision::BF16, std::nullopt, 2e8},
                                     {"gather", Precision::F32, std::nullopt, 4e8}};
  Predictor predictor(machine);
  EXPECT_DOUBLE_EQ(predictor.kernel("norm", Precision::F32, 0, 1e6), 2e-3);
  EXPECT_DOUBLE_EQ(predictor.kernel("norm", Precision::BF16, 0, 1e6), 5e-3);
  EXPECT_DOUBLE_EQ(predictor.kernel("norm", Precision::F16, 0, 1e6), 2e-3) << "float32's";
  EXPECT_DOUBLE_EQ(predictor.kernel("map", Precision::F32, 0, 1e6), 1e-3) << "the data sheet's";
  // An entry of one rate leaves the other as it is.
  EXPECT_DOUBLE_EQ(predictor.kernel("norm", Precision::BF16, 1e6, 0), 1e-2) << "float32's";
  EXPECT_DOUBLE_EQ(predictor.kernel("gather", Precision::F32, 1e6, 0), 1e-3) << "the peak";
}

TEST(Predictor, AttentionOfALibraryGoesByItsShape) {
  desc::MachineSpec machine = sheet();
  auto attention = [](double flops, int64_t positions, int64_t features) {
    return desc::KernelRate{"attention", Precision::BF16, flops, {}, positions, features};
  };
  machine.device.measured.kernels = {attention(1e8, 1024, 64), attention(4e8, 4096, 64)};
  auto seconds = [&](std::optional<AttentionShape> shape) {
    return Predictor(machine).kernel("attention", Precision::BF16, 1e6, 1, shape);
  };
  EXPECT_DOUBLE_EQ(seconds(AttentionShape{1024, 64}), 1e-2);
  EXPECT_DOUBLE_EQ(seconds(AttentionShape{4096, 64}), 2.5e-3);
  EXPECT_NEAR(seconds(AttentionShape{2048, 64}), 5e-3, 1e-9) << "as far from both";
  // Heads of 128 are nearer to the longer sequence, by a distance of 1 to sqrt(5).
  EXPECT_NEAR(seconds(AttentionShape{4096, 128}), 1e6 / (4e8 * std::pow(0.25, 1.0 / 26)), 1e-9);
  // The compiler's own kernels have no shape, and other formats no such entries.
  EXPECT_DOUBLE_EQ(seconds({}), 1e-3) << "the peak";
  machine.device.measured.kernels.push_back({"attention", Precision::BF16, 2e7});
  EXPECT_DOUBLE_EQ(seconds({}), 5e-2);
  EXPECT_DOUBLE_EQ(seconds(AttentionShape{1024, 64}), 1e-2);
  EXPECT_DOUBLE_EQ(
      Predictor(machine).kernel("attention", Precision::F32, 1e6, 1, AttentionShape{1024, 64}),
      1e-3);
  machine.device.measured.kernels = {{"attention", Precision::BF16, 2e7}};
  EXPECT_DOUBLE_EQ(seconds(AttentionShape{1024, 64}), 5e-2) << "no entry has a shape";
  machine.device.measured.kernels.clear();
  machine.device.peakFlopsBF16 = 1e10;
  EXPECT_DOUBLE_EQ(seconds(AttentionShape{1024, 64}), 1e-4) << "a library computes in bf16";
  EXPECT_DOUBLE_EQ(seconds({}), 1e-3) << "the compiler's kernels compute in float32";
}

TEST(Predictor, TakesBytesForAsMuchFasterAsTheyAreAtBest) {
  desc::MachineSpec machine = sheet();
  machine.device.peakFlopsBF16 = 1000e9;
  machine.device.peakFlopsF8 = 2000e9;
  double flops = 2.0 * 64 * 64 * 64;
  auto seconds = [&](Precision precision, int64_t side) {
    return Predictor(machine).matmul(precision, side, side, side, 1, 1);
  };
  EXPECT_DOUBLE_EQ(seconds(Precision::F8, 64), flops / 2000e9);
  machine.device.measured.matmuls = {{Precision::BF16, 64, 64, 64, 700e9},
                                     {Precision::BF16, 128, 128, 128, 800e9}};
  EXPECT_DOUBLE_EQ(seconds(Precision::F8, 64), flops / 1400e9) << "twice 700e9, not 2000e9";
  EXPECT_DOUBLE_EQ(seconds(Precision::F8, 128), 8 * flops / 1600e9);
  EXPECT_NEAR(seconds(Precision::F8, 96) / seconds(Precision::BF16, 96), 0.5, 1e-12);
  machine.device.measured.matmuls.push_back({Precision::F8, 64, 64, 64, 1100e9});
  EXPECT_DOUBLE_EQ(seconds(Precision::F8, 64), flops / 1100e9);
  EXPECT_DOUBLE_EQ(seconds(Precision::F8, 128), 8 * flops / 1100e9);
  machine.device.measured.matmuls.pop_back();
  machine.device.peakFlopsBF16.reset();
  EXPECT_DOUBLE_EQ(seconds(Precision::F8, 64), flops / 2000e9);
}

TEST(Predictor, TakesUnalignedRowsForAsMuchSlower) {
  desc::MachineSpec machine = sheet();
  machine.device.peakFlopsBF16 = 1e9;
  auto seconds = [&](Precision precision, Rows rows) {
    return Predictor(machine).matmul(precision, 100, 100, 100, 1, 1, rows);
  };
  EXPECT_DOUBLE_EQ(seconds(Precision::BF16, Rows::Unaligned), 2e-3) << "unless it was measured";
  machine.device.measured.unalignedShare = 0.2;
  EXPECT_DOUBLE_EQ(seconds(Precision::BF16, Rows::Unaligned), 1e-2);
  EXPECT_DOUBLE_EQ(seconds(Precision::BF16, Rows::Aligned), 2e-3);
  EXPECT_DOUBLE_EQ(seconds(Precision::F32, Rows::Unaligned), 2e-3);
  // Memory is not slower.
  EXPECT_DOUBLE_EQ(
      Predictor(machine).matmul(Precision::BF16, 1000, 1000, 1, 1, 8e7, Rows::Unaligned), 8e-2);
}

/// The rows of A, B and C as letters: aligned or unaligned.
std::string rowsIn(const rt::Matmul &matmul) {
  std::string letters;
  for (Rows rows : rowsOfMatrices(matmul)) {
    letters += rows == Rows::Aligned ? 'a' : 'u';
  }
  return letters;
}

TEST(Predictor, FindsUnalignedRows) {
  using rt::ElementType;
  // Logits, their gradient's two matmuls, as GPT-2 has them, and logits of a padded vocabulary.
  rt::Matmul logits = {ElementType::BF16, false, true, 16, 50257, 768, 768, 768, 50257};
  EXPECT_EQ(rowsIn(logits), "aau");
  EXPECT_EQ(rowsOf(logits), Rows::Unaligned);
  EXPECT_EQ(rowsIn({ElementType::BF16, false, false, 16, 768, 50257, 50257, 768, 768}), "uaa");
  EXPECT_EQ(rowsIn({ElementType::BF16, true, false, 50257, 768, 16, 50257, 768, 768}), "uaa");
  logits.n = logits.ldc = 50264;
  EXPECT_EQ(rowsOf(logits), Rows::Aligned);
  // 16 bytes are 8 numbers of bf16, 4 of f32, 2 of f64; C may be wider than A and B.
  rt::Matmul small = {ElementType::BF16, false, false, 4, 12, 8, 8, 16, 12};
  EXPECT_EQ(rowsIn(small), "aau");
  small.isResultF32 = true;
  EXPECT_EQ(rowsIn(small), "aaa");
  EXPECT_EQ(rowsIn({ElementType::F32, false, false, 4, 6, 8, 8, 6, 6}), "auu");
  EXPECT_EQ(rowsIn({ElementType::F64, false, false, 4, 6, 8, 8, 6, 6}), "aaa");
  // One row is aligned as its matrix is; the matrices of a batch are rows too.
  EXPECT_EQ(rowsIn({ElementType::BF16, false, false, 1, 12, 8, 8, 16, 12}), "aaa");
  EXPECT_EQ(rowsIn({ElementType::BF16, false, false, 1, 12, 8, 8, 16, 12, 2, 8, 0, 12}), "aau");
}

TEST(Predictor, TakesMeasuredCollectives) {
  desc::MachineSpec machine = sheet();
  machine.device.measured.collectives = {{CollectiveKind::AllReduce, 2, 1000, 1e-5},
                                         {CollectiveKind::AllReduce, 2, 9000, 5e-5},
                                         {CollectiveKind::AllReduce, 4, 1000, 3e-5}};
  machine.device.measured.rendezvousSeconds = 7e-6;
  Predictor predictor(machine);
  Group two{2}, three{3};
  auto allReduce = [&](Group group, double bytes) {
    return predictor.collective(CollectiveKind::AllReduce, group, bytes);
  };
  EXPECT_DOUBLE_EQ(allReduce(two, 1000), 1e-5);
  EXPECT_DOUBLE_EQ(allReduce(two, 10), 1e-5);    // All latency.
  EXPECT_DOUBLE_EQ(allReduce(two, 5000), 3e-5);  // On the line between.
  EXPECT_DOUBLE_EQ(allReduce(two, 18000), 1e-4); // In proportion.
  EXPECT_DOUBLE_EQ(allReduce({4}, 1000), 3e-5);
  // Three are nearer to four; a ring of three sends 4/3 operands, one of four 3/2.
  EXPECT_DOUBLE_EQ(allReduce(three, 1000), 3e-5 * (4.0 / 3) / (3.0 / 2));
  // Collectives that were not measured, and those between nodes, take a rendezvous and the link's
  // time.
  EXPECT_DOUBLE_EQ(predictor.collective(CollectiveKind::AllGather, two, 1e6),
                   7e-6 + 1e-6 + 1e6 / 1e8);
  EXPECT_DOUBLE_EQ(allReduce({2, 2}, 1e6), 7e-6 + 2 * (1e-5 + 1e6 / (2 * 1e7)));
  EXPECT_DOUBLE_EQ(predictor.rendezvous(two), 7e-6);
}

} // namespace
