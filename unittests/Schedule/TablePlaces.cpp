//===- TablePlaces.cpp - instructions of programs, to be changed -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TablePlaces.h"

#include <algorithm>

namespace weft::test {

std::pair<size_t, size_t> drawTwo(size_t count, Random &random) {
  size_t a = draw(count, random), b = draw(count - 1, random);
  b += size_t(b >= a);
  return {std::min(a, b), std::max(a, b)};
}

std::optional<Place> pickPlace(rt::Programs &programs, Random &random, const Predicate &isOne) {
  std::vector<Place> places;
  for (rt::Program &program : programs) {
    for (rt::Body &body : program.bodies) {
      for (size_t i = 0; i < body.instructions.size() && body.name != "init"; ++i) {
        if (isOne(program, body.instructions[i])) {
          places.push_back({&program, &body.instructions, i});
        }
      }
    }
  }
  return places.empty() ? std::nullopt : std::optional(pick(places, random));
}

bool isAgreement(const rt::Program &, const rt::Instruction &instruction) {
  return instruction.opcode == rt::Opcode::Agree;
}
bool isTransfer(const rt::Program &program, const rt::Instruction &instruction) {
  return instruction.opcode == rt::Opcode::Collective &&
         program.collectives[instruction.target].kind == rt::CollectiveKind::Transfer;
}
bool isOfGroup(const rt::Program &program, const rt::Instruction &instruction) {
  return instruction.opcode == rt::Opcode::Collective && !isTransfer(program, instruction);
}
bool isCommunication(const rt::Program &, const rt::Instruction &instruction) {
  return instruction.opcode == rt::Opcode::Collective || instruction.opcode == rt::Opcode::Agree;
}
bool hasWaits(const rt::Program &, const rt::Instruction &instruction) {
  return !instruction.waits.empty();
}
bool isAny(const rt::Program &, const rt::Instruction &) { return true; }

void relist(Instructions &body, const std::vector<size_t> &old) {
  Instructions listed;
  for (size_t number : old) {
    rt::Instruction instruction = body[number];
    std::vector<uint32_t> waits;
    for (uint32_t other : instruction.waits) {
      auto end = old.begin() + ptrdiff_t(listed.size());
      auto found = std::find(old.begin(), end, size_t(other));
      if (found != end) {
        waits.push_back(uint32_t(found - old.begin()));
      }
    }
    std::ranges::sort(waits);
    instruction.waits = waits;
    listed.push_back(std::move(instruction));
  }
  body = std::move(listed);
}

std::vector<size_t> numbersOf(const Instructions &body) {
  std::vector<size_t> numbers(body.size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = i;
  }
  return numbers;
}

bool drop(const std::optional<Place> &place) {
  if (!place) {
    return false;
  }
  std::vector<size_t> numbers = numbersOf(*place->body);
  numbers.erase(numbers.begin() + ptrdiff_t(place->number));
  relist(*place->body, numbers);
  return true;
}

bool repeat(const std::optional<Place> &place, Random &random) {
  if (!place) {
    return false;
  }
  std::vector<size_t> numbers = numbersOf(*place->body);
  numbers.insert(numbers.begin() + ptrdiff_t(draw(numbers.size() + 1, random)), place->number);
  relist(*place->body, numbers);
  return true;
}

bool move(const std::optional<Place> &place, Random &random) {
  if (!place || place->body->size() < 2) {
    return false;
  }
  std::vector<size_t> numbers = numbersOf(*place->body);
  numbers.erase(numbers.begin() + ptrdiff_t(place->number));
  size_t to = draw(numbers.size(), random);
  numbers.insert(numbers.begin() + ptrdiff_t(to + size_t(to >= place->number)), place->number);
  relist(*place->body, numbers);
  return true;
}

bool swapWithin(const std::optional<Place> &place, Random &random, const Predicate &isOne) {
  std::vector<size_t> others;
  for (size_t i = 0; place && i < place->body->size(); ++i) {
    if (i != place->number && isOne(*place->program, (*place->body)[i])) {
      others.push_back(i);
    }
  }
  if (others.empty()) {
    return false;
  }
  std::vector<size_t> numbers = numbersOf(*place->body);
  std::swap(numbers[place->number], numbers[pick(others, random)]);
  relist(*place->body, numbers);
  return true;
}

} // namespace weft::test
