//===- TraceWriter.cpp - writes traces that Perfetto reads ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "report/TraceWriter.h"

#include <utility>

using namespace weft::rt;

namespace {

/// The numbers of fields in messages, as Perfetto has them.
namespace trace {
constexpr uint32_t kPacket = 1;
} // namespace trace
namespace packet {
constexpr uint32_t kTimestamp = 8, kSequence = 10, kEvent = 11, kTexts = 12, kFlags = 13,
                   kTrack = 60;
constexpr uint64_t kFlagFirst = 1, kFlagHasTexts = 2;
} // namespace packet
namespace track {
constexpr uint32_t kNumber = 1, kName = 2, kParent = 5, kCounter = 8, kChildOrder = 11, kRank = 12;
constexpr uint64_t kOrderByRank = 3;
} // namespace track
namespace counter {
constexpr uint32_t kUnit = 3;
constexpr uint64_t kBytes = 3;
} // namespace counter
namespace event {
constexpr uint32_t kCategory = 3, kArgument = 4, kType = 9, kName = 10, kTrack = 11, kValue = 30,
                   kFlow = 47, kLastFlow = 48;
constexpr uint64_t kBegin = 1, kEnd = 2, kCount = 4;
} // namespace event
namespace argument {
constexpr uint32_t kName = 1, kNumber = 3, kText = 17;
} // namespace argument
namespace text {
constexpr uint32_t kNumber = 1, kBytes = 2;
} // namespace text

/// Appends Protobuf's encoding of fields to `bytes`.
class Fields {
public:
  explicit Fields(std::string &bytes) : bytes(bytes) {}

  Fields &number(uint32_t field, uint64_t value) {
    key(field, 0);
    varint(value);
    return *this;
  }
  /// A number of eight bytes, little-endian.
  Fields &fixed(uint32_t field, uint64_t value) {
    key(field, 1);
    for (int i = 0; i < 8; ++i) {
      bytes += char((value >> (8 * i)) & 0xff);
    }
    return *this;
  }
  /// A text, or a message.
  Fields &text(uint32_t field, std::string_view value) {
    key(field, 2);
    varint(value.size());
    bytes += value;
    return *this;
  }

private:
  void key(uint32_t field, uint32_t wireType) { varint(uint64_t(field) << 3 | wireType); }
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) {
      bytes += char((value & 0x7f) | 0x80);
    }
    bytes += char(value);
  }

  std::string &bytes;
};

} // namespace

TraceWriter::TraceWriter(Source source) : source(source) {
  std::string fields;
  Fields(fields).number(packet::kFlags, packet::kFlagFirst);
  addPacket(fields);
}

/// Packets of one sequence share their tables of texts.
void TraceWriter::addPacket(std::string_view fields) {
  std::string whole(fields);
  Fields(whole).number(packet::kSequence, uint64_t(source) + 1);
  Fields(trace).text(trace::kPacket, whole);
}

TraceWriter::Track TraceWriter::addTrack(std::string_view name, std::optional<Track> parent,
                                         bool isCounter) {
  const uint64_t number = numberOf(++tracks), above = parent ? uint64_t(*parent) : 0;
  std::string fields, unit, whole;
  Fields list(fields);
  list.number(track::kNumber, number)
      .text(track::kName, name)
      .number(track::kChildOrder, track::kOrderByRank)
      .number(track::kRank, children[above]++);
  if (parent) {
    list.number(track::kParent, above);
  }
  if (isCounter) {
    Fields(unit).number(counter::kUnit, counter::kBytes);
    list.text(track::kCounter, unit);
  }
  Fields(whole).text(packet::kTrack, fields);
  addPacket(whole);
  return Track(number);
}

TraceWriter::Track TraceWriter::addTrack(std::string_view name, std::optional<Track> parent) {
  return addTrack(name, parent, false);
}

TraceWriter::Track TraceWriter::addCounter(std::string_view name, Track parent) {
  return addTrack(name, parent, true);
}

uint64_t TraceWriter::number(Table table, std::string_view text) {
  auto [it, isNew] = numbers.try_emplace({table, std::string(text)}, counts[table] + 1);
  if (isNew) {
    ++counts[table];
    std::string entry, texts, whole;
    Fields(entry).number(text::kNumber, it->second).text(text::kBytes, text);
    Fields(texts).text(uint32_t(table), entry);
    Fields(whole).text(packet::kTexts, texts).number(packet::kFlags, packet::kFlagHasTexts);
    addPacket(whole);
  }
  return it->second;
}

TraceWriter::SliceText TraceWriter::textOf(std::string_view name, std::string_view category,
                                           std::initializer_list<Argument> arguments) {
  SliceText result;
  Fields list(result.bytes);
  list.number(event::kName, number(Table::Names, name))
      .number(event::kCategory, number(Table::Categories, category));
  for (const Argument &each : arguments) {
    std::string fields;
    Fields(fields).number(argument::kName, number(Table::ArgumentNames, each.name));
    if (const auto *text = std::get_if<std::string_view>(&each.value)) {
      Fields(fields).number(argument::kText, number(Table::Texts, *text));
    } else {
      Fields(fields).number(argument::kNumber, std::get<uint64_t>(each.value));
    }
    list.text(event::kArgument, fields);
  }
  return result;
}

void TraceWriter::addEvent(int64_t time, std::string_view event) {
  std::string fields;
  Fields(fields)
      .number(packet::kTimestamp, uint64_t(time))
      .number(packet::kFlags, packet::kFlagHasTexts)
      .text(packet::kEvent, event);
  addPacket(fields);
}

void TraceWriter::begin(Track track, int64_t time, const SliceText &text, Flow flow) {
  addEnd(track, time, event::kBegin, text.bytes, event::kFlow, flow);
}

void TraceWriter::end(Track track, int64_t time, Flow last) {
  addEnd(track, time, event::kEnd, {}, event::kLastFlow, last);
}

/// Adds one end of a slice, with a flow in that field.
void TraceWriter::addEnd(Track track, int64_t time, uint64_t type, std::string fields,
                         uint32_t flowField, Flow flow) {
  Fields list(fields);
  list.number(event::kType, type).number(event::kTrack, uint64_t(track));
  if (flow) {
    list.fixed(flowField, numberOf(*flow));
  }
  addEvent(time, fields);
}

void TraceWriter::count(Track counter, int64_t time, uint64_t bytes) {
  std::string fields;
  Fields(fields)
      .number(event::kType, event::kCount)
      .number(event::kTrack, uint64_t(counter))
      .number(event::kValue, bytes);
  addEvent(time, fields);
}

std::string TraceWriter::take() { return std::exchange(trace, {}); }
