//===- PredictProgramTest.cpp - predicted times of a program ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Cost/PredictProgram.h"
#include "weft/Cost/Predictor.h"

#include <gtest/gtest.h>

using namespace weft;
using namespace weft::cost;

namespace {

desc::MachineSpec sheet(int64_t nodes) {
  desc::MachineSpec machine;
  machine.nodes = nodes;
  machine.devicesPerNode = 4 / nodes;
  machine.device.peakFlopsF32 = 1e9;
  machine.device.peakFlopsF64 = 1e8;
  machine.device.memoryBandwidth = 1e9;
  machine.nodeLink = {"bus", 0, 1e8};
  machine.clusterLink = {"net", 0, 1e6};
  return machine;
}

/// Four ranks, a=2 b=2; one instruction of each kind.
rt::Program program() {
  rt::Program program;
  program.mesh = {{"a", 2}, {"b", 2}};
  program.labels = {""};
  program.buffers = {{8000, 0, rt::BufferClass::Activation, false, rt::ElementType::F64},
                     {4, 8000, rt::BufferClass::Activation, false, rt::ElementType::F32}};
  program.kernels = {{"kernel", "map", ""}};
  program.matmuls = {{rt::ElementType::F32, false, false, 10, 10, 10, 10, 10, 10}};
  program.collectives = {
      {rt::CollectiveKind::AllGather, rt::ReductionKind::Sum, rt::ElementType::F32, {1}, {1000}},
      {rt::CollectiveKind::AllGather, rt::ReductionKind::Sum, rt::ElementType::F32, {0}, {1000}}};
  program.observations = {{"loss", {rt::ElementType::F32, {}, {}}}};
  program.stepBody() = {
      {rt::Opcode::Kernel, 0, 0, {{0, rt::Access::Write}, {1, rt::Access::Write}}, {}, {1e6, 8}},
      {rt::Opcode::Matmul, 0, 0, {}, {}, {2000, 8}},
      {rt::Opcode::Collective, 0, 0, {}, {}, {0, 8}},
      {rt::Opcode::Collective, 1, 0, {}, {}, {0, 8}},
      {rt::Opcode::Observe, 0, 0, {}, {}, {}},
      {rt::Opcode::Agree, 0, 0, {}, {}, {}}};
  return program;
}

TEST(PredictProgram, EveryInstructionGetsItsTime) {
  rt::Program made = program();
  predictProgram(made, sheet(1));
  EXPECT_DOUBLE_EQ(made.stepBody()[0].cost.seconds, 1e-2); // By its larger result, float64.
  EXPECT_DOUBLE_EQ(made.stepBody()[1].cost.seconds, 2e-6);
  EXPECT_DOUBLE_EQ(made.stepBody()[2].cost.seconds, 4e-5);
  EXPECT_DOUBLE_EQ(made.stepBody()[3].cost.seconds, 4e-5);
  EXPECT_DOUBLE_EQ(made.stepBody()[4].cost.seconds, 0);
  EXPECT_EQ(made.stepBody()[0].cost.flops, 1e6);
  EXPECT_DOUBLE_EQ(stepSeconds(made), 1e-2 + 2e-6 + 8e-5);
}

TEST(PredictProgram, WhatADeviceTakesIsTheMachines) {
  rt::Program made = program();
  desc::CudaSpec cuda;
  cuda.contextBytes = 500;
  cuda.communicatorBytes = 70;
  predictDevice(made, cuda);
  std::vector<std::optional<uint64_t>> bytes;
  for (const rt::DeviceUse &use : made.deviceUses) {
    bytes.push_back(use.bytes);
  }
  std::vector<std::optional<uint64_t>> expected = {500, {}, 70, 0, {}, {}};
  EXPECT_EQ(bytes, expected);
  EXPECT_EQ(made.deviceBytes(), 570u);
  made.mesh = {{"a", 1}, {"b", 1}};
  predictDevice(made, {});
  EXPECT_EQ(made.deviceUses[2].bytes, 0u); // Nobody to communicate with.
}

TEST(PredictProgram, AStepEndsWithItsLastStream) {
  rt::Program made = program();
  predictProgram(made, sheet(1));
  double serial = serialSeconds(made);
  EXPECT_EQ(stepSeconds(made), serial);
  made.stepBody()[2].stream = made.stepBody()[3].stream = rt::Stream::Communication;
  // Two collectives read and write 8 bytes each.
  EXPECT_DOUBLE_EQ(stepSeconds(made), 1e-2 + 2e-6 + 32e-9);
  EXPECT_EQ(serialSeconds(made), serial);
}

TEST(PredictProgram, AKernelIsOfTheFormatThatItReads) {
  rt::Program made = program();
  desc::MachineSpec machine = sheet(1);
  machine.device.measured.kernels = {{"map", desc::Precision::BF16, 1e10}};
  made.buffers.push_back({800, 8004, rt::BufferClass::Activation, false, rt::ElementType::BF16});
  auto secondsOf = [&](std::vector<rt::Operand> operands) {
    made.stepBody()[0].operands = std::move(operands);
    predictProgram(made, machine);
    return made.stepBody()[0].cost.seconds;
  };
  // The larger float64 is only written; float32 is read, but less of it.
  EXPECT_DOUBLE_EQ(
      secondsOf({{1, rt::Access::Read}, {2, rt::Access::Read}, {0, rt::Access::Write}}), 1e-4);
  EXPECT_DOUBLE_EQ(secondsOf({{1, rt::Access::Read}, {0, rt::Access::Write}}), 1e-3);
  EXPECT_DOUBLE_EQ(secondsOf({{2, rt::Access::Write}}), 1e-4);
  EXPECT_DOUBLE_EQ(secondsOf({}), 1e-3);
}

TEST(PredictProgram, AttentionOfALibraryGoesByItsShape) {
  rt::Program made = program();
  desc::MachineSpec machine = sheet(1);
  machine.device.measured.kernels = {
      {"attention", desc::Precision::F32, 1e8, std::nullopt, 1024, 64},
      {"attention", desc::Precision::F32, 4e8, std::nullopt, 4096, 64},
      {"attention", desc::Precision::F32, 1e7}};
  made.kernels[0].kind = "attention";
  made.stepBody()[0].operands = {{1, rt::Access::Read}};
  predictProgram(made, machine);
  EXPECT_DOUBLE_EQ(made.stepBody()[0].cost.seconds, 1e-1);
  made.kernels[0].attention.emplace();
  made.kernels[0].attention->keys = 4096;
  made.kernels[0].attention->features = 64;
  predictProgram(made, machine);
  EXPECT_DOUBLE_EQ(made.stepBody()[0].cost.seconds, 2.5e-3);
}

TEST(PredictProgram, Fp8MatmulsGoByTheirRate) {
  rt::Program made = program();
  made.matmuls[0].type = rt::ElementType::F8E4M3;
  desc::MachineSpec machine = sheet(1);
  machine.device.peakFlopsF8 = 4e9;
  predictProgram(made, machine);
  EXPECT_DOUBLE_EQ(made.stepBody()[1].cost.seconds, 5e-7);
}

TEST(PredictProgram, CollectivesTakeMultiprocessorsFromComputation) {
  rt::Program made = program();
  desc::MachineSpec machine = sheet(2);
  machine.device.cuda.multiprocessors = 100;
  machine.device.cuda.collectiveMultiprocessors = 15;
  predictProgram(made, machine);
  EXPECT_EQ(made.stepBody()[0].cost.share, 0);
  EXPECT_EQ(made.stepBody()[1].cost.share, 0);
  EXPECT_EQ(made.stepBody()[2].cost.share, 0.15);
}

TEST(PredictProgram, ProcessorsOfHostsMoveTheBytesOfCollectives) {
  rt::Program made = program();
  desc::MachineSpec machine = sheet(2);
  machine.device.memoryBandwidth = 1e9;
  made.stepBody()[2].cost.bytes = 1e4; // In 4e-5 seconds: each byte is read and written.
  made.stepBody()[3].cost.bytes = 1e9;
  predictProgram(made, machine);
  EXPECT_DOUBLE_EQ(made.stepBody()[2].cost.share, 0.5);
  EXPECT_EQ(made.stepBody()[3].cost.share, 1);
}

TEST(PredictProgram, GroupsOfSeveralNodesGoByTheirLink) {
  rt::Program made = program();
  predictProgram(made, sheet(2));
  EXPECT_DOUBLE_EQ(made.stepBody()[2].cost.seconds, 4e-5); // Ranks 0 and 1, on one node.
  EXPECT_DOUBLE_EQ(made.stepBody()[3].cost.seconds, 4e-3); // Ranks 0 and 2, on two.
}

/// The ranks of a class follow those of the class before it, so that its groups may lie elsewhere.
TEST(PredictProgram, RanksOfAClassAreNumberedBehindOthers) {
  rt::Program made = program();
  made.mesh = {{"a", 1}, {"b", 2}};
  made.rankClasses = 2;
  desc::MachineSpec machine = sheet(2);
  machine.devicesPerNode = 3;
  predictProgram(made, machine);
  EXPECT_DOUBLE_EQ(made.stepBody()[2].cost.seconds, 4e-5); // Ranks 0 and 1, on one node.
  made.rankClass = 1;
  predictProgram(made, machine);
  EXPECT_DOUBLE_EQ(made.stepBody()[2].cost.seconds, 4e-3); // Ranks 2 and 3, on two.
}

TEST(PredictProgram, CollectivesAcrossClassesGoByTheNodesOfTheirRanks) {
  rt::Program made = program();
  made.mesh = {{"a", 2}};
  made.rankClasses = 4;
  made.collectives = {
      {.kind = rt::CollectiveKind::Transfer, .shape = {1000}, .classes = {0, 1}, .number = 1},
      {.kind = rt::CollectiveKind::AllGather,
       .shape = {1000},
       .classes = {0, 1, 2, 3},
       .number = 2}};
  auto secondsOf = [&](int64_t devicesPerNode, std::vector<uint32_t> classes) {
    desc::MachineSpec machine = sheet(2);
    machine.devicesPerNode = devicesPerNode;
    made.rankClass = classes[0];
    made.collectives[0].classes = std::move(classes);
    predictProgram(made, machine);
    return made.stepBody()[2].cost.seconds;
  };
  EXPECT_DOUBLE_EQ(secondsOf(8, {0, 3}), 4e-5);
  EXPECT_DOUBLE_EQ(secondsOf(4, {0, 1}), 4e-5); // Ranks 0 and 2, and 1 and 3, on the first node.
  EXPECT_DOUBLE_EQ(secondsOf(4, {3, 2}), 4e-5); // The same, on the second.
  EXPECT_DOUBLE_EQ(secondsOf(4, {1, 2}), 4e-3);
  EXPECT_DOUBLE_EQ(secondsOf(3, {0, 1}), 4e-3); // Ranks 1 and 3; 0 and 2 are on one node.
  // One rank of each class, two on each of two nodes: two rings, which cross twice.
  secondsOf(4, {0, 1});
  EXPECT_DOUBLE_EQ(made.stepBody()[3].cost.seconds, 3 * 4000 / (2 * 1e6));
}

TEST(PredictProgram, TheRanksOfAllClassesAgree) {
  rt::Program made = program();
  made.rankClasses = 2;
  desc::MachineSpec machine = sheet(1);
  machine.clusterLink->latency = 1e-3;
  machine.nodeLink->latency = 1e-6;
  predictProgram(made, machine); // Eight ranks, on two nodes.
  Predictor predictor(machine);
  EXPECT_EQ(made.stepBody()[4].cost.seconds, 0);
  EXPECT_EQ(made.stepBody()[5].cost.seconds, predictor.rendezvous({8, 2}));
  EXPECT_GT(made.stepBody()[5].cost.seconds, 1e-3);
}

} // namespace
