//===- Orthogonalize.h - the orthogonal part of matrices, nearly -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Muon replaces a matrix with the singular value decomposition U S Vᵀ by U Vᵀ. Newton-Schulz
// iterations approximate U Vᵀ by matmuls alone: X ← aX + bXXᵀX + c(XXᵀ)²X moves every singular
// value between 0 and 1 towards 1. With the coefficients of Jordan et al. (Muon, 2024) five
// iterations move all but the smallest to between 0.7 and 1.2, which suffices for an optimizer.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_DIFFERENTIATE_ORTHOGONALIZE_H
#define WEFT_LIB_PIPELINE_DIFFERENTIATE_ORTHOGONALIZE_H

#include "weft/Dialect/Weft/IR/Weft.h"

namespace weft {

/// A tensor as a batch of matrices: its first dimensions number the matrices, the next ones are the
/// rows together, and the others the columns.
class MatrixView {
public:
  /// `matrix` is the attribute of this name of a variable.
  MatrixView(mlir::RankedTensorType type, mlir::ArrayRef<int64_t> matrix);

  int64_t getRows() const { return rows; }
  int64_t getColumns() const { return columns; }
  /// Letters of the dimensions that number matrices, of rows, and of columns.
  const std::string &getBatch() const { return batch; }
  const std::string &getRowDims() const { return rowDims; }
  const std::string &getColumnDims() const { return columnDims; }

private:
  int64_t rows = 1, columns = 1;
  std::string batch, rowDims, columnDims;
};

/// Divides each matrix of `tensor` by its norm, and builds `iterations` of Newton-Schulz for it.
/// All matmuls are contractions, so that plans may cut the tensor in any dimension.
mlir::Value createOrthogonal(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value tensor,
                             const MatrixView &view, int64_t iterations);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_DIFFERENTIATE_ORTHOGONALIZE_H
