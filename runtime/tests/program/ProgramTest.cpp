//===- ProgramTest.cpp - ranks, layouts, bytes and text of programs ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "support/Random.h"
#include "tests/ErrorOf.h"
#include "tests/Toy.h"

#include <cmath>
#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace weft::rt;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

/// Reads the bytes of a good program.
Program readBack(std::span<const char> bytes) {
  Result<Programs> programs = deserialize(bytes);
  EXPECT_EQ(errorOf(programs), "");
  return programs ? programs->front() : Program();
}

std::string faultOf(const Program &program) { return errorOf(checkWellFormed(program)); }

TEST(Program, TheShareOfPeakIsOfWhatEachMultiplies) {
  Program program = makeToy(1, 1);
  EXPECT_EQ(program.stepPeakFlopsPerRank(), 1e9);
  program.matmuls = {kToyBytes, {}};
  Instruction bytes, numbers;
  bytes.opcode = numbers.opcode = Opcode::Matmul;
  numbers.target = 1;
  bytes.cost.flops = 3e6;
  numbers.cost.flops = 1e6;
  program.stepBody() = {bytes, numbers};
  program.peakFlopsPerRank = 100e6;
  program.peakByteFlopsPerRank = 200e6;
  EXPECT_EQ(program.peakFlopsOf(bytes), 200e6);
  EXPECT_EQ(program.peakFlopsOf(numbers), 100e6);
  // 15 ms and 10 ms.
  EXPECT_DOUBLE_EQ(program.stepPeakFlopsPerRank(), 4e6 / 25e-3);
  program.stepBody() = {bytes};
  EXPECT_DOUBLE_EQ(program.stepPeakFlopsPerRank(), 200e6);
  program.stepBody() = {};
  EXPECT_EQ(program.stepPeakFlopsPerRank(), 100e6);
  program.peakFlopsPerRank = 0;
  EXPECT_EQ(program.stepPeakFlopsPerRank(), 0);
}

TEST(Program, EpiloguesOutliveTheirBytes) {
  Program program = makeToy(1, 1);
  Matmul matmul = {ElementType::BF16, false, true, 8, 16, 24, 24, 24, 16};
  matmul.epilogue = {
      .hasAddend = true, .hasBias = true, .activation = Epilogue::Activation::Gelu, .hasAux = true};
  matmul.workspaceBytes = 4096;
  program.matmuls.push_back(matmul);
  matmul.epilogue = {.activation = Epilogue::Activation::GeluGradient, .hasAux = true};
  program.matmuls.push_back(matmul);
  matmul.epilogue = {.sums = Epilogue::Sums::OfB};
  program.matmuls.push_back(matmul);
  program.matmuls.push_back({.type = ElementType::F8E5M2,
                             .transposeB = true,
                             .m = 16,
                             .n = 32,
                             .k = 48,
                             .lda = 48,
                             .ldb = 48,
                             .ldc = 32,
                             .isResultF32 = true,
                             .fp8B = ElementType::F8E4M3,
                             .epilogue = {.hasAddend = true}});
  Program read = readBack(serialize(program));
  const char *expected[] = {
      "matmul bf16 8x16x24 B^T ld 24/24/16 plus bias gelu keeping workspace 4096",
      "matmul bf16 8x16x24 B^T ld 24/24/16 gelu-gradient workspace 4096",
      "matmul bf16 8x16x24 B^T ld 24/24/16 sums-B workspace 4096",
      "matmul f8e5m2 by f8e4m3 to f32 16x32x48 B^T ld 48/48/32 plus"};
  const size_t operands[] = {7, 5, 5, 6};
  size_t first = program.matmuls.size() - 4;
  for (uint32_t i = 0; i < 4; ++i) {
    Instruction instruction;
    instruction.opcode = Opcode::Matmul;
    instruction.target = uint32_t(first) + i;
    EXPECT_EQ(targetText(read, instruction), expected[i]);
    EXPECT_EQ(read.matmuls[first + i].operandCount(), operands[i]);
  }
}

TEST(Ranks, AreRowMajorOverTheMesh) {
  Program program;
  EXPECT_EQ(program.rankCount(), 1);
  program.mesh = {{"a", 2}, {"b", 3}, {"c", 4}};
  EXPECT_EQ(program.rankCount(), 24);
  EXPECT_THAT(program.coordinatesOf(23), ElementsAre(1, 2, 3));
  EXPECT_THAT(program.coordinatesOf(6), ElementsAre(0, 1, 2));
  auto ranksOver = [&](std::vector<uint32_t> axes) {
    return program.groupOf(6, {.axes = std::move(axes)}).ranks;
  };
  EXPECT_THAT(ranksOver({1}), ElementsAre(2, 6, 10));
  EXPECT_THAT(ranksOver({2, 0}), ElementsAre(4, 16, 5, 17, 6, 18, 7, 19));
  EXPECT_THAT(ranksOver({}), ElementsAre(6));
}

TEST(Ranks, OfAGroupHaveANumberByWhichAxesTheyDifferIn) {
  std::vector<Axis> mesh = {{"a", 2}, {"b", 1}, {"c", 4}};
  auto numberOver = [&](const std::vector<uint32_t> &axes) {
    return groupOver(axes, 5, mesh).number;
  };
  EXPECT_EQ(numberOver({0}), 1u);
  EXPECT_EQ(numberOver({2}), 4u);
  EXPECT_EQ(numberOver({2, 0}), numberOver({0, 1, 2}));
  EXPECT_EQ(numberOver({1}), 0u) << "a rank alone";
  EXPECT_EQ(groupOver(std::vector<uint32_t>{2}, 5, mesh).indexOf(5), 1u);
  EXPECT_THAT(allRanks(3).ranks, ElementsAre(0, 1, 2));
  EXPECT_GE(allRanks(3).number, kAxisGroups);
}

TEST(Layouts, CutDimensionsMajorToMinor) {
  const std::vector<Axis> mesh = {{"a", 2}, {"b", 3}};
  TensorLayout layout = {ElementType::F32, {12, 5}, {{1, 0}, {}}};
  EXPECT_THAT(localShape(layout, mesh), ElementsAre(2, 5));
  const int64_t coordinates[] = {1, 2};
  EXPECT_THAT(localOffset(layout, mesh, coordinates), ElementsAre(10, 0));
}

TEST(Layouts, ShardsOfWhatIsPaddedAreEqual) {
  const std::vector<Axis> mesh = {{"a", 2}, {"b", 3}};
  TensorLayout layout = {ElementType::F32, {10, 5}, {{1, 0}, {}}, {12, 5}};
  EXPECT_THAT(localShape(layout, mesh), ElementsAre(2, 5));
  const int64_t coordinates[] = {1, 2};
  EXPECT_THAT(localOffset(layout, mesh, coordinates), ElementsAre(10, 0));
}

TEST(Bytes, RoundTrip) {
  Program program = makeToy(2, 2);
  program.parameters[0].layout.globalShape = {250};
  program.parameters[0].layout.paddedShape = {256};
  program.matmuls.push_back({ElementType::BF16, true, false, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, true});
  program.stepBody()[0].cost = {3, 4, 5, 0.25};
  program.peakByteFlopsPerRank = 6;
  program.kernels[0].kind = "fill";
  std::vector<char> bytes = serialize(program);
  Program read = readBack(bytes);
  EXPECT_EQ(serialize(read), bytes);
  EXPECT_EQ(toText(read), toText(program));
  EXPECT_EQ(read.stepFlops, program.stepFlops);
  EXPECT_EQ(read.stepBody()[0].cost.flops, 3);
  EXPECT_EQ(read.stepBody()[0].cost.share, 0.25);
  EXPECT_EQ(read.kernels[0].kind, "fill");
}

TEST(Bytes, EveryDamageIsNoticed) {
  const std::vector<char> good = serialize(makeToy(2, 2));
  for (size_t i = 0; i < good.size(); ++i) {
    for (int bit : {0, 3, 7}) {
      std::vector<char> bad = good;
      bad[i] = char(bad[i] ^ (1 << bit));
      EXPECT_FALSE(deserialize(bad)) << "byte " << i << " bit " << bit;
    }
    EXPECT_FALSE(deserialize(std::span(good).first(i))) << "cut to " << i;
  }
  std::vector<char> longer = good;
  longer.push_back(0);
  EXPECT_THAT(errorOf(deserialize(longer)), HasSubstr("bytes after the header"));
}

TEST(Bytes, OtherVersionsAreRefused) {
  std::vector<char> bytes = serialize(makeToy(1, 1));
  bytes[8] = 99;
  EXPECT_EQ(errorOf(deserialize(bytes)),
            "the program has version 99, this runtime reads version 16");
}

/// Damage that the checksum misses must be found in the content, or be harmless.
TEST(Bytes, DamageUnderARightChecksumDoesNoHarm) {
  constexpr size_t header = 28;
  const std::vector<char> good = serialize(makeToy(2, 2));
  for (uint64_t trial = 0; trial < 20000; ++trial) {
    std::vector<char> bad = good;
    if (trial % 4 == 0) {
      bad.resize(header + randomBits(1, trial, 0) % (good.size() - header));
    }
    for (uint64_t change = 0; change <= trial % 3 && bad.size() > header; ++change) {
      uint64_t bits = randomBits(2, trial, change);
      bad[header + bits % (bad.size() - header)] = char(bits >> 56);
    }
    uint64_t length = bad.size() - header;
    uint64_t checksum = streamOf({bad.data() + header, length});
    std::memcpy(bad.data() + 12, &length, 8);
    std::memcpy(bad.data() + 20, &checksum, 8);
    Result<Programs> read = deserialize(bad);
    if (read) {
      EXPECT_EQ(errorOf(checkWellFormed(*read)), "");
      EXPECT_FALSE(toText(read->front()).empty());
    } else {
      EXPECT_NE(errorOf(read), "");
    }
  }
}

/// All parts; the sizes of libraries and code are unknown.
std::vector<DeviceUse> someDeviceUses() {
  return {{DevicePart::Context, 1000},      {DevicePart::Libraries, {}},
          {DevicePart::Communicators, 300}, {DevicePart::Inputs, 20},
          {DevicePart::Code, {}},           {DevicePart::Stacks, 0}};
}

TEST(Bytes, DeviceUsesArriveAsTheyWere) {
  Program program = makeToy(1, 1);
  program.deviceUses = someDeviceUses();
  Program read = readBack(serialize(program));
  EXPECT_EQ(toText(read), toText(program));
  EXPECT_THAT(toText(read),
              HasSubstr("\nbeside it context 1000\nbeside it libraries unknown\n"
                        "beside it communicators 300\nbeside it inputs 20\nbeside it code unknown\n"
                        "beside it stacks 0\n"));
  EXPECT_EQ(read.deviceBytes(), read.arenaBytes + 1320);
}

TEST(WellFormed, EachPartOfADevicesMemoryStandsOnce) {
  Program program = makeToy(1, 1);
  program.deviceUses = {{DevicePart::Context, 1}};
  EXPECT_EQ(faultOf(program), "expected 6 parts of a device's memory, got 1");
  program.deviceUses = someDeviceUses();
  program.deviceUses[1].part = DevicePart::Code;
  EXPECT_EQ(faultOf(program), "part 1 of a device's memory is 'code', expected 'libraries'");
  program.deviceUses = someDeviceUses();
  program.deviceUses[5].bytes = (uint64_t(1) << 50) + 1;
  EXPECT_EQ(faultOf(program),
            "'stacks' takes 1125899906842625 bytes of a device, expected at most 2^50");
}

TEST(Text, OneInstructionALine) {
  std::string text = toText(makeToy(2, 2));
  EXPECT_THAT(text, HasSubstr("program 'toy' plan 0123456789abcdef\nmesh data=2 model=2\n"
                              "batch 8 sequence 16 vocabulary 256\n"));
  EXPECT_THAT(text, HasSubstr("\nbuffer %0 f64 1024 at 0 parameter persistent\n"));
  EXPECT_THAT(text, HasSubstr("\nparameter 'table' f64 [256{model}] in %0\n"));
  EXPECT_THAT(text, HasSubstr("\ninput 'tokens' i32 [8{data}, 16] in %2\n"));
  EXPECT_THAT(text, HasSubstr("\n  0: kernel @toy_gradient %0 %2 %3 -> %5 %6 [128, 64, 2]  "
                              "\"table: loss and gradient\"\n"));
  EXPECT_THAT(text,
              HasSubstr("\n  2: all-reduce sum f64 [128] over {data} %6 -> %6 on communication "
                        "after 0  \"table: sum of gradients\"\n"));
  EXPECT_THAT(text, HasSubstr("\n  4: observe 'gradient/table' f64 [256{model}] %6 after 2  "));
}

TEST(Text, MatmulsAndCollectives) {
  Program program = makeToy(2, 2);
  program.matmuls = {{ElementType::F32, true, false, 2, 3, 4, 2, 3, 3, 5, 8, 12, 6}};
  program.buffers.push_back({1024, 0, BufferClass::Activation, false, ElementType::F32});
  auto last = uint32_t(program.buffers.size() - 1);
  program.collectives.push_back(
      {CollectiveKind::AllToAll, ReductionKind::Sum, ElementType::F64, {0, 1}, {4, 2}, 0, 1});
  program.stepBody().push_back({Opcode::Matmul, 0, 0, {{last}, {last}, {last, Access::Write}}, {}});
  program.stepBody().push_back({Opcode::Collective,
                                uint32_t(program.collectives.size() - 1),
                                0,
                                {{6}, {0, Access::Write}},
                                {}});
  program.collectives.push_back(
      {CollectiveKind::Permute, ReductionKind::Sum, ElementType::F64, {0}, {4, 2}, 0, 0, {1, 0}});
  program.stepBody().push_back({Opcode::Collective,
                                uint32_t(program.collectives.size() - 1),
                                0,
                                {{6}, {0, Access::Write}},
                                {}});
  ASSERT_EQ(faultOf(program), "");
  EXPECT_THAT(toText(program), HasSubstr("permute f64 [4, 2] over {data} from [1, 0] %6 -> %0"));
  EXPECT_THAT(toText(program), HasSubstr("matmul f32 2x3x4 A^T ld 2/3/3 batch 5 strides 8/12/6 "
                                         "%10 %10 -> %10"));
  EXPECT_THAT(toText(program),
              HasSubstr("all-to-all f64 [4, 2] over {data, model} dim 0 to 1 %6 -> %0"));
}

/// A change to the program, and the error that it causes.
struct Fault {
  void (*make)(Program &);
  const char *message;
};

class Faults : public testing::TestWithParam<Fault> {};

TEST_P(Faults, AreNamed) {
  Program program = makeToy(2, 2);
  ASSERT_EQ(faultOf(program), "");
  GetParam().make(program);
  EXPECT_THAT(faultOf(program), HasSubstr(GetParam().message));
}

const Fault kFaults[] = {
    {[](Program &p) { p.mesh[0].size = 0; }, "mesh axis 'data' has size 0, expected at least 1"},
    {[](Program &p) { p.mesh[1].name = "data"; }, "two mesh axes have the name 'data'"},
    {[](Program &p) { p.mesh[0].size = int64_t(1) << 62; }, "more than 16777216 ranks"},
    {[](Program &p) { p.arenaBytes = ~uint64_t(0); }, "the arena is too large"},
    {[](Program &p) { p.buffers[1].offset = 8; },
     "buffer 1 lies at offset 8, expected a multiple of 64"},
    {[](Program &p) { p.buffers[1].offset = uint64_t(1) << 40; }, "buffer 1 ends at byte"},
    {[](Program &p) { p.buffers[5].bytes = 7; }, "buffer 5 has 7 bytes, expected a multiple of 8"},
    {[](Program &p) { p.optimizerState[0].name = "table"; }, "two tensors have the name 'table'"},
    {[](Program &p) { p.parameters[0].buffer = 99; }, "lies in buffer 99, the program has 10"},
    {[](Program &p) { p.buffers[0].persistent = false; }, "which is not persistent"},
    {[](Program &p) { p.parameters[0].layout.dimAxes = {}; }, "1 dimensions but axes for 0"},
    {[](Program &p) { p.parameters[0].layout.dimAxes = {{7}}; },
     "tensor 'table' uses mesh axis 7, the mesh has 2"},
    {[](Program &p) { p.parameters[0].layout.dimAxes = {{1, 1}}; },
     "tensor 'table' uses mesh axis 'model' twice"},
    {[](Program &p) { p.parameters[0].layout.globalShape = {255}; },
     "255 in dimension 0, which does not divide into 2 shards"},
    {[](Program &p) { p.parameters[0].layout.paddedShape = {256}; },
     "has the shape [256] and the padded shape [256], expected a larger one"},
    {[](Program &p) { p.parameters[0].layout.paddedShape = {255}; },
     "has the shape [256] and the padded shape [255], expected a larger one"},
    {[](Program &p) { p.parameters[0].layout.paddedShape = {257}; },
     "257 in dimension 0, which does not divide into 2 shards"},
    {[](Program &p) { p.parameters[0].layout.globalShape = {512}; },
     "tensor 'table' needs 2048 bytes in buffer 0, which has 1024"},
    {[](Program &p) { p.parameters[0].layout.type = ElementType::F32; },
     "tensor 'table' needs f32 in buffer 0, which holds f64"},
    {[](Program &p) { p.inputs[0].name = "letters"; },
     "input 'letters' is not known, expected tokens, targets, document_starts, images, labels, "
     "step "
     "or seed"},
    {[](Program &p) { p.inputs[1].name = "document_starts"; },
     "input 'document_starts' needs a token that ends documents"},
    {[](Program &p) { p.documentEnd = 0; },
     "documents end with token 0, but there is no input 'document_starts'"},
    {[](Program &p) {
       p.inputs[1].name = "document_starts";
       p.documentEnd = p.vocabulary;
     },
     ", the vocabulary is "},
    {[](Program &p) {
       p.documentEnd = 0;
       p.sequenceLength = 15;
       p.inputs[0].name = "document_starts";
     },
     "input 'document_starts' is i32 [8, 16], expected i32 [8, 15]"},
    {[](Program &p) { p.sequenceLength = 15; }, "is i32 [8, 16], expected i32 [8, 15]"},
    {[](Program &p) { p.microBatches = 2; }, "is i32 [8, 16], expected i32 [2, 4, 16]"},
    {[](Program &p) { p.microBatches = 3; }, "the batch of 8 does not divide into 3 micro-batches"},
    {[](Program &p) { p.microBatches = 0; }, "the batch of 8 does not divide into 0 micro-batches"},
    {[](Program &p) { p.defaultSteps = -1; }, "must not be negative"},
    {[](Program &p) {
       p.globalBatch = 0;
       p.inputs[0].layout.globalShape[0] = 0;
     },
     "input 'tokens' is empty"},
    {[](Program &p) { p.matmuls = {{ElementType::I32}}; }, "matmul 0 is of type i32"},
    {[](Program &p) {
       p.matmuls = {{ElementType::F32}};
       p.matmuls[0].isResultF32 = true;
     },
     "matmul 0 widens the result of f32 operands, expected bf16, f16 or FP8 operands"},
    {[](Program &p) {
       p.matmuls = {{ElementType::BF16}};
       p.matmuls[0].isTF32 = true;
     },
     "matmul 0 rounds bf16 operands to tf32, expected f32 operands"},
    {[](Program &p) {
       p.matmuls = {{ElementType::BF16, false, false, 1, 1, 1, 1, 1, 1, 2, 1, 1, 0}};
     },
     "matmul 0 adds up matmuls in bf16, expected f32"},
    {[](Program &p) {
       p.matmuls = {{ElementType::F16, false, false, 1, 1, 1, 1, 1, 1, 2, 1, 1, 0}};
     },
     "matmul 0 adds up matmuls in f16, expected f32"},
    {[](Program &p) {
       p.matmuls = {{ElementType::BF16, false, false, 1, 1, 1, 1, 1, 1}};
       p.matmuls[0].isResultF32 = true;
       p.buffers.push_back({2, 0, BufferClass::Activation, false, ElementType::BF16});
       auto last = uint32_t(p.buffers.size() - 1);
       p.stepBody().push_back({Opcode::Matmul, 0, 0, {{last}, {last}, {last}}, {}});
     },
     "needs f32 in buffer 10, which holds bf16"},
    {[](Program &p) { p.matmuls = {{ElementType::F32, false, false, -1}}; }, "a size of -1"},
    {[](Program &p) { p.matmuls = {{ElementType::F32, false, false, 1, 1, 1, 1, 1, 1, 1, -1}}; },
     "matmul 0 has a negative stride"},
    {[](Program &p) { p.matmuls = {{ElementType::F32, false, false, 2, 2, 2, 1, 2, 2}}; },
     "rows that overlap: a row stride is less than the length of a row"},
    {[](Program &p) {
       p.matmuls = {{ElementType::F32, false, false, 16, 16, 16, 16, 16, 16}};
       p.buffers.push_back({512, 0, BufferClass::Activation, false, ElementType::F32});
       auto last = uint32_t(p.buffers.size() - 1);
       p.stepBody().push_back({Opcode::Matmul, 0, 0, {{last}, {last}, {last}}, {}});
     },
     "step instruction 11 needs 1024 bytes in buffer 10, which has 512"},
    {[](Program &p) { p.matmuls = {{ElementType::I32}}; },
     "matmul 0 is of type i32, expected f64, f32, bf16, f16 or an FP8 type"},
    {[](Program &p) {
       p.matmuls = {kToyBytes};
       p.matmuls[0].type = p.matmuls[0].fp8B = ElementType::F8E5M2;
     },
     "matmul 0 is of f8e5m2 and f8e5m2, expected FP8, and one of them f8e4m3"},
    {[](Program &p) {
       p.matmuls = {kToyBytes};
       p.matmuls[0].fp8B = ElementType::BF16;
     },
     "matmul 0 is of f8e4m3 and bf16, expected FP8, and one of them f8e4m3"},
    {[](Program &p) {
       p.matmuls = {kToyBytes};
       p.matmuls[0].transposeB = false;
     },
     "matmul 0 is in FP8 and of size 16x16x16, expected a single matmul, only B transposed, sizes "
     "and strides multiples of 16"},
    {[](Program &p) {
       p.matmuls = {kToyBytes};
       p.matmuls[0].m = 8;
     },
     "matmul 0 is in FP8 and of size 8x16x16, expected a single matmul"},
    {[](Program &p) {
       p.matmuls = {kToyBytes};
       p.matmuls[0].epilogue.sums = Epilogue::Sums::OfA;
     },
     "matmul 0 is in FP8 and has an epilogue of more than an addend and a bias"},
    {[](Program &p) {
       p.matmuls = {kToyBytes};
       p.matmuls[0].isResultF32 = true;
       p.matmuls[0].epilogue.hasBias = true;
     },
     "matmul 0 is in FP8 and adds a bias to an f32 result, expected bf16"},
    {[](Program &p) {
       p.matmuls = {kToyBytes};
       p.buffers.push_back({256, 0, BufferClass::Activation, false, ElementType::F8E4M3});
       auto last = uint32_t(p.buffers.size() - 1);
       p.stepBody().push_back({Opcode::Matmul, 0, 0, {{last}, {last}, {last}, {last}, {last}}, {}});
     },
     "needs bf16 in buffer 10, which holds f8e4m3"},
    {[](Program &p) { p.collectives[0].type = ElementType::F8E5M2; },
     "collective 0 is of type f8e5m2, which only matmuls support"},
    {[](Program &p) { p.parameters[0].layout.type = ElementType::F8E4M3; },
     "is of type f8e4m3, which only matmuls support"},
    {[](Program &p) {
       p.matmuls = {{ElementType::F32, false, false, 8, 8, 8, 8, 8, 8, 2, 64, 64, 0}};
       p.matmuls[0].epilogue.hasAddend = true;
     },
     "matmul 0 has an addend, but its result is already a sum of matmuls"},
    {[](Program &p) {
       p.matmuls = {{ElementType::F64, false, false, 8, 8, 8, 8, 8, 8}};
       p.matmuls[0].epilogue.hasBias = true;
     },
     "matmul 0 has an epilogue of more than an addend, expected a single matmul and not of f64"},
    {[](Program &p) {
       p.matmuls = {{ElementType::F32, false, false, 8, 8, 8, 8, 8, 8}};
       p.matmuls[0].epilogue.hasAux = true;
     },
     "matmul 0 has an activation operand, expected none without an activation"},
    {[](Program &p) {
       p.matmuls = {{ElementType::F32, false, false, 8, 8, 8, 8, 8, 8}};
       p.matmuls[0].epilogue.activation = Epilogue::Activation::GeluGradient;
     },
     "matmul 0 has no activation operand, expected one for the gradient of an activation"},
    {[](Program &p) {
       p.matmuls = {{ElementType::F32, false, false, 8, 8, 8, 8, 8, 8}};
       p.matmuls[0].epilogue.hasBias = true;
       p.matmuls[0].epilogue.sums = Epilogue::Sums::OfA;
     },
     "matmul 0 sums an operand and has a bias or an activation, expected only one of these"},
    {[](Program &p) {
       p.matmuls = {{ElementType::F32, false, false, 8, 8, 0, 8, 8, 8}};
       p.matmuls[0].epilogue.hasAddend = true;
     },
     "matmul 0 has an epilogue, but a size of 0"},
    {[](Program &p) {
       p.matmuls = {{ElementType::F32, false, false, 8, 8, 8, 8, 8, 8}};
       p.matmuls[0].epilogue.hasBias = true;
       p.matmuls[0].workspaceBytes = 100;
       p.stepBody().push_back({Opcode::Matmul, 0, 0, {{0}, {0}, {0}, {0}}, {}});
     },
     "step instruction 11 has 4 operands, expected 5"},
    {[](Program &p) { p.collectives[0].axes = {9}; }, "collective 0 uses mesh axis 9"},
    {[](Program &p) { p.collectives[0].shape = {-1}; }, "collective 0 has a negative size in [-1]"},
    {[](Program &p) {
       p.collectives[0].kind = CollectiveKind::AllGather;
       p.collectives[0].dim = 3;
     },
     "collective 0 names dimension 3 of []"},
    {[](Program &p) {
       p.collectives[1].kind = CollectiveKind::ReduceScatter;
       p.collectives[1].shape = {3};
     },
     "collective 1 cuts 3 into 2 shards"},
    {[](Program &p) { p.collectives[1].sources = {0}; },
     "collective 1 names 1 sources, expected 0"},
    {[](Program &p) {
       p.collectives[1].kind = CollectiveKind::Permute;
       p.collectives[1].sources = {1, 1};
     },
     "collective 1 takes the shard of rank 1 of its 2 twice"},
    {[](Program &p) {
       p.collectives[1].kind = CollectiveKind::Permute;
       p.collectives[1].sources = {1, 2};
     },
     "collective 1 takes the shard of rank 2 of its 2"},
    {[](Program &p) { p.collectives[1].kind = CollectiveKind::AllGather; },
     "as operand and result of all-gather; only all-reduce may"},
    {[](Program &p) { p.collectives[0].shape = {2}; }, "step instruction 1 needs 16 bytes"},
    {[](Program &p) { p.observations[0].layout.type = ElementType::I32; },
     "observation 'loss' is i32 [], expected f64 [] or f32 []"},
    {[](Program &p) { p.observations[1].layout.globalShape = {1024}; },
     "step instruction 4 needs 4096 bytes in buffer 6"},
    {[](Program &p) { p.stepBody()[0].label = 99; }, "step instruction 0 has label 99"},
    {[](Program &p) { p.stepBody()[0].cost.flops = -1; },
     "step instruction 0 costs -1, expected a finite number, 0 or more"},
    {[](Program &p) { p.stepBody()[0].cost.share = 1.5; },
     "step instruction 0 takes 1.5 of the rate of computation, expected a number from 0 to 1"},
    {[](Program &p) { p.stepBody()[0].cost.bytes = std::numeric_limits<double>::infinity(); },
     "step instruction 0 costs inf"},
    {[](Program &p) { p.stepBody()[0].cost.seconds = std::nan(""); },
     "step instruction 0 costs nan"},
    {[](Program &p) { p.stepBody()[3].stream = Stream::Communication; },
     "step instruction 3 observes on communication, expected compute"},
    {[](Program &p) { p.stepBody()[3].waits = {1}; },
     "step instruction 3 waits for instruction 1, expected an earlier one of another stream"},
    {[](Program &p) {
       p.stepBody()[2].stream = Stream::Communication;
       p.stepBody()[1].waits = {2};
     },
     "step instruction 1 waits for instruction 2, expected an earlier one of another stream"},
    {[](Program &p) {
       p.stepBody()[2].stream = Stream::Communication;
       p.stepBody()[2].waits = {1, 0};
     },
     "step instruction 2 waits for instruction 0 after 1, expected ascending numbers"},
    {[](Program &p) { p.peakFlopsPerRank = -1; }, "finite and not negative, got -1"},
    {[](Program &p) { p.peakByteFlopsPerRank = -2; }, "finite and not negative, got -2"},
    {[](Program &p) { p.stepBody()[0].target = 99; }, "step instruction 0 names kernel 99"},
    {[](Program &p) { p.initBody()[0].operands[0].buffer = 99; },
     "init instruction 0 names buffer 99"},
    {[](Program &p) { p.stepBody()[1].operands.pop_back(); },
     "step instruction 1 has 1 operands, expected 2"},
    {[](Program &p) { p.initBody().push_back(p.stepBody()[3]); },
     "init instruction 1 observes, which only step and evaluate may do"},
    {[](Program &p) { p.evaluateBody()[0].operands[0].access = Access::ReadWrite; },
     "evaluate instruction 0 writes buffer 0, which is persistent"},
    {[](Program &p) { p.evaluateBody()[2] = p.stepBody()[3]; },
     "evaluate instruction 2 observes 'loss', expected validation_loss, validation_load or logits"},
    {[](Program &p) { p.observations[0].limit = p.observations[0].mean = 1; },
     "observation 'loss' has a limit and is f64 [], expected f64 or f32 with a dimension"},
    {[](Program &p) { p.observations[1].limit = 1; },
     "observation 'gradient/table' has the limit 1 and the mean 0, expected two finite numbers "
     "above 0, or both 0"},
    {[](Program &p) {
       p.observations[1].limit = p.observations[1].mean = 1;
       std::swap(p.stepBody()[4], p.stepBody()[9]);
     },
     "step instruction 9 observes 'gradient/table', but ranks do not agree to go on after it"},
    {[](Program &p) { p.stepBody().erase(p.stepBody().begin() + 9); },
     "step instruction 8 observes 'gradient_norm', but ranks do not agree to go on after it"},
    {[](Program &p) { p.evaluateBody().pop_back(); },
     "evaluate instruction 2 observes 'validation_loss', but ranks do not agree to go on after it"},
    {[](Program &p) { p.stepBody().insert(p.stepBody().begin() + 9, p.stepBody()[9]); },
     "step instruction 10 agrees to go on, after instruction 9 did, expected once in a section"},
    {[](Program &p) { std::swap(p.stepBody()[9], p.stepBody()[10]); },
     "step instruction 10 agrees to go on, after instruction 9 wrote a persistent buffer"},
    {[](Program &p) { p.stepBody()[9].operands = {{0, Access::Read}}; },
     "step instruction 9 has 1 operands, expected 0"},
    {[](Program &p) { p.stepBody()[9].target = 1; },
     "step instruction 9 names agreement 1, the program has 1"},
    {[](Program &p) { p.stepBody()[9].stream = Stream::Communication; },
     "step instruction 9 agrees on communication, expected compute"},
    {[](Program &p) { p.evaluateBody().erase(p.evaluateBody().begin() + 2); },
     "evaluate does not observe validation_loss"},
    {[](Program &p) { p.evaluateBody()[1].operands.pop_back(); },
     "evaluate instruction 1 has 1 operands, expected 2"},
};

INSTANTIATE_TEST_SUITE_P(All, Faults, testing::ValuesIn(kFaults));

} // namespace
