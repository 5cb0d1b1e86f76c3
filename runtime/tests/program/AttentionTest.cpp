//===- AttentionTest.cpp - parts of attention for a library ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/ErrorOf.h"
#include "tests/Toy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace weft::rt;
using testing::HasSubstr;

namespace {

/// Ring attention over `shards` shards of `length` positions, on a mesh of one axis.
Attention makeRing(int64_t shards, int64_t length, bool isZigzag) {
  Attention ring;
  ring.batch = ring.keyHeads = ring.group = 1;
  ring.features = ring.valueFeatures = 8;
  ring.queries = ring.keys = length;
  ring.isCausal = true;
  ring.firstQuery.strides = ring.firstKey.strides = {length};
  ring.turn = 0;
  ring.turns = shards;
  if (isZigzag) {
    ring.chunks = 2 * shards;
    ring.chunkLength = length / 2;
  }
  ring.operands = {0, 1, 2, 3, 4};
  return ring;
}

/// Returns the position stored at `index`, with `chunks` chunks.
int64_t zigzag(int64_t chunks, int64_t length, int64_t index) {
  std::vector<int64_t> order;
  for (int64_t first = 0, last = chunks - 1; first < last; ++first, --last) {
    order.push_back(first);
    order.push_back(last);
  }
  return chunks == 0 ? index : order[size_t(index / length)] * length + index % length;
}

bool sees(const Attention &a, int64_t query, int64_t key) {
  int64_t i = zigzag(a.chunks, a.chunkLength, query), j = zigzag(a.chunks, a.chunkLength, key);
  return j <= i && (a.window == 0 || j > i - a.window);
}

bool sees(const AttentionPart &part, int64_t query, int64_t key) {
  int64_t i = query - part.firstQuery, j = key - part.firstKey;
  if (i < 0 || i >= part.queries || j < 0 || j >= part.keys) {
    return false;
  }
  int64_t last = i + part.keys - part.queries;
  return !part.isCausal || (j <= last && (part.window == 0 || j > last - part.window));
}

/// Compares a part with the definition of attention; false if there is no part.
bool isRight(const Attention &a, int64_t rank, int64_t turn) {
  std::vector<int64_t> coordinates = {rank}, immediates = {turn};
  std::optional<AttentionPart> part = attentionPart(a, coordinates, immediates);
  int64_t from = (rank - turn + a.turns) % a.turns;
  for (int64_t query = 0; part && query < a.queries; ++query) {
    for (int64_t key = 0; key < a.keys; ++key) {
      EXPECT_EQ(sees(*part, query, key), sees(a, rank * a.queries + query, from * a.keys + key))
          << "rank " << rank << " turn " << turn << " query " << query << " key " << key;
    }
  }
  return part.has_value();
}

TEST(AttentionParts, EveryTurnOfARing) {
  for (int64_t shards : {2, 3, 4}) {
    for (bool isZigzag : {false, true}) {
      Attention ring = makeRing(shards, 8, isZigzag);
      for (int64_t rank = 0; rank < shards; ++rank) {
        for (int64_t turn = 0; turn < shards; ++turn) {
          EXPECT_TRUE(isRight(ring, rank, turn)) << shards << " shards";
        }
      }
    }
  }
}

TEST(AttentionParts, ZigzagTurnsAreHalves) {
  Attention ring = makeRing(4, 8, true);
  auto part = [&](int64_t rank, int64_t turn) {
    return *attentionPart(ring, std::vector{rank}, std::vector{turn});
  };
  EXPECT_TRUE(part(2, 0).isCausal);
  EXPECT_EQ(part(2, 0).keys, 8);
  // Keys of an earlier rank: all queries see the first chunk.
  EXPECT_FALSE(part(2, 1).isCausal);
  EXPECT_EQ(part(2, 1).queries, 8);
  EXPECT_EQ(part(2, 1).keys, 4);
  // Keys of a later rank: the second half of the queries sees both chunks.
  EXPECT_EQ(part(2, 3).firstQuery, 4);
  EXPECT_EQ(part(2, 3).queries, 4);
  EXPECT_EQ(part(2, 3).keys, 8);
}

TEST(AttentionParts, KeysThatComeLaterAreSeenByNobody) {
  Attention ring = makeRing(3, 8, false);
  EXPECT_EQ(attentionPart(ring, std::vector<int64_t>{0}, std::vector<int64_t>{1})->queries, 0);
  EXPECT_EQ(attentionPart(ring, std::vector<int64_t>{2}, std::vector<int64_t>{1})->queries, 8);
}

TEST(AttentionParts, ShardsOfQueriesOverAllKeysEndAtTheLast) {
  Attention gathered = makeRing(4, 8, false);
  gathered.turn.reset();
  gathered.turns = 1;
  gathered.keys = 32;
  gathered.firstKey = {{}, {0}};
  AttentionPart part = *attentionPart(gathered, std::vector<int64_t>{2}, std::vector<int64_t>{0});
  EXPECT_TRUE(part.isCausal);
  EXPECT_EQ(part.queries, 8);
  EXPECT_EQ(part.keys, 24);
}

TEST(AttentionParts, WindowsAreRightOrNone) {
  int64_t found = 0;
  for (int64_t window : {1, 3, 8, 9, 16, 17, 40}) {
    Attention ring = makeRing(3, 8, false);
    ring.window = window;
    for (int64_t rank = 0; rank < 3; ++rank) {
      for (int64_t turn = 0; turn < 3; ++turn) {
        found += isRight(ring, rank, turn);
      }
    }
  }
  EXPECT_GT(found, 7 * 6); // At least the own shards and those that no query sees.
  EXPECT_LT(found, 7 * 9);
}

/// The keys below a document's start are the first of the part's runs.
TEST(AttentionParts, OfDocumentsSayWhereTheirKeysAre) {
  for (bool isZigzag : {false, true}) {
    Attention documents = makeRing(4, 8, isZigzag);
    documents.starts = 5;
    for (int64_t rank = 0; rank < 4; ++rank) {
      for (int64_t turn = 0; turn < 4; ++turn) {
        auto part = attentionPart(documents, std::vector{rank}, std::vector{turn});
        ASSERT_TRUE(part);
        int64_t key = (rank - turn + 4) % 4 * 8 + part->firstKey;
        for (const KeyRun &run : part->runs) {
          for (int64_t i = 0; i < run.keys; ++i, ++key) {
            EXPECT_EQ(zigzag(documents.chunks, documents.chunkLength, key), run.position + i);
          }
        }
        EXPECT_EQ(part->runs[0].keys + part->runs[1].keys, part->keys);
      }
    }
  }
}

/// The last four of 32 positions see chunks 1, 6 and 2, or chunks 6 and 2; of these the later one
/// is stored first.
TEST(AttentionParts, OfDocumentsAreTwoAscendingRunsOrNone) {
  Attention all = makeRing(1, 4, false);
  all.turn.reset();
  all.chunks = 8;
  all.chunkLength = 4;
  all.firstQuery.strides = {4};
  auto isThere = [&](int64_t firstKey, int64_t keys, bool hasDocuments) {
    all.firstKey.strides = {firstKey};
    all.keys = keys;
    all.starts = hasDocuments ? std::optional<uint32_t>(5) : std::nullopt;
    return attentionPart(all, std::vector<int64_t>{1}, {}).has_value();
  };
  EXPECT_TRUE(isThere(8, 12, false));
  EXPECT_FALSE(isThere(8, 12, true));
  EXPECT_TRUE(isThere(12, 8, false));
  EXPECT_FALSE(isThere(12, 8, true));
  EXPECT_TRUE(isThere(8, 8, true));
}

TEST(AttentionParts, WithoutOrderAllIsSeen) {
  Attention all = makeRing(1, 8, false);
  all.isCausal = false;
  all.keys = 5;
  AttentionPart part = *attentionPart(all, std::vector<int64_t>{0}, std::vector<int64_t>{0});
  EXPECT_FALSE(part.isCausal);
  EXPECT_EQ(part.queries, 8);
  EXPECT_EQ(part.keys, 5);
}

TEST(AttentionWorkspaces, AreWhatALibraryWrites) {
  constexpr uint64_t kMore = (uint64_t(4) << 20) + 64 * 4 + 256;
  Attention forward = makeRing(1, 64, false);
  EXPECT_EQ(attentionWorkspace(forward), kMore);
  forward.areResultsWide = true;
  EXPECT_EQ(attentionWorkspace(forward), kMore + 64 * 8 * 2 + 256);
  forward.areResultsWide = false;
  forward.operands[Attention::Output] = 0;
  EXPECT_EQ(attentionWorkspace(forward), kMore + 64 * 8 * 2 + 256) << "over the query";
  Attention backward = makeRing(1, 64, false);
  backward.isBackward = true;
  backward.operands = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  uint64_t narrow = kMore + (64 * 4 + 256) + (64 * 8 * 8 + 256) + 2 * 256;
  EXPECT_EQ(attentionWorkspace(backward), narrow);
  backward.areResultsWide = true;
  EXPECT_EQ(attentionWorkspace(backward), narrow + 3 * (64 * 8 * 2 + 256));
}

//===----------------------------------------------------------------------===//
// In a program
//===----------------------------------------------------------------------===//

/// The toy, with an attention in evaluation.
Program makeProgram() {
  Program program = makeToy(1, 1);
  Attention attention = makeRing(1, 4, false);
  attention.firstQuery = attention.firstKey = {};
  attention.workspaceBytes = 64;
  program.kernels.push_back({"attend", "attention", "", attention});
  Instruction attend;
  attend.target = uint32_t(program.kernels.size() - 1);
  program.arenaBytes = (program.arenaBytes + 255) / 256 * 256;
  auto add = [&](ElementType type, uint64_t elements, Access access,
                 BufferClass kind = BufferClass::Activation) {
    attend.operands.push_back({uint32_t(program.buffers.size()), access});
    program.buffers.push_back({elements * sizeOf(type), program.arenaBytes, kind, false, type});
    program.arenaBytes += 256; // More than each of them takes.
  };
  for (Access access : {Access::Read, Access::Read, Access::Read, Access::Write}) {
    add(ElementType::BF16, 32, access);
  }
  add(ElementType::F32, 4, Access::Write);
  add(ElementType::I32, 16, Access::Write, BufferClass::Workspace);
  attend.immediates = {0};
  for (Instruction &instruction : program.stepBody()) { // Their numbers are others now.
    instruction.stream = Stream::Compute;
    instruction.waits.clear();
  }
  program.stepBody().insert(program.stepBody().begin(), attend);
  return program;
}

template <typename Change> std::string faultAfter(const Change &change) {
  Program program = makeProgram();
  change(program, *program.kernels.back().attention, program.stepBody().front());
  return errorOf(checkWellFormed(program));
}

TEST(AttentionPrograms, AreWrittenAndRead) {
  Program program = makeProgram();
  Result<Programs> loaded = deserialize(serialize(program));
  ASSERT_EQ(errorOf(loaded), "");
  const Program &read = loaded->front();
  EXPECT_EQ(serialize(read), serialize(program));
  EXPECT_EQ(read.kernels.back().attention->chunks, 0);
  EXPECT_EQ(read.kernels.back().attention->starts, std::nullopt);
  EXPECT_EQ(read.kernels.back().operandCount(read.stepBody().front()), 5u);
  EXPECT_THAT(toText(read), HasSubstr("kernel @attend attention bf16 1x4x4 heads 1/1 of 8 causal "
                                      "turns 1 "));
}

TEST(AttentionPrograms, FaultsAreFound) {
  using P = Program;
  using A = Attention;
  using I = Instruction;
  const std::pair<std::string, const char *> faults[] = {
      {faultAfter([](P &, A &, I &) {}), ""},
      {faultAfter([](P &, A &a, I &) { a.keys = 0; }), "has a size of 0, expected 1 to 2147483647"},
      {faultAfter([](P &, A &a, I &) { a.scale = 1 / 0.0; }), "expected a finite one"},
      {faultAfter([](P &, A &a, I &) { a.isCausal = false, a.window = 3; }),
       "has a window of 3, expected none if queries see all keys"},
      {faultAfter([](P &, A &a, I &) { a.starts = 6; }), "has 6 operands, its attention has 8"},
      {faultAfter([](P &, A &a, I &) { a.starts = 4; }),
       "writes operand 4, the beginnings of documents, expected only reads"},
      {faultAfter([](P &, A &a, I &) { a.starts = 0; }), "needs i32 in buffer"},
      {faultAfter([](P &, A &a, I &) { a.isCausal = false, a.starts = 0; }),
       "has documents, expected none if queries see all keys"},
      {faultAfter([](P &, A &a, I &) { a.chunks = 3, a.chunkLength = 2; }),
       "is stored in 3 chunks of 2, expected an even number of chunks of at least 1 position"},
      {faultAfter([](P &, A &a, I &) { a.firstKey.strides = {1}; }),
       "has offsets along 1 mesh axes, the mesh has 2"},
      {faultAfter([](P &, A &a, I &) { a.firstKey.strides = {1, -1}; }),
       "has the offsets [1, -1] along mesh axes, expected 0 to 2147483647"},
      {faultAfter([](P &, A &a, I &) { a.operands.pop_back(); }), "names 4 operands, expected 5"},
      {faultAfter([](P &, A &a, I &) { a.operands[2] = 5; }),
       "has 6 operands, its attention has 7"},
      {faultAfter([](P &, A &a, I &) { a.operands[3] = 2; }),
       "and its attention differ in the access to operand 2"},
      {faultAfter([](P &, A &a, I &) { a.keys = 5; }), "needs 80 bytes in buffer"},
      {faultAfter([](P &, A &a, I &) { a.areResultsWide = true; }), "needs f32 in buffer"},
      {faultAfter([](P &, A &a, I &) { a.workspaceBytes = 65; }), "needs 68 bytes in buffer"},
      {faultAfter([](P &p, A &, I &) { p.buffers.back().kind = BufferClass::Gradient; }),
       "as workspace, which is of class gradient"},
      {faultAfter([](P &p, A &, I &) { p.buffers.back().offset -= 64; }),
       "expected a multiple of 256"},
      {faultAfter([](P &, A &, I &i) { i.operands.back().access = Access::Read; }),
       "reads its workspace"},
      {faultAfter([](P &, A &, I &i) { i.immediates = {}; }),
       "has 0 immediates, its attention names number 0"},
      {faultAfter([](P &, A &, I &i) { i.immediates = {-1}; }),
       "has the immediate -1 of an attention, expected 0 to 2147483647"},
  };
  for (const auto &[fault, expected] : faults) {
    EXPECT_THAT(fault, HasSubstr(expected));
    EXPECT_EQ(fault.empty(), std::string(expected).empty()) << fault;
  }
}

} // namespace
