//===- AbstractMachine.h - what ranks do in small programs -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_UNITTESTS_MEANING_ABSTRACTMACHINE_H
#define WEFT_UNITTESTS_MEANING_ABSTRACTMACHINE_H

#include "AbstractRun.h"

#include "weft-rt/Program.h"

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace weft::test {

/// Bytes of the arena; later, numbers of cells.
struct Range {
  uint64_t begin = 0, end = 0;
  bool meets(const Range &other) const { return begin < other.end && other.begin < end; }
};

/// What one rank does at once: an instruction, or the runtime's writing of inputs.
struct Step {
  const rt::Program *program = nullptr;
  /// Null where inputs are written.
  const rt::Instruction *instruction = nullptr;
  const rt::Action *action = nullptr;
  /// The number of the section's run, and of the action in all sections.
  uint32_t run = 0, actionNumber = 0;
  size_t stream = 0;
  /// The place among the steps of the stream.
  uint32_t place = 0;
  /// How many steps of each stream must have been done.
  std::array<uint32_t, rt::kStreams> needs = {};
  /// By operand; inputs are written in their order.
  std::vector<Range> operands = {};
  std::vector<bool> isRead = {}, isWritten = {};
  /// The number of what several ranks do together.
  std::optional<size_t> rendezvous = {};
  /// Set if it might touch bytes at the same time as a step of another stream, or twice.
  bool isWatched = false;
};

/// What several ranks do together; a step for each that comes.
struct Rendezvous {
  std::vector<int64_t> ranks;
  std::map<int64_t, const Step *> steps;
};

/// Bytes that nobody touches in part: a part of a term.
struct Cell {
  Term term = 0;
  /// The place of its first byte in what was written, and the bytes of that.
  uint64_t offset = 0, extent = 0;
};

struct State {
  /// How many steps are done, by rank and stream.
  std::vector<std::array<uint32_t, rt::kStreams>> done;
  /// By rank.
  std::vector<std::vector<Cell>> cells;
  /// What was observed, by rank and name.
  std::vector<std::vector<Term>> seen;
  /// By what ranks agreed to go on.
  Term agreed = 0;

  Term hash() const;
};

/// All steps of all ranks, and what they do to a state.
class AbstractMachine {
public:
  AbstractMachine(std::span<const rt::Program> programs, KernelTerms &kernels, Queues queues);

  bool isOutOfBounds() const { return outOfBounds; }
  State start() const;
  size_t rankCount() const { return steps.size(); }
  /// The next step of a stream if it may begin; else null.
  const Step *ready(const State &state, size_t rank, size_t stream) const;
  /// Whether all ranks of a step's rendezvous have come.
  bool haveCome(const State &state, const Step &step) const;
  bool isAtEnd(const State &state) const;
  /// Whether two streams of a rank may touch the same bytes now, and one of them writes; or one
  /// instruction may, by two operands.
  bool hasRace(const State &state, size_t rank) const;
  /// Returns false if partners do not do the same.
  [[nodiscard]] bool perform(State &state, size_t rank, const Step &step);
  /// A hash of what lasts and what was seen.
  Term endOf(const State &state) const;

private:
  void addSection(size_t rank, const std::vector<rt::Action> &actions, uint32_t run);
  void addInputs(size_t rank, uint32_t run);
  void addStep(size_t rank, Step step, std::span<const Step *const> body);
  Step makeStep(const rt::Program &program, const rt::Instruction &instruction,
                const rt::Action &action);
  Range rangeOf(const rt::Program &program, uint32_t buffer, const rt::Action *action,
                std::optional<uint64_t> bytes);
  void meet(size_t rank, Step &step);
  void findWatched(size_t rank);
  void makeCells();

  Term read(const State &state, size_t rank, const Range &range) const;
  void write(State &state, size_t rank, const Range &range, Term term) const;
  void performKernel(State &state, size_t rank, const Step &step);
  void performMatmul(State &state, size_t rank, const Step &step) const;
  void performInputs(State &state, size_t rank, const Step &step) const;
  void agree(State &state) const;
  void addVariables(const State &state, std::vector<Term> &terms) const;
  bool performRendezvous(State &state, const Rendezvous &rendezvous);
  std::vector<Term> observedOn(const State &state, int64_t places, bool onlyDeciding) const;

  std::span<const rt::Program> programs;
  KernelTerms &kernels;
  const Queues queues;
  bool outOfBounds = false;
  /// Of each rank, in the order of issue; steps are referred to.
  std::vector<std::vector<std::unique_ptr<Step>>> steps;
  /// By rank and stream.
  std::vector<std::array<std::vector<Step *>, rt::kStreams>> streams;
  /// How often a rank has met the same ranks.
  std::map<std::pair<std::vector<int64_t>, int64_t>, size_t> counts;
  std::map<std::pair<std::vector<int64_t>, size_t>, size_t> numbers;
  std::vector<Rendezvous> allRendezvous;
  /// The first bytes of cells, by rank class, and the end of the last.
  std::vector<std::vector<uint64_t>> cuts;
  std::vector<std::string> names;
};

} // namespace weft::test

#endif // WEFT_UNITTESTS_MEANING_ABSTRACTMACHINE_H
