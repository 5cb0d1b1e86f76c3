//===- Arrays.cpp - what lies in the memory of one rank -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arrays.h"

#include "llvm/ADT/STLExtras.h"

namespace weft::meaning {

namespace {

/// Whether elements lie in loops: they do, or would if a loop were split, or do not.
enum class Fit : uint8_t { Yes, Split, No };

/// Where elements lie in loops: in each the first index, and for each of their own loops the loop
/// in which it moves, and by how many indices.
struct Place {
  Sizes starts;
  llvm::SmallVector<std::pair<size_t, int64_t>> steps;
  /// For Split: the loop, and the extent of its inner part.
  size_t loop = 0;
  int64_t inner = 0;
};

/// `loops` are in the order of falling strides.
Fit fit(int64_t offset, llvm::ArrayRef<int64_t> extents, llvm::ArrayRef<int64_t> strides,
        llvm::ArrayRef<Loop> loops, Place &place) {
  Sizes last;
  for (const Loop &loop : loops) {
    place.starts.push_back(offset / loop.stride);
    last.push_back(place.starts.back());
    offset %= loop.stride;
  }
  if (offset != 0) {
    return Fit::No;
  }
  for (size_t number = 0; number < extents.size(); ++number) {
    int64_t extent = extents[number], stride = strides[number];
    if (extent == 1 || stride == 0) {
      place.steps.emplace_back(0, 0);
      continue;
    }
    size_t in = 0;
    while (in < loops.size() && loops[in].stride > stride) {
      ++in;
    }
    if (in == loops.size() || stride % loops[in].stride != 0) {
      return Fit::No;
    }
    int64_t step = stride / loops[in].stride;
    if ((extent - 1) * step >= loops[in].extent) {
      int64_t inner = loops[in].extent / step;
      bool isSplit = in > 0 && inner > 1 && loops[in].extent % step == 0 && extent % inner == 0 &&
                     loops[in].extent * loops[in].stride == loops[in - 1].stride;
      place.loop = number;
      place.inner = inner;
      return isSplit ? Fit::Split : Fit::No;
    }
    place.steps.emplace_back(in, step);
    last[in] += (extent - 1) * step;
  }
  for (auto [index, loop] : llvm::zip_equal(last, loops)) {
    if (index >= loop.extent) {
      return Fit::No;
    }
  }
  return Fit::Yes;
}

void splitLoop(Sizes &values, size_t loop, int64_t outer, int64_t inner) {
  values[loop] = outer;
  values.insert(values.begin() + loop + 1, inner);
}

/// The loops of a dense array with these sizes, without those of one index.
llvm::SmallVector<Loop, 4> loopsOf(llvm::ArrayRef<int64_t> sizes) {
  llvm::SmallVector<Loop, 4> loops;
  int64_t stride = 1;
  for (int64_t size : llvm::reverse(sizes)) {
    if (size != 1) {
      loops.push_back({size, stride});
    }
    stride *= size;
  }
  std::reverse(loops.begin(), loops.end());
  return loops;
}

int64_t productOf(llvm::ArrayRef<int64_t> sizes) {
  int64_t product = 1;
  for (int64_t size : sizes) {
    product *= size;
  }
  return product;
}

/// The sizes before, of and after a dimension.
Sizes around(llvm::ArrayRef<int64_t> shape, int64_t dim) {
  return {productOf(shape.take_front(dim)), shape[dim], productOf(shape.drop_front(dim + 1))};
}

/// Loops in the order of falling strides; those that can be one loop are one.
void normalize(Part &part) {
  llvm::SmallVector<size_t> order;
  for (size_t number = 0; number < part.loops.size(); ++number) {
    if (part.loops[number].extent != 1) {
      order.push_back(number);
    }
  }
  llvm::sort(order, [&](size_t left, size_t right) {
    return part.loops[left].stride > part.loops[right].stride;
  });
  llvm::SmallVector<Loop, 4> loops;
  Sizes strides;
  for (size_t number : order) {
    auto [extent, stride] = part.loops[number];
    int64_t from = part.from.strides[number];
    if (!loops.empty() && loops.back().stride == extent * stride &&
        strides.back() == extent * from) {
      loops.back() = {loops.back().extent * extent, stride};
      strides.back() = from;
    } else {
      loops.push_back({extent, stride});
      strides.push_back(from);
    }
  }
  part.loops = std::move(loops);
  part.from.strides = std::move(strides);
}

/// The part with one loop of it in each of `dims`, or in none; none if that cannot be.
std::optional<std::pair<Part, Place>> align(Part part, llvm::ArrayRef<Loop> dims) {
  while (true) {
    Sizes extents, strides;
    for (const Loop &loop : part.loops) {
      extents.push_back(loop.extent);
      strides.push_back(loop.stride);
    }
    Place place;
    Fit found = fit(part.offset, extents, strides, dims, place);
    if (found == Fit::Yes) {
      return std::pair(std::move(part), std::move(place));
    }
    if (found == Fit::No) {
      return std::nullopt;
    }
    auto [extent, stride] = part.loops[place.loop];
    int64_t from = part.from.strides[place.loop];
    part.loops[place.loop] = {extent / place.inner, stride * place.inner};
    part.loops.insert(part.loops.begin() + place.loop + 1, {place.inner, stride});
    splitLoop(part.from.strides, place.loop, from * place.inner, from);
  }
}

/// Moves what lies in `dims` to other strides; none if it cannot be said with loops.
bool restride(Part &part, llvm::ArrayRef<Loop> dims, llvm::ArrayRef<int64_t> strides) {
  auto aligned = align(std::move(part), dims);
  if (!aligned) {
    return false;
  }
  part = std::move(aligned->first);
  const Place &place = aligned->second;
  part.offset = 0;
  for (auto [start, stride] : llvm::zip_equal(place.starts, strides)) {
    part.offset += start * stride;
  }
  for (auto [loop, step] : llvm::zip_equal(part.loops, place.steps)) {
    loop.stride = step.second == 0 ? 0 : step.second * strides[step.first];
  }
  return true;
}

} // namespace

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
  return other((Words() << uint64_t('S') << uint64_t(kept) << extents << scalars[element].print)
                   .print(),
               count);
}

bool Arrays::resolveOnce(Nest &nest, Access &access) {
  const Array &array = arrays[access.array];
  Place place;
  Fit found = Fit::No;
  const Part *part = nullptr;
  bool isKnown = access.shift.isZero();
  if (isKnown && array.kind == Array::Kind::Moved) {
    auto next = llvm::find_if(array.parts,
                              [&](const Part &other) { return other.offset > access.offset; });
    part = next == array.parts.begin() ? nullptr : &*std::prev(next);
    found = part ? fit(access.offset - part->offset, nest.extents, access.strides, part->loops,
                       place)
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
  Access source = part->from;
  source.strides.assign(nest.extents.size(), 0);
  for (auto [start, stride] : llvm::zip_equal(place.starts, part->from.strides)) {
    source.offset += start * stride;
  }
  for (auto [stride, step] : llvm::zip_equal(source.strides, place.steps)) {
    stride = step.second == 0 ? 0 : step.second * part->from.strides[step.first];
  }
  access = std::move(source);
  return true;
}

void Arrays::resolve(Nest &nest) {
  for (bool isChanged = true; isChanged;) {
    isChanged = false;
    for (size_t number = 0; number < nest.operands.size(); ++number) {
      isChanged |= resolveOnce(nest, nest.operands[number]);
    }
  }
}

/// REQUIRES: the nest is resolved.
ScalarId Arrays::read(const Nest &nest, const Access &access) {
  const Array &array = arrays[access.array];
  Place place;
  bool isInside = array.kind == Array::Kind::Computed && access.shift.isZero() &&
                  fit(access.offset, nest.extents, access.strides, loopsOf(array.extents),
                      place) == Fit::Yes;
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
  return rewrite(
      array.element,
      [&](const Access &inner) {
        Access result = inner;
        result.strides.assign(nest.extents.size(), 0);
        for (auto [start, stride] : llvm::zip(place.starts, inner.strides)) {
          result.offset += start * stride;
        }
        for (auto [stride, step] : llvm::zip_equal(result.strides, place.steps)) {
          stride = step.second == 0 ? 0 : step.second * inner.strides[step.first];
        }
        return result;
      },
      known);
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

//===----------------------------------------------------------------------===//
// Moved arrays
//===----------------------------------------------------------------------===//

std::vector<Part> Arrays::partsOf(ArrayId array) const {
  if (arrays[array].kind == Array::Kind::Moved) {
    return arrays[array].parts;
  }
  Part part;
  part.loops = loopsOf({arrays[array].count});
  part.from.array = array;
  part.from.strides.assign(part.loops.size(), 1);
  return {part};
}

ArrayId Arrays::moved(int64_t count, std::vector<Part> parts) {
  llvm::for_each(parts, normalize);
  llvm::sort(parts, [](const Part &left, const Part &right) { return left.offset < right.offset; });
  const Part &first = parts.front();
  bool isWhole = parts.size() == 1 && first.from.offset == 0 && first.from.shift.isZero() &&
                 arrays[first.from.array].count == count &&
                 llvm::all_of(llvm::zip(first.loops, first.from.strides), [](auto pair) {
                   return std::get<0>(pair).stride == std::get<1>(pair);
                 });
  if (isWhole) {
    return first.from.array;
  }
  Array array;
  Words words;
  words << uint64_t('M') << uint64_t(count);
  for (const Part &part : parts) {
    words << uint64_t(part.offset) << arrays[part.from.array].print << uint64_t(part.from.offset)
          << part.from.shift << part.from.strides;
    for (const Loop &loop : part.loops) {
      words << uint64_t(loop.extent) << uint64_t(loop.stride);
    }
  }
  array.print = words.print();
  array.count = count;
  array.kind = Array::Kind::Moved;
  array.parts = std::move(parts);
  return numberOf(std::move(array));
}

std::optional<ArrayId> Arrays::transpose(ArrayId array, llvm::ArrayRef<int64_t> shape,
                                         llvm::ArrayRef<int64_t> order) {
  Sizes strides(shape.size(), 1), moving;
  int64_t stride = 1;
  for (int64_t dim : llvm::reverse(order)) {
    strides[dim] = stride;
    stride *= shape[dim];
  }
  for (auto [size, own] : llvm::zip_equal(shape, strides)) {
    if (size != 1) {
      moving.push_back(own);
    }
  }
  std::vector<Part> parts = partsOf(array);
  for (Part &part : parts) {
    if (!restride(part, loopsOf(shape), moving)) {
      return std::nullopt;
    }
  }
  return moved(arrays[array].count, std::move(parts));
}

std::optional<ArrayId> Arrays::concat(llvm::ArrayRef<ArrayId> operands,
                                      llvm::ArrayRef<Sizes> shapes, int64_t dim) {
  int64_t length = 0, at = 0, count = 0;
  for (const Sizes &shape : shapes) {
    length += shape[dim];
    count += productOf(shape);
  }
  std::vector<Part> parts;
  for (auto [operand, shape] : llvm::zip_equal(operands, shapes)) {
    Sizes sizes = around(shape, dim);
    int64_t row = sizes[1] * sizes[2];
    for (Part part : partsOf(operand)) {
      Sizes strides;
      if (sizes[0] != 1) {
        strides.push_back(length * sizes[2]);
      }
      if (row != 1) {
        strides.push_back(1);
      }
      if (!restride(part, loopsOf({sizes[0], row}), strides)) {
        return std::nullopt;
      }
      part.offset += at * sizes[2];
      parts.push_back(std::move(part));
    }
    at += shape[dim];
  }
  return moved(count, std::move(parts));
}

/// What of the part lies in `length` indices of the loop `dim` of `dims`, from `start` on; a part
/// of no elements if nothing does.
static std::optional<Part> crop(Part part, llvm::ArrayRef<Loop> dims, size_t dim, int64_t start,
                                int64_t length, llvm::ArrayRef<int64_t> strides) {
  auto aligned = align(std::move(part), dims);
  if (!aligned) {
    return std::nullopt;
  }
  auto &[result, place] = *aligned;
  int64_t first = place.starts[dim], last = first, stride = 0;
  size_t loop = result.loops.size(), found = 0;
  for (auto [number, step] : llvm::enumerate(place.steps)) {
    if (step.second != 0 && step.first == dim) {
      loop = number;
      stride = result.from.strides[number];
      last += (result.loops[number].extent - 1) * step.second;
      ++found;
    }
  }
  int64_t from = std::max(first, start), to = std::min(last + 1, start + length);
  bool isCut = from > first || to <= last;
  if (from < to && isCut && (found != 1 || place.steps[loop].second != 1)) {
    return std::nullopt;
  }
  place.starts[dim] = from - start;
  result.from.offset += (from - first) * stride;
  result.offset = 0;
  for (auto [index, own] : llvm::zip_equal(place.starts, strides)) {
    result.offset += index * own;
  }
  for (auto [number, step] : llvm::enumerate(place.steps)) {
    result.loops[number].stride = step.second == 0 ? 0 : step.second * strides[step.first];
  }
  if (to <= from) {
    result.loops = {{0, 1}};
    result.from.strides = {1};
  } else if (isCut) {
    result.loops[loop].extent = to - from;
  }
  return result;
}

std::optional<ArrayId> Arrays::part(ArrayId array, llvm::ArrayRef<int64_t> shape, int64_t dim,
                                    int64_t start, int64_t length) {
  Sizes sizes = around(shape, dim);
  if (sizes[1] == length) {
    return array;
  }
  llvm::SmallVector<Loop, 4> dims = loopsOf(sizes);
  Sizes strides;
  for (auto [size, stride] :
       llvm::zip_equal(sizes, Sizes{length * sizes[2], sizes[2], int64_t(1)})) {
    if (size != 1) {
      strides.push_back(stride);
    }
  }
  std::vector<Part> parts;
  for (const Part &own : partsOf(array)) {
    std::optional<Part> left = crop(own, dims, sizes[0] != 1 ? 1 : 0, start, length, strides);
    if (!left) {
      return std::nullopt;
    }
    if (left->loops.empty() || left->loops.front().extent != 0) {
      parts.push_back(std::move(*left));
    }
  }
  return moved(sizes[0] * length * sizes[2], std::move(parts));
}

std::optional<ArrayId> Arrays::shard(ArrayId array, llvm::ArrayRef<int64_t> shape, int64_t dim,
                                     int64_t count, const Print &place) {
  Sizes sizes = around(shape, dim);
  int64_t row = sizes[1] / count * sizes[2];
  llvm::SmallVector<Loop, 4> dims = loopsOf({sizes[0], count, row});
  size_t number = sizes[0] != 1 ? 1 : 0;
  Sizes strides;
  if (sizes[0] != 1) {
    strides.push_back(row);
  }
  strides.push_back(0);
  if (row != 1) {
    strides.push_back(1);
  }
  std::vector<Part> parts = partsOf(array);
  for (Part &part : parts) {
    auto aligned = align(std::move(part), dims);
    if (!aligned) {
      return std::nullopt;
    }
    part = std::move(aligned->first);
    // The rank's index, in place of a loop over all.
    std::optional<size_t> own;
    for (auto [loop, step] : llvm::enumerate(aligned->second.steps)) {
      if (step == std::pair<size_t, int64_t>(number, 1) && part.loops[loop].extent == count) {
        own = loop;
      }
    }
    if (!own) {
      return std::nullopt;
    }
    part.from.shift = part.from.shift + place * Print::of(part.from.strides[*own]);
    part.from.strides.erase(part.from.strides.begin() + *own);
    part.loops.erase(part.loops.begin() + *own);
    aligned->second.steps.erase(aligned->second.steps.begin() + *own);
    part.offset = 0;
    for (auto [start, stride] : llvm::zip_equal(aligned->second.starts, strides)) {
      part.offset += start * stride;
    }
    for (auto [loop, step] : llvm::zip_equal(part.loops, aligned->second.steps)) {
      loop.stride = step.second == 0 ? 0 : step.second * strides[step.first];
    }
  }
  return moved(arrays[array].count / count, std::move(parts));
}

/// The same part, of an array that holds just its elements, in the order that they have in their
/// source, if their place there depends on the rank.
Part Arrays::withoutShift(Part part) {
  if (part.from.shift.isZero()) {
    return part;
  }
  auto order = llvm::to_vector(llvm::seq<size_t>(0, part.loops.size()));
  llvm::sort(order, [&](size_t left, size_t right) {
    return part.from.strides[left] < part.from.strides[right];
  });
  Part dense = part;
  dense.offset = 0;
  int64_t count = 1;
  for (size_t loop : order) {
    dense.loops[loop].stride = count;
    count *= dense.loops[loop].extent;
  }
  for (auto [stride, loop] : llvm::zip_equal(part.from.strides, dense.loops)) {
    stride = loop.stride;
  }
  part.from.array = moved(count, {dense});
  part.from.offset = 0;
  part.from.shift = {};
  return part;
}

ArrayId Arrays::mapSources(ArrayId array, llvm::function_ref<ArrayId(ArrayId)> function,
                           bool mayShift) {
  if (arrays[array].kind != Array::Kind::Moved) {
    return function(array);
  }
  std::vector<Part> parts = arrays[array].parts;
  for (Part &part : parts) {
    part = mayShift ? part : withoutShift(part);
    part.from.array = function(part.from.array);
  }
  return moved(arrays[array].count, std::move(parts));
}

ArrayId Arrays::stack(ArrayId array, int64_t count,
                      llvm::function_ref<ArrayId(ArrayId)> gather) {
  std::vector<Part> parts = partsOf(array);
  for (Part &part : parts) {
    part = withoutShift(std::move(part));
    int64_t elements = arrays[part.from.array].count;
    part.from.array = gather(part.from.array);
    part.loops.insert(part.loops.begin(), {count, arrays[array].count});
    part.from.strides.insert(part.from.strides.begin(), elements);
  }
  return moved(arrays[array].count * count, std::move(parts));
}

} // namespace weft::meaning
