//===- TraceWriter.h - writes traces that Perfetto reads ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Encodes the part of Perfetto's trace format that time lines need: tracks in a tree, slices with
// names and arguments, counters of bytes, and flows, which are arrows from slice to slice. A trace
// is a Protobuf message `Trace`, a list of packets; the runtime links no Protobuf, so this file
// encodes fields itself (decisions/20261128-time-lines-are-perfetto-traces.md).
//
// A text is written once and named by a number from then on. Traces of different `Source`s have
// different numbers for tracks and flows, so their bytes may be put into one file, one trace
// behind the other.
//
// For one thread.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_REPORT_TRACEWRITER_H
#define WEFT_RT_REPORT_TRACEWRITER_H

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace weft::rt {

class TraceWriter {
public:
  enum class Source : uint8_t { Predicted, Measured };

  /// An argument of a slice: a text or a number.
  struct Argument {
    std::string_view name;
    std::variant<std::string_view, uint64_t> value;
  };

  /// The name, category and arguments of slices, encoded.
  class SliceText {
  private:
    friend class TraceWriter;
    std::string bytes;
  };

  /// The number of a track.
  enum class Track : uint64_t {};
  /// The number of a flow. It has the same number in each slice that it passes.
  using Flow = std::optional<uint64_t>;

  explicit TraceWriter(Source source);

  /// Add a track below `parent`, or at the top if there is none, as the next of its children.
  Track addTrack(std::string_view name, std::optional<Track> parent);
  /// Of a number of bytes.
  Track addCounter(std::string_view name, Track parent);

  SliceText textOf(std::string_view name, std::string_view category,
                   std::initializer_list<Argument> arguments);

  /// Begin and end a slice. Slices of a track nest: `end` ends the latest that has not ended. The
  /// times of a track's calls ascend, in nanoseconds; none is negative. A flow goes from a slice
  /// with it to the next in time that begins with it, or to one that ends with it, and no further.
  void begin(Track track, int64_t time, const SliceText &text, Flow flow = {});
  void end(Track track, int64_t time, Flow last = {});
  /// Sets a counter.
  void count(Track counter, int64_t time, uint64_t bytes);

  /// Returns the trace, and leaves an empty one.
  std::string take();

private:
  /// The tables of texts that a trace has, at the numbers of their fields in a packet's message.
  enum class Table : uint8_t { Categories = 1, Names = 2, ArgumentNames = 3, Texts = 29 };

  uint64_t number(Table table, std::string_view text);
  Track addTrack(std::string_view name, std::optional<Track> parent, bool isCounter);
  uint64_t numberOf(uint64_t own) const { return own * 2 + uint64_t(source); }
  void addEnd(Track track, int64_t time, uint64_t type, std::string fields, uint32_t flowField,
              Flow flow);
  void addEvent(int64_t time, std::string_view event);
  void addPacket(std::string_view fields);

  const Source source;
  uint64_t tracks = 0;
  /// The number of children of each track, and of tracks at the top (0).
  std::map<uint64_t, uint64_t> children;
  std::map<std::pair<Table, std::string>, uint64_t, std::less<>> numbers;
  std::map<Table, uint64_t> counts;
  std::string trace;
};

} // namespace weft::rt

#endif // WEFT_RT_REPORT_TRACEWRITER_H
