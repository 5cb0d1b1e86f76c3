//===- AttributeNames.h - attributes that phases leave for later ones -----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DIALECT_WEFT_IR_ATTRIBUTENAMES_H
#define WEFT_DIALECT_WEFT_IR_ATTRIBUTENAMES_H

#include "llvm/ADT/StringRef.h"

namespace weft {

/// On an op in a backward function: it recomputes a value of the forward pass. Its operations do
/// not count as operations of the model. A string, the op's name in the forward pass: its function,
/// its place in the model, its kind, and its number among such ops.
inline constexpr llvm::StringLiteral kRecomputedAttrName = "weft.recomputed";

/// On the module before Differentiate: the names of all ops that backward recomputes, of those that
/// no entry of the plan names. Absent unless they are to be as in another module.
inline constexpr llvm::StringLiteral kRecomputesAttrName = "weft.recomputes";

/// On the module, from Differentiate on: the plan's `activation` entries, as texts. Absent if there
/// are none.
inline constexpr llvm::StringLiteral kActivationsAttrName = "weft.activations";

/// On the module, from Plan on: its mesh.
inline constexpr llvm::StringLiteral kMeshAttrName = "weft.mesh";

/// On the module in Schedule: the target of the program, a string, if it is not the host.
inline constexpr llvm::StringLiteral kTargetAttrName = "weft.target";

/// On the module, from Plan on, where layers of several kinds have functions of their own: for each
/// kind the first layers of its runs of layers, an array of i64.
inline constexpr llvm::StringLiteral kLayerBordersAttrName = "weft.layer_borders";

/// On a function that separate-layers made: the name of the function that it is a copy of.
inline constexpr llvm::StringLiteral kCopyOfAttrName = "weft.copy_of";

/// On a variable, until its sharding is chosen: for each dimension the axes that a plan cuts it by,
/// or unit if the plan leaves it open. Absent if the plan leaves all dimensions open.
inline constexpr llvm::StringLiteral kPinsAttrName = "weft.pins";

/// On an op that Plan added for padding: a pad or extract between a value and one with the padding
/// of a variable, a mask, or the numbers of the mask's elements. Unit.
inline constexpr llvm::StringLiteral kOfPaddingAttrName = "weft.of_padding";

/// Beside pins, if requested: for each dimension the source of its pin, a string, or unit.
inline constexpr llvm::StringLiteral kPinnedByAttrName = "weft.pinned_by";

/// On an op, a variable or an argument of a function, if requested: the reason for its sharding, a
/// string.
inline constexpr llvm::StringLiteral kWhyAttrName = "weft.why";

/// On an all-reduce: mutate-collective breaks this one instead of choosing one by number.
inline constexpr llvm::StringLiteral kMutatedAttrName = "weft.mutated";

/// On an argument or a result of a function, until its sharding is chosen: it is a term of a sum
/// that continues outside of the function, so it may be pending there.
inline constexpr llvm::StringLiteral kMayPendAttrName = "weft.may_pend";

/// On a function: it computes one micro-batch, whose number is its first argument. Unit.
inline constexpr llvm::StringLiteral kMicroBatchAttrName = "weft.micro_batch";

/// From order-stages on, on a function: it gathers the parameters of a chunk of a pipeline, or
/// reduces the sums of its gradients, for all micro-batches. Unit.
inline constexpr llvm::StringLiteral kGatherAttrName = "weft.gather";
inline constexpr llvm::StringLiteral kReduceAttrName = "weft.reduce";

/// From split-stages on, on a variable, a function of a micro-batch and an op of a root: the number
/// of the pipeline stage that holds or runs it. Inputs, and ops on inputs and constants alone, are
/// of every stage and have none; a transfer names both of its stages itself.
inline constexpr llvm::StringLiteral kStageAttrName = "weft.stage";

/// Beside `kStageAttrName` on a variable and on a function of a micro-batch, where stages have
/// several chunks: the number of the chunk, in the order of the model. None if it is the stage's.
inline constexpr llvm::StringLiteral kChunkAttrName = "weft.chunk";

/// On a module that take-stage made: the number of stages; `kStageAttrName` is that of its own.
inline constexpr llvm::StringLiteral kStagesAttrName = "weft.stages";

/// On a kernel function: for each result, the number of the argument whose storage it takes over,
/// or -1. A function with this attribute is a kernel.
inline constexpr llvm::StringLiteral kTiedAttrName = "weft.tied";

/// On a module that was imported from a graph: the number of logits of one token or image, which is
/// the size of the vocabulary or the number of classes.
inline constexpr llvm::StringLiteral kClassesAttrName = "weft.classes";

/// On a lowered kernel: the number of iterations of each phase, see `weft::rt::KernelCode`.
inline constexpr llvm::StringLiteral kIterationsAttrName = "weft.iterations";

/// On a kernel for devices, and before on its loops: for each phase, the number of threads that
/// share an iteration, or 0 if one thread runs it alone. Absent if that holds for all phases.
inline constexpr llvm::StringLiteral kThreadsAttrName = "weft.threads";

/// On loops of a kernel that write parts of one memref: no two of them write the same element.
inline constexpr llvm::StringLiteral kApartAttrName = "weft.apart";

/// Name of the module with the kernels for devices, inside of the module with the host's.
inline constexpr llvm::StringLiteral kDevicesName = "devices";

} // namespace weft

#endif // WEFT_DIALECT_WEFT_IR_ATTRIBUTENAMES_H
