//===- TimeLineTest.cpp - the course of steps as a trace --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "report/TimeLine.h"
#include "tests/ErrorOf.h"
#include "tests/Toy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>

using namespace weft::rt;
using testing::ElementsAre;

namespace {

/// The fields of a Protobuf message: numbers, and the bytes of texts and messages.
struct Message {
  std::map<uint64_t, uint64_t> numbers;
  std::multimap<uint64_t, std::string> texts;

  explicit Message(std::string_view bytes) {
    while (!bytes.empty()) {
      uint64_t key = varint(bytes), field = key >> 3;
      if ((key & 7) == 0) {
        numbers[field] = varint(bytes);
      } else {
        uint64_t size = (key & 7) == 1 ? 8 : varint(bytes);
        std::string text(bytes.substr(0, size));
        bytes.remove_prefix(size);
        if ((key & 7) == 1) {
          numbers[field] = static_cast<unsigned char>(text[0]); // Flows of tests are small.
        } else {
          texts.emplace(field, text);
        }
      }
    }
  }

  uint64_t number(uint64_t field) const { return numbers.at(field); }
  std::string text(uint64_t field) const { return texts.find(field)->second; }
  Message message(uint64_t field) const { return Message(text(field)); }

private:
  static uint64_t varint(std::string_view &bytes) {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      auto byte = static_cast<unsigned char>(bytes.front());
      bytes.remove_prefix(1);
      value |= uint64_t(byte & 0x7f) << shift;
      if (byte < 0x80) {
        return value;
      }
    }
  }
};

/// Returns a line for each track and event of a trace, with the texts of its tables.
std::vector<std::string> linesOf(const std::string &trace) {
  std::map<std::pair<uint64_t, uint64_t>, std::string> texts;
  std::vector<std::string> lines;
  const auto packets = Message(trace).texts;
  for (const auto &[one, bytes] : packets) {
    Message packet(bytes);
    EXPECT_EQ(one, 1u);
    if (packet.texts.contains(12)) {
      for (const auto &[table, entry] : packet.message(12).texts) {
        texts[{table, Message(entry).number(1)}] = Message(entry).text(2);
      }
    }
    if (packet.texts.contains(60)) {
      Message track = packet.message(60);
      lines.push_back("track " + std::to_string(track.number(1)) + " in " +
                      std::to_string(track.numbers[5]) + ": " + track.text(2) +
                      (track.texts.contains(8) ? ", a counter" : ""));
    }
    if (packet.texts.contains(11)) {
      Message event = packet.message(11);
      std::string line =
          std::to_string(packet.number(8)) + " on " + std::to_string(event.number(11)) +
          (event.number(9) == 4 ? ": " + std::to_string(event.number(30))
           : event.number(9) == 2
               ? " end"
               : " " + texts[{1, event.number(3)}] + " '" + texts[{2, event.number(10)}] + "'");
      for (auto [it, end] = event.texts.equal_range(4); it != end; ++it) {
        Message argument(it->second);
        line += " " + texts[{3, argument.number(1)}] + "=" +
                (argument.numbers.contains(17) ? texts[{29, argument.number(17)}]
                                               : std::to_string(argument.number(3)));
      }
      line += event.numbers.contains(47) ? " flow " + std::to_string(event.number(47)) : "";
      line += event.numbers.contains(48) ? " last flow " + std::to_string(event.number(48)) : "";
      lines.push_back(line);
    }
  }
  return lines;
}

/// Two stages of one rank: the first computes a value in an action of a micro-batch and sends it.
Programs makeStages() {
  Programs programs(2);
  for (uint32_t stage : {0, 1}) {
    Program &program = programs[stage];
    program.modelName = "small";
    program.rankClass = stage;
    program.rankClasses = 2;
    program.kernels = {{"make", "map"}};
    program.labels = {"layers.0/up", "layers.0 (send)", "layers.0 (receive)", ""};
    program.buffers = {{64, 0}, {4, 64, BufferClass::Parameter, true}};
    program.collectives = {
        {.kind = CollectiveKind::Transfer, .shape = {16}, .classes = {0, 1}, .number = 3}};
    Instruction move = {
        Opcode::Collective, 0, 1 + stage, {{0, stage == 0 ? Access::Read : Access::Write}}, {},
        {0, 64, 1}};
    program.bodies = {
        {"forward", {{Opcode::Kernel, 0, 0, {{0, Access::Write}}, {}, {12, 68, 1}}, move}},
        {"back", {move, {Opcode::Kernel, 0, 3, {{0, Access::Read}}, {}, {0, 64, 1}}}}};
    program.step = {{stage, 5}};
  }
  return programs;
}

/// The first stage computes and then sends; the second waits for it, receives, and computes.
const std::vector<InstructionTime> kFirst = {{0, 10, 0}, {10, 14, 0}},
                                   kSecond = {{0, 14, 10}, {14, 20, 0}};

TEST(TimeLine, HasTracksSlicesMemoryAndFlows) {
  const Programs programs = makeStages();
  const RankTimes ranks[] = {{0, kFirst}, {1, kSecond}};
  EXPECT_THAT(
      linesOf(drawTimeLine(programs, TraceWriter::Source::Predicted, {{0, 1}}, ranks, 7)),
      ElementsAre(
          "track 2 in 0: small, predicted", "track 4 in 2: stage 0, rank 0",
          "track 6 in 4: compute", "track 8 in 4: memory in use, a counter", "0 on 6 step 'step 7'",
          "0 on 6 action 'forward for micro-batch 5' micro_batch=5", "0 on 8: 68",
          "0 on 6 map 'layers.0/up' instruction=kernel @make bytes=68 flops=12", "10 on 6 end",
          "10 on 6 transfer 'layers.0 (send)' instruction=transfer f32 [16] number 3 from class 0 "
          "to 1 bytes=64 flops=0 flow 2",
          "14 on 6 end", "14 on 6 end", "14 on 6 end", "track 10 in 2: stage 1, rank 1",
          "track 12 in 10: compute", "track 14 in 10: memory in use, a counter",
          "0 on 12 step 'step 7'", "0 on 12 action 'back for micro-batch 5' micro_batch=5",
          "0 on 14: 68",
          "0 on 12 transfer 'layers.0 (receive)' instruction=transfer f32 [16] number 3 from class "
          "0 to 1 bytes=64 flops=0",
          "0 on 12 wait 'waits for others'", "10 on 12 end", "14 on 12 end last flow 2",
          "14 on 12 map 'kernel @make' instruction=kernel @make bytes=64 flops=0", "20 on 12 end",
          "20 on 12 end", "20 on 12 end"));
}

TEST(TimeLine, OfActionsHasNoInstructions) {
  const Programs programs = makeStages();
  const RankTimes ranks[] = {{1, kSecond}};
  EXPECT_THAT(
      linesOf(drawTimeLine(programs, TraceWriter::Source::Measured, {{1}, false}, ranks, 0)),
      ElementsAre("track 3 in 0: small, measured", "track 5 in 3: stage 1, rank 1",
                  "track 7 in 5: compute", "track 9 in 5: memory in use, a counter",
                  "0 on 7 step 'step 0'", "0 on 7 action 'back for micro-batch 5' micro_batch=5",
                  "0 on 9: 68", "0 on 7 wait 'waits for others'", "10 on 7 end", "20 on 7 end",
                  "20 on 7 end"));
}

/// A flow must begin, so a send has none if its receive is not shown.
TEST(TimeLine, OfOneRankHasNoFlows) {
  const Programs programs = makeStages();
  const RankTimes ranks[] = {{0, kFirst}};
  for (const std::string &line :
       linesOf(drawTimeLine(programs, TraceWriter::Source::Measured, {{0}}, ranks, 0))) {
    EXPECT_THAT(line, testing::Not(testing::HasSubstr("flow "))) << line;
  }
}

TEST(TimeLine, EachStepHasFlowsOfItsOwn) {
  const Programs programs = makeStages();
  std::vector<InstructionTime> first = kFirst, second = kSecond;
  for (std::vector<InstructionTime> *times : {&first, &second}) {
    for (size_t i : {0, 1}) {
      InstructionTime next = (*times)[i];
      times->push_back({next.begin + 30, next.end + 30, next.waited});
    }
  }
  const RankTimes ranks[] = {{0, first}, {1, second}};
  std::vector<std::string> flows;
  for (const std::string &line :
       linesOf(drawTimeLine(programs, TraceWriter::Source::Measured, {{0, 1}}, ranks, 0))) {
    if (size_t at = line.find("flow "); at != std::string::npos) {
      flows.push_back(line.substr(0, line.find(' ')) + " " + line.substr(at));
    }
  }
  EXPECT_THAT(flows, ElementsAre("10 flow 3", "40 flow 5", "14 flow 3", "44 flow 5"));
}

/// The ranks of a group pass a flow on, in the order in which they come to the collective.
TEST(TimeLine, CollectivesOfAClassHaveAFlowForEachGroup) {
  const Program program = makeToy(2, 2);
  std::vector<std::vector<InstructionTime>> times;
  std::vector<RankTimes> ranks;
  for (int64_t rank = 0; rank < 4; ++rank) {
    times.emplace_back();
    for (size_t i = 0; i < program.stepBody().size(); ++i) {
      const auto begin = int64_t(10 * i);
      times.back().push_back({begin, begin + 10, 0});
    }
  }
  for (int64_t rank = 0; rank < 4; ++rank) {
    ranks.push_back({rank, times[size_t(rank)]});
  }
  std::map<std::string, int> flows;
  for (const std::string &line : linesOf(
           drawTimeLine({&program, 1}, TraceWriter::Source::Predicted, {{0, 1, 2, 3}}, ranks, 0))) {
    if (size_t at = line.find(" flow "); at != std::string::npos) {
      EXPECT_THAT(line, testing::HasSubstr("all-reduce"));
      const size_t axes = line.find("over {");
      ++flows[line.substr(axes, at - axes) + line.substr(at)];
    }
  }
  std::map<std::string, std::vector<int>> counts;
  for (const auto &[flow, count] : flows) {
    counts[flow.substr(0, flow.find('}') + 1)].push_back(count);
  }
  // Groups over one axis have two ranks each, that over both has all.
  using testing::Each, testing::Pair;
  EXPECT_THAT(counts, testing::UnorderedElementsAre(Pair("over {data}", Each(2)),
                                                    Pair("over {model}", Each(2)),
                                                    Pair("over {data, model}", Each(4))));
}

TEST(Ranks, AreNumbersAndRanges) {
  const Programs programs = makeToyClasses(4);
  EXPECT_THAT(*parseRanks("", programs), ElementsAre(0, 4));
  EXPECT_THAT(*parseRanks("7", programs), ElementsAre(7));
  EXPECT_THAT(*parseRanks("5-6,0,1-1,6", programs), ElementsAre(0, 1, 5, 6));
  for (const char *wrong :
       {"x", "-1", "1-", "3-2", "1,", ",1", "1,,2", "0 1", "1-2-3", "99999999999999999999"}) {
    EXPECT_EQ(errorOf(parseRanks(wrong, programs)),
              std::string("expected ranks such as 0,4-7, got '") + wrong + "'");
  }
  EXPECT_EQ(errorOf(parseRanks("0-9000000000000000000", programs)),
            "rank 9000000000000000000 is none of the program's ranks, 0 to 7");
}

} // namespace
