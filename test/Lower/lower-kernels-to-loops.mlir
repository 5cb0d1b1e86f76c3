// RUN: weft-opt %s -lower-kernels-to-loops -cse | FileCheck %s

// CHECK-LABEL: func private @square(
// CHECK-SAME: memref<0xi64> {llvm.noalias}, %{{[^:]*}}: index,
// CHECK-SAME: %[[X:[^:]*]]: memref<4xf32> {llvm.align = 64 : i64, llvm.noalias},
// CHECK-SAME: %[[Y:[^:]*]]: memref<4xf32> {llvm.align = 64 : i64, llvm.noalias})
// CHECK: scf.parallel (%[[I:[^)]*]]) =
// CHECK-NEXT: %[[A:.*]] = memref.load %[[X]][%[[I]]]
// CHECK-NEXT: %[[B:.*]] = arith.mulf %[[A]], %[[A]]
// CHECK-NEXT: memref.store %[[B]], %[[Y]][%[[I]]]
// CHECK: return
func.func private @square(%layer: index, %x: tensor<4xf32>) -> tensor<4xf32>
    attributes {weft.tied = array<i64: -1>} {
  %y = weft.map ins(%x : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%0: f32):
    %1 = arith.mulf %0, %0 : f32
    weft.yield %1 : f32
  }
  return %y : tensor<4xf32>
}

// The result is written over the argument that it is tied to.
// CHECK-LABEL: func private @in_place(
// CHECK-SAME: %[[X:[^:]*]]: memref<4xf32> {llvm.align = 64 : i64, llvm.noalias}) {
// CHECK: memref.store %{{.*}}, %[[X]]
func.func private @in_place(%x: tensor<4xf32>) -> tensor<4xf32>
    attributes {weft.tied = array<i64: 0>} {
  %y = weft.map ins(%x : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%0: f32):
    %1 = arith.mulf %0, %0 : f32
    weft.yield %1 : f32
  }
  return %y : tensor<4xf32>
}

// Dimensions that all operands have are one loop; what depends on no loop is outside.
// CHECK-LABEL: func private @few_loops(
// CHECK: %[[D:.*]] = arith.addf
// CHECK: scf.parallel
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK: arith.mulf %{{.*}}, %[[D]]
func.func private @few_loops(%x: tensor<2x3x4x5xf32>, %b: tensor<4x5xf32>, %s: tensor<f32>)
    -> tensor<2x3x4x5xf32> attributes {weft.tied = array<i64: -1>} {
  %y = weft.map ins(%x, %b, %s : tensor<2x3x4x5xf32>, tensor<4x5xf32>, tensor<f32>)
      maps [affine_map<(i, j, k, l) -> (i, j, k, l)>, affine_map<(i, j, k, l) -> (k, l)>,
            affine_map<(i, j, k, l) -> ()>] -> tensor<2x3x4x5xf32> {
  ^bb0(%0: f32, %1: f32, %2: f32):
    %3 = arith.addf %0, %1 : f32
    %4 = arith.addf %2, %2 : f32
    %5 = arith.mulf %3, %4 : f32
    weft.yield %5 : f32
  }
  return %y : tensor<2x3x4x5xf32>
}

// A rank's place on the mesh is read from its coordinates, whose order is the mesh's.
// CHECK-LABEL: func private @place(
// CHECK-SAME: %[[C:[^:]*]]: memref<3xi64> {llvm.noalias}
// CHECK: %[[TWO:.*]] = arith.constant 2 : index
// CHECK: memref.load %[[C]][%[[TWO]]]
func.func private @place() -> tensor<8xi32> attributes {weft.tied = array<i64: -1>} {
  %c8 = arith.constant 8 : index
  %i = weft.axis_index "tp" of #weft.mesh<"pp"=2, "dp"=2, "tp"=4>
  %o = arith.muli %i, %c8 : index
  %y = weft.iota offset %o : tensor<8xi32>
  return %y : tensor<8xi32>
}

// A matmul works on a tile of the result in registers.
// CHECK-LABEL: func private @matmul(
// CHECK-COUNT-4: vector.fma
// CHECK-NOT: vector.fma
// CHECK: return
func.func private @matmul(%x: tensor<2x8x64xf64>, %w: tensor<64x32xf64>) -> tensor<2x8x32xf64>
    attributes {weft.tied = array<i64: -1>} {
  %y = weft.contract "bsk,kn->bsn" (%x, %w)
      : (tensor<2x8x64xf64>, tensor<64x32xf64>) -> tensor<2x8x32xf64>
  return %y : tensor<2x8x32xf64>
}

// Attention holds a tile of scores, however long sequences are.
// CHECK-LABEL: func private @attention(
// CHECK-NOT: memref<{{.*}}4096x4096
// CHECK: memref.alloca() {alignment = 64 : i64} : memref<64x64xf32>
// CHECK-NOT: memref<{{.*}}4096x4096
// CHECK: return
func.func private @attention(%q: tensor<1x4096x2x1x32xf32>, %k: tensor<1x4096x2x32xf32>,
    %v: tensor<1x4096x2x32xf32>) -> (tensor<1x4096x2x1x32xf32>, tensor<1x2x1x4096xf32>)
    attributes {weft.tied = array<i64: -1, -1>} {
  %o, %l = weft.attention (%q, %k, %v) scale = 0.125 dropout = 0.0
      : tensor<1x4096x2x1x32xf32>, tensor<1x4096x2x32xf32>, tensor<1x4096x2x32xf32>
      -> tensor<1x4096x2x1x32xf32>, tensor<1x2x1x4096xf32>
  return %o, %l : tensor<1x4096x2x1x32xf32>, tensor<1x2x1x4096xf32>
}

// The norm's gradient is rounded as it is stored, and the map adds it to the residual there. It has
// no memory of its own.
// CHECK-LABEL: func private @inlined_map(
// CHECK-SAME: memref<3x4xbf16> {{{[^}]*}}}, %{{[^:,]*}}: memref<4xf32> {{{[^}]*}}},
// CHECK-SAME: memref<3x4xbf16> {{{[^}]*}}}, %[[R:[^:,]*]]: memref<3x4xbf16>
// CHECK-NOT: memref.alloca
// CHECK: %[[DX:.*]] = arith.truncf
// CHECK: %[[OLD:.*]] = memref.load %[[R]]
// CHECK: %[[WIDE_OLD:.*]] = arith.extf %[[OLD]]
// CHECK: %[[WIDE:.*]] = arith.extf %[[DX]]
// CHECK: %[[SUM:.*]] = arith.addf %[[WIDE_OLD]], %[[WIDE]]
// CHECK: %[[NEW:.*]] = arith.truncf %[[SUM]]
// CHECK: memref.store %[[NEW]], %[[R]]
// CHECK: return
func.func private @inlined_map(%x: tensor<3x4xbf16>, %s: tensor<4xf32>, %g: tensor<3x4xbf16>,
    %r: tensor<3x4xbf16>) -> (tensor<3x4xbf16>, tensor<4xf32>)
    attributes {weft.tied = array<i64: 3, -1>} {
  %0, %1 = weft.norm_grad rms %x scale(%s : tensor<4xf32>) gradient(%g : tensor<3x4xbf16>)
      epsilon = 1.0e-5 : tensor<3x4xbf16> -> tensor<3x4xbf16>, tensor<4xf32>
  %2 = weft.map ins(%r, %0 : tensor<3x4xbf16>, tensor<3x4xbf16>)
      maps [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>] -> tensor<3x4xbf16> {
  ^bb0(%a: bf16, %b: bf16):
    %3 = arith.extf %a : bf16 to f32
    %4 = arith.extf %b : bf16 to f32
    %5 = arith.addf %3, %4 : f32
    %6 = arith.truncf %5 : f32 to bf16
    weft.yield %6 : bf16
  }
  return %2, %1 : tensor<3x4xbf16>, tensor<4xf32>
}
