//===- ProgressMarks.h - where devices report their progress --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A mark is a position after an instruction. When a device reaches a mark, it
// writes a word into host memory. As that costs device time, there are only the
// marks that reports need: around each collective, where ranks wait for each other,
// and in between after at most a few milliseconds of predicted work.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_EXECUTION_PROGRESSMARKS_H
#define WEFT_RT_EXECUTION_PROGRESSMARKS_H

#include "program/InstructionRange.h"

#include <array>
#include <string>
#include <vector>

namespace weft::rt {

struct ProgressMark {
  /// The instructions since the mark before.
  InstructionRange range;
  /// The predicted time of these instructions; 0 if unknown.
  double seconds = 0;
};

class ProgressMarks {
public:
  /// The most predicted work between two marks; a single instruction may exceed it.
  static constexpr double kMostSeconds = 2e-3;
  /// The most instructions between two marks, in case predictions are missing.
  static constexpr uint32_t kMostInstructions = 32;

  /// The mark of all copies that the rank's thread waits for.
  static constexpr uint32_t kCopy = 0;

  /// `program` must outlive this object.
  explicit ProgressMarks(const Program &program);

  /// Returns the number of the mark after an instruction of "init", "step" or "evaluate"; 0 if
  /// there is none.
  uint32_t behind(const char *section, size_t instruction) const;
  const ProgressMark &at(uint32_t number) const { return marks[number]; }
  /// Returns the number of marks after instructions; these are numbered from 1.
  size_t count() const { return marks.size() - 1; }
  /// Returns the last instruction before a mark; null for kCopy.
  const Instruction *instruction(uint32_t number) const;

  /// Returns the text of the mark's instructions, or says that it is a copy.
  std::string describe(uint32_t number) const;

private:
  void add(const char *section, const std::vector<Action> &actions);

  struct Section {
    const char *name = "";
    /// The mark after each instruction.
    std::vector<uint32_t> behind;
  };
  const Program &program;
  std::vector<ProgressMark> marks = {{}};
  std::array<Section, 3> sections;
  size_t sectionCount = 0;
};

} // namespace weft::rt

#endif // WEFT_RT_EXECUTION_PROGRESSMARKS_H
