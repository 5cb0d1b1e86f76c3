//===- AbstractMachine.cpp - what ranks do in small programs ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AbstractMachine.h"

#include <algorithm>

namespace weft::test {

namespace {

/// Where ranks agree, by these names, whether a run goes on.
bool isDeciding(const std::string &name) {
  return name == "loss" || name == "gradient_norm" || name == "validation_loss";
}

uint64_t bytesOf(const rt::Collective &collective) {
  uint64_t bytes = sizeOf(collective.type);
  for (int64_t size : collective.shape) {
    bytes *= uint64_t(size);
  }
  return bytes;
}

/// The bytes of the operand or the result of a collective of `ranks` ranks.
uint64_t bytesOf(const rt::Collective &collective, bool isResult, uint64_t ranks) {
  uint64_t bytes = bytesOf(collective);
  bool gathers = collective.kind == rt::CollectiveKind::AllGather;
  bool scatters = collective.kind == rt::CollectiveKind::ReduceScatter;
  return !isResult ? bytes : gathers ? bytes * ranks : scatters ? bytes / ranks : bytes;
}

bool areAlike(const rt::Collective &a, const rt::Collective &b) {
  return a.kind == b.kind && a.reduction == b.reduction && a.type == b.type && a.shape == b.shape &&
         a.dim == b.dim && a.dim2 == b.dim2 && a.sources == b.sources;
}

bool conflict(const Step &a, const Step &b) {
  for (size_t i = 0; i < a.operands.size(); ++i) {
    for (size_t j = 0; j < b.operands.size(); ++j) {
      if ((a.isWritten[i] || b.isWritten[j]) && a.operands[i].meets(b.operands[j])) {
        return true;
      }
    }
  }
  return false;
}

/// Whether it may read bytes after it has written them. A sum over ranks works in place.
bool conflictsWithItself(const Step &step) {
  bool isInPlace = step.rendezvous && step.operands.size() == 2 &&
                   step.operands[0].begin == step.operands[1].begin &&
                   step.operands[0].end == step.operands[1].end;
  for (size_t i = 0; i < step.operands.size() && !isInPlace; ++i) {
    for (size_t j = 0; j < i; ++j) {
      if ((step.isWritten[i] || step.isWritten[j]) && step.operands[i].meets(step.operands[j])) {
        return true;
      }
    }
  }
  return false;
}

Term hashOf(std::initializer_list<Term> terms) {
  return test::hashOf(std::span(terms.begin(), terms.size()));
}

} // namespace

Term State::hash() const {
  std::vector<Term> all = {agreed};
  for (size_t rank = 0; rank < done.size(); ++rank) {
    all.insert(all.end(), done[rank].begin(), done[rank].end());
    all.insert(all.end(), seen[rank].begin(), seen[rank].end());
    for (const Cell &cell : cells[rank]) {
      all.push_back(cell.term + 3 * cell.offset + 5 * cell.extent);
    }
  }
  return test::hashOf(all);
}

//===----------------------------------------------------------------------===//
// The steps
//===----------------------------------------------------------------------===//

AbstractMachine::AbstractMachine(std::span<const rt::Program> programs, KernelTerms &kernels,
                                 Queues queues)
    : programs(programs), kernels(kernels), queues(queues),
      steps(size_t(programs.front().rankCount())), streams(steps.size()) {
  for (size_t rank = 0; rank < steps.size(); ++rank) {
    const rt::Program &program = rt::programOf(programs, int64_t(rank));
    uint32_t run = 0;
    for (const auto *section : {&program.init, &program.step, &program.step, &program.evaluate}) {
      addSection(rank, *section, run++);
    }
    findWatched(rank);
  }
  makeCells();
  for (const rt::Program &program : programs) {
    for (const rt::Observation &observation : program.observations) {
      if (std::ranges::find(names, observation.name) == names.end()) {
        names.push_back(observation.name);
      }
    }
  }
}

Range AbstractMachine::rangeOf(const rt::Program &program, uint32_t buffer,
                               const rt::Action *action, std::optional<uint64_t> bytes) {
  const rt::Buffer &own = program.buffers[buffer];
  uint32_t frame = 0;
  if (own.frameSet) {
    const std::vector<rt::FrameUse> frames = action ? action->frames : std::vector<rt::FrameUse>();
    auto found = std::ranges::find(frames, *own.frameSet, &rt::FrameUse::set);
    if (found == frames.end() || found->frame >= program.frameSets[*own.frameSet].offsets.size()) {
      outOfBounds = true;
      return {};
    }
    frame = found->frame;
  }
  uint64_t begin = program.offsetOf(buffer, frame);
  Range range = {begin, begin + bytes.value_or(own.bytes)};
  outOfBounds = outOfBounds || range.end > program.arenaBytes;
  return range;
}

Step AbstractMachine::makeStep(const rt::Program &program, const rt::Instruction &instruction,
                               const rt::Action &action) {
  Step step{&program, &instruction, &action};
  step.stream = size_t(instruction.stream);
  for (size_t i = 0; i < instruction.operands.size(); ++i) {
    std::optional<uint64_t> bytes;
    if (instruction.opcode == rt::Opcode::Collective) {
      const rt::Collective &collective = program.collectives[instruction.target];
      bytes = bytesOf(collective, i > 0, program.groupSize(collective));
    }
    const rt::Operand &operand = instruction.operands[i];
    step.operands.push_back(rangeOf(program, operand.buffer, &action, bytes));
    step.isRead.push_back(operand.access != rt::Access::Write);
    step.isWritten.push_back(operand.access != rt::Access::Read);
  }
  return step;
}

void AbstractMachine::addStep(size_t rank, Step step, std::span<const Step *const> body) {
  std::array<std::vector<Step *>, rt::kStreams> &own = streams[rank];
  step.place = uint32_t(own[step.stream].size());
  step.needs[step.stream] = step.place;
  for (size_t other = 0; other < rt::kStreams; ++other) {
    if (other == step.stream) {
      continue;
    }
    for (const Step *before : own[other]) {
      bool isOfAction = before->actionNumber == step.actionNumber;
      bool waits = step.instruction && isOfAction &&
                   std::ranges::any_of(step.instruction->waits, [&](uint32_t number) {
                     return number < body.size() && body[number] == before;
                   });
      // Where ranks agree, the host waits and issues nothing more.
      bool isAgreement = before->instruction && before->instruction->opcode == rt::Opcode::Agree;
      if (!isOfAction || waits || isAgreement || queues == Queues::One) {
        step.needs[other] = before->place + 1;
      }
    }
  }
  steps[rank].push_back(std::make_unique<Step>(std::move(step)));
  Step &added = *steps[rank].back();
  own[added.stream].push_back(&added);
  if (added.instruction && (added.instruction->opcode == rt::Opcode::Collective ||
                            added.instruction->opcode == rt::Opcode::Agree)) {
    meet(rank, added);
  }
}

void AbstractMachine::addInputs(size_t rank, uint32_t run) {
  const rt::Program &program = rt::programOf(programs, int64_t(rank));
  Step step{&program};
  for (const rt::NamedTensor &input : program.inputs) {
    step.operands.push_back(rangeOf(program, input.buffer, nullptr, {}));
    step.isRead.push_back(false);
    step.isWritten.push_back(true);
  }
  step.run = run;
  step.actionNumber = steps[rank].empty() ? 0 : steps[rank].back()->actionNumber + 1;
  addStep(rank, std::move(step), {});
}

void AbstractMachine::addSection(size_t rank, const std::vector<rt::Action> &actions,
                                 uint32_t run) {
  const rt::Program &program = rt::programOf(programs, int64_t(rank));
  addInputs(rank, run);
  uint32_t number = steps[rank].back()->actionNumber;
  for (const rt::Action &action : actions) {
    ++number;
    std::vector<const Step *> body;
    for (const rt::Instruction &instruction : program.bodies[action.body].instructions) {
      Step step = makeStep(program, instruction, action);
      step.run = run;
      step.actionNumber = number;
      addStep(rank, std::move(step), body);
      body.push_back(steps[rank].back().get());
    }
  }
}

void AbstractMachine::meet(size_t rank, Step &step) {
  std::vector<int64_t> ranks;
  if (step.instruction->opcode == rt::Opcode::Agree) {
    ranks = rt::allRanks(int64_t(steps.size())).ranks;
    ranks.push_back(-1); // No other group is the same.
  } else {
    const rt::Collective &collective = step.program->collectives[step.instruction->target];
    if (collective.isAcrossClasses() &&
        (std::ranges::find(collective.classes, step.program->rankClass) ==
             collective.classes.end() ||
         std::ranges::max(collective.classes) >= programs.size())) {
      outOfBounds = true;
      return;
    }
    ranks = step.program->groupOf(int64_t(rank), collective).ranks;
  }
  size_t number = counts[{ranks, int64_t(rank)}]++;
  auto [found, isNew] = numbers.try_emplace({ranks, number}, allRendezvous.size());
  if (isNew) {
    std::erase(ranks, -1);
    allRendezvous.push_back({ranks, {}});
  }
  step.rendezvous = found->second;
  allRendezvous[found->second].steps[int64_t(rank)] = &step;
}

/// Steps of one action on two streams of which none is certainly done when the other begins.
void AbstractMachine::findWatched(size_t rank) {
  // What has certainly been done when a step begins.
  std::map<const Step *, std::array<uint32_t, rt::kStreams>> before;
  for (const std::unique_ptr<Step> &step : steps[rank]) {
    std::array<uint32_t, rt::kStreams> &own = before[step.get()];
    own = step->needs;
    for (size_t stream = 0; stream < rt::kStreams; ++stream) {
      if (step->needs[stream] > 0) {
        const auto &implied = before[streams[rank][stream][step->needs[stream] - 1]];
        for (size_t i = 0; i < rt::kStreams; ++i) {
          own[i] = std::max(own[i], implied[i]);
        }
      }
    }
  }
  for (const std::unique_ptr<Step> &step : steps[rank]) {
    step->isWatched = conflictsWithItself(*step);
  }
  for (Step *a : streams[rank][0]) {
    for (Step *b : streams[rank][1]) {
      bool areOrdered = before[a][1] > b->place || before[b][0] > a->place;
      if (a->actionNumber == b->actionNumber && !areOrdered && conflict(*a, *b)) {
        a->isWatched = b->isWatched = true;
      }
    }
  }
}

/// From here on, ranges are numbers of cells.
void AbstractMachine::makeCells() {
  cuts.resize(programs.size());
  std::vector<std::set<uint64_t>> all(programs.size());
  for (size_t number = 0; number < programs.size(); ++number) {
    all[number] = {0, programs[number].arenaBytes};
    for (const rt::Buffer &buffer : programs[number].buffers) {
      if (!buffer.frameSet) {
        all[number].insert({buffer.offset, buffer.offset + buffer.bytes});
      }
    }
  }
  for (size_t rank = 0; rank < steps.size(); ++rank) {
    for (const std::unique_ptr<Step> &step : steps[rank]) {
      for (const Range &range : step->operands) {
        all[step->program->rankClass].insert({range.begin, range.end});
      }
    }
  }
  for (size_t number = 0; number < programs.size(); ++number) {
    cuts[number].assign(all[number].begin(), all[number].end());
  }
}

//===----------------------------------------------------------------------===//
// What they do
//===----------------------------------------------------------------------===//

State AbstractMachine::start() const {
  State state;
  state.done.resize(steps.size());
  for (size_t rank = 0; rank < steps.size(); ++rank) {
    size_t count = cuts[rt::programOf(programs, int64_t(rank)).rankClass].size();
    std::vector<Cell> cells(count);
    for (size_t cell = 0; cell < count; ++cell) {
      cells[cell] = {hashOf({hashOf({rank, cell}), test::hashOf("nothing yet")}), 0, 0};
    }
    state.cells.push_back(std::move(cells));
    state.seen.emplace_back(names.size());
  }
  return state;
}

const Step *AbstractMachine::ready(const State &state, size_t rank, size_t stream) const {
  const std::array<uint32_t, rt::kStreams> &done = state.done[rank];
  if (done[stream] == streams[rank][stream].size()) {
    return nullptr;
  }
  const Step *step = streams[rank][stream][done[stream]];
  for (size_t other = 0; other < rt::kStreams; ++other) {
    if (done[other] < step->needs[other]) {
      return nullptr;
    }
  }
  return step;
}

bool AbstractMachine::haveCome(const State &state, const Step &step) const {
  const Rendezvous &rendezvous = allRendezvous[*step.rendezvous];
  return std::ranges::all_of(rendezvous.ranks, [&](int64_t rank) {
    auto found = rendezvous.steps.find(rank);
    return found != rendezvous.steps.end() &&
           ready(state, size_t(rank), found->second->stream) == found->second;
  });
}

bool AbstractMachine::isAtEnd(const State &state) const {
  for (size_t rank = 0; rank < steps.size(); ++rank) {
    for (size_t stream = 0; stream < rt::kStreams; ++stream) {
      if (state.done[rank][stream] < streams[rank][stream].size()) {
        return false;
      }
    }
  }
  return true;
}

bool AbstractMachine::hasRace(const State &state, size_t rank) const {
  for (size_t stream = 0; stream < rt::kStreams; ++stream) {
    const Step *step = ready(state, rank, stream);
    if (step && step->isWatched && conflictsWithItself(*step)) {
      return true;
    }
  }
  const Step *a = ready(state, rank, 0), *b = ready(state, rank, 1);
  return a && b && a->isWatched && b->isWatched && conflict(*a, *b);
}

Term AbstractMachine::read(const State &state, size_t rank, const Range &range) const {
  const std::vector<uint64_t> &own = cuts[rt::programOf(programs, int64_t(rank)).rankClass];
  size_t first = size_t(std::ranges::lower_bound(own, range.begin) - own.begin());
  const Cell &begin = state.cells[rank][first];
  bool isWhole = begin.extent == range.end - range.begin;
  std::vector<Term> parts;
  for (size_t cell = first; own[cell] < range.end; ++cell) {
    const Cell &held = state.cells[rank][cell];
    isWhole = isWhole && held.term == begin.term && held.extent == begin.extent &&
              held.offset == own[cell] - range.begin;
    parts.insert(parts.end(), {held.term, held.offset, own[cell + 1] - own[cell]});
  }
  return isWhole ? begin.term : test::hashOf(parts);
}

void AbstractMachine::write(State &state, size_t rank, const Range &range, Term term) const {
  const std::vector<uint64_t> &own = cuts[rt::programOf(programs, int64_t(rank)).rankClass];
  size_t cell = size_t(std::ranges::lower_bound(own, range.begin) - own.begin());
  for (; own[cell] < range.end; ++cell) {
    state.cells[rank][cell] = {term, own[cell] - range.begin, range.end - range.begin};
  }
}

bool AbstractMachine::perform(State &state, size_t rank, const Step &step) {
  if (step.rendezvous) {
    const Rendezvous &rendezvous = allRendezvous[*step.rendezvous];
    for (const auto &[member, own] : rendezvous.steps) {
      ++state.done[size_t(member)][own->stream];
    }
    return performRendezvous(state, rendezvous);
  }
  ++state.done[rank][step.stream];
  if (!step.instruction) {
    performInputs(state, rank, step);
  } else if (step.instruction->opcode == rt::Opcode::Kernel) {
    performKernel(state, rank, step);
  } else if (step.instruction->opcode == rt::Opcode::Matmul) {
    performMatmul(state, rank, step);
  } else {
    const std::string &name = step.program->observations[step.instruction->target].name;
    Term &seen = state.seen[rank][size_t(std::ranges::find(names, name) - names.begin())];
    seen = hashOf({seen, read(state, rank, step.operands[0])});
  }
  return true;
}

void AbstractMachine::performInputs(State &state, size_t rank, const Step &step) const {
  std::vector<int64_t> coordinates = step.program->coordinatesOf(int64_t(rank));
  for (size_t i = 0; i < step.operands.size(); ++i) {
    const rt::NamedTensor &input = step.program->inputs[i];
    std::vector<Term> shard = {test::hashOf(input.name), step.run};
    for (const std::vector<uint32_t> &axes : input.layout.dimAxes) {
      for (uint32_t axis : axes) {
        shard.push_back(Term(coordinates[axis]));
      }
    }
    write(state, rank, step.operands[i], test::hashOf(shard));
  }
}

void AbstractMachine::performKernel(State &state, size_t rank, const Step &step) {
  const std::string &name = step.program->kernels[step.instruction->target].name;
  std::vector<int64_t> tied = kernels.tiedOf(name);
  std::vector<Term> tensors;
  for (size_t i = 0; i < kernels.tensorCount(name); ++i) {
    tensors.push_back(read(state, rank, step.operands[i]));
  }
  std::vector<Term> results =
      kernels.run(name, rt::immediatesOf(*step.instruction, *step.action), tensors);
  size_t next = tensors.size();
  for (size_t i = 0; i < results.size(); ++i) {
    size_t operand = tied[i] < 0 ? next++ : size_t(tied[i]);
    write(state, rank, step.operands[operand], results[i]);
  }
}

void AbstractMachine::performMatmul(State &state, size_t rank, const Step &step) const {
  std::vector<Term> terms = {test::hashOf(rt::targetText(*step.program, *step.instruction))};
  for (size_t i = 0; i < step.operands.size(); ++i) {
    terms.push_back(step.isRead[i] ? read(state, rank, step.operands[i]) : 0);
  }
  for (size_t i = 0; i < step.operands.size(); ++i) {
    if (step.isWritten[i]) {
      write(state, rank, step.operands[i], hashOf({test::hashOf(terms), i}));
    }
  }
}

std::vector<Term> AbstractMachine::observedOn(const State &state, int64_t places,
                                              bool onlyDeciding) const {
  std::set<Term> all;
  for (size_t rank = 0; rank < steps.size(); ++rank) {
    for (size_t name = 0; name < names.size(); ++name) {
      if (state.seen[rank][name] != 0 && (!onlyDeciding || isDeciding(names[name]))) {
        all.insert(hashOf({rank % size_t(places), name, state.seen[rank][name]}));
      }
    }
  }
  return {all.begin(), all.end()};
}

/// If the run ends here, variables are what is left of it.
void AbstractMachine::agree(State &state) const {
  std::vector<Term> all = observedOn(state, programs.front().ranks().count, true);
  addVariables(state, all);
  state.agreed = hashOf({state.agreed, test::hashOf(all)});
}

void AbstractMachine::addVariables(const State &state, std::vector<Term> &terms) const {
  for (size_t rank = 0; rank < steps.size(); ++rank) {
    const rt::Program &program = rt::programOf(programs, int64_t(rank));
    for (const auto *list : {&program.parameters, &program.optimizerState}) {
      for (const rt::NamedTensor &tensor : *list) {
        uint64_t begin = program.buffers[tensor.buffer].offset;
        terms.push_back(read(state, rank, {begin, begin + program.buffers[tensor.buffer].bytes}));
      }
    }
  }
}

bool AbstractMachine::performRendezvous(State &state, const Rendezvous &rendezvous) {
  const Step &first = *rendezvous.steps.begin()->second;
  if (first.instruction->opcode == rt::Opcode::Agree) {
    agree(state);
    return true;
  }
  const rt::Collective &collective = first.program->collectives[first.instruction->target];
  std::vector<Term> operands;
  for (int64_t rank : rendezvous.ranks) {
    const Step &step = *rendezvous.steps.at(rank);
    if (!areAlike(step.program->collectives[step.instruction->target], collective)) {
      return false;
    }
    operands.push_back(read(state, size_t(rank), step.operands.front()));
  }
  Term sum = 0;
  for (Term operand : operands) {
    sum += operand;
  }
  std::vector<Term> described = operands;
  described.insert(described.end(), {Term(collective.kind), collective.dim, collective.dim2});
  for (size_t index = 0; index < rendezvous.ranks.size(); ++index) {
    const Step &step = *rendezvous.steps.at(rendezvous.ranks[index]);
    bool adds = collective.reduction == rt::ReductionKind::Sum;
    Term result = test::hashOf(described);
    switch (collective.kind) {
    case rt::CollectiveKind::Transfer:
      result = operands.front();
      break;
    case rt::CollectiveKind::AllReduce:
      result = adds || operands.size() == 1 ? sum : hashOf({sum, 1});
      break;
    case rt::CollectiveKind::ReduceScatter:
      result = hashOf({sum, index, collective.dim, Term(adds)});
      break;
    case rt::CollectiveKind::Permute:
      result = operands[collective.sources[index]];
      break;
    case rt::CollectiveKind::AllToAll:
      result = hashOf({result, index});
      break;
    case rt::CollectiveKind::AllGather:
      break;
    }
    if (collective.kind != rt::CollectiveKind::Transfer || index == 1) {
      write(state, size_t(rendezvous.ranks[index]), step.operands.back(), result);
    }
  }
  return true;
}

Term AbstractMachine::endOf(const State &state) const {
  std::vector<Term> all = observedOn(state, programs.front().ranks().count, false);
  all.push_back(state.agreed);
  for (size_t rank = 0; rank < steps.size(); ++rank) {
    const rt::Program &program = rt::programOf(programs, int64_t(rank));
    if (program.rankClass == 0) {
      all.insert(all.end(), state.seen[rank].begin(), state.seen[rank].end());
    }
  }
  addVariables(state, all);
  return test::hashOf(all);
}

} // namespace weft::test
