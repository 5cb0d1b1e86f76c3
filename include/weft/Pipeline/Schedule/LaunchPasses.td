//===- LaunchPasses.td - kernels and their launches -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_SCHEDULE_LAUNCH_PASSES_TD
#define WEFT_SCHEDULE_LAUNCH_PASSES_TD

include "mlir/Pass/PassBase.td"

def OutlineKernelsPass : Pass<"outline-kernels", "::mlir::ModuleOp"> {
  let summary = "turns every op that the compiler generates code for into a kernel function";
  let description = [{
    Before: the result of `copy-assignments`. Every op that computes, except contractions that a
    library's matmul does, becomes a launch of a function of its own; ops that are equal apart from
    their operands share one. Arithmetic on mesh coordinates moves into the kernel. Numbers that are
    constants, or arguments of the enclosing function (the layer's number), become operands of type
    `index`, which come first; so do the bits of an initial value's deviation. An op that computes a
    variable's new value from its old one, or that is the last reader of a value, works in place if
    it is a map or its lowering allows that: its result is then tied to the operand. After: the
    module has the form that `verify-schedule` checks.

    ```mlir
    func.func private @layer(%n: index, %x: tensor<8x16xf32>, %seed: tensor<i64>,
                             %step: tensor<i64>) -> tensor<8x16xf32> {
      %0 = weft.axis_index "dp" of #weft.mesh<"dp" = 2>
      %c8 = arith.constant 8 : index
      %1 = arith.muli %0, %c8 : index
      %c0 = arith.constant 0 : index
      %2 = weft.dropout %x rate = 0.5 site = 1
          key(%seed, %step, %n : tensor<i64>, tensor<i64>) offsets(%1, %c0)
          of [16, 16] : tensor<8x16xf32> -> tensor<8x16xf32>
      return %2 : tensor<8x16xf32>
    }
    ```

    becomes

    ```mlir
    func.func private @layer(%n: index, %x: tensor<8x16xf32>, %seed: tensor<i64>,
                             %step: tensor<i64>) -> tensor<8x16xf32> {
      %c0 = arith.constant 0 : index
      %0 = weft.launch @kernel_dropout_0(%n, %c0, %x, %seed, %step) tied [-1] : …
      return %0 : tensor<8x16xf32>
    }
    func.func private @kernel_dropout_0(%n: index, %o: index, %x: tensor<8x16xf32>,
        %seed: tensor<i64>, %step: tensor<i64>) -> tensor<8x16xf32>
        attributes {weft.tied = array<i64: -1>} {
      %0 = weft.axis_index "dp" of #weft.mesh<"dp" = 2>
      %c8 = arith.constant 8 : index
      %1 = arith.muli %0, %c8 : index
      %2 = weft.dropout %x … offsets(%1, %o) …
      return %2 : tensor<8x16xf32>
    }
    ```
  }];
  let statistics = [
    Statistic<"createdKernels", "kernels", "distinct kernels">,
    Statistic<"createdLaunches", "launches", "ops that became launches">,
  ];
}

def FuseLaunchesPass : Pass<"fuse-launches", "::mlir::ModuleOp"> {
  let summary = "lets other kernels compute maps of their operands and results";
  let description = [{
    Before: the result of `outline-kernels`. If the module's `weft.target` is "cuda": where a launch
    follows another and alone reads one of its results, and one of both is a map that the lowering
    of the other's op can compute elementwise, at its stores or its loads, both become one launch of
    a kernel that holds both ops. The value between them never reaches memory, and keeps its
    rounding. So the gradient of a norm adds the gradient of the residual, and sums gradients of the
    norm's result. After: no such pair is left. Without the target the pass changes nothing.

    ```mlir
    %0:2 = weft.launch @kernel_norm_grad_0(%x, %s, %g) tied [-1, -1] : (tensor<8x16xbf16>,
        tensor<16xf32>, tensor<8x16xbf16>) -> (tensor<8x16xbf16>, tensor<16xf32>)
    %1 = weft.launch @kernel_map_0(%r, %0#0) tied [0]
        : (tensor<8x16xbf16>, tensor<8x16xbf16>) -> tensor<8x16xbf16>
    ```

    becomes

    ```mlir
    %0:2 = weft.launch @kernel_fused_norm_grad_0(%x, %s, %g, %r) tied [-1, 3] : (tensor<8x16xbf16>,
        tensor<16xf32>, tensor<8x16xbf16>, tensor<8x16xbf16>) -> (tensor<16xf32>, tensor<8x16xbf16>)
    ...
    func.func private @kernel_fused_norm_grad_0(%x: tensor<8x16xbf16>, %s: tensor<16xf32>,
        %g: tensor<8x16xbf16>, %r: tensor<8x16xbf16>) -> (tensor<16xf32>, tensor<8x16xbf16>)
        attributes {weft.tied = array<i64: -1, 3>} {
      %0, %1 = weft.norm_grad rms %x …
      %2 = weft.map ins(%r, %0 : tensor<8x16xbf16>, tensor<8x16xbf16>) …
      return %1, %2 : tensor<16xf32>, tensor<8x16xbf16>
    }
    ```
  }];
  let statistics = [
    Statistic<"fused", "fused", "pairs of launches that became one">,
  ];
}

def JoinLaunchesPass : Pass<"join-launches", "::mlir::ModuleOp"> {
  let summary = "makes one launch of several that are alike";
  let description = [{
    Before: the result of `outline-kernels`. If the module's `weft.target` is "cuda", where each
    launch takes time: launches one after another whose kernels compute ops of one kind, none of
    which needs another, become one launch of a kernel with all their bodies; as the updates of a
    layer's parameters, the rotations of queries and keys, or the sums of a layer's gradients over
    micro-batches. Functions that only launch a kernel are inlined for that. A launch stays by
    itself if a result of its own could take the place of another's operand. After: `split-phases`
    lets these bodies run side by side. Without the target, and in `@init`, the pass changes
    nothing.

    ```mlir
    %0 = weft.launch @kernel_map_0(%w) tied [0] : (tensor<4xf32>) -> tensor<4xf32>
    %1 = weft.launch @kernel_map_1(%v) tied [0] : (tensor<8xf32>) -> tensor<8xf32>
    ```

    becomes

    ```mlir
    %0:2 = weft.launch @kernel_joined_map_0(%w, %v) tied [0, 1]
        : (tensor<4xf32>, tensor<8xf32>) -> (tensor<4xf32>, tensor<8xf32>)
    ...
    func.func private @kernel_joined_map_0(%w: tensor<4xf32>, %v: tensor<8xf32>)
        -> (tensor<4xf32>, tensor<8xf32>) attributes {weft.tied = array<i64: 0, 1>} {
      %0 = weft.map ins(%w : tensor<4xf32>) …
      %1 = weft.map ins(%v : tensor<8xf32>) …
      return %0, %1 : tensor<4xf32>, tensor<8xf32>
    }
    ```
  }];
  let statistics = [
    Statistic<"joinedLaunches", "joined", "launches made of several">,
    Statistic<"members", "members", "launches that became part of one">,
  ];
}

#endif // WEFT_SCHEDULE_LAUNCH_PASSES_TD
