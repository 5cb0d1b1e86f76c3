//===- Arrays.h - what lies in the memory of one rank ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An array is a row of elements in memory, without a shape, as a function of the variables that a
// rank reads. There are three kinds, each in a normal form, so that arrays that are equal by the
// rules below have one number:
//
// - Computed: each element is a scalar expression of elements of other arrays. The expression
//   includes what those compute, so that it does not matter how ops are spread over kernels.
// - Moved: elements of other arrays in another order, as loops with strides. So it does not matter
//   by which reshapes, transpositions and concatenations they got there.
// - Others: what an op gives that the proof does not look into, or a sum.
//
// One rank stands for all: what differs between ranks are coordinates, which are unknowns.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_MEANING_ARRAYS_H
#define WEFT_LIB_MEANING_ARRAYS_H

#include "Loops.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace weft::meaning {

using ScalarId = uint32_t;

enum class ScalarKind : uint8_t { Element, Constant, Add, Subtract, Multiply, Divide, Other };

/// A scalar expression for the indices of loops.
struct Scalar {
  Print print;
  ScalarKind kind;
  /// Of Other: which function.
  Print function;
  llvm::SmallVector<ScalarId, 3> operands;
  /// Of Element.
  Access access;
};

struct Array {
  Print print;
  int64_t count = 0;
  enum class Kind : uint8_t { Other, Computed, Moved } kind = Kind::Other;
  /// Of a computed array: its loops, row-major, and an element.
  Sizes extents;
  ScalarId element = 0;
  std::vector<Part> parts;
  /// Of the bytes that encode quantized numbers: these, and the factor between the two.
  std::optional<std::pair<ArrayId, ArrayId>> encoded;
};

/// Elements that are summed: loops whose indices the result has, row-major, then the others.
struct Nest {
  Sizes extents;
  size_t kept = 0;
  std::vector<Access> operands;
};

/// All arrays of two programs. For one thread.
class Arrays {
public:
  const Array &operator[](ArrayId number) const { return arrays[number]; }
  const Scalar &scalar(ScalarId number) const { return scalars[number]; }
  size_t size() const { return arrays.size(); }

  /// An array of `count` elements that is nothing but its print.
  ArrayId other(const Print &print, int64_t count);
  /// `bytes` times `factor` is `quantized`.
  ArrayId encoding(const Print &print, ArrayId quantized, ArrayId factor);

  // Scalars.
  ScalarId constant(double value);
  ScalarId element(Access access);
  ScalarId combine(ScalarKind kind, llvm::ArrayRef<ScalarId> operands, const Print &function = {});

  using Body = llvm::function_ref<llvm::SmallVector<ScalarId>(llvm::ArrayRef<ScalarId>)>;
  /// What `body` makes of elements of the operands, one array for each scalar that it returns,
  /// summed over the loops that are not kept.
  llvm::SmallVector<ArrayId> compute(Nest nest, Body body);

  // Moved arrays. `shape` is that of the operand. None if the order has no normal form.
  std::optional<ArrayId> transpose(ArrayId array, llvm::ArrayRef<int64_t> shape,
                                   llvm::ArrayRef<int64_t> order);
  std::optional<ArrayId> concat(llvm::ArrayRef<ArrayId> operands, llvm::ArrayRef<Sizes> shapes,
                                int64_t dim);
  /// `length` elements of dimension `dim` from `start` on.
  std::optional<ArrayId> part(ArrayId array, llvm::ArrayRef<int64_t> shape, int64_t dim,
                              int64_t start, int64_t length);
  /// The shard at `place` of `count` shards of dimension `dim`.
  std::optional<ArrayId> shard(ArrayId array, llvm::ArrayRef<int64_t> shape, int64_t dim,
                               int64_t count, const Print &place);
  /// The arrays of `count` ranks, one after the other; `gather` is that of one array.
  ArrayId stack(ArrayId array, int64_t count, llvm::function_ref<ArrayId(ArrayId)> gather);
  /// The same places of other arrays. Unless `mayShift`, these are not arrays of which each rank
  /// has other elements, but arrays of just the elements that the rank has.
  ArrayId mapSources(ArrayId array, llvm::function_ref<ArrayId(ArrayId)> function, bool mayShift);

private:
  ArrayId numberOf(Array array);
  ScalarId numberOf(Scalar scalar);
  ArrayId moved(int64_t count, std::vector<Part> parts);
  std::vector<Part> partsOf(ArrayId array) const;
  Part withoutShift(Part part);
  ArrayId computed(Sizes extents, ScalarId element);
  ArrayId sum(Sizes extents, size_t kept, ScalarId element);

  ScalarId rewrite(ScalarId number, llvm::function_ref<Access(const Access &)> function,
                   llvm::DenseMap<ScalarId, ScalarId> &known);
  llvm::SmallVector<ScalarId> elementsOf(ScalarId number) const;
  uint64_t mergeable(ScalarId number, const Sizes &extents, uint32_t extentsNumber);
  ScalarId sortSummed(Sizes &extents, size_t kept, ScalarId element);
  ScalarId mergeLoops(Sizes &extents, size_t &kept, ScalarId element);
  /// Goes through moved arrays to their sources; splits loops of the nest where that takes it.
  void resolve(Nest &nest);
  bool resolveOnce(Nest &nest, Access &access);
  ScalarId read(const Nest &nest, const Access &access);

  std::deque<Array> arrays;
  std::deque<Scalar> scalars;
  llvm::DenseMap<Print, ArrayId> arrayOf;
  llvm::DenseMap<Print, ScalarId> scalarOf;
  /// Numbers of extents, and what `mergeable` said of scalars for them.
  std::map<std::vector<int64_t>, uint32_t> extentsOf;
  llvm::DenseMap<std::pair<ScalarId, uint32_t>, uint64_t> mergeables;
};

} // namespace weft::meaning

#endif // WEFT_LIB_MEANING_ARRAYS_H
