//===- View.h - tensors whose dimensions are arranged in thought ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Exporters write many reshapes and transposes: [batch, sequence, heads * head] is
// split, transposed to [batch, heads, sequence, head], multiplied, and merged again.
// Contractions and maps need none of this, as they name dimensions. So a value of the
// graph is a View: a tensor of the dialect, and for each dimension of the graph's
// value the parts that it consists of, major to minor.
//
//   tensor [?, 16, 4, 8]   the graph sees [batch, 4, 16, 8]      parts [0] [2] [1] [3]
//                          after transposing back, and merging   parts [0] [1] [2 3]
//                          with a dimension of length 1          parts [0] [] [1] [2 3]
//                          spread three times over a new one     parts [0] [x3] [1] [2 3]
//
// Transposing and merging move no data, and even the batch can be merged with another
// dimension. A weft.reshape or a contraction of one operand is built only if a
// dimension of the tensor is split, or an op needs its operand in one order.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_IMPORT_VIEW_H
#define WEFT_LIB_PIPELINE_IMPORT_VIEW_H

#include "ModelBuilder.h"

#include <optional>

namespace weft {

/// A part of a dimension of a view.
struct Part {
  /// The dimension of the tensor; -1 for a broadcast part, along which all elements are equal.
  int64_t axis = -1;
  /// Its length; `ShapedType::kDynamic` for the batch.
  int64_t size = 1;

  bool isSpread() const { return axis < 0; }
};

/// A dimension as the graph sees it; without parts it has length 1.
using Parts = llvm::SmallVector<Part, 2>;

/// Every dimension of the tensor longer than 1 is the axis of exactly one part.
struct View {
  mlir::Value tensor;
  llvm::SmallVector<Parts> dims;
  /// If true, plans cut the features of this value: it lies between two matmuls, the first with a
  /// weight cut by its outputs, the second with a weight cut by its inputs.
  bool isInner = false;

  int64_t rank() const { return static_cast<int64_t>(dims.size()); }
  /// Returns the lengths of the dimensions, as in an onnx::Constant: the batch is a symbol.
  std::vector<double> lengths() const;
};

/// Builds views from views. Functions that can fail return nothing if dimensions do not fit; ops
/// that they may have built by then have no users.
class ViewBuilder {
public:
  explicit ViewBuilder(ModelBuilder &ops) : ops(ops) {}

  /// Returns a view of a tensor as it is.
  static View whole(mlir::Value tensor);
  static View transpose(const View &view, llvm::ArrayRef<int64_t> order);
  /// Reshapes the view to dimensions of these lengths, which have the same product.
  std::optional<View> reshape(llvm::StringRef name, View view, llvm::ArrayRef<double> lengths);
  /// Broadcasts the view to these lengths by the rules of NumPy.
  static std::optional<View> expand(const View &view, llvm::ArrayRef<double> lengths);

  /// Returns a tensor with exactly the view's dimensions. Fails if the batch is merged with another
  /// dimension.
  std::optional<mlir::Value> materialize(llvm::StringRef name, View view);
  /// Returns an equal view, of a tensor whose last dimension is the last dimension of the view.
  std::optional<View> packLast(llvm::StringRef name, View view);

  /// Builds an elementwise function of views, which are broadcast to a common shape.
  std::optional<View> map(llvm::StringRef name, llvm::ArrayRef<View> views, ScalarCode code);
  /// Builds a sum of products. Dimensions with the same label are the same index; labels that are
  /// missing in `result` are summed over. `b` may be null.
  std::optional<View> contract(llvm::StringRef name, const View &a, llvm::ArrayRef<int64_t> labelsA,
                               const View *b, llvm::ArrayRef<int64_t> labelsB,
                               llvm::ArrayRef<int64_t> result);

  /// Splits parts until dimension `i` of `a` and `j` of `b` have parts of equal lengths.
  bool align(llvm::StringRef name, View &a, int64_t i, View &b, int64_t j);

  ModelBuilder &ops;

private:
  void split(llvm::StringRef name, View &view, int64_t dim, size_t part, int64_t outer);
  /// Removes dimensions of length 1 from the tensor that no part refers to.
  void dropUnits(llvm::StringRef name, View &view);
  /// Transposes the tensor so that its dimensions have the order of the parts.
  void sortAxes(llvm::StringRef name, View &view);
  void permute(llvm::StringRef name, View &view, llvm::ArrayRef<int64_t> order);
  /// Builds a contraction of one tensor that only transposes it or drops dimensions of length 1.
  mlir::Value reorder(llvm::StringRef name, llvm::StringRef equation, mlir::Value tensor);
  /// Gives each broadcast part an axis of its own. REQUIRES: axes are sorted.
  void fillSpread(llvm::StringRef name, View &view);
  mlir::Value regroup(llvm::StringRef name, mlir::Value tensor, llvm::ArrayRef<int64_t> shape,
                      llvm::ArrayRef<llvm::SmallVector<int64_t, 2>> groups);
};

} // namespace weft

#endif // WEFT_LIB_PIPELINE_IMPORT_VIEW_H
