//===- Contractor.h - code of one contraction ----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_LOWER_CONTRACTOR_H
#define WEFT_LIB_PIPELINE_LOWER_CONTRACTOR_H

#include "Contraction.h"
#include "Tiles.h"

#include <optional>

namespace weft::lower {

/// How a contraction with reuse is computed: `width` consecutive indices of each tile dimension
/// at once, in vectors along `vectorDim`. If that is a dimension of the output, the vectors are
/// elements of the output; otherwise their lanes are summed up in the end.
struct TilePlan {
  struct Tile {
    unsigned dim;
    int64_t width;
  };
  unsigned vectorDim;
  int64_t lanes;
  llvm::SmallVector<Tile, 2> tiles;
};

/// Returns nothing if each element of the operands is used only once.
std::optional<TilePlan> makeTilePlan(const Contraction &shape, mlir::Type type);

/// Builds the code of one contraction.
class Contractor {
public:
  Contractor(Code &code, const Contraction &shape, mlir::ValueRange operands, mlir::Value result,
             bool isTF32)
      : code(code), shape(shape), output(code.buffer(result).view(shape.shapeOf(shape.output))),
        isTF32(isTF32), at(shape.sizes.size(), Num()) {
    for (auto [operand, term] : llvm::zip_equal(operands, shape.inputs)) {
      inputs.push_back(code.buffer(operand).view(shape.shapeOf(term)));
    }
  }

  /// Builds code with reuse: tiles in registers.
  void emitTiled(const TilePlan &tilePlan);
  /// Builds code without reuse, which reads memory once. The result is f32 or f64.
  void emitStreamed();
  /// The same for results of any type.
  void emitRounded();
  /// Builds code for contractions that sum nothing, as a transposition.
  void emitPermuted();
  /// Builds a transposition for devices that changes which elements are neighbors; returns false
  /// for others, and if rows or columns are few.
  bool emitTransposed();
  /// The same as emitRounded, for devices.
  void emitByBlocks();

private:
  bool isVectorOverOutput() const { return !shape.isReduced(plan->vectorDim); }
  Nums indicesOf(const Contraction::Dims &term) const {
    return llvm::map_to_vector<4>(term, [&](unsigned dim) { return at[dim]; });
  }
  /// Returns the factor from a number or vector that was loaded.
  Num factor(Num loaded);
  Num productAt();
  Num productsAt(unsigned dim, int64_t width);

  void overTiles(llvm::ArrayRef<TilePlan::Tile> tiles);
  void emitTile();
  Nums reduce(llvm::ArrayRef<unsigned> dims, llvm::ArrayRef<Num> carried);
  Nums reduceVectorDim(llvm::ArrayRef<unsigned> others, llvm::ArrayRef<Num> start);
  Nums addProducts(llvm::ArrayRef<Num> carried);
  void forEachInTile(llvm::function_ref<void()> body, size_t depth = 0);

  /// The dimensions in the order of the largest operand or result; those that it lacks come first.
  Contraction::Dims orderOfLargest() const;
  bool sumsColumns(const Contraction::Dims &outer, unsigned last) const;
  void emitColumnSums(const Contraction::Dims &outer, unsigned last);
  /// Adds all products over `outer`, and over `last` in [from, to) or from `from` to its end.
  void addOver(const Contraction::Dims &outer, unsigned last, Num from, Num to = {});
  Num sumOverLast(unsigned dim);

  Code &code;
  const Contraction &shape;
  llvm::SmallVector<Buffer> inputs;
  Buffer output;
  bool isTF32;
  /// The index of each dimension in the current code.
  Nums at;

  const TilePlan *plan = nullptr;
  /// How many indices of each dimension the current tile spans (absent: one).
  llvm::SmallDenseMap<unsigned, int64_t> span;
  /// Lanes of the current vectors, 0 for plain numbers.
  int64_t lanes = 0;
};

} // namespace weft::lower

#endif // WEFT_LIB_PIPELINE_LOWER_CONTRACTOR_H
