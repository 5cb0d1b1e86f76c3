//===- Counterparts.h - which op of one program is which of another -------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_VERIFY_COUNTERPARTS_H
#define WEFT_LIB_VERIFY_COUNTERPARTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Operation.h"

#include "llvm/ADT/DenseMap.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace weft::verify {

/// Whether an op changes how a value lies, and not what it is: a reshard, a collective, a slice or
/// a partial sum.
bool isMovement(mlir::Operation *op);

/// Whether an op only changes the element type.
bool isCast(mlir::Operation *op);

/// What `value` is, past ops that only move or round it.
mlir::Value originOf(mlir::Value value);

/// Whether an op is a mask of padding, or there for nothing else.
bool isOfMask(mlir::Operation *op);

/// The name that a place in the model has; empty for none.
llvm::StringRef placeOf(mlir::Location loc);

/// The numbers of layers, from those of the large model to those of the small one.
class LayerNames {
public:
  /// Layer i of the small model stands for layer `layers[i]` of the large one.
  explicit LayerNames(const std::vector<int64_t> &layers);

  /// "layers.7.mlp" of the large model by the number in the small one: "layers.1.mlp". None for a
  /// layer that nothing stands for.
  std::optional<std::string> toSmall(llvm::StringRef name) const;
  std::string toLarge(llvm::StringRef name) const;

private:
  std::optional<std::string> rename(llvm::StringRef name,
                                    const std::map<int64_t, int64_t> &numbers) const;
  std::map<int64_t, int64_t> small, large;
};

using Counterparts = llvm::DenseMap<mlir::Operation *, mlir::Operation *>;

/// For each op on tensors of the function `ofSmall`, that of `ofLarge` it stands for, by name,
/// place and order. Fails with a diagnostic where there is none. A mask of padding may have none:
/// of values of another precision others are masked.
llvm::FailureOr<Counterparts> findCounterparts(mlir::func::FuncOp ofSmall,
                                               mlir::func::FuncOp ofLarge, const LayerNames &names);

} // namespace weft::verify

#endif // WEFT_LIB_VERIFY_COUNTERPARTS_H
