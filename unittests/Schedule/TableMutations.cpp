//===- TableMutations.cpp - small changes of the programs of a run ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TableMutations.h"

#include "TablePlaces.h"

#include "weft/Schedule/Streams.h"

#include <algorithm>

namespace weft::test {

namespace {

//===----------------------------------------------------------------------===//
// Actions and frames
//===----------------------------------------------------------------------===//

std::vector<rt::Action> &pickStep(rt::Programs &programs, Random &random) {
  return pick(programs, random).step;
}

bool dropAction(rt::Programs &programs, Random &random) {
  std::vector<rt::Action> &step = pickStep(programs, random);
  step.erase(step.begin() + ptrdiff_t(draw(step.size(), random)));
  return true;
}

bool repeatAction(rt::Programs &programs, Random &random) {
  std::vector<rt::Action> &step = pickStep(programs, random);
  rt::Action action = pick(step, random);
  step.insert(step.begin() + ptrdiff_t(draw(step.size() + 1, random)), action);
  return true;
}

bool swapActions(rt::Programs &programs, Random &random) {
  std::vector<rt::Action> &step = pickStep(programs, random);
  auto [a, b] = drawTwo(step.size(), random);
  std::swap(step[a], step[b]);
  return step[a] != step[b];
}

bool swapNeighbours(rt::Programs &programs, Random &random) {
  std::vector<rt::Action> &step = pickStep(programs, random);
  size_t at = draw(step.size() - 1, random);
  std::swap(step[at], step[at + 1]);
  return step[at] != step[at + 1];
}

bool moveAction(rt::Programs &programs, Random &random) {
  std::vector<rt::Action> &step = pickStep(programs, random);
  auto [a, b] = drawTwo(step.size(), random);
  if (random() % 2 == 0) {
    std::rotate(step.begin() + ptrdiff_t(a), step.begin() + ptrdiff_t(a + 1),
                step.begin() + ptrdiff_t(b + 1));
  } else {
    std::rotate(step.begin() + ptrdiff_t(a), step.begin() + ptrdiff_t(b),
                step.begin() + ptrdiff_t(b + 1));
  }
  return true;
}

bool changeMicroBatch(rt::Programs &programs, Random &random) {
  rt::Program &program = pick(programs, random);
  rt::Action &action = pick(program.step, random);
  if (!action.microBatch || program.microBatches == 1) {
    return false;
  }
  int64_t other = int64_t(draw(size_t(program.microBatches - 1), random));
  action.microBatch = other + int64_t(other >= *action.microBatch);
  return true;
}

/// An action of a micro-batch runs the body of another, in its frames: of another chunk, or
/// direction.
bool changeBody(rt::Programs &programs, Random &random) {
  rt::Program &program = pick(programs, random);
  rt::Action &action = pick(program.step, random);
  const rt::Action other = pick(program.step, random);
  if (!action.microBatch || !other.microBatch || other.body == action.body) {
    return false;
  }
  action.body = other.body;
  action.frames = other.frames;
  return true;
}

bool changeFrame(rt::Programs &programs, Random &random) {
  rt::Program &program = pick(programs, random);
  rt::Action &action = pick(program.step, random);
  if (action.frames.empty()) {
    return false;
  }
  auto &[set, frame] = pick(action.frames, random);
  const size_t count = program.frameSets[set].offsets.size();
  if (count < 2) {
    return false;
  }
  auto other = uint32_t(draw(count - 1, random));
  frame = other + uint32_t(other >= frame);
  return true;
}

bool swapFrames(rt::Programs &programs, Random &random) {
  std::vector<rt::Action> &step = pickStep(programs, random);
  rt::Action &a = pick(step, random), &b = pick(step, random);
  if (a.frames.empty()) {
    return false;
  }
  auto &[set, frame] = pick(a.frames, random);
  auto other = std::ranges::find(b.frames, set, &rt::FrameUse::set);
  if (other == b.frames.end() || other->frame == frame) {
    return false;
  }
  std::swap(frame, other->frame);
  return true;
}

/// Two frames change their names from some action on, which changes nothing if none is in use.
bool renameFrames(rt::Programs &programs, Random &random) {
  rt::Program &program = pick(programs, random);
  if (program.frameSets.empty()) {
    return false;
  }
  const size_t set = draw(program.frameSets.size(), random);
  const size_t from = draw(program.step.size(), random);
  bool isChanged = false;
  for (size_t i = from; i < program.step.size(); ++i) {
    for (rt::FrameUse &use : program.step[i].frames) {
      if (use.set == set && use.frame < 2) {
        use.frame = 1 - use.frame;
        isChanged = true;
      }
    }
  }
  return isChanged && program.frameSets[set].offsets.size() > 1;
}

/// A frame, or all of a set, lie elsewhere, on other buffers or each other.
bool moveFrames(rt::Programs &programs, Random &random) {
  rt::Program &program = pick(programs, random);
  if (program.frameSets.empty()) {
    return false;
  }
  std::vector<uint64_t> &offsets = pick(program.frameSets, random).offsets;
  const bool movesAll = random() % 2 == 0;
  uint64_t &one = pick(offsets, random);
  const uint64_t least = movesAll ? *std::ranges::min_element(offsets) : one;
  if (least < rt::kAlignment) {
    return false;
  }
  const uint64_t way = rt::kAlignment * (1 + draw(least / rt::kAlignment, random));
  if (!movesAll) {
    one -= way;
    return true;
  }
  for (uint64_t &offset : offsets) {
    offset -= way;
  }
  return true;
}

/// A buffer begins where another one does.
bool moveBuffer(rt::Programs &programs, Random &random) {
  rt::Program &program = pick(programs, random);
  rt::Buffer &moved = pick(program.buffers, random);
  const rt::Buffer &other = pick(program.buffers, random);
  bool fits = other.frameSet == moved.frameSet && other.offset != moved.offset &&
              (moved.frameSet ? other.bytes >= moved.bytes
                              : other.offset + moved.bytes <= program.arenaBytes);
  moved.offset = fits ? other.offset : moved.offset;
  return fits;
}

//===----------------------------------------------------------------------===//
// Transfers and groups
//===----------------------------------------------------------------------===//

/// Changes a transfer for one instruction, for all of a class, or for both classes.
bool changeTransfer(rt::Programs &programs, Random &random,
                    const std::function<bool(rt::Collective &)> &change) {
  std::optional<Place> place = pickPlace(programs, random, isTransfer);
  if (!place) {
    return false;
  }
  switch (random() % 3) {
  case 0:
    place->program->collectives.push_back(rt::Collective(place->collective()));
    place->instruction().target = uint32_t(place->program->collectives.size() - 1);
    return change(place->collective());
  case 1:
    return change(place->collective());
  default:
    const uint32_t number = place->collective().number;
    bool isChanged = false;
    Random same = random;
    for (rt::Program &program : programs) {
      for (rt::Collective &collective : program.collectives) {
        if (collective.isAcrossClasses() && collective.number == number) {
          random = same; // The same change in both.
          isChanged = change(collective);
        }
      }
    }
    return isChanged;
  }
}

bool changePeer(rt::Programs &programs, Random &random) {
  if (programs.size() < 3) {
    return false;
  }
  std::optional<Place> place = pickPlace(programs, random, isTransfer);
  if (!place) {
    return false;
  }
  uint32_t own = place->program->rankClass;
  uint32_t &peer = place->collective().classes[place->collective().classes[0] == own ? 1 : 0];
  for (uint32_t other = 0; other < programs.size(); ++other) {
    if (other != own && other != peer) {
      peer = other;
      return true;
    }
  }
  return false;
}

bool changeNumber(rt::Programs &programs, Random &random) {
  return changeTransfer(programs, random, [&](rt::Collective &collective) {
    uint32_t before = collective.number;
    collective.number = random() % 2 == 0 ? 1 + uint32_t(random() % 8) : 100;
    return collective.number != before;
  });
}

bool changeBytes(rt::Programs &programs, Random &random) {
  return changeTransfer(programs, random, [&](rt::Collective &collective) {
    if (collective.shape.empty()) {
      collective.shape = {random() % 2 == 0 ? 1 : 2};
    } else {
      collective.shape[0] = 1 + int64_t(random() % 6);
    }
    return collective.shape != std::vector<int64_t>{4};
  });
}

bool changeType(rt::Programs &programs, Random &random) {
  return changeTransfer(programs, random, [&](rt::Collective &collective) {
    collective.type = random() % 2 == 0 ? rt::ElementType::I64 : rt::ElementType::F32;
    return true;
  });
}

bool turnTransfer(rt::Programs &programs, Random &random) {
  std::optional<Place> place = pickPlace(programs, random, isTransfer);
  if (!place) {
    return false;
  }
  std::ranges::reverse(place->collective().classes);
  for (rt::Body &body : place->program->bodies) {
    for (rt::Instruction &instruction : body.instructions) {
      if (isTransfer(*place->program, instruction) &&
          instruction.target == place->instruction().target) {
        rt::Access &access = instruction.operands[0].access;
        access = access == rt::Access::Read ? rt::Access::Write : rt::Access::Read;
      }
    }
  }
  return true;
}

bool changeGroup(rt::Programs &programs, Random &random) {
  std::optional<Place> place = pickPlace(programs, random, isOfGroup);
  if (!place) {
    return false;
  }
  std::vector<std::vector<uint32_t>> groups = {{}, {0}};
  if (place->program->mesh.size() > 1) {
    groups.insert(groups.end(), {{1}, {0, 1}, {1, 0}});
  }
  const std::vector<uint32_t> &group = pick(groups, random);
  if (random() % 2 == 0) {
    place->program->collectives.push_back(rt::Collective(place->collective()));
    place->instruction().target = uint32_t(place->program->collectives.size() - 1);
  }
  bool isChanged = place->collective().axes != group;
  place->collective().axes = group;
  return isChanged;
}

bool changeReduction(rt::Programs &programs, Random &random) {
  std::optional<Place> place = pickPlace(programs, random, isOfGroup);
  if (!place || place->collective().kind != rt::CollectiveKind::AllReduce) {
    return false;
  }
  place->collective().reduction = rt::ReductionKind::Max;
  return true;
}

//===----------------------------------------------------------------------===//
// Waits, orders and agreements
//===----------------------------------------------------------------------===//

bool dropWait(rt::Programs &programs, Random &random) {
  std::optional<Place> place = pickPlace(programs, random, hasWaits);
  if (!place) {
    return false;
  }
  std::vector<uint32_t> &waits = place->instruction().waits;
  waits.erase(waits.begin() + ptrdiff_t(draw(waits.size(), random)));
  return true;
}

bool moveWait(rt::Programs &programs, Random &random) {
  std::optional<Place> place = pickPlace(programs, random, hasWaits);
  if (!place) {
    return false;
  }
  uint32_t wait = place->instruction().waits.front();
  std::vector<size_t> others;
  for (size_t i = 0; i < place->body->size(); ++i) {
    bool isLater =
        std::ranges::find((*place->body)[i].waits, wait) == (*place->body)[i].waits.end();
    if (i > wait && (*place->body)[i].stream == place->instruction().stream && isLater) {
      others.push_back(i);
    }
  }
  if (others.empty()) {
    return false;
  }
  std::erase(place->instruction().waits, wait);
  std::vector<uint32_t> &waits = (*place->body)[pick(others, random)].waits;
  waits.insert(std::ranges::lower_bound(waits, wait), wait);
  return true;
}

/// An instruction runs on the other stream; it and others wait for nothing on its stream of now, or
/// for what they must.
bool changeStream(rt::Programs &programs, Random &random) {
  std::optional<Place> place =
      pickPlace(programs, random, [](const rt::Program &, const rt::Instruction &instruction) {
        return instruction.opcode != rt::Opcode::Agree && instruction.opcode != rt::Opcode::Observe;
      });
  if (!place) {
    return false;
  }
  rt::Stream &stream = place->instruction().stream;
  stream = stream == rt::Stream::Compute ? rt::Stream::Communication : rt::Stream::Compute;
  for (rt::Instruction &instruction : *place->body) {
    std::erase_if(instruction.waits, [&](uint32_t other) {
      return (*place->body)[other].stream == instruction.stream;
    });
  }
  if (random() % 2 == 0) {
    auto isOwn = [&](const rt::Body &body) { return &body.instructions == place->body; };
    std::vector<rt::Body> &bodies = place->program->bodies;
    schedule::setWaits(*place->program,
                       uint32_t(std::ranges::find_if(bodies, isOwn) - bodies.begin()));
  }
  return true;
}

bool swapCommunications(rt::Programs &programs, Random &random) {
  return swapWithin(pickPlace(programs, random, isCommunication), random, isCommunication);
}
bool moveCommunication(rt::Programs &programs, Random &random) {
  return move(pickPlace(programs, random, isCommunication), random);
}
bool swapInstructions(rt::Programs &programs, Random &random) {
  return swapWithin(pickPlace(programs, random, isAny), random, isAny);
}
bool dropInstruction(rt::Programs &programs, Random &random) {
  return drop(pickPlace(programs, random, isAny));
}
bool repeatInstruction(rt::Programs &programs, Random &random) {
  return repeat(pickPlace(programs, random, isAny), random);
}

/// Of two actions that communicate with no other one in between.
bool swapCommunicatingActions(rt::Programs &programs, Random &random) {
  rt::Program &program = pick(programs, random);
  std::vector<size_t> communicating;
  for (size_t i = 0; i < program.step.size(); ++i) {
    const Instructions &body = program.bodies[program.step[i].body].instructions;
    if (std::ranges::any_of(body, [&](const auto &one) { return isCommunication(program, one); })) {
      communicating.push_back(i);
    }
  }
  if (communicating.size() < 2) {
    return false;
  }
  size_t at = draw(communicating.size() - 1, random);
  rt::Action &a = program.step[communicating[at]], &b = program.step[communicating[at + 1]];
  std::swap(a, b);
  return a != b;
}

bool dropAgreement(rt::Programs &programs, Random &random) {
  return drop(pickPlace(programs, random, isAgreement));
}
bool repeatAgreement(rt::Programs &programs, Random &random) {
  return repeat(pickPlace(programs, random, isAgreement), random);
}
bool moveAgreement(rt::Programs &programs, Random &random) {
  return move(pickPlace(programs, random, isAgreement), random);
}
bool swapAgreement(rt::Programs &programs, Random &random) {
  return swapWithin(pickPlace(programs, random, isAgreement), random, isCommunication);
}

/// To the end or the begin of another body of the class.
bool moveAgreementFar(rt::Programs &programs, Random &random) {
  std::optional<Place> place = pickPlace(programs, random, isAgreement);
  if (!place) {
    return false;
  }
  rt::Instruction agreement = place->instruction();
  drop(place);
  rt::Program &program = *place->program;
  Instructions &body = program.bodies[pick(program.step, random).body].instructions;
  std::vector<size_t> numbers = numbersOf(body);
  body.push_back(agreement);
  numbers.insert(random() % 2 == 0 ? numbers.begin() : numbers.end(), body.size() - 1);
  relist(body, numbers);
  return true;
}

/// Of all classes alike.
bool dropAllAgreements(rt::Programs &programs, Random &random) {
  std::string name = random() % 2 == 0 ? "step_end" : "evaluate";
  for (rt::Program &program : programs) {
    for (rt::Body &body : program.bodies) {
      for (size_t i = body.instructions.size(); body.name == name && i-- > 0;) {
        if (isAgreement(program, body.instructions[i])) {
          drop(Place{&program, &body.instructions, i});
        }
      }
    }
  }
  return true;
}

} // namespace

std::span<const Mutation> tableMutations() {
  static constexpr Mutation kMutations[] = {
      {"actions", "drop", dropAction},
      {"actions", "repeat", repeatAction},
      {"actions", "swap", swapActions},
      {"actions", "swap neighbours", swapNeighbours},
      {"actions", "move", moveAction},
      {"actions", "other micro-batch", changeMicroBatch},
      {"actions", "other body", changeBody},
      {"frames", "other", changeFrame},
      {"frames", "swap", swapFrames},
      {"frames", "rename", renameFrames},
      {"frames", "move", moveFrames},
      {"frames", "move buffer", moveBuffer},
      {"transfers", "other peer", changePeer},
      {"transfers", "other number", changeNumber},
      {"transfers", "other bytes", changeBytes},
      {"transfers", "other type", changeType},
      {"transfers", "turn", turnTransfer},
      {"groups", "other ranks", changeGroup},
      {"groups", "maximum", changeReduction},
      {"waits", "drop", dropWait},
      {"waits", "move", moveWait},
      {"waits", "other stream", changeStream},
      {"orders", "swap communications", swapCommunications},
      {"orders", "move communication", moveCommunication},
      {"orders", "swap communicating actions", swapCommunicatingActions},
      {"orders", "swap instructions", swapInstructions},
      {"orders", "drop instruction", dropInstruction},
      {"orders", "repeat instruction", repeatInstruction},
      {"agreements", "drop", dropAgreement},
      {"agreements", "repeat", repeatAgreement},
      {"agreements", "move", moveAgreement},
      {"agreements", "swap", swapAgreement},
      {"agreements", "move far", moveAgreementFar},
      {"agreements", "drop all", dropAllAgreements},
  };
  return kMutations;
}

} // namespace weft::test
