//===- MatmulForm.h - contractions as matmuls -----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The letters of an einsum of two tensors fall into four groups: those of both
// operands and the result (batch), of the first and the result (M), of the second
// and the result (N), of both operands only (K). It is a matmul for a
// library if in each tensor each group is contiguous and has the same order, so
// that the group can be seen as one dimension, and if the batch is not the
// dimension that varies fastest:
//
//   "bsk,grdk->bsgrd"    M = bs, N = grd, K = k       C = A Bᵀ
//   "bsk,bsgrd->grdk"    M = k, N = grd, K = bs       C = Bᵀ A: the result's rows are N
//   "bhqd,bhkd->bhqk"    batch = bh, M = q, N = k     as many matmuls as batch
//   "bqhd,bkhd->bhqk"    the same, rows of A and B lie h·d apart
//   "ik,jk->kij"         k is the batch and innermost: no matmul
//
// In float32 a batch may also be missing in one tensor, where it is outermost in the two others:
//
//   "ok,nkp->nop"        n matmuls with the same A
//   "nop,nkp->ok"        the sum of n matmuls
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_SCHEDULE_MATMULFORM_H
#define WEFT_PIPELINE_SCHEDULE_MATMULFORM_H

#include "weft-rt/Program.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <optional>

namespace mlir {
class Operation;
class Type;
} // namespace mlir

namespace weft {
class Fp8MatmulOp;
class ContractOp;
class MatmulOp;

/// Returns `type` in the runtime's terms. REQUIRES: an element type of a weft tensor.
rt::ElementType toElementType(mlir::Type type);

struct MatmulForm {
  /// The matmul's first operand is the contraction's second.
  bool isSwapped = false;
  rt::Matmul matmul;
};

/// Returns the matmul that computes an einsum of two row-major tensors, or nothing. `terms` are
/// those of the operands and of the result, one letter for each dimension; letters of size 1 do not
/// count. A matmul needs a K, and M or N; with a batch it needs both M and N, since matmuls of one
/// row gain nothing in a library.
std::optional<MatmulForm> classifyMatmul(llvm::ArrayRef<llvm::StringRef> terms,
                                         llvm::ArrayRef<int64_t> lhsShape,
                                         llvm::ArrayRef<int64_t> rhsShape, rt::ElementType type);

/// Returns true if the program that contains `op` is for devices, whose library has more matmuls.
bool isForDevices(mlir::Operation *op);

/// Returns the matmul that computes `op`, or nothing if `op` has one operand, if the library has no
/// matmul of its type (it has float32 and the narrow types, for devices also float64), or if the
/// einsum above is no matmul.
std::optional<MatmulForm> classifyMatmul(ContractOp op);

/// The same with an epilogue. A bias has n elements, and there is one matmul, not a batch.
std::optional<MatmulForm> classifyMatmul(MatmulOp op);

/// The same for an FP8 matmul, if all devices that have FP8 matmuls support it: see rt::Matmul.
std::optional<MatmulForm> classifyMatmul(Fp8MatmulOp op);

/// Returns the size in bytes of the workspace for a device's library: at most 32 MiB, which the
/// library's makers recommend for sm_90 and sm_100, and no more than the library could use if it
/// keeps a float32 C for each part of the sum over k, where no part is shorter than a tile.
uint64_t workspaceBytes(const rt::Matmul &matmul);

} // namespace weft

#endif // WEFT_PIPELINE_SCHEDULE_MATMULFORM_H
