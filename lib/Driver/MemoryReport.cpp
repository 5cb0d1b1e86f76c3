//===- MemoryReport.cpp - what is in use at the peak of memory ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Driver/MemoryReport.h"

#include "report/MemoryReport.h"
#include "support/Text.h"
#include "weft-rt/Expansion.h"
#include "weft/Driver/Report.h"
#include "weft/Schedule/Frames.h"
#include "weft/Schedule/Lifetimes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"

#include <map>
#include <set>

using namespace weft;

namespace {

/// Returns "3 buffers", "1 buffer".
std::string countText(size_t count, const std::string &noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

/// Returns "3, 5 to 8".
std::string numbersText(const std::set<int64_t> &numbers) {
  std::string text;
  for (auto it = numbers.begin(); it != numbers.end(); ++it) {
    const int64_t first = *it;
    int64_t last = first;
    for (; std::next(it) != numbers.end() && *std::next(it) == last + 1; ++it) {
      ++last;
    }
    text += (text.empty() ? "" : ", ") + std::to_string(first);
    text += last > first ? " to " + std::to_string(last) : "";
  }
  return text;
}

/// Returns the text with '*' for the numbers of layers: "layers.*/attention.query (contract)".
std::string withoutLayers(llvm::StringRef text) {
  std::string pattern;
  for (char letter : text) {
    if (!llvm::isDigit(letter) || pattern.empty() ||
        (pattern.back() != '.' && pattern.back() != '*')) {
      pattern += letter;
    } else if (pattern.back() == '.') {
      pattern += '*';
    }
  }
  return pattern;
}

/// Returns the shape that an instruction gives to the buffer that it writes, if the program says.
std::optional<std::vector<int64_t>>
writtenShape(const rt::Program &program, const rt::Instruction &instruction, uint32_t buffer) {
  if (instruction.opcode == rt::Opcode::Matmul && instruction.operands[2].buffer == buffer) {
    const rt::Matmul &matmul = program.matmuls[instruction.target];
    return matmul.batch > 1 && !matmul.isSum()
               ? std::vector<int64_t>{matmul.batch, matmul.m, matmul.n}
               : std::vector<int64_t>{matmul.m, matmul.n};
  }
  if (instruction.opcode == rt::Opcode::Collective) {
    const rt::Collective &collective = program.collectives[instruction.target];
    std::vector<int64_t> shape = collective.shape;
    auto size = int64_t(program.groupSize(collective));
    if (collective.kind == rt::CollectiveKind::AllGather) {
      shape[collective.dim] *= size;
    } else if (collective.kind != rt::CollectiveKind::AllReduce && changesShape(collective.kind)) {
      shape[collective.dim] /= size;
    }
    if (collective.kind == rt::CollectiveKind::AllToAll) {
      shape[collective.dim2] *= size;
    }
    return shape;
  }
  return std::nullopt;
}

/// The names of parameters, optimizer states and inputs.
class Names {
public:
  explicit Names(const rt::Program &program) : tensors(program.buffers.size()) {
    for (const auto *list : {&program.parameters, &program.optimizerState, &program.inputs}) {
      for (const rt::NamedTensor &tensor : *list) {
        tensors[tensor.buffer] = &tensor;
      }
    }
  }
  /// Returns null if the buffer has no name.
  const rt::NamedTensor *find(uint32_t buffer) const { return tensors[buffer]; }

private:
  std::vector<const rt::NamedTensor *> tensors;
};

/// What buffers that share an entry have in common.
struct Entry {
  rt::BufferClass kind = rt::BufferClass::Activation;
  /// Of each buffer in one frame.
  uint64_t bytes = 0;
  /// The number of frames in use; 0 if the buffers lie in none.
  size_t frames = 0;
  /// "f32 [2, 64]", or the number of elements.
  std::string type;
  /// Of named tensors.
  std::string name;
  /// Of other buffers: the first and the last use, as "layers.*/mlp.up (contract)", and the bodies
  /// that these belong to.
  std::string first, firstBody, last, lastBody;
  auto operator<=>(const Entry &) const = default;

  uint64_t bytesOfOne() const { return bytes * std::max<size_t>(frames, 1); }
};

struct Members {
  size_t count = 0;
  const rt::LiveBuffer *example = nullptr;
  /// Those of their values.
  std::set<int64_t> microBatches;
};

class PeakReport {
public:
  explicit PeakReport(const rt::Program &program)
      : program(program), peak(rt::memoryPeak(program)), names(program),
        live(peak.section.empty()
                 ? std::vector<rt::LiveBuffer>()
                 : rt::findLiveBuffers(program, program.*peak.actions, peak.instant)) {}

  void print(llvm::raw_ostream &os) const {
    os << rt::memoryReport(program, peak);
    if (!peak.section.empty()) {
      printPlace(os);
    }
    printFrames(os);
    printArena(os);
    printLargest(os);
  }

private:
  const rt::Action &actionOf(const rt::Instant &instant) const {
    return (program.*peak.actions)[instant.action];
  }
  const rt::Body &bodyOf(const rt::Instant &instant) const {
    return program.bodies[actionOf(instant).body];
  }
  const rt::Instruction &at(const rt::Instant &instant) const {
    return bodyOf(instant).instructions[instant.instruction];
  }

  void printPlace(llvm::raw_ostream &os) const {
    os << "  at the peak: " << peak.section << " action " << peak.instant.action << ", "
       << rt::actionText(program, actionOf(peak.instant)) << ", instruction "
       << peak.instant.instruction << ": " << rt::targetText(program, at(peak.instant)) << '\n';
  }

  void printFrames(llvm::raw_ostream &os) const {
    if (peak.use.totalFramed() == 0) {
      return;
    }
    size_t inUse = 0;
    for (const rt::LiveBuffer &each : live) {
      inUse = program.buffers[each.buffer].frameSet ? std::max(inUse, each.values.size()) : inUse;
    }
    os << "  in " << countText(inUse, "frame") << " of micro-batches in flight"
       << (peak.use.framed[size_t(rt::BufferClass::ParameterCopy)] > 0
               ? " and of gathered parameters"
               : "")
       << ", of the above:";
    const char *separator = " ";
    for (size_t kind = 0; kind < rt::kBufferClasses; ++kind) {
      if (uint64_t bytes = peak.use.framed[kind]) {
        os << separator << nameOf(rt::BufferClass(kind)) << ' ' << rt::bytesText(bytes);
        separator = ", ";
      }
    }
    os << '\n';
  }

  void printArena(llvm::raw_ostream &os) const {
    const ArenaReport arena = reportArena(program);
    schedule::ArenaProblem problem = schedule::makeArenaProblem(program);
    const uint64_t asPacked = schedule::arenaLowerBound(problem);
    for (auto [number, bytes] : llvm::enumerate(schedule::findMostFrameBytes(program))) {
      problem.buffers[program.buffers.size() + number].bytes = bytes;
    }
    const uint64_t fixed = schedule::arenaLowerBound(problem);
    os << arenaText(arena) << '\n';
    auto printPart = [&](uint64_t bytes, const char *text) {
      if (bytes > 0) {
        os << llvm::format("%12s  %s\n", rt::bytesText(bytes).c_str(), text);
      }
    };
    printPart(peak.use.aligned, "max-live: all that is in use at the peak, with padding");
    printPart(fixed - arena.bound,
              "more, because a buffer keeps its place in all actions of a body");
    printPart(asPacked - fixed, "more, in holes between frames");
    printPart(arena.bytes - asPacked, "more, in holes between buffers");
  }

  std::string typeOf(const rt::LiveBuffer &live) const {
    const rt::Buffer &buffer = program.buffers[live.buffer];
    if (buffer.kind == rt::BufferClass::Workspace) {
      return "";
    }
    const int64_t elements = int64_t(buffer.bytes) / int64_t(sizeOf(buffer.type));
    std::optional<std::vector<int64_t>> shape;
    if (const rt::NamedTensor *tensor = names.find(live.buffer)) {
      shape = rt::localShape(tensor->layout, program.mesh);
    } else if (!live.values.empty()) {
      shape = writtenShape(program, at(live.values.front().first), live.buffer);
    }
    std::string text = nameOf(buffer.type);
    if (shape && llvm::product_of(*shape) == elements) {
      return text + " " + rt::shapeText(*shape);
    }
    return text + ", " + countText(size_t(elements), "element");
  }

  std::string labelOf(const rt::Instant &instant) const {
    const rt::Instruction &instruction = at(instant);
    const std::string &label = program.labels[instruction.label];
    return label.empty() ? rt::classOf(program, instruction) : label;
  }

  /// Returns the entry of a buffer alone, with the number of its layer.
  Entry ownEntry(const rt::LiveBuffer &live) const {
    const rt::Buffer &buffer = program.buffers[live.buffer];
    Entry entry;
    entry.kind = buffer.kind;
    entry.bytes = buffer.bytes;
    entry.frames = buffer.frameSet ? live.values.size() : 0;
    entry.type = typeOf(live);
    if (const rt::NamedTensor *tensor = names.find(live.buffer)) {
      entry.name = tensor->name;
    }
    if (!live.values.empty()) {
      const rt::ValueLife &life = live.values.front();
      entry.first = labelOf(life.first);
      entry.firstBody = bodyOf(life.first).name;
      entry.last = labelOf(life.last);
      entry.lastBody = bodyOf(life.last).name;
    }
    return entry;
  }

  Entry sharedEntry(const rt::LiveBuffer &live) const {
    Entry entry = ownEntry(live);
    for (std::string *text : {&entry.name, &entry.first, &entry.last}) {
      *text = withoutLayers(*text);
    }
    return entry;
  }

  static void printEntry(llvm::raw_ostream &os, const Entry &entry, const Members &members) {
    os << llvm::format("%12s  %-14s  ", rt::bytesText(members.count * entry.bytesOfOne()).c_str(),
                       nameOf(entry.kind));
    if (members.count > 1 || entry.frames > 0) {
      os << countText(members.count, "buffer") << " of " << rt::bytesText(entry.bytes);
      os << (entry.frames > 0 ? " in " + countText(entry.frames, "frame") : "");
      os << (entry.type.empty() ? "" : ", ");
    }
    os << entry.type << (entry.name.empty() ? "" : ": " + entry.name) << '\n';
    if (entry.first.empty()) {
      return;
    }
    os << "              from " << entry.first;
    if (entry.firstBody != entry.lastBody) {
      os << " in " << entry.firstBody;
    }
    os << " to " << entry.last << " in " << entry.lastBody;
    if (!members.microBatches.empty()) {
      os << ", micro-batch" << (members.microBatches.size() == 1 ? " " : "es ")
         << numbersText(members.microBatches);
    }
    os << '\n';
  }

  void printLargest(llvm::raw_ostream &os) const {
    std::map<Entry, Members> entries;
    for (const rt::LiveBuffer &each : live) {
      Members &members = entries[sharedEntry(each)];
      ++members.count;
      members.example = &each;
      for (const rt::ValueLife &value : each.values) {
        if (auto number = actionOf(value.first).microBatch) {
          members.microBatches.insert(*number);
        }
      }
    }
    std::vector<std::pair<Entry, Members>> largest(entries.begin(), entries.end());
    auto bytes = [](const auto &each) { return each.first.bytesOfOne() * each.second.count; };
    llvm::sort(largest, [&](const auto &a, const auto &b) {
      return bytes(a) != bytes(b) ? bytes(a) > bytes(b) : a.first < b.first;
    });
    constexpr size_t kMost = 10;
    os << "the largest of " << countText(live.size(), "buffer") << " in use at the peak:\n";
    for (const auto &[entry, members] : llvm::ArrayRef(largest).take_front(kMost)) {
      printEntry(os, members.count == 1 ? ownEntry(*members.example) : entry, members);
    }
  }

  const rt::Program &program;
  const rt::MemoryPeak peak;
  const Names names;
  const std::vector<rt::LiveBuffer> live;
};

} // namespace

void weft::printMemory(llvm::raw_ostream &os, std::span<const rt::Program> programs) {
  const char *separator = "";
  for (const rt::Program &program : programs) {
    os << separator;
    PeakReport(program).print(os);
    separator = "\n";
  }
}
