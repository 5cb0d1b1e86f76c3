//===- ProgressMarks.h - where devices tell how far they are ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A mark is a place behind an instruction. A device that comes there writes a word into
// the host's memory, which takes it some of its time, so there are only as many marks as
// reports need: around each collective, where ranks wait for each other, and in between
// where more than a few milliseconds of work are predicted.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_EXECUTION_PROGRESSMARKS_H
#define WEFT_RT_EXECUTION_PROGRESSMARKS_H

#include "weft-rt/Program.h"

#include <array>
#include <string>
#include <vector>

namespace weft::rt {

struct ProgressMark {
  const char *section = "";
  const std::vector<Instruction> *instructions = nullptr;
  /// Those behind the mark before, up to this one.
  uint32_t first = 0, last = 0;
  /// That they are predicted to take; 0 where nobody has said.
  double seconds = 0;
};

class ProgressMarks {
public:
  /// Work between two marks, as predicted; of a single instruction it may be more.
  static constexpr double kMostSeconds = 2e-3;
  /// Instructions between two marks, as predictions may be missing.
  static constexpr uint32_t kMostInstructions = 32;

  /// Stands behind a copy that the rank's thread waits for, wherever that is.
  static constexpr uint32_t kCopy = 0;

  /// `program` must outlive this.
  explicit ProgressMarks(const Program &program);

  /// The number of the mark behind an instruction of "init", "step" or "evaluate"; 0 for none.
  uint32_t behind(const char *section, size_t instruction) const;
  const ProgressMark &at(uint32_t number) const { return marks[number]; }
  /// Those behind instructions, which are numbered from 1 on.
  size_t count() const { return marks.size() - 1; }
  /// The last instruction before a mark; null if that stands behind none.
  const Instruction *instruction(uint32_t number) const;

  /// "step instructions 40 to 44 (all-reduce sum f32 [64] over {data}, layers.3.mlp)": what the
  /// last of them is, as that is where a mark's work mostly lies.
  std::string describe(uint32_t number) const;

private:
  void add(const char *section, const std::vector<Instruction> &instructions);

  struct Section {
    const char *name = "";
    /// By instruction.
    std::vector<uint32_t> behind;
  };
  const Program &program;
  std::vector<ProgressMark> marks = {{}};
  std::array<Section, 3> sections;
  size_t sectionCount = 0;
};

} // namespace weft::rt

#endif // WEFT_RT_EXECUTION_PROGRESSMARKS_H
