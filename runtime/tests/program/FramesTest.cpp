//===- FramesTest.cpp - programs with micro-batches in flight ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "report/MemoryReport.h"
#include "tests/ErrorOf.h"
#include "tests/ToyPipeline.h"
#include "weft-rt/BufferLives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

using namespace weft::rt;
using testing::HasSubstr;

namespace {

/// Numbers in the program: buffers in its frames, another one, and actions of its step.
constexpr uint32_t kDifference = 8, kPart = 9, kLoss = 5;
constexpr FrameUse kSecond[] = {{0, 1}};

Program makeTwo() { return makeToyPipeline(1, 1, kTwoInFlight, 2); }

TEST(Frames, TheTextHasThem) {
  std::string text = toText(makeTwo());
  EXPECT_THAT(text, HasSubstr("frame set 0: 2 frames of 320 at 7360 7680\n"));
  EXPECT_THAT(text, HasSubstr("buffer %8 f64 256 at 0 in frame set 0 activation\n"
                              "buffer %9 f64 8 at 256 in frame set 0 activation\n"));
  EXPECT_THAT(text,
              HasSubstr("  2: forward for micro-batch 1 in frame 1 of set 0, from instruction 5\n"
                        "  3: backward for micro-batch 0 in frame 0 of set 0, from "
                        "instruction 9\n"));
  EXPECT_THAT(text, HasSubstr("  0: begin, from instruction 0\n"));
}

TEST(Frames, BytesKeepThem) {
  Program program = makeTwo();
  Result<Programs> again = deserialize(serialize(program));
  ASSERT_EQ(errorOf(again), "");
  EXPECT_EQ(toText(again->front()), toText(program));
  EXPECT_EQ(again->front().step, program.step);
}

TEST(Frames, AFramedBufferHasAPlaceInEach) {
  Program program = makeTwo();
  BufferPlaces places(program);
  EXPECT_EQ(places.size(), program.buffers.size() + 2);
  EXPECT_EQ(places.name(places.find(kPart, kSecond)), "buffer 9 of frame 1");
  EXPECT_EQ(places[places.find(kPart, kSecond)].begin, 7360 + 320 + 256);
  EXPECT_EQ(places[places.find(kPart, kSecond)].end, 7360 + 320 + 264);
  EXPECT_EQ(places.of(kDifference).size(), 2);
  EXPECT_EQ(places.of(kLoss).size(), 1);
  EXPECT_EQ(places.find(kLoss, kSecond), kLoss);
  EXPECT_EQ(places.name(kLoss), "buffer 5");
}

struct Fault {
  void (*damage)(Program &);
  const char *error;
};

const Fault kFaults[] = {
    {[](Program &p) { p.frameSets[0].offsets.clear(); },
     "frame set 0 has 0 frames, expected at least 1 and at most 10, the most actions of a section"},
    {[](Program &p) { p.frameSets[0].offsets.resize(11); },
     "frame set 0 has 11 frames, expected at least 1 and at most 10, the most actions of a "
     "section"},
    {[](Program &p) { p.frameSets[0].offsets[1] += 8; },
     "frame 1 of set 0 lies at offset 7688 and has 320 bytes, expected multiples of 64"},
    {[](Program &p) { p.frameSets[0].bytes += 8; },
     "frame 0 of set 0 lies at offset 7360 and has 328 bytes, expected multiples of 64"},
    {[](Program &p) { p.frameSets[0].offsets[1] += 64; },
     "frame 1 of set 0 ends at byte 8064, the arena has 8000 bytes"},
    {[](Program &p) { p.frameSets[0].bytes = ~uint64_t(63); },
     "frame 0 of set 0 ends at byte 18446744073709551615, the arena has 8000 bytes"},
    {[](Program &p) { p.buffers[kPart].frameSet = 1; },
     "buffer 9 lies in frame set 1, the program has 1"},
    {[](Program &p) { p.buffers[0].frameSet = 0; },
     "buffer 0 lies in frame set 0 and is persistent"},
    {[](Program &p) { p.buffers[kPart].kind = BufferClass::Workspace; },
     "buffer 9 lies in frame set 0, which has a frame at offset 7360, expected multiples of 256"},
    {[](Program &p) { p.buffers[kPart].offset += 64; },
     "buffer 9 ends at byte 328, its frame has 320 bytes"},
    {[](Program &p) { p.buffers[kPart].offset += 8; },
     "buffer 9 lies at offset 264, expected a multiple of 64"},
    {[](Program &p) { p.step[2].frames[0].frame = 2; },
     "step action 2 is for frame 2 of set 0, which has 2"},
    {[](Program &p) { p.step[3].frames.clear(); },
     "step action 3 is for no frame of set 0, but backward instruction 0 uses buffer 8, which lies "
     "in its frames"},
    {[](Program &p) { p.step[3].frames.push_back({0, 0}); },
     "step action 3 names set 0 after set 0, expected sets in ascending order"},
    {[](Program &p) { p.step[3].frames.push_back({1, 0}); },
     "step action 3 is for a frame of set 1, but backward uses no buffer that lies in them"},
    {[](Program &p) { p.step[0].frames = {{0, 0}}; },
     "step action 0 is for a frame of set 0, but begin uses no buffer that lies in them"},
};

TEST(Frames, AreChecked) {
  EXPECT_EQ(errorOf(checkWellFormed(makeTwo())), "");
  for (const Fault &fault : kFaults) {
    Program program = makeTwo();
    fault.damage(program);
    EXPECT_EQ(errorOf(checkWellFormed(program)), fault.error);
  }
}

void expectLife(const Program &program, uint32_t buffer, uint32_t frame, int64_t first,
                int64_t last) {
  BufferLife life = findBufferLives(program)
                        .lives[BufferPlaces(program).find(buffer, std::array{FrameUse{0, frame}})];
  EXPECT_EQ(life.first, first) << nameOf(program, buffer, frame);
  EXPECT_EQ(life.last, last) << nameOf(program, buffer, frame);
}

// Instants: 0 is init, 1 begins, 2 to 5 are forward, 6 is backward, 7 to 14 end.
TEST(Frames, EachHasALife) {
  Program program = makeTwo();
  for (uint32_t frame : {0, 1}) {
    expectLife(program, kDifference, frame, 2, 6); // Another forward runs meanwhile.
    expectLife(program, kPart, frame, 4, 5);       // No later action reads it.
  }
  // Only one frame is ever in use, from the write to the read.
  program = makeToyPipeline(1, 1, kOneInFlight, 2);
  expectLife(program, kDifference, 0, 2, 6);
  expectLife(program, kDifference, 1, 0, -1);
}

// Only one `part` is in use at a time, though it has a place in each frame.
TEST(Frames, AllThatAreInUseCountInMemory) {
  uint64_t one = memoryPeak(makeToyPipeline(1, 1, kOneInFlight, 1)).use.total();
  EXPECT_EQ(memoryPeak(makeTwo()).use.total(), one + 256);
  EXPECT_EQ(memoryPeak(makeToyPipeline(1, 1, kAllForwardFirst, 4)).use.total(), one + 3 * 256);
}

} // namespace
