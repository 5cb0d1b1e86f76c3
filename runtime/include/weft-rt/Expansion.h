//===- Expansion.h - the instructions of a section, in order ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The meaning of a section is the list of instructions that its actions run, one
// after another. An Expansion shows this list without making it: its memory grows
// with the number of actions only. Reports and proofs number instructions by it.
//
//   Expansion step(program, program.step);
//   for (const Instruction &instruction : step) ...
//
// It refers to the program, which must outlive it and keep its bodies and actions.
// Any thread may read it.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_EXPANSION_H
#define WEFT_RT_EXPANSION_H

#include "weft-rt/Program.h"

#include <iterator>

namespace weft::rt {

class Expansion {
public:
  /// Has no instructions.
  Expansion() = default;
  /// REQUIRES: the actions name bodies of the program.
  Expansion(const Program &program, const std::vector<Action> &actions);

  class Iterator {
  public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Instruction;
    using difference_type = std::ptrdiff_t;
    using pointer = const Instruction *;
    using reference = const Instruction &;

    Iterator() = default;
    const Instruction &operator*() const { return body()[index]; }
    const Instruction *operator->() const { return &**this; }
    Iterator &operator++() {
      ++index;
      skipEnds();
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator &other) const {
      return action == other.action && index == other.index;
    }
    /// The action that runs the instruction.
    const Action &by() const { return (*list->actions)[action]; }

  private:
    friend class Expansion;
    Iterator(const Expansion *list, size_t action) : list(list), action(action) { skipEnds(); }
    const std::vector<Instruction> &body() const { return list->bodyOf(action); }
    /// Goes to the next action that has instructions, if this one has no more.
    void skipEnds() {
      for (; action < list->actionCount() && index == body().size(); index = 0) {
        ++action;
      }
    }

    const Expansion *list = nullptr;
    size_t action = 0, index = 0;
  };

  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, actionCount()}; }

  /// Returns the number of instructions.
  size_t size() const { return begins.empty() ? 0 : begins.back(); }
  bool empty() const { return size() == 0; }
  size_t actionCount() const { return actions ? actions->size() : 0; }

  /// Returns the action that runs instruction `number`; takes logarithmic time.
  size_t actionOf(size_t number) const;
  /// Returns the number of the first instruction of an action.
  size_t beginOf(size_t action) const { return begins[action]; }
  const Action &action(size_t number) const { return (*actions)[number]; }
  const std::vector<Instruction> &bodyOf(size_t action) const {
    return program->bodies[(*actions)[action].body].instructions;
  }

  const Instruction &operator[](size_t number) const;
  /// Returns the place of instruction `number` in the model: "micro-batch 3/layers.0/mlp".
  std::string label(size_t number) const;

private:
  const Program *program = nullptr;
  const std::vector<Action> *actions = nullptr;
  /// The number of each action's first instruction, and of all instructions.
  std::vector<size_t> begins;
};

/// Returns "step_forward_0 for micro-batch 3".
std::string actionText(const Program &program, const Action &action);

/// Returns the label of an instruction that `action` runs.
std::string labelOf(const Program &program, const Instruction &instruction, const Action &action);

} // namespace weft::rt

#endif // WEFT_RT_EXPANSION_H
