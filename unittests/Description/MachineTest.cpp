//===- MachineTest.cpp - rules and defaults of machines -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Description/Machine.h"

#include "Helpers.h"

namespace rt = weft::rt;
using namespace weft::desc;
using namespace weft::desc::test;

static std::string changed(const std::string &from, const std::string &to) {
  return errors(parseMachine(with(machineText, from, to), "h"));
}

TEST(Machine, DefaultsAreFilledIn) {
  Result<MachineSpec> machine = parseMachine(machineText);
  ASSERT_TRUE(bool(machine)) << errors(machine);
  EXPECT_EQ(machine->nodes, 1);
  EXPECT_EQ(machine->devices(), 8);
  EXPECT_EQ(machine->device.cores, 1);
  EXPECT_EQ(machine->device.peakFlops(Precision::F32), 1e9);
  EXPECT_EQ(machine->device.peakFlops(Precision::F64), std::nullopt);
  EXPECT_EQ(machine->device.memoryBytes, int64_t(1) << 30);
  EXPECT_EQ(machine->device.memoryBandwidth, 1e9);
  ASSERT_TRUE(machine->nodeLink.has_value());
  EXPECT_EQ(machine->nodeLink->name, "bus");
  EXPECT_EQ(machine->nodeLink->latency, 1e-6);
  EXPECT_EQ(machine->nodeLink->bandwidth, 1e9);
  EXPECT_FALSE(machine->clusterLink.has_value());
}

TEST(Machine, NodesAndPrecisions) {
  std::string text = with(machineText, "F32 flops: 1e9 }",
                          "F32 flops: 1e9 } peak_flops { precision: F64 flops: 5e8 } "
                          "peak_flops { precision: BF16 flops: 3e9 } cores: 4");
  Result<MachineSpec> machine =
      parseMachine(text + "nodes: 3 links { name: \"net\" scope: CLUSTER latency_seconds: 0 "
                          "bandwidth_bytes_per_second: 7 }");
  ASSERT_TRUE(bool(machine)) << errors(machine);
  EXPECT_EQ(machine->devices(), 24);
  EXPECT_EQ(machine->device.cores, 4);
  EXPECT_EQ(machine->device.peakFlops(Precision::F64), 5e8);
  EXPECT_EQ(machine->device.peakFlops(Precision::BF16), 3e9);
  EXPECT_EQ(machine->clusterLink->bandwidth, 7);
}

TEST(Machine, R1Version) {
  EXPECT_EQ(changed("version: 1", "version: 7"), "machine_r1: h:1:1: version: expected 1, got 7\n");
}

TEST(Machine, R2Names) {
  EXPECT_EQ(changed("name: \"host\"\n", ""), "machine_r2: h: name: missing required field\n");
  EXPECT_EQ(changed("name: \"core\"\n", "\n"),
            "machine_r2: h:4:1: device.name: missing required field\n");
  EXPECT_EQ(changed("\"bus\"", "\"\""), "machine_r2: h:10:9: links[0].name: expected 1 to 64 "
                                        "letters, digits or any of '._-', got ''\n");
}

TEST(Machine, R3MissingFields) {
  EXPECT_EQ(errors(parseMachine("version: 1 name: \"h\"", "h")),
            "machine_r3: h: devices_per_node: missing required field\n"
            "machine_r3: h: device: missing required field\n");
  EXPECT_EQ(changed("memory_bytes: 1073741824\n", "\n"),
            "machine_r3: h:4:1: device.memory_bytes: missing required field\n");
  EXPECT_EQ(changed("flops: 1e9", ""),
            "machine_r3: h:6:3: device.peak_flops[0].flops: missing required field\n");
  EXPECT_EQ(changed("latency_seconds: 1e-6", ""),
            "machine_r3: h:10:1: links[0].latency_seconds: missing required field\n");
}

TEST(Machine, R4Ranges) {
  EXPECT_EQ(changed("1073741824", "1"), "machine_r4: h:7:3: device.memory_bytes: expected a number "
                                        "from 1048576 to 1125899906842624, got 1\n");
  EXPECT_EQ(
      changed("memory_bytes: 1073741824", "memory_bytes: 1073741824 cuda { multiprocessors: 0 "
                                          "library_bytes: -1 }"),
      "machine_r4: h:7:35: device.cuda.multiprocessors: expected a number from 1 to 1024, got "
      "0\nmachine_r4: h:7:54: device.cuda.library_bytes: expected a number from 0 to "
      "1099511627776, got -1\n");
  EXPECT_EQ(changed("memory_bytes: 1073741824", "memory_bytes: 1073741824 cuda { multiprocessors: "
                                                "4 collective_multiprocessors: 4 }"),
            "machine_r4: h:7:54: device.cuda.collective_multiprocessors: expected a number from 0 "
            "to 3, got 4\n");
  EXPECT_EQ(changed("flops: 1e9", "flops: 0"), "machine_r4: h:6:31: device.peak_flops[0].flops: "
                                               "expected a number above 0 to 1e+18, got 0\n");
  EXPECT_NE(changed("per_second: 1e9", "per_second: nan"), "");
  EXPECT_NE(changed("1e-6", "-1"), "");
  EXPECT_NE(changed("devices_per_node: 8", "devices_per_node: 0"), "");
  EXPECT_NE(changed("version: 1", "version: 1 nodes: 65537"), "");
  EXPECT_NE(changed("memory_bytes", "cores: 0 memory_bytes"), "");
  EXPECT_NE(errors(parseMachine(with(machineText, "bandwidth_bytes_per_second: 1e9 }",
                                     "bandwidth_bytes_per_second: -1 }"))),
            "");
}

TEST(Machine, R5PeakFlops) {
  EXPECT_EQ(changed("peak_flops { precision: F32 flops: 1e9 }", ""),
            "machine_r5: h:4:1: device.peak_flops: missing, expected at least one entry\n");
  EXPECT_EQ(changed("memory_bytes", "peak_flops { precision: F32 flops: 2e9 } memory_bytes"),
            "machine_r5: h:7:16: device.peak_flops[1].precision: expected one entry for each "
            "precision, got a second one for F32\n");
}

/// The machine with `entries` in `device.measured`.
static std::string measuring(const std::string &entries) {
  return with(machineText, "memory_bytes", "measured { " + entries + " } memory_bytes");
}

static std::string errorsOf(const std::string &entries) {
  return errors(parseMachine(measuring(entries), "h"));
}

TEST(Machine, MeasuredListsAreRead) {
  Result<MachineSpec> machine = parseMachine(measuring(
      "products { precision: F64 m: 1 n: 2 k: 3 flops: 4 } memory { bytes: 5 bytes_per_second: 6 } "
      "kernels { kind: \"norm_grad\" precision: F32 flops: 7 } "
      "kernels { kind: \"attention\" precision: BF16 flops: 11 positions: 12 features: 13 } "
      "kernels { kind: \"norm\" precision: BF16 bytes_per_second: 14 } "
      "collectives { kind: ALL_TO_ALL ranks: 8 bytes: 9 seconds: 10 } launch_seconds: 0.5 "
      "rendezvous_seconds: 0.25 unaligned_share: 0.5 kernel_seconds: 0.125"));
  ASSERT_TRUE(bool(machine)) << errors(machine);
  const MeasuredSpec &measured = machine->device.measured;
  ASSERT_EQ(measured.matmuls.size(), 1u);
  EXPECT_EQ(measured.matmuls[0].precision, Precision::F64);
  EXPECT_EQ(measured.matmuls[0].m + 10 * measured.matmuls[0].n + 100 * measured.matmuls[0].k, 321);
  EXPECT_EQ(measured.matmuls[0].flops, 4);
  ASSERT_EQ(measured.memory.size(), 1u);
  EXPECT_EQ(measured.memory[0].bytes, 5);
  EXPECT_EQ(measured.memory[0].bytesPerSecond, 6);
  ASSERT_EQ(measured.kernels.size(), 3u);
  EXPECT_EQ(measured.kernels[0].kind, "norm_grad");
  EXPECT_EQ(measured.kernels[0].flops, 7);
  EXPECT_EQ(measured.kernels[0].bytesPerSecond, std::nullopt);
  EXPECT_EQ(measured.kernels[0].positions, std::nullopt);
  EXPECT_EQ(measured.kernels[1].precision, Precision::BF16);
  EXPECT_EQ(measured.kernels[1].flops, 11);
  EXPECT_EQ(measured.kernels[1].positions, 12);
  EXPECT_EQ(measured.kernels[1].features, 13);
  EXPECT_EQ(measured.kernels[2].flops, std::nullopt);
  EXPECT_EQ(measured.kernels[2].bytesPerSecond, 14);
  ASSERT_EQ(measured.collectives.size(), 1u);
  EXPECT_EQ(measured.collectives[0].kind, rt::CollectiveKind::AllToAll);
  EXPECT_EQ(measured.collectives[0].ranks, 8);
  EXPECT_EQ(measured.collectives[0].bytes, 9);
  EXPECT_EQ(measured.collectives[0].seconds, 10);
  EXPECT_EQ(measured.launchSeconds, 0.5);
  EXPECT_EQ(measured.kernelSeconds, 0.125);
  EXPECT_EQ(measured.rendezvousSeconds, 0.25);
  EXPECT_EQ(measured.unalignedShare, 0.5);
  EXPECT_EQ(parseMachine(measuring(""))->device.measured.unalignedShare, 1);
  EXPECT_EQ(parseMachine(measuring(""))->device.measured.rendezvousSeconds, std::nullopt);
}

TEST(Machine, R4MeasuredRanges) {
  EXPECT_EQ(errorsOf("memory { bytes: 0 bytes_per_second: 1 }"),
            "machine_r4: h:7:23: device.measured.memory[0].bytes: expected a number from 1 to "
            "1125899906842624, got 0\n");
  EXPECT_NE(errorsOf("memory { bytes: 1 bytes_per_second: 0 }"), "");
  EXPECT_NE(errorsOf("products { precision: F32 m: 0 n: 1 k: 1 flops: 1 }"), "");
  EXPECT_NE(errorsOf("products { precision: F32 m: 1 n: 1 k: 4294967296 flops: 1 }"), "");
  EXPECT_NE(errorsOf("kernels { kind: \"a b\" precision: F32 flops: 1 }"), "");
  EXPECT_NE(errorsOf("collectives { kind: ALL_GATHER ranks: 2 bytes: 1 seconds: 0 }"), "");
  EXPECT_NE(errorsOf("kernels { kind: \"map\" precision: F32 bytes_per_second: 0 }"), "");
  EXPECT_NE(errorsOf("kernels { kind: \"map\" precision: F32 flops: 1 positions: 0 features: 1 }"),
            "");
  EXPECT_NE(errorsOf("launch_seconds: -1"), "");
  EXPECT_NE(errorsOf("kernel_seconds: 2"), "");
  EXPECT_NE(errorsOf("rendezvous_seconds: 2"), "");
  EXPECT_NE(errorsOf("unaligned_share: 0"), "");
  EXPECT_NE(errorsOf("unaligned_share: 1.5"), "");
}

TEST(Machine, R7MeasuredFields) {
  EXPECT_EQ(errorsOf("memory { bytes: 1 }"),
            "machine_r7: h:7:14: device.measured.memory[0].bytes_per_second: missing required "
            "field\n");
  EXPECT_NE(errorsOf("products { m: 1 n: 1 k: 1 flops: 1 }"), "");
  EXPECT_NE(errorsOf("kernels { kind: \"map\" flops: 1 }"), "");
  EXPECT_NE(errorsOf("collectives { kind: ALL_GATHER ranks: 2 bytes: 1 }"), "");
}

TEST(Machine, R11MeasuredKernels) {
  EXPECT_EQ(errorsOf("kernels { kind: \"map\" precision: F32 }"),
            "machine_r11: h:7:14: device.measured.kernels[0].flops: missing, expected it or "
            "bytes_per_second\n");
  EXPECT_EQ(errorsOf("kernels { kind: \"map\" precision: F32 flops: 1 positions: 2 }"),
            "machine_r11: h:7:14: device.measured.kernels[0].features: missing, expected positions "
            "and features together\n");
  EXPECT_NE(errorsOf("kernels { kind: \"map\" precision: F32 flops: 1 features: 2 }"), "");
}

TEST(Machine, R8MeasuredTwice) {
  EXPECT_EQ(errorsOf("memory { bytes: 1 bytes_per_second: 1 } memory { bytes: 1 "
                     "bytes_per_second: 2 }"),
            "machine_r8: h:7:63: device.measured.memory[1].bytes: expected one entry for each "
            "number of bytes, got a second one\n");
  auto twice = [](const std::string &entry) { return errorsOf(entry + " " + entry); };
  EXPECT_NE(twice("products { precision: F32 m: 1 n: 1 k: 1 flops: 1 }"), "");
  EXPECT_NE(twice("kernels { kind: \"map\" precision: F32 flops: 1 }"), "");
  EXPECT_NE(twice("kernels { kind: \"map\" precision: F32 flops: 1 positions: 2 features: 3 }"),
            "");
  EXPECT_EQ(errorsOf("kernels { kind: \"map\" precision: F32 flops: 1 positions: 2 features: 3 } "
                     "kernels { kind: \"map\" precision: F32 flops: 1 positions: 2 features: 4 }"),
            "");
  EXPECT_NE(twice("collectives { kind: ALL_GATHER ranks: 2 bytes: 1 seconds: 1 }"), "");
}

TEST(Machine, R9MeasuredRanks) {
  EXPECT_EQ(errorsOf("collectives { kind: ALL_GATHER ranks: 9 bytes: 1 seconds: 1 }"),
            "machine_r9: h:7:45: device.measured.collectives[0].ranks: expected a number from 2 to "
            "8, got 9\n");
  std::string cluster = "links { name: \"b\" scope: CLUSTER latency_seconds: 0 "
                        "bandwidth_bytes_per_second: 1 }";
  auto across = [&](const std::string &entry) {
    return errors(parseMachine(
        measuring("collectives { kind: ALL_GATHER bytes: 1 seconds: 1 " + entry + " }") + cluster,
        "h"));
  };
  EXPECT_EQ(across("ranks: 2 nodes: 2") + across("ranks: 16 nodes: 2"), "");
  EXPECT_EQ(across("ranks: 17 nodes: 2"),
            "machine_r9: h:7:65: device.measured.collectives[0].ranks: expected a number from 2 to "
            "16, got 17\n");
  EXPECT_EQ(
      across("ranks: 3 nodes: 2"),
      "machine_r9: h:7:65: device.measured.collectives[0].ranks: expected a multiple of nodes "
      "2, got 3\n");
  EXPECT_EQ(across("ranks: 2 nodes: 0"),
            "machine_r4: h:7:74: device.measured.collectives[0].nodes: expected a number from 1 to "
            "65536, got 0\n");
  EXPECT_EQ(
      errorsOf("collectives { kind: ALL_GATHER ranks: 2 nodes: 2 bytes: 1 seconds: 1 }"),
      "machine_r9: h:7:54: device.measured.collectives[0].nodes: has no effect where there is "
      "no link of scope CLUSTER\n");
  std::string alone = with(measuring("rendezvous_seconds: 0 collectives { kind: ALL_GATHER ranks: "
                                     "2 bytes: 1 seconds: 1 }"),
                           "devices_per_node: 8", "devices_per_node: 1");
  std::string text = errors(parseMachine(alone.substr(0, alone.find("links")), "h"));
  EXPECT_NE(text.find("collectives[0].ranks: has no effect where devices_per_node is 1"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("rendezvous_seconds: has no effect where devices_per_node is 1"),
            std::string::npos)
      << text;
}

TEST(Machine, R6Links) {
  EXPECT_EQ(changed("devices_per_node: 8", "devices_per_node: 1"),
            "machine_r6: h:10:21: links[0].scope: has no effect where devices_per_node is 1\n");
  EXPECT_EQ(
      changed("scope: NODE", "scope: CLUSTER"),
      "machine_r6: h:10:1: links: expected a link of scope NODE where devices_per_node is 8, got "
      "none\n");
  std::string second = "links { name: \"b\" scope: NODE latency_seconds: 0 "
                       "bandwidth_bytes_per_second: 1 }";
  EXPECT_EQ(errors(parseMachine(machineText + second, "h")),
            "machine_r6: h:11:19: links[1].scope: expected one link of scope NODE, got a second "
            "one\n");
  std::string cluster = with(second, "NODE", "CLUSTER");
  EXPECT_EQ(errors(parseMachine(machineText + cluster, "h")), "");
  EXPECT_EQ(
      errors(parseMachine(machineText + cluster + cluster, "h")),
      "machine_r6: h:11:102: links[2].scope: expected one link of scope CLUSTER, got a second "
      "one\n");
  EXPECT_EQ(changed("devices_per_node", "nodes: 2 devices_per_node"),
            "machine_r6: h:10:1: links: expected a link of scope CLUSTER where nodes is 2, got "
            "none\n");
}

TEST(Machine, R10Nodes) {
  MachineSpec alone = *parseMachine(machineText, "h");
  std::string cluster = "links { name: \"b\" scope: CLUSTER latency_seconds: 0 "
                        "bandwidth_bytes_per_second: 1 }";
  MachineSpec joined = *parseMachine(machineText + cluster, "h");
  EXPECT_EQ(withNodes(alone, 1)->devices(), 8);
  EXPECT_EQ(withNodes(joined, 16)->devices(), 128);
  EXPECT_EQ(parseMachine(withNodes(joined, 16)->text)->devices(), 128);
  EXPECT_EQ(withNodes(joined, 1)->devices(), 8);
  EXPECT_EQ(errors(withNodes(alone, 2)),
            "machine_r10: --nodes: expected 1, as machine host has no link of scope CLUSTER, got "
            "2\n");
  EXPECT_EQ(errors(withNodes(joined, 0)),
            "machine_r10: --nodes: expected a number from 1 to 65536, got 0\n");
  EXPECT_NE(errors(withNodes(joined, 65537)), "");
}

TEST(Machine, WordsOfCollectives) {
  std::string words;
  for (const rt::CollectiveKindEntry &entry : rt::kGroupKinds) {
    words += std::string(wordOf(entry.kind)) + " ";
  }
  EXPECT_EQ(words, "ALL_REDUCE ALL_GATHER REDUCE_SCATTER ALL_TO_ALL PERMUTE ");
}
