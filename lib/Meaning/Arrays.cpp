//===- Arrays.cpp - what lies in the memory of one rank -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arrays.h"

#include "llvm/ADT/STLExtras.h"

namespace weft::meaning {

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

ArrayId Arrays::numberOf(Array array) {
  auto [found, isNew] = arrayOf.try_emplace(array.print, ArrayId(arrays.size()));
  if (isNew) {
    arrays.push_back(std::move(array));
  }
  return found->second;
}

ScalarId Arrays::numberOf(Scalar scalar) {
  auto [found, isNew] = scalarOf.try_emplace(scalar.print, ScalarId(scalars.size()));
  if (isNew) {
    scalars.push_back(std::move(scalar));
  }
  return found->second;
}

ArrayId Arrays::other(const Print &print, int64_t count) {
  Array array;
  array.print = print;
  array.count = count;
  return numberOf(std::move(array));
}

ArrayId Arrays::encoding(const Print &print, ArrayId quantized, ArrayId factor) {
  Array array;
  array.print = print;
  array.count = arrays[quantized].count;
  array.encoded = {quantized, factor};
  return numberOf(std::move(array));
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

ScalarId Arrays::constant(double value) {
  return numberOf({Print::of(value), ScalarKind::Constant, {}, {}, {}});
}

ScalarId Arrays::element(Access access) {
  Print print = (Words() << uint64_t('E') << arrays[access.array].print << uint64_t(access.offset)
                         << access.shift << access.strides)
                    .print();
  return numberOf({print, ScalarKind::Element, {}, {}, std::move(access)});
}

ScalarId Arrays::combine(ScalarKind kind, llvm::ArrayRef<ScalarId> operands,
                         const Print &function) {
  auto at = [&](size_t number) { return scalars[operands[number]].print; };
  Print print;
  switch (kind) {
  case ScalarKind::Add:
    print = at(0) + at(1);
    break;
  case ScalarKind::Subtract:
    print = at(0) - at(1);
    break;
  case ScalarKind::Multiply:
    print = at(0) * at(1);
    break;
  case ScalarKind::Divide:
    print = at(0) * at(1).inverse();
    break;
  default:
    Words words;
    words << uint64_t('F') << function;
    for (ScalarId operand : operands) {
      words << scalars[operand].print;
    }
    print = words.print();
  }
  return numberOf({print, kind, function, llvm::SmallVector<ScalarId, 3>(operands), {}});
}

ScalarId Arrays::rewrite(ScalarId number, llvm::function_ref<Access(const Access &)> function,
                         llvm::DenseMap<ScalarId, ScalarId> &known) {
  auto found = known.find(number);
  if (found != known.end()) {
    return found->second;
  }
  const Scalar &scalar = scalars[number];
  ScalarId result = number;
  if (scalar.kind == ScalarKind::Element) {
    result = element(function(scalar.access));
  } else if (scalar.kind != ScalarKind::Constant) {
    llvm::SmallVector<ScalarId, 3> operands;
    for (ScalarId operand : scalar.operands) {
      operands.push_back(rewrite(operand, function, known));
    }
    result = combine(scalar.kind, operands, scalar.function);
  }
  known[number] = result;
  return result;
}

llvm::SmallVector<ScalarId> Arrays::elementsOf(ScalarId number) const {
  llvm::SmallVector<ScalarId> elements, stack = {number};
  llvm::DenseMap<ScalarId, bool> seen;
  while (!stack.empty()) {
    ScalarId next = stack.pop_back_val();
    if (!seen.try_emplace(next, true).second) {
      continue;
    }
    if (scalars[next].kind == ScalarKind::Element) {
      elements.push_back(next);
    }
    llvm::append_range(stack, scalars[next].operands);
  }
  return elements;
}

//===----------------------------------------------------------------------===//
// Computed arrays and sums
//===----------------------------------------------------------------------===//

/// Bit i: loops i - 1 and i can be one, as far as the scalar's elements tell.
uint64_t Arrays::mergeable(ScalarId number, const Sizes &extents, uint32_t extentsNumber) {
  auto [found, isNew] = mergeables.try_emplace({number, extentsNumber}, ~uint64_t(0));
  if (!isNew) {
    return found->second;
  }
  const Scalar &scalar = scalars[number];
  uint64_t mask = ~uint64_t(0);
  for (ScalarId operand : scalar.operands) {
    mask &= mergeable(operand, extents, extentsNumber);
  }
  if (scalar.kind == ScalarKind::Element) {
    const Sizes &strides = scalar.access.strides;
    for (size_t loop = 1; loop < extents.size(); ++loop) {
      if (strides[loop - 1] != extents[loop] * strides[loop]) {
        mask &= ~(uint64_t(1) << loop);
      }
    }
  }
  return mergeables[{number, extentsNumber}] = mask;
}

/// Makes one loop of two neighbours wherever all elements allow that.
ScalarId Arrays::mergeLoops(Sizes &extents, size_t &kept, ScalarId element) {
  if (extents.size() < 2) {
    return element;
  }
  auto known = extentsOf.try_emplace(std::vector<int64_t>(extents.begin(), extents.end()),
                                     uint32_t(extentsOf.size()));
  uint64_t mask = mergeable(element, extents, known.first->second);
  llvm::SmallVector<size_t> inner; // Of each loop that is left, its last.
  Sizes merged;
  size_t mergedKept = 0;
  for (size_t loop = 0; loop < extents.size(); ++loop) {
    bool isKept = loop < kept;
    bool isOne = loop > 0 && loop != kept && (mask >> loop & 1) != 0;
    if (isOne) {
      inner.back() = loop;
      merged.back() *= extents[loop];
    } else {
      inner.push_back(loop);
      merged.push_back(extents[loop]);
      mergedKept += isKept ? 1 : 0;
    }
  }
  if (merged.size() == extents.size()) {
    return element;
  }
  extents = std::move(merged);
  kept = mergedKept;
  llvm::DenseMap<ScalarId, ScalarId> rewritten;
  return rewrite(
      element,
      [&](const Access &access) {
        Access result = access;
        result.strides.clear();
        for (size_t loop : inner) {
          result.strides.push_back(access.strides[loop]);
        }
        return result;
      },
      rewritten);
}

ArrayId Arrays::computed(Sizes extents, ScalarId element) {
  size_t kept = extents.size();
  element = mergeLoops(extents, kept, element);
  const Scalar &scalar = scalars[element];
  if (scalar.kind == ScalarKind::Element) {
    return moved(productOf(extents), {{0, loopsOf(extents), scalar.access}});
  }
  Array array;
  array.print = (Words() << uint64_t('C') << extents << scalar.print).print();
  array.count = productOf(extents);
  array.kind = Array::Kind::Computed;
  array.extents = std::move(extents);
  array.element = element;
  return numberOf(std::move(array));
}

/// An order of the loops that are summed that does not depend on the program's.
ScalarId Arrays::sortSummed(Sizes &extents, size_t kept, ScalarId element) {
  using Key = llvm::SmallVector<std::tuple<uint64_t, uint64_t, int64_t>, 4>;
  llvm::SmallVector<std::pair<Key, size_t>> order;
  llvm::SmallVector<ScalarId> elements = elementsOf(element);
  for (size_t loop = kept; loop < extents.size(); ++loop) {
    Key key;
    for (ScalarId number : elements) {
      const Access &access = scalars[number].access;
      const Print &print = arrays[access.array].print;
      key.emplace_back(print.first, print.second, access.strides[loop]);
    }
    llvm::sort(key);
    order.emplace_back(std::move(key), loop);
  }
  llvm::sort(order, [](const auto &left, const auto &right) {
    return left.first != right.first ? left.first > right.first : left.second < right.second;
  });
  Sizes sorted(extents.begin(), extents.begin() + kept);
  for (const auto &[key, loop] : order) {
    sorted.push_back(extents[loop]);
  }
  extents = std::move(sorted);
  llvm::DenseMap<ScalarId, ScalarId> known;
  return rewrite(
      element,
      [&](const Access &access) {
        Access result = access;
        for (auto [number, entry] : llvm::enumerate(order)) {
          result.strides[kept + number] = access.strides[entry.second];
        }
        return result;
      },
      known);
}

ArrayId Arrays::sum(Sizes extents, size_t kept, ScalarId element) {
  if (extents.size() - kept > 1) {
    element = sortSummed(extents, kept, element);
  }
  int64_t count = productOf(llvm::ArrayRef(extents).take_front(kept));
  element = mergeLoops(extents, kept, element);
  return other(
      (Words() << uint64_t('S') << uint64_t(kept) << extents << scalars[element].print).print(),
      count);
}

/// An access by the indices of loops, for the loops whose elements lie at `place` in these.
static Access through(const Access &inner, const Place &place) {
  Access result = inner;
  result.strides.assign(place.steps.size(), 0);
  for (auto [start, stride] : llvm::zip_equal(place.starts, inner.strides)) {
    result.offset += start * stride;
  }
  for (auto [stride, step] : llvm::zip_equal(result.strides, place.steps)) {
    stride = step.second == 0 ? 0 : step.second * inner.strides[step.first];
  }
  return result;
}

bool Arrays::resolveOnce(Nest &nest, Access &access) {
  const Array &array = arrays[access.array];
  Place place;
  Fit found = Fit::No;
  const Part *part = nullptr;
  bool isKnown = access.shift.isZero();
  if (isKnown && array.kind == Array::Kind::Moved) {
    auto next =
        llvm::find_if(array.parts, [&](const Part &other) { return other.offset > access.offset; });
    part = next == array.parts.begin() ? nullptr : &*std::prev(next);
    found =
        part ? fit(access.offset - part->offset, nest.extents, access.strides, part->loops, place)
             : Fit::No;
  } else if (isKnown && array.kind == Array::Kind::Computed) {
    found = fit(access.offset, nest.extents, access.strides, loopsOf(array.extents), place);
  }
  if (found == Fit::Split) {
    int64_t outer = nest.extents[place.loop] / place.inner;
    nest.kept += place.loop < nest.kept ? 1 : 0;
    splitLoop(nest.extents, place.loop, outer, place.inner);
    for (Access &operand : nest.operands) {
      int64_t stride = operand.strides[place.loop];
      splitLoop(operand.strides, place.loop, stride * place.inner, stride);
    }
    return true;
  }
  if (found == Fit::No || !part) {
    return false;
  }
  access = through(part->from, place);
  return true;
}

void Arrays::resolve(Nest &nest) {
  // Loops that one operand splits may be in the way of another: an order of operands that does not
  // depend on the program's.
  auto keyOf = [&](size_t number) {
    const Access &access = nest.operands[number];
    const Print &print = arrays[access.array].print;
    return std::tie(print.first, print.second, access.offset, access.strides);
  };
  auto order = llvm::to_vector(llvm::seq(nest.operands.size()));
  llvm::sort(order, [&](size_t left, size_t right) { return keyOf(left) < keyOf(right); });
  for (bool isChanged = true; isChanged;) {
    isChanged = false;
    for (size_t number : order) {
      isChanged |= resolveOnce(nest, nest.operands[number]);
    }
  }
}

/// REQUIRES: the nest is resolved.
ScalarId Arrays::read(const Nest &nest, const Access &access) {
  const Array &array = arrays[access.array];
  Place place;
  bool isInside =
      array.kind == Array::Kind::Computed && access.shift.isZero() &&
      fit(access.offset, nest.extents, access.strides, loopsOf(array.extents), place) == Fit::Yes;
  if (!isInside) {
    return element(access);
  }
  // Loops of one index have no place in `loopsOf`; there are none, as loops that can be one are.
  bool isSame = array.extents == nest.extents && access.offset == 0;
  for (auto [number, step] : llvm::enumerate(place.steps)) {
    isSame &= step == std::pair<size_t, int64_t>(number, 1);
  }
  if (isSame) {
    return array.element;
  }
  llvm::DenseMap<ScalarId, ScalarId> known;
  return rewrite(array.element, [&](const Access &inner) { return through(inner, place); }, known);
}

/// Makes one loop of two neighbours wherever all operands allow that, and drops those of one index.
static void simplify(Nest &nest) {
  Nest result;
  result.operands = nest.operands;
  for (Access &operand : result.operands) {
    operand.strides.clear();
  }
  bool isLastKept = true;
  for (size_t loop = 0; loop < nest.extents.size(); ++loop) {
    int64_t extent = nest.extents[loop];
    bool isKept = loop < nest.kept;
    if (extent == 1) {
      continue;
    }
    bool isOne = !result.extents.empty() && isKept == isLastKept;
    for (auto [operand, before] : llvm::zip_equal(result.operands, nest.operands)) {
      isOne = isOne && operand.strides.back() == extent * before.strides[loop];
    }
    if (!isOne) {
      result.extents.push_back(extent);
      result.kept += isKept ? 1 : 0;
    } else {
      result.extents.back() *= extent;
    }
    for (auto [operand, before] : llvm::zip_equal(result.operands, nest.operands)) {
      if (!isOne) {
        operand.strides.push_back(before.strides[loop]);
      } else {
        operand.strides.back() = before.strides[loop];
      }
    }
    isLastKept = isKept;
  }
  nest = std::move(result);
}

llvm::SmallVector<ArrayId> Arrays::compute(Nest nest, Body body) {
  simplify(nest);
  resolve(nest);
  llvm::SmallVector<ScalarId> operands;
  for (const Access &access : nest.operands) {
    operands.push_back(read(nest, access));
  }
  llvm::SmallVector<ArrayId> results;
  for (ScalarId element : body(operands)) {
    bool isSum = nest.kept < nest.extents.size();
    results.push_back(isSum ? sum(nest.extents, nest.kept, element)
                            : computed(nest.extents, element));
  }
  return results;
}

} // namespace weft::meaning
