//===- Counterparts.h - pairs the ops of two programs of one model --------===//
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

/// Returns true if an op changes only the sharding of a value: a reshard, a collective, a slice or
/// a partial sum.
bool isMovement(mlir::Operation *op);

/// Returns true if an op only changes the element type.
bool isCast(mlir::Operation *op);

/// Returns true if an op only adds or cuts off the padding of a variable.
bool isResize(mlir::Operation *op);

/// Returns the value from which ops that only move, round or resize it made `value`.
mlir::Value originOf(mlir::Value value);

/// Returns true if an op is a mask of padding, or an iota that only masks use.
bool isOfMask(mlir::Operation *op);

/// Returns the name of a place in the model; empty if it has none.
llvm::StringRef placeOf(mlir::Location loc);

/// Returns the place and the kind of an op: "layers.0/mlp.down (contract)".
std::string describe(mlir::Operation *op);

/// Translates numbers of layers between the large and the small model.
class LayerNames {
public:
  /// Layer i of the small model stands for layer `layers[i]` of the large one.
  explicit LayerNames(const std::vector<int64_t> &layers);

  /// Returns a name of the large model with the layer's number in the small one: "layers.1.mlp" for
  /// "layers.7.mlp". None for a layer without counterpart.
  std::optional<std::string> toSmall(llvm::StringRef name) const;
  std::string toLarge(llvm::StringRef name) const;

private:
  std::optional<std::string> rename(llvm::StringRef name,
                                    const std::map<int64_t, int64_t> &numbers) const;
  std::map<int64_t, int64_t> small, large;
};

using Counterparts = llvm::DenseMap<mlir::Operation *, mlir::Operation *>;

/// Returns the counterpart in `ofLarge` of each op on tensors of the function `ofSmall`: by name,
/// place, what it computes, and its surroundings; in order among ops that all these do not
/// distinguish. Fails with a diagnostic if an op has none. Only ops of padding may have none: masks
/// depend on the precision, and resizes on which sizes the axes divide.
llvm::FailureOr<Counterparts> findCounterparts(mlir::func::FuncOp ofSmall,
                                               mlir::func::FuncOp ofLarge, const LayerNames &names);

} // namespace weft::verify

#endif // WEFT_LIB_VERIFY_COUNTERPARTS_H
