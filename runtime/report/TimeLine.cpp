//===- TimeLine.cpp - the course of steps as a trace ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "report/TimeLine.h"

#include "report/MemoryCourse.h"
#include "support/ParseNumber.h"
#include "support/Text.h"
#include "weft-rt/Expansion.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

using namespace weft::rt;

namespace {

/// The numbers of flows: one for each run of a collective by one group of ranks.
class Flows {
public:
  /// `ranks` are those that the trace shows.
  explicit Flows(const std::vector<int64_t> &ranks) : shown(ranks.begin(), ranks.end()) {}

  /// What tells the runs of a rank's collectives apart.
  struct Key {
    /// The number of a collective across classes, and how often the rank ran it before.
    uint32_t number = 0;
    uint64_t before = 0;
    /// Of a collective inside of a class: the class, and the instruction's number in all steps.
    uint32_t rankClass = 0;
    size_t instruction = 0;
    /// The lowest rank of the group.
    int64_t lowest = 0;

    auto tuple() const { return std::tie(number, before, rankClass, instruction, lowest); }
    bool operator<(const Key &other) const { return tuple() < other.tuple(); }
  };

  /// Returns true if the trace shows several of these ranks.
  bool connects(const RankGroup &group) const {
    return std::ranges::count_if(group.ranks, [&](int64_t rank) { return shown.contains(rank); }) >
           1;
  }
  uint64_t numberOf(const Key &key) {
    return numbers.try_emplace(key, numbers.size() + 1).first->second;
  }

private:
  const std::set<int64_t> shown;
  std::map<Key, uint64_t> numbers;
};

/// The texts of a program's slices, and the courses of its memory.
class Texts {
public:
  Texts(TraceWriter &writer, const Program &program)
      : memory(findMemoryCourse(program, program.step)), writer(writer), program(program),
        instructions(program.bodies.size()) {
    wait = writer.textOf("waits for others", "wait", {});
  }

  const TraceWriter::SliceText &of(const Action &action, size_t index) {
    std::vector<TraceWriter::SliceText> &own = instructions[action.body];
    if (own.empty()) {
      for (const Instruction &each : program.bodies[action.body].instructions) {
        own.push_back(make(each));
      }
    }
    return own[index];
  }
  TraceWriter::SliceText of(const Action &action) {
    const std::string name = actionText(program, action);
    return action.microBatch
               ? writer.textOf(name, "action", {{"micro_batch", uint64_t(*action.microBatch)}})
               : writer.textOf(name, "action", {});
  }

  TraceWriter::SliceText wait;
  const MemoryCourse memory;

private:
  TraceWriter::SliceText make(const Instruction &instruction) {
    const std::string target = targetText(program, instruction);
    const std::string &label = program.labels[instruction.label];
    return writer.textOf(label.empty() ? target : label, classOf(program, instruction),
                         {{"instruction", target},
                          {"bytes", uint64_t(instruction.cost.bytes)},
                          {"flops", uint64_t(instruction.cost.flops)}});
  }

  TraceWriter &writer;
  const Program &program;
  /// Of each body's instructions; empty until one is asked for.
  std::vector<std::vector<TraceWriter::SliceText>> instructions;
};

/// The tracks of one rank.
class RankDrawing {
public:
  RankDrawing(TraceWriter &writer, TraceWriter::Track parent, const Program &program,
              const TimeLineScope &scope, int64_t rank, Texts &texts, Flows &flows)
      : writer(writer), program(program), scope(scope), rank(rank), texts(texts), flows(flows),
        step(program, program.step) {
    const TraceWriter::Track own = writer.addTrack(nameOf(program, rank), parent);
    for (size_t stream = 0; stream < kStreams; ++stream) {
      if (Stream(stream) == Stream::Compute || uses(Stream(stream))) {
        tracks[stream] = writer.addTrack(weft::rt::nameOf(Stream(stream)), own);
      }
    }
    memory = writer.addCounter("memory in use", own);
    groups.resize(program.collectives.size());
  }

  void drawStep(int64_t number, std::span<const InstructionTime> times) {
    if (times.empty()) {
      return;
    }
    auto [begin, end] = spanOf(times);
    const TraceWriter::Track track = *tracks[size_t(Stream::Compute)];
    writer.begin(track, begin, writer.textOf(concat("step ", number), "step", {}));
    for (size_t action = 0; action < program.step.size(); ++action) {
      size_t first = step.beginOf(action), count = step.beginOf(action + 1) - first;
      if (count > 0) {
        drawAction(action, times.subspan(first, count));
      }
    }
    writer.end(track, end);
    before += times.size();
  }

private:
  static std::string nameOf(const Program &program, int64_t rank) {
    return program.rankClasses > 1 ? concat("stage ", program.rankClass, ", rank ", rank)
                                   : concat("rank ", rank);
  }

  static std::pair<int64_t, int64_t> spanOf(std::span<const InstructionTime> times) {
    return {std::ranges::min(times, {}, &InstructionTime::begin).begin,
            std::ranges::max(times, {}, &InstructionTime::end).end};
  }

  bool uses(Stream stream) const {
    return std::ranges::any_of(program.step, [&](const Action &action) {
      return std::ranges::any_of(
          program.bodies[action.body].instructions,
          [&](const Instruction &instruction) { return instruction.stream == stream; });
    });
  }

  void drawAction(size_t number, std::span<const InstructionTime> times) {
    const Action &action = program.step[number];
    auto [begin, end] = spanOf(times);
    const TraceWriter::Track track = *tracks[size_t(Stream::Compute)];
    writer.begin(track, begin, texts.of(action));
    if (!scope.hasInstructions) {
      const size_t peak = texts.memory.profiles[texts.memory.actions[number].profile].peak;
      count({number, peak}, begin);
    }
    for (size_t index = 0; index < times.size(); ++index) {
      const InstructionTime &time = times[index];
      if (scope.hasInstructions) {
        count({number, index}, time.begin);
      }
      drawInstruction(number, index, time);
    }
    writer.end(track, end);
  }

  void drawInstruction(size_t number, size_t index, const InstructionTime &time) {
    const Action &action = program.step[number];
    const Instruction &instruction = step.bodyOf(number)[index];
    const TraceWriter::Track track = *tracks[size_t(instruction.stream)];
    TraceWriter::Flow last;
    if (scope.hasInstructions) {
      auto [first, end] = flowsOf(instruction, step.beginOf(number) + index);
      writer.begin(track, time.begin, texts.of(action, index), first);
      last = end;
    }
    if (time.waited > 0) {
      writer.begin(track, time.begin, texts.wait);
      writer.end(track, std::min(time.end, time.begin + time.waited));
    }
    if (scope.hasInstructions) {
      writer.end(track, time.end, last);
    }
  }

  /// Returns the flows with which an instruction begins and ends.
  std::pair<TraceWriter::Flow, TraceWriter::Flow> flowsOf(const Instruction &instruction,
                                                          size_t number) {
    if (instruction.opcode != Opcode::Collective) {
      return {};
    }
    const Collective &collective = program.collectives[instruction.target];
    std::optional<Group> &group = groups[instruction.target];
    if (!group) {
      RankGroup all = program.groupOf(rank, collective);
      group = {flows.connects(all), all.ranks.front() != rank, std::ranges::min(all.ranks)};
    }
    Flows::Key key = {.lowest = group->lowest};
    if (collective.isAcrossClasses()) {
      key.number = collective.number;
      key.before = runs[collective.number]++;
    } else {
      key.rankClass = program.rankClass;
      key.instruction = before + number;
    }
    if (!group->isShown) {
      return {};
    }
    const uint64_t flow = flows.numberOf(key);
    bool receives = collective.kind == CollectiveKind::Transfer && group->isLater;
    return receives ? std::pair(TraceWriter::Flow(), TraceWriter::Flow(flow))
                    : std::pair(TraceWriter::Flow(flow), TraceWriter::Flow());
  }

  /// Memory changes in the order of issue, which need not be that of time on several streams.
  void count(const Instant &instant, int64_t time) {
    countedAt = std::max(countedAt, time);
    const uint64_t bytes = texts.memory.at(instant).total();
    if (counted != bytes) {
      writer.count(*memory, countedAt, bytes);
      counted = bytes;
    }
  }

  struct Group {
    /// Whether the trace shows several of its ranks, and whether this one is not its first.
    bool isShown = false, isLater = false;
    int64_t lowest = 0;
  };

  TraceWriter &writer;
  const Program &program;
  const TimeLineScope &scope;
  const int64_t rank;
  Texts &texts;
  Flows &flows;
  const Expansion step;
  std::array<std::optional<TraceWriter::Track>, kStreams> tracks;
  std::optional<TraceWriter::Track> memory;
  /// Of each collective; none until it is asked for.
  std::vector<std::optional<Group>> groups;
  /// How often each collective across classes ran, by its number.
  std::map<uint32_t, uint64_t> runs;
  /// The instructions of all steps before this one.
  size_t before = 0;
  std::optional<uint64_t> counted;
  int64_t countedAt = 0;
};

} // namespace

Result<std::vector<int64_t>> weft::rt::parseRanks(std::string_view text,
                                                  std::span<const Program> programs) {
  std::set<int64_t> ranks;
  const int64_t count = programs.front().rankCount();
  if (text.empty()) {
    for (const Program &program : programs) {
      ranks.insert(program.ranks().first);
    }
  }
  for (std::string_view rest = text; !rest.empty();) {
    const size_t comma = rest.find(',');
    auto range = parseRange(rest.substr(0, comma));
    if (!range || comma + 1 == rest.size()) {
      return makeError("expected ranks such as 0,4-7, got '", text, "'");
    }
    if (range->second >= count) {
      return makeError("rank ", range->second, " is none of the program's ranks, 0 to ", count - 1);
    }
    for (int64_t rank = range->first; rank <= range->second; ++rank) {
      ranks.insert(rank);
    }
    rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
  }
  return std::vector(ranks.begin(), ranks.end());
}

std::string weft::rt::drawTimeLine(std::span<const Program> programs, TraceWriter::Source source,
                                   const TimeLineScope &scope, std::span<const RankTimes> ranks,
                                   int64_t firstStep) {
  TraceWriter writer(source);
  const char *kind = source == TraceWriter::Source::Predicted ? ", predicted" : ", measured";
  const TraceWriter::Track top = writer.addTrack(programs.front().modelName + kind, {});
  Flows flows(scope.ranks);
  std::vector<std::optional<Texts>> texts(programs.size());
  for (const RankTimes &each : ranks) {
    const Program &program = programOf(programs, each.rank);
    std::optional<Texts> &own = texts[program.rankClass];
    if (!own) {
      own.emplace(writer, program);
    }
    RankDrawing drawing(writer, top, program, scope, each.rank, *own, flows);
    const size_t size = Expansion(program, program.step).size();
    for (size_t step = 0; size > 0 && step < each.times.size() / size; ++step) {
      drawing.drawStep(firstStep + int64_t(step), each.times.subspan(step * size, size));
    }
  }
  return writer.take();
}
