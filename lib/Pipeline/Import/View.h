//===- View.h - tensors whose dimensions are arranged in thought ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Graphs of exporters reshape and transpose all the time: [batch, sequence,
// heads * head] is split, turned to [batch, heads, sequence, head], multiplied, and
// put together again. Contractions and maps need none of this, as they name
// dimensions. So a value of the graph is a View: a tensor of the dialect, and for
// each dimension that the graph sees the parts of which it is made, major to minor.
//
//   tensor [?, 16, 4, 8]   the graph sees [batch, 4, 16, 8]      parts [0] [2] [1] [3]
//                          after transposing back, and merging   parts [0] [1] [2 3]
//                          with a dimension of length 1          parts [0] [] [1] [2 3]
//                          spread three times over a new one     parts [0] [x3] [1] [2 3]
//
// Transposing and merging moves nothing, and even the batch can be merged with
// another dimension. Only where a dimension of the tensor is split, or an op needs
// its operand in one order, a weft.reshape or a contraction of one operand is made.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_IMPORT_VIEW_H
#define WEFT_LIB_PIPELINE_IMPORT_VIEW_H

#include "ModelBuilder.h"

#include <optional>

namespace weft {

/// A part of a dimension of a view.
struct Part {
  /// The dimension of the tensor; -1 where the elements are the same all along.
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
  /// Whether plans split the features of this value: it lies between two matmuls, of which the
  /// first has a weight split by its outputs and the second one by its inputs.
  bool isInner = false;

  int64_t rank() const { return static_cast<int64_t>(dims.size()); }
  /// Lengths of dimensions as onnx::Constant has them: the batch is a symbol.
  std::vector<double> lengths() const;
};

/// Makes views of views. Functions that can fail return nothing where dimensions do not go
/// together, and then have built nothing that counts.
class ViewBuilder {
public:
  explicit ViewBuilder(ModelBuilder &ops) : ops(ops) {}

  /// A tensor as it is.
  static View whole(mlir::Value tensor);
  static View transpose(const View &view, llvm::ArrayRef<int64_t> order);
  /// The view with dimensions of these lengths, which have the same product.
  std::optional<View> reshape(llvm::StringRef name, View view, llvm::ArrayRef<double> lengths);
  /// The view spread to these lengths by the rules of NumPy.
  static std::optional<View> expand(const View &view, llvm::ArrayRef<double> lengths);

  /// A tensor that has the view's dimensions as they are. Fails where the batch is merged with
  /// another dimension.
  std::optional<mlir::Value> materialize(llvm::StringRef name, View view);
  /// The same view of a tensor whose last dimension is that of the view.
  std::optional<View> packLast(llvm::StringRef name, View view);

  /// An elementwise function of views that are spread over one another.
  std::optional<View> map(llvm::StringRef name, llvm::ArrayRef<View> views, ScalarCode code);
  /// Sum of products. Dimensions with the same label are one; those missing in `result` are summed
  /// over. `b` may be null.
  std::optional<View> contract(llvm::StringRef name, const View &a, llvm::ArrayRef<int64_t> labelsA,
                               const View *b, llvm::ArrayRef<int64_t> labelsB,
                               llvm::ArrayRef<int64_t> result);

  /// Splits parts until dimension `i` of `a` and `j` of `b` have parts of equal lengths.
  bool align(llvm::StringRef name, View &a, int64_t i, View &b, int64_t j);

  ModelBuilder &ops;

private:
  void split(llvm::StringRef name, View &view, int64_t dim, size_t part, int64_t outer);
  /// Takes dimensions of length 1 that no part speaks of out of the tensor.
  void dropUnits(llvm::StringRef name, View &view);
  /// Turns the tensor so that its dimensions stand in the order of the parts.
  void sortAxes(llvm::StringRef name, View &view);
  void permute(llvm::StringRef name, View &view, llvm::ArrayRef<int64_t> order);
  /// The contraction of one tensor that only turns it, or leaves dimensions of length 1 out.
  mlir::Value reorder(llvm::StringRef name, llvm::StringRef equation, mlir::Value tensor);
  /// Gives spread parts an axis of their own. REQUIRES: axes are sorted.
  void fillSpread(llvm::StringRef name, View &view);
  mlir::Value regroup(llvm::StringRef name, mlir::Value tensor, llvm::ArrayRef<int64_t> shape,
                      llvm::ArrayRef<llvm::SmallVector<int64_t, 2>> groups);
};

} // namespace weft

#endif // WEFT_LIB_PIPELINE_IMPORT_VIEW_H
