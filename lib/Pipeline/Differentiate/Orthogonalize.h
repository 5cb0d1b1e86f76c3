//===- Orthogonalize.h - the orthogonal part of matrices, nearly -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Of a matrix with the singular value decomposition U S Vᵀ, Muon takes U Vᵀ. Newton-Schulz
// iterations come near it by matmuls alone: X ← aX + bXXᵀX + c(XXᵀ)²X moves every singular value
// between 0 and 1 towards 1. With the coefficients of Jordan et al. (Muon, 2024) five iterations
// bring all but the smallest to between 0.7 and 1.2, which is as near as an optimizer needs.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_DIFFERENTIATE_ORTHOGONALIZE_H
#define WEFT_LIB_PIPELINE_DIFFERENTIATE_ORTHOGONALIZE_H

#include "weft/Dialect/Weft/IR/Weft.h"

namespace weft {

/// A tensor seen as matrices: its first dimensions number them, the next are together the rows, the
/// others the columns.
class MatrixView {
public:
  /// `matrix` is that of a variable.
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

/// Builds `iterations` of Newton-Schulz for each matrix of `tensor`, after it has been divided by
/// its norm. All matmuls are contractions, so the tensor may be cut in any dimension.
mlir::Value createOrthogonal(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value tensor,
                             const MatrixView &view, int64_t iterations);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_DIFFERENTIATE_ORTHOGONALIZE_H
