//===- Application.cpp - ops by their letters --------------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Evaluation.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace weft::meaning {

/// One application of an op to values. Each step returns what is wrong, if something is.
class Application {
public:
  using Wrong = std::optional<std::string>;

  Application(Evaluation &in, Operation *op, const OpMeaning &meaning, ArrayRef<uint32_t> operands,
              llvm::StringRef label)
      : in(in), ranks(in.ranks), op(op), meaning(meaning), label(label) {
    for (auto [number, letters] : llvm::enumerate(meaning.operands)) {
      // Numbers tell only which part of the whole this is.
      if (number < operands.size() && in.values[operands[number]].term != kUnknown) {
        tensors.push_back({unsigned(number), &in.values[operands[number]], letters});
      }
    }
  }

  Wrong run(ArrayRef<uint32_t> offsets, ArrayRef<uint32_t> turns, ArrayRef<uint32_t> numbers) {
    using Step = Wrong (Application::*)();
    keyNumbers.assign(meaning.constants.begin(), meaning.constants.end());
    for (uint32_t number : numbers) {
      std::optional<int64_t> constant = ranks.asConstant(number);
      if (!constant) {
        return "depends on the rank by a number";
      }
      keyNumbers.push_back(*constant);
    }
    this->offsets = offsets;
    this->turns = turns;
    for (Step step : {&Application::unify, &Application::place, &Application::check,
                      &Application::findPending}) {
      if (Wrong wrong = (this->*step)()) {
        return wrong;
      }
    }
    for (unsigned result = 0; result < op->getNumResults(); ++result) {
      if (Wrong wrong = addResult(result)) {
        return wrong;
      }
    }
    return std::nullopt;
  }

  Evaluation::Ids results;

private:
  struct Tensor {
    unsigned operand;
    const Value *value;
    std::string letters;
  };
  struct Letter {
    Dim dim;
    bool isInTerm = false;
    bool isNew = true;
  };

  Wrong unify();
  static Wrong unify(Letter &letter, const Dim &dim, unsigned operand);
  Wrong place();
  Wrong place(const OpPosition &position, uint32_t offset, uint32_t turn);
  Wrong check();
  Wrong findPending();
  Term termOf(unsigned result, std::string &lacking);
  Wrong addResult(unsigned result);
  Wrong addReduction(unsigned result, llvm::StringRef lacking, SmallVector<View, 1> &views);
  bool isZero(char letter, bool mayIgnore = true);
  std::optional<double> beyond(char letter);
  bool isPadded(char letter) { return in.isPadded(letters[letter].dim); }
  bool isWholeOnRanks(const Dim &dim) {
    // Of numbers without an end there are as many as are asked for.
    bool isAll = dim.size == kEndless || (dim.end >= dim.size && dim.length >= dim.size);
    return dim.start == kUnknown || (isAll && ranks.asConstant(dim.start) == 0);
  }
  bool has(llvm::StringRef letters, char letter) { return letters.contains(letter); }

  Evaluation &in;
  RankNumbers &ranks;
  Operation *op;
  const OpMeaning &meaning;
  llvm::StringRef label;
  ArrayRef<uint32_t> offsets, turns;
  SmallVector<Tensor, 6> tensors;
  std::map<char, Letter> letters;
  SmallVector<int64_t, 2> keyNumbers;
  SmallVector<View, 1> pending;
};

Application::Wrong Application::unify(Letter &letter, const Dim &dim, unsigned operand) {
  bool isKnown = letter.dim.length >= 0 && dim.length >= 0;
  if (!letter.isNew && isKnown && letter.dim.length != dim.length) {
    return "operand " + std::to_string(operand) + " has " + std::to_string(dim.length) +
           " elements along a dimension, another has " + std::to_string(letter.dim.length);
  }
  bool isFirst = letter.isNew || letter.dim.start == kUnknown;
  int64_t length = std::max(letter.dim.length, dim.length);
  letter.isInTerm |= dim.ofTerm >= 0;
  letter.isNew = false;
  if (isFirst) {
    letter.dim = dim;
    letter.dim.length = length;
    return std::nullopt;
  }
  if (dim.start == kUnknown) {
    return std::nullopt;
  }
  if (dim.start != letter.dim.start || dim.order != letter.dim.order) {
    return "operand " + std::to_string(operand) +
           " has other elements of a dimension than another operand";
  }
  // Numbers without an end go on as long as they are asked for.
  if (letter.dim.size == kEndless) {
    letter.dim.size = dim.size;
    letter.dim.end = dim.end;
  }
  if (dim.size != kEndless && (dim.size != letter.dim.size || dim.end != letter.dim.end)) {
    return "operand " + std::to_string(operand) + " has a dimension of " +
           std::to_string(dim.size) + " elements, another has " + std::to_string(letter.dim.size);
  }
  return std::nullopt;
}

Application::Wrong Application::unify() {
  for (const Tensor &tensor : tensors) {
    for (auto [dim, letter] : llvm::zip(tensor.value->dims, tensor.letters)) {
      if (Wrong wrong = unify(letters[letter], dim, tensor.operand)) {
        return wrong;
      }
    }
  }
  return std::nullopt;
}

/// Compares what the op is told of its place in the whole with the place that its operands have.
Application::Wrong Application::place(const OpPosition &position, uint32_t offset, uint32_t turn) {
  Letter &letter = letters[position.letter];
  letter.isInTerm = true;
  Dim &dim = letter.dim;
  bool isOrdered = meaning.order && has(meaning.ordered, position.letter);
  if (letter.isNew || dim.start == kUnknown) {
    dim.start = offset;
    dim.size = position.size ? position.size : dim.size;
    dim.end = position.size ? position.size : dim.end;
    return std::nullopt;
  }
  if (turn != kUnknown) {
    int64_t shards = position.turns;
    std::optional<int64_t> back = ranks.asConstant(turn);
    std::optional<uint32_t> shard = ranks.divide(offset, dim.length);
    if (!back || !shard || shards < 1) {
      return "takes the keys of no other rank by its turn";
    }
    std::vector<int64_t> starts;
    for (int64_t own : ranks.values(*shard)) {
      starts.push_back((((own - *back) % shards + shards) % shards) * dim.length);
    }
    offset = ranks.of(starts);
  }
  if (dim.start != offset) {
    return "is told another first position than its operand has";
  }
  if (dim.order != (isOrdered ? meaning.order : ZigzagAttr())) {
    return "is told another order of positions than its operand has";
  }
  if (position.size && position.size != dim.size) {
    return "is told a size of " + std::to_string(position.size) + " of the whole, which has " +
           std::to_string(dim.size);
  }
  return std::nullopt;
}

Application::Wrong Application::place() {
  for (auto [number, position] : llvm::enumerate(meaning.positions)) {
    if (Wrong wrong = place(position, offsets[number], turns[number])) {
      return wrong;
    }
  }
  for (auto [letter, size] : meaning.sizes) {
    if (letters[letter].dim.size != kEndless && letters[letter].dim.size != size) {
      return "is told " + std::to_string(size) + " columns of the whole, which has " +
             std::to_string(letters[letter].dim.size);
    }
  }
  return std::nullopt;
}

Application::Wrong Application::check() {
  for (char name : meaning.whole) {
    auto found = letters.find(name);
    if (found == letters.end() || found->second.isNew) {
      continue;
    }
    const Dim &dim = found->second.dim;
    if (!isWholeOnRanks(dim) || dim.order) {
      return "needs all elements of a dimension of " + std::to_string(dim.size) +
             ", and a rank has " + std::to_string(dim.length);
    }
    if (in.isPadded(dim) && !has(meaning.ignored, name)) {
      return "would take padding for elements";
    }
    if (!found->second.isInTerm) {
      keyNumbers.push_back(dim.length);
    }
  }
  for (char name : meaning.solid) {
    if (isPadded(name)) {
      return "would take padding for elements";
    }
  }
  OpMeaning::DimOfLetter of = [&](char letter) -> const Dim & { return letters[letter].dim; };
  if (meaning.derive) {
    for (char name : meaning.results.front()) {
      std::optional<Dim> dim = letters[name].isNew ? meaning.derive(name, of, ranks) : std::nullopt;
      if (dim) {
        letters[name] = {*dim, /*isInTerm=*/true, /*isNew=*/false};
      }
    }
  }
  return meaning.check ? meaning.check(of, ranks) : std::nullopt;
}

Application::Wrong Application::findPending() {
  SmallVector<unsigned> which;
  for (const Tensor &tensor : tensors) {
    if (tensor.value->isPending()) {
      which.push_back(tensor.operand);
      llvm::append_range(pending, tensor.value->views);
    }
  }
  if (which.empty()) {
    return std::nullopt;
  }
  for (const View &view : pending) {
    if (view.joining != Joining::Sum) {
      return "takes a part of a " +
             std::string(view.joining == Joining::Max ? "maximum" : "normalized sum") +
             " for the whole";
    }
  }
  for (const std::vector<unsigned> &set : meaning.linear) {
    bool isPart = llvm::all_of(which, [&](unsigned one) { return llvm::is_contained(set, one); });
    bool isAll = llvm::all_of(tensors, [&](const Tensor &tensor) {
      return !llvm::is_contained(set, tensor.operand) || tensor.value->isPending() ||
             in.terms.isZero(tensor.value->term);
    });
    if (isPart && isAll) {
      pending = in.withoutComplete(pending);
      return std::nullopt;
    }
  }
  return which.size() == 1 && op->getNumOperands() == 1
             ? "takes a part of a sum for the whole, but is not linear"
             : "takes a part of a sum for the whole, or adds a whole value to a part of a sum";
}

/// True if the op's result is zero, and nothing is added to a sum, where operands are padding.
bool Application::isZero(char letter, bool mayIgnore) {
  auto isZeroOperand = [&](unsigned operand) {
    return llvm::any_of(tensors, [&](const Tensor &tensor) {
      if (tensor.operand != operand) {
        return false;
      }
      size_t dim = tensor.letters.find(letter);
      return in.terms.isZero(tensor.value->term) ||
             (dim < tensor.value->dims.size() && in.isZeroBeyond(tensor.value->dims[dim]));
    });
  };
  return (mayIgnore && has(meaning.ignored, letter)) ||
         llvm::any_of(meaning.zeroIn, isZeroOperand) ||
         llvm::any_of(meaning.linear, [&](const std::vector<unsigned> &set) {
           return llvm::all_of(set, [&](unsigned operand) {
             bool isGiven = llvm::any_of(
                 tensors, [&](const Tensor &tensor) { return tensor.operand == operand; });
             return !isGiven || isZeroOperand(operand);
           });
         });
}

/// The value of results in the padding along `letter`, if it is known.
std::optional<double> Application::beyond(char letter) {
  if (!meaning.fold) {
    bool isZeroed = has(meaning.zero, letter) || isZero(letter, /*mayIgnore=*/false);
    return isZeroed ? std::optional(0.0) : std::nullopt;
  }
  SmallVector<std::optional<double>, 3> known;
  for (const Tensor &tensor : tensors) {
    const Dim &dim = tensor.value->dims[tensor.letters.find(letter)];
    bool isEqual = dim.ofTerm < 0 && !dim.beyond;
    known.push_back(isEqual ? in.terms.asConstant(tensor.value->term) : dim.beyond);
  }
  std::optional<double> folded = meaning.fold(known);
  return folded && *folded == *folded ? folded : std::nullopt;
}

/// Adds to `views` the letters that the result lacks and that are cut.
Application::Wrong Application::addReduction(unsigned result, llvm::StringRef lacking,
                                             SmallVector<View, 1> &views) {
  SmallVector<Dim> cut;
  std::vector<int64_t> extents;
  std::vector<ZigzagAttr> orders;
  for (char name : meaning.whole) {
    if (!has(meaning.results[result], name) && letters.count(name) && isPadded(name) &&
        !isZero(name, /*mayIgnore=*/false)) {
      return "would take padding for elements";
    }
  }
  for (char name : lacking) {
    const Letter &letter = letters[name];
    if (isPadded(name) && !isZero(name)) {
      return "would join padding with elements";
    }
    if (letter.dim.start == kUnknown) {
      continue; // Its length is in the term.
    }
    if (!isWholeOnRanks(letter.dim)) {
      cut.push_back(letter.dim);
      extents.push_back(letter.dim.places());
      orders.push_back(letter.dim.order);
    }
  }
  if (cut.empty()) {
    return std::nullopt;
  }
  if (!meaning.joinings[result]) {
    return "needs all elements of a dimension, and a rank has some";
  }
  Joining joining = *meaning.joinings[result];
  if (!views.empty() && joining != Joining::Sum) {
    return "takes a part of a sum for the whole";
  }
  uint32_t region = in.regionsOf(cut);
  if (views.empty()) {
    views.push_back({joining, extents, orders, region});
  } else {
    for (View &view : views) {
      llvm::append_range(view.extents, extents);
      llvm::append_range(view.orders, orders);
      view.regions = in.multiplyRegions(view.regions, region);
    }
  }
  views = in.withoutComplete(views);
  return std::nullopt;
}

/// The term of a result without its own dimensions. `lacking` becomes the letters that the op
/// joins.
Term Application::termOf(unsigned result, std::string &lacking) {
  Term term{op->getName().getIdentifier(),
            int64_t(result),
            in.attributes[op],
            getElementTypeOrSelf(op->getResult(result)),
            keyNumbers,
            {},
            {},
            {},
            op->getLoc(),
            label.str()};
  for (const Tensor &tensor : tensors) {
    TermOperand operand{tensor.value->term, {}};
    operand.letters.resize(
        llvm::count_if(tensor.value->dims, [](const Dim &dim) { return dim.ofTerm >= 0; }));
    for (auto [dim, letter] : llvm::zip(tensor.value->dims, tensor.letters)) {
      if (dim.ofTerm >= 0) {
        operand.letters[dim.ofTerm] = letter;
      }
      if (!has(meaning.results[result], letter) && !has(meaning.whole, letter) &&
          !has(meaning.apart, letter) && !has(lacking, letter)) {
        lacking.push_back(letter);
        if (!letters[letter].isInTerm) {
          const Dim &known = letters[letter].dim;
          term.numbers.push_back(known.start == kUnknown ? known.length : known.size);
        }
      }
    }
    term.operands.push_back(std::move(operand));
  }
  return term;
}

Application::Wrong Application::addResult(unsigned result) {
  auto type = dyn_cast<RankedTensorType>(op->getResult(result).getType());
  std::string lacking;
  Term term = termOf(result, lacking);
  Value value;
  for (auto [number, name] : llvm::enumerate(meaning.results[result])) {
    Letter letter = letters[name];
    Dim dim = letter.dim;
    if (letter.isNew && type) {
      dim.length = type.getDimSize(unsigned(number));
      if (dim.start == kUnknown) { // All of it is on every rank.
        dim.start = ranks.constant(0);
        dim.size = dim.end = dim.length;
        term.numbers.push_back(dim.length);
      }
    }
    bool isInTerm = letter.isNew || letter.isInTerm || has(meaning.whole, name);
    dim.ofTerm = isInTerm ? int64_t(term.letters.size()) : -1;
    dim.beyond = beyond(name);
    if (isInTerm) {
      term.letters.push_back(name);
      // Positions of the first program have its sizes.
      term.sizes.push_back(dim.size == kEndless && !isa<IotaOp>(op) ? dim.length : dim.size);
    }
    value.dims.push_back(dim);
  }
  value.views = pending;
  if (Wrong wrong = addReduction(result, lacking, value.views)) {
    return wrong;
  }
  value.term = in.termOf(op, label, std::move(term));
  for (Dim &dim : value.dims) {
    if (dim.ofTerm >= 0 && dim.size == kEndless) {
      dim.size = dim.end = in.terms[value.term].sizes[dim.ofTerm];
    }
  }
  results.push_back(in.keep(std::move(value)));
  return std::nullopt;
}

Evaluation::Ids Evaluation::apply(Operation *op, const OpMeaning &meaning,
                                  ArrayRef<uint32_t> operands, llvm::StringRef label) {
  auto [known, isNew] = attributes.try_emplace(op);
  if (isNew) {
    known->second = ownAttributes(op);
  }
  SmallVector<uint32_t, 5> offsets, turns, numbers;
  auto numberOf = [&](mlir::Value value) {
    for (OpOperand &operand : op->getOpOperands()) {
      if (operand.get() == value) {
        return values[operands[operand.getOperandNumber()]].number;
      }
    }
    return kUnknown;
  };
  for (const OpPosition &position : meaning.positions) {
    offsets.push_back(position.offset ? numberOf(position.offset) : ranks.constant(0));
    turns.push_back(position.turn ? numberOf(position.turn) : kUnknown);
  }
  for (mlir::Value number : meaning.numbers) {
    numbers.push_back(numberOf(number));
  }
  Application application(*this, op, meaning, operands, label);
  if (Application::Wrong wrong = application.run(offsets, turns, numbers)) {
    return failAll(op, label, *wrong);
  }
  return application.results;
}

} // namespace weft::meaning
