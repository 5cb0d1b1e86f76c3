//===- Passes.td - from local code to kernels and their launches ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_SCHEDULE_PASSES_TD
#define WEFT_SCHEDULE_PASSES_TD

include "mlir/Pass/PassBase.td"
include "weft/Pipeline/Schedule/StagePasses.td"
include "weft/Pipeline/Schedule/LaunchPasses.td"

def PlaceAgreementsPass : Pass<"place-agreements", "::mlir::func::FuncOp"> {
  let summary = "lets all ranks agree to go on before variables change";
  let description = [{
    Before: a section observes a loss or a norm, at which the run may end. After: ranks agree to go
    on after the last scalar that is observed. Variables keep their old values until then
    (`copy-assignments`), so that a step that ends the run has changed nothing.
    A section in which they agree already stays as it is.

    ```mlir
    func.func @step() {
      %0 = weft.call @forward() label "loss" : () -> tensor<f64>
      weft.observe "loss", %0 : tensor<f64>
      %1 = weft.call @backward() label "loss" : () -> tensor<4xf64>
      %2 = weft.call @norm(%1) label "optimizer" : (tensor<4xf64>) -> tensor<f64>
      weft.observe "gradient_norm", %2 : tensor<f64>
      %3 = weft.call @update(%1, %2) label "optimizer" …
      weft.assign @w, %3 : tensor<4xf64>
      return
    }
    ```

    becomes

    ```mlir
    func.func @step() {
      %0 = weft.call @forward() label "loss" : () -> tensor<f64>
      weft.observe "loss", %0 : tensor<f64>
      %1 = weft.call @backward() label "loss" : () -> tensor<4xf64>
      %2 = weft.call @norm(%1) label "optimizer" : (tensor<4xf64>) -> tensor<f64>
      weft.observe "gradient_norm", %2 : tensor<f64>
      weft.agree
      %3 = weft.call @update(%1, %2) label "optimizer" …
      weft.assign @w, %3 : tensor<4xf64>
      return
    }
    ```
  }];
}

def BucketCollectivesPass : Pass<"bucket-collectives", "::mlir::ModuleOp"> {
  let summary = "joins collectives where one takes less than several";
  let description = [{
    Before: tensors are local. Several all-reduces, reduce-scatters or all-gathers of one kind (the
    same axes, reduction and float type), none of which needs another's result, can become one
    collective of all their operands: elements are added in the same order of ranks. This pass joins
    them if that takes less time by the prediction for `machine`, including copies in and out, and
    if the machine's memory has room for the copies; large tensors therefore stay separate. A joined
    collective takes no more members once its operands and results take a tenth of the memory, so
    that what reads them can run beside the next. It stands in the place of its last member. The
    others must be able to wait for it: ops in between that use their results must read nothing else
    and be able to wait too, as a cast or the next collective. After: no other such collectives are
    left that are faster when joined. Without a machine the pass changes nothing.

    ```mlir
    %0 = weft.reduce_scatter sum %a dim 0 over ["dp"] of #mesh : tensor<8xf32> -> tensor<4xf32>
    %1 = weft.reduce_scatter sum %b dim 0 over ["dp"] of #mesh : tensor<4x3xf32> -> tensor<2x3xf32>
    ```

    becomes, for two ranks,

    ```mlir
    %2 = weft.reshape %a [[0, 1]] : tensor<8xf32> -> tensor<2x4xf32>
    %3 = weft.reshape %b [[0, 1]] : tensor<4x3xf32> -> tensor<12xf32>
    %4 = weft.reshape %3 [[0, 1]] : tensor<12xf32> -> tensor<2x6xf32>
    %5 = weft.concat %2, %4 dim 1 : tensor<2x4xf32>, tensor<2x6xf32> -> tensor<2x10xf32>
    %6 = weft.reduce_scatter sum %5 dim 0 over ["dp"] of #mesh : tensor<2x10xf32> -> tensor<1x10xf32>
    %7:2 = weft.split %6 dim 1 : tensor<1x10xf32> -> tensor<1x4xf32>, tensor<1x6xf32>
    %0 = weft.reshape %7#0 [[0, 1]] : tensor<1x4xf32> -> tensor<4xf32>
    %8 = weft.reshape %7#1 [[0, 1]] : tensor<1x6xf32> -> tensor<6xf32>
    %1 = weft.reshape %8 [[0, 1]] : tensor<6xf32> -> tensor<2x3xf32>
    ```
  }];
  let options = [
    Option<"machine", "machine", "std::string", "",
           "the machine, as the text of a machine.proto message">,
  ];
  let statistics = [
    Statistic<"buckets", "buckets", "joined collectives">,
    Statistic<"joined", "joined", "collectives that became part of a joined one">,
  ];
}

def PackCollectivesPass : Pass<"pack-collectives", "::mlir::ModuleOp"> {
  let summary = "makes the shards of collectives contiguous, for libraries that need that";
  let description = [{
    Before: tensors are local. An all-gather, a reduce-scatter or an all-to-all of floats along a
    dimension that is not the outermost has shards that are scattered in memory. A library such as
    NCCL moves contiguous memory only, so it needs a call for each part of a shard. This pass copies
    the parts into contiguous memory, before and after the collective, if by the prediction for
    `machine` the copies take less time than the further calls, each as long as a launch. After:
    collectives are along the outermost dimension, except those with few parts. Without a machine
    the pass changes nothing.

    ```mlir
    %0 = weft.all_gather %x dim 1 over ["dp"] of #mesh : tensor<256x8xf32> -> tensor<256x16xf32>
    ```

    becomes, for two ranks,

    ```mlir
    %1 = weft.reshape %x [[0, 1]] : tensor<256x8xf32> -> tensor<2048xf32>
    %2 = weft.reshape %1 [[0, 1]] : tensor<2048xf32> -> tensor<1x2048xf32>
    %3 = weft.all_gather %2 dim 0 over ["dp"] of #mesh : tensor<1x2048xf32> -> tensor<2x2048xf32>
    %4 = weft.reshape %3 [[0, 1]] : tensor<2x2048xf32> -> tensor<4096xf32>
    %5 = weft.reshape %4 [[0, 1, 2]] : tensor<4096xf32> -> tensor<2x256x8xf32>
    %6 = weft.contract "abc->bac"(%5) : (tensor<2x256x8xf32>) -> tensor<256x2x8xf32>
    %7 = weft.reshape %6 [[0, 1, 2]] : tensor<256x2x8xf32> -> tensor<4096xf32>
    %0 = weft.reshape %7 [[0, 1]] : tensor<4096xf32> -> tensor<256x16xf32>
    ```
  }];
  let options = [
    Option<"machine", "machine", "std::string", "",
           "the machine, as the text of a machine.proto message">,
  ];
  let statistics = [
    Statistic<"packed", "packed", "collectives whose shards became contiguous">,
  ];
}

def ConvolutionsToMatmulsPass : Pass<"convolutions-to-matmuls", "::mlir::func::FuncOp"> {
  let summary = "turns float32 convolutions into matmuls, for the library";
  let description = [{
    Before: tensors are local. A convolution of one group, or its derivative, in float32 becomes a
    matmul of its kernel and a matrix whose columns hold the inputs of one output each. If the
    window is one place and moves by one, the image is that matrix. After: only float64 convolutions
    and those of several groups are left, which become loops.

    ```mlir
    func.func private @f(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) -> tensor<2x4x6x6xf32> {
      %0 = weft.convolution %x by %w strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1]
          : tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32> -> tensor<2x4x6x6xf32>
      return %0 : tensor<2x4x6x6xf32>
    }
    ```

    becomes

    ```mlir
    func.func private @f(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) -> tensor<2x4x6x6xf32> {
      %0 = weft.unfold %x sizes [3, 3] strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1]
          : tensor<2x3x8x8xf32> -> tensor<2x27x36xf32>
      %1 = weft.reshape %w [[0], [1, 2, 3]] : tensor<4x3x3x3xf32> -> tensor<4x27xf32>
      %2 = weft.contract "ok,nkp->nop"(%1, %0)
          : (tensor<4x27xf32>, tensor<2x27x36xf32>) -> tensor<2x4x36xf32>
      %3 = weft.reshape %2 [[0], [1], [2, 3]] : tensor<2x4x36xf32> -> tensor<2x4x6x6xf32>
      return %3 : tensor<2x4x6x6xf32>
    }
    ```
  }];
  let statistics = [
    Statistic<"converted", "converted", "convolutions that became matmuls">,
  ];
}

def ContractionsToMapsPass : Pass<"contractions-to-maps", "::mlir::func::FuncOp"> {
  let summary = "turns contractions that sum nothing into maps";
  let description = [{
    Before: tensors are local. A contraction of two operands whose letters all occur in the result,
    and in each operand in the result's order, is elementwise. After: it is a map, which can be
    merged with others.

    ```mlir
    %0 = weft.contract "bc,c->bc"(%x, %s)
        : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
    ```

    becomes

    ```mlir
    %0 = weft.map ins(%x, %s : tensor<8x4xf32>, tensor<4xf32>)
        maps [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>] -> tensor<8x4xf32> {
    ^bb0(%a: f32, %b: f32):
      %1 = arith.mulf %a, %b : f32
      weft.yield %1 : f32
    }
    ```
  }];
  let statistics = [
    Statistic<"converted", "converted", "contractions that became maps">,
  ];
}

def ContractionsToSumsPass : Pass<"contractions-to-sums", "::mlir::func::FuncOp"> {
  let summary = "turns contractions into sums that can include the maps of their operands";
  let description = [{
    Before: tensors are local. A contraction becomes a `weft.map_sum` if no library's matmul
    computes it, if it sums along rows of memory, and if a map computes one of its operands, as in
    batch norm; that map can then become part of the sum. Two sums over the same space that read a
    common tensor become one, if the second does not need the first.

    ```mlir
    func.func private @f(%y: tensor<8x4x9xf32>, %g: tensor<8x4x9xf32>) -> tensor<4xf32> {
      %x = weft.map ins(%y : tensor<8x4x9xf32>) …
      %0 = weft.contract "ncp,ncp->c"(%x, %g)
          : (tensor<8x4x9xf32>, tensor<8x4x9xf32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    ```

    becomes

    ```mlir
    func.func private @f(%y: tensor<8x4x9xf32>, %g: tensor<8x4x9xf32>) -> tensor<4xf32> {
      %x = weft.map ins(%y : tensor<8x4x9xf32>) …
      %0 = weft.map_sum ins(%x, %g : tensor<8x4x9xf32>, tensor<8x4x9xf32>)
          maps [affine_map<(n, c, p) -> (n, c, p)>, affine_map<(n, c, p) -> (n, c, p)>]
          over [8, 4, 9] to [1] -> tensor<4xf32> {
      ^bb0(%a: f32, %b: f32):
        %1 = arith.mulf %a, %b : f32
        weft.yield %1 : f32
      }
      return %0 : tensor<4xf32>
    }
    ```
  }];
  let statistics = [
    Statistic<"converted", "converted", "contractions that became sums">,
    Statistic<"merged", "merged", "sums that became part of another">,
  ];
}

def NarrowResultsPass : Pass<"narrow-results", "::mlir::func::FuncOp"> {
  let summary = "lets matmuls and attention round their own results";
  let description = [{
    Before: tensors are local. A matmul of bf16 matrices has a float32 result where Import left the
    choice open, and so have the gradients of attention; a cast may follow that rounds it. After: if
    only the cast reads the result and a library does the matmul, the matmul rounds, also once and
    in the same way, so the float32 numbers never reach memory. If the module's `weft.target` is
    "cuda", the same holds for attention's gradients, if all three are rounded.

    ```mlir
    %1 = weft.contract "bk,nk->bn"(%x, %w)
        : (tensor<8x4xbf16>, tensor<6x4xbf16>) -> tensor<8x6xf32>
    %2 = weft.map ins(%1 : tensor<8x6xf32>) … { … arith.truncf … }
    ```

    becomes

    ```mlir
    %1 = weft.contract "bk,nk->bn"(%x, %w)
        : (tensor<8x4xbf16>, tensor<6x4xbf16>) -> tensor<8x6xbf16>
    ```
  }];
  let statistics = [
    Statistic<"narrowed", "narrowed", "ops that round their results">,
  ];
}

def EncodeMatmulsPass : Pass<"encode-matmuls", "::mlir::ModuleOp"> {
  let summary = "turns matmuls of quantized values into FP8 matmuls";
  let description = [{
    Before: tensors are local, and `narrow-results` has run. If the module's `weft.target` is
    "cuda", a matmul whose operands were both quantized, in this function or another, and only moved
    since then, becomes a matmul of their bytes with a factor for each operand; ops in front of it
    compute bytes and factors. Functions get further arguments and results for the scales of
    operands. In the bytes of both operands the summed dimension comes last, the only form that all
    devices support; operands may therefore be transposed, and sizes have to be multiples of 16. A
    warning for each reason counts the matmuls of quantized values that stay as they are, and stands
    at the first of them. No matmul changes if `machine` has no rate for F8. After: a quantized
    value is computed only if some op reads it in another form than its bytes. Without the target
    the pass changes nothing.

    ```mlir
    %x = weft.quantize e4m3 %a by %m : tensor<32x64xf32>, tensor<f32> -> tensor<32x64xbf16>
    %d = weft.quantize e5m2 %b by %n : tensor<32x16xf32>, tensor<f32> -> tensor<32x16xbf16>
    %0 = weft.contract "bn,bk->nk"(%d, %x)
        : (tensor<32x16xbf16>, tensor<32x64xbf16>) -> tensor<16x64xf32>
    ```

    becomes

    ```mlir
    %d, %e = weft.encode e5m2 %b by %n lead 1 : tensor<32x16xf32> -> turned tensor<16x32xf8E5M2>
    %x, %f = weft.encode e4m3 %a by %m lead 1 : tensor<32x64xf32> -> turned tensor<64x32xf8E4M3FN>
    %0 = weft.fp8_matmul "nb,kb->nk"(%d, %x) factors(%e, %f)
        : tensor<16x32xf8E5M2>, tensor<64x32xf8E4M3FN> -> tensor<16x64xf32>
    ```
  }];
  let options = [
    Option<"machine", "machine", "std::string", "",
           "the machine, as the text of a machine.proto message">,
  ];
  let statistics = [
    Statistic<"encoded", "encoded", "matmuls that became FP8 matmuls">,
  ];
}

def FuseMapsPass : Pass<"fuse-maps", "::mlir::func::FuncOp"> {
  let summary = "merges elementwise ops with their users";
  let description = [{
    Before: tensors are local. A map becomes part of another map or sum of the same block if that is
    its result's only reader, by one operand, and reads it at the point that it computes: the value
    between them never reaches memory, and nothing is computed twice. A map of few operations
    becomes part of all its readers, if these are maps and sums of maps and read no more memory
    together afterwards. A map without operands is a constant and becomes part of every map that
    reads it. Duplicate operands of a map become one, and unused ones are dropped. No map gets more
    than 512 operations for each element in this way: beside them a write and a reread are nothing,
    and a long chain of ops becomes kernels of bounded size. After: no other such pair is left.

    ```mlir
    func.func private @f(%x: tensor<8x4xf32>, %b: tensor<4xf32>) -> tensor<8x4xf32> {
      %0 = weft.map ins(%x, %b : tensor<8x4xf32>, tensor<4xf32>)
          maps [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>] -> tensor<8x4xf32> {
      ^bb0(%a: f32, %c: f32):
        %2 = arith.addf %a, %c : f32
        weft.yield %2 : f32
      }
      %1 = weft.map ins(%0 : tensor<8x4xf32>)
          maps [affine_map<(i, j) -> (i, j)>] -> tensor<8x4xf32> {
      ^bb0(%a: f32):
        %2 = math.exp %a : f32
        weft.yield %2 : f32
      }
      return %1 : tensor<8x4xf32>
    }
    ```

    becomes

    ```mlir
    func.func private @f(%x: tensor<8x4xf32>, %b: tensor<4xf32>) -> tensor<8x4xf32> {
      %0 = weft.map ins(%x, %b : tensor<8x4xf32>, tensor<4xf32>)
          maps [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>] -> tensor<8x4xf32> {
      ^bb0(%a: f32, %c: f32):
        %1 = arith.addf %a, %c : f32
        %2 = math.exp %1 : f32
        weft.yield %2 : f32
      }
      return %0 : tensor<8x4xf32>
    }
    ```
  }];
  let statistics = [
    Statistic<"fusedMaps", "fused", "maps that became part of another">,
  ];
}

def AccumulateInMatmulsPass : Pass<"accumulate-in-matmuls", "::mlir::ModuleOp"> {
  let summary = "moves sums over micro-batches to the matmuls whose results they add";
  let description = [{
    Before: tensors are local, and maps are merged. If the module's `weft.target` is "cuda": where
    all calls of a function are followed by an addition of an earlier value, by a map or by a
    function that only adds, to a result that one matmul, or one batch of matmuls, computes in a
    wide type, the function takes the earlier value as an argument and adds it itself. Where a
    matmul's result is the argument of a function that only adds, the call becomes a map. After:
    `fuse-epilogues` finds the additions. Without the target the pass changes nothing.

    ```mlir
    func.func private @grad(%x: tensor<8x32xf32>, %y: tensor<8x16xf32>) -> tensor<32x16xf32> {
      %0 = weft.contract "bk,bn->kn"(%x, %y)
          : (tensor<8x32xf32>, tensor<8x16xf32>) -> tensor<32x16xf32>
      return %0 : tensor<32x16xf32>
    }
    ...
    %1 = weft.call @grad(%a, %b) label "layer"
        : (tensor<8x32xf32>, tensor<8x16xf32>) -> tensor<32x16xf32>
    %2 = weft.call @add(%sum, %1) label "layer"
        : (tensor<32x16xf32>, tensor<32x16xf32>) -> tensor<32x16xf32>
    ```

    becomes

    ```mlir
    func.func private @grad(%x: tensor<8x32xf32>, %y: tensor<8x16xf32>, %before: tensor<32x16xf32>)
        -> tensor<32x16xf32> {
      %0 = weft.contract "bk,bn->kn"(%x, %y)
          : (tensor<8x32xf32>, tensor<8x16xf32>) -> tensor<32x16xf32>
      %1 = weft.map ins(%before, %0 : tensor<32x16xf32>, tensor<32x16xf32>)
          maps [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>] -> tensor<32x16xf32> {
      ^bb0(%s: f32, %p: f32):
        %2 = arith.addf %s, %p : f32
        weft.yield %2 : f32
      }
      return %1 : tensor<32x16xf32>
    }
    ...
    %2 = weft.call @grad(%a, %b, %sum) label "layer"
        : (tensor<8x32xf32>, tensor<8x16xf32>, tensor<32x16xf32>) -> tensor<32x16xf32>
    ```
  }];
  let statistics = [
    Statistic<"moved", "moved", "additions that went to a matmul">,
  ];
}

def FuseEpiloguesPass : Pass<"fuse-epilogues", "::mlir::func::FuncOp"> {
  let summary = "merges ops on the results of matmuls into the matmuls";
  let description = [{
    Before: tensors are local, and maps are merged. If the module's `weft.target` is "cuda", whose
    library supports epilogues, a matmul takes in the map that reads its result, if that map adds a
    bias (which is rounded to the result's type) or an existing tensor, applies the tanh form of
    GELU, or multiplies by GELU's derivative. The operand of GELU is kept where another op reads it.
    A sum of matmuls in a wide type becomes a chain of matmuls, each of which adds the result of the
    one before it. A matmul with float32 results can also sum an operand over the contracted
    dimension, as for the gradient of a bias. After: the results are the same, with fewer roundings.
    Without the target the pass changes nothing.

    ```mlir
    %0 = weft.contract "bk,nk->bn"(%x, %w)
        : (tensor<8x32xf32>, tensor<16x32xf32>) -> tensor<8x16xf32>
    %1 = weft.map ins(%0, %b : tensor<8x16xf32>, tensor<16xf32>)
        maps [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>] -> tensor<8x16xf32> {
    ^bb0(%a: f32, %c: f32):
      %2 = arith.addf %a, %c : f32
      weft.yield %2 : f32
    }
    ```

    becomes

    ```mlir
    %1 = weft.matmul "bk,nk->bn"(%x, %w) bias %b : tensor<16xf32>
        : tensor<8x32xf32>, tensor<16x32xf32> -> tensor<8x16xf32>
    ```
  }];
  let statistics = [
    Statistic<"fused", "fused", "maps that became part of a matmul">,
    Statistic<"added", "added", "matmuls that add their result to an earlier value">,
    Statistic<"summed", "summed", "sums that a matmul computes besides its own">,
  ];
}

def MergeMapsPass : Pass<"merge-maps", "::mlir::ModuleOp"> {
  let summary = "merges maps that read the same tensor";
  let description = [{
    Before: tensors are local, and maps are merged with their users. Two maps of one shape that read
    a common tensor, at the element that they compute, become one map with the results of both, which
    reads it once; as the backward pass of SwiGLU, which recomputes the activation and computes its
    derivatives of the same two tensors. The second map moves to the place of the first: its operands
    must be computed by then, and nothing in between reads them. Its results must not need more
    memory than those of its operands that end with it, since they live longer. After: no such pair
    is left; a map merges once.

    ```mlir
    %0 = weft.map ins(%x : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
    ^bb0(%a: f32):
      %2 = math.exp %a : f32
      weft.yield %2 : f32
    }
    %1 = weft.map ins(%x, %y : tensor<4xf32>, tensor<4xf32>)
        maps [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>] -> tensor<4xf32> {
    ^bb0(%a: f32, %b: f32):
      %2 = arith.mulf %a, %b : f32
      weft.yield %2 : f32
    }
    ```

    becomes

    ```mlir
    %0:2 = weft.map ins(%x, %y : tensor<4xf32>, tensor<4xf32>)
        maps [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>] -> tensor<4xf32>, tensor<4xf32> {
    ^bb0(%a: f32, %b: f32):
      %1 = math.exp %a : f32
      %2 = arith.mulf %a, %b : f32
      weft.yield %1, %2 : f32, f32
    }
    ```
  }];
  let statistics = [
    Statistic<"merged", "merged", "maps that became part of an earlier one">,
  ];
}

def CopyAssignmentsPass : Pass<"copy-assignments", "::mlir::ModuleOp"> {
  let summary = "copies assigned values that cannot be computed in their variable's place";
  let description = [{
    Before: a variable is assigned any value. The value should be computed right where the variable
    lies; `Placement.h` defines when that is possible. Where it is not, because the old value is
    still read afterwards, because the value is assigned twice, because it is another variable's old
    value, or because it is computed before ranks agree to go on, this pass inserts a map that copies
    the value at the end of the function, after all reads of old values. If another assignment
    overwrites an old value before then, another copy at
    the beginning saves it. After: every assigned value is computed in its variable's place.

    ```mlir
    func.func @step() {
      %0 = weft.read @a : tensor<4xf32>
      weft.assign @b, %0 : tensor<4xf32>
      return
    }
    ```

    becomes

    ```mlir
    func.func @step() {
      %0 = weft.read @a : tensor<4xf32>
      %1 = weft.map ins(%0 : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
      ^bb0(%x: f32):
        weft.yield %x : f32
      }
      weft.assign @b, %1 : tensor<4xf32>
      return
    }
    ```
  }];
  let statistics = [
    Statistic<"insertedCopies", "copies", "maps that copy a value">,
  ];
}

def VerifySchedulePass : Pass<"verify-schedule", "::mlir::ModuleOp"> {
  let summary = "checks the form of modules that Schedule guarantees to later phases";
  let description = [{
    Changes nothing. The module has a mesh, `@init` and `@step`, and perhaps `@evaluate`, all
    without arguments and results. These and the layer functions that they call (never themselves)
    hold only: reads, assignments (in `@init` and `@step`, each variable once), calls, launches of
    kernels, contractions that are matmuls, collectives, reshapes, observations (not in `@init`),
    returns and index constants. Kernel functions are those with `weft.tied`. All tensors are local,
    of static shape; index operands are constants or arguments.

    ```mlir
    func.func @step() {
      %0 = weft.read @x : tensor<4xf32>
      %1 = weft.norm rms %0 …          // error: is left, expected a kernel
      return
    }
    ```

    A module that passes is unchanged:

    ```mlir
    func.func @step() {
      %0 = weft.read @x : tensor<4xf32>
      %1 = weft.launch @kernel_norm_0(%0) tied [-1] : (tensor<4xf32>) -> tensor<4xf32>
      return
    }
    ```
  }];
}

#endif // WEFT_SCHEDULE_PASSES_TD
