//===- MachineTest.cpp - rules and defaults of machines -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Description/Machine.h"

#include "Helpers.h"

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

TEST(Machine, R6Links) {
  EXPECT_EQ(changed("devices_per_node: 8", "devices_per_node: 1"),
            "machine_r6: h:10:21: links[0].scope: has no effect where devices_per_node is 1\n");
  EXPECT_EQ(
      changed("scope: NODE", "scope: CLUSTER"),
      "machine_r6: h:10:1: links: expected a link of scope NODE where devices_per_node is 8, got "
      "none\n"
      "machine_r6: h:10:21: links[0].scope: has no effect where nodes is 1\n");
  std::string second = "links { name: \"b\" scope: NODE latency_seconds: 0 "
                       "bandwidth_bytes_per_second: 1 }";
  EXPECT_EQ(errors(parseMachine(machineText + second, "h")),
            "machine_r6: h:11:19: links[1].scope: expected one link of scope NODE, got a second "
            "one\n");
}
