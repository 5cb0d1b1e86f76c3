// RUN: weft-opt %s --split-input-file --fuse-epilogues | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>

module attributes {weft.target = "cuda"} {

// The example of the pass's description.
// CHECK-LABEL: @description(
// CHECK-SAME:    %[[X:[^:]*]]: {{[^,]*}}, %[[W:[^:]*]]: {{[^,]*}}, %[[B:[^:]*]]:
// CHECK-NEXT:    %[[Y:.*]] = weft.matmul "bk,nk->bn"(%[[X]], %[[W]]) bias %[[B]] : tensor<16xf32>
// CHECK-SAME:      : tensor<8x32xf32>, tensor<16x32xf32> -> tensor<8x16xf32>
// CHECK-NEXT:    return %[[Y]]
func.func @description(%x: tensor<8x32xf32>, %w: tensor<16x32xf32>, %b: tensor<16xf32>)
    -> tensor<8x16xf32> {
  %0 = weft.contract "bk,nk->bn"(%x, %w)
      : (tensor<8x32xf32>, tensor<16x32xf32>) -> tensor<8x16xf32>
  %1 = weft.map ins(%0, %b : tensor<8x16xf32>, tensor<16xf32>) maps [#id, #row]
      -> tensor<8x16xf32> {
  ^bb0(%a: f32, %c: f32):
    %2 = arith.addf %a, %c : f32
    weft.yield %2 : f32
  }
  return %1 : tensor<8x16xf32>
}

// What GELU is taken of is read by others. The bias is rounded as the result is.
// CHECK-LABEL: @gelu(
// CHECK-SAME:    %[[X:[^:]*]]: {{[^,]*}}, %[[W:[^:]*]]: {{[^,]*}}, %[[B:[^:]*]]:
// CHECK:         %[[C:.*]] = weft.map ins(%[[B]] : tensor<16xf32>)
// CHECK:           arith.truncf
// CHECK:         %[[Y:.*]], %[[K:.*]] = weft.matmul "bk,nk->bn"(%[[X]], %[[W]])
// CHECK-SAME:      bias %[[C]] : tensor<16xbf16> gelu
// CHECK-SAME:      -> tensor<8x16xbf16> keeps tensor<8x16xbf16>
// CHECK-NEXT:    return %[[Y]], %[[K]]
func.func @gelu(%x: tensor<8x32xbf16>, %w: tensor<16x32xbf16>, %b: tensor<16xf32>)
    -> (tensor<8x16xbf16>, tensor<8x16xbf16>) {
  %0 = weft.contract "bk,nk->bn"(%x, %w)
      : (tensor<8x32xbf16>, tensor<16x32xbf16>) -> tensor<8x16xf32>
  %1 = weft.map ins(%0, %b : tensor<8x16xf32>, tensor<16xf32>) maps [#id, #row]
      -> tensor<8x16xbf16> {
  ^bb0(%a: f32, %c: f32):
    %3 = arith.addf %a, %c : f32
    %4 = arith.truncf %3 : f32 to bf16
    weft.yield %4 : bf16
  }
  %2 = weft.map ins(%1 : tensor<8x16xbf16>) maps [#id] -> tensor<8x16xbf16> {
  ^bb0(%a: bf16):
    %c0 = arith.constant 4.471500e-02 : f32
    %c1 = arith.constant 0.797884583 : f32
    %c2 = arith.constant 1.000000e+00 : f32
    %c3 = arith.constant 5.000000e-01 : f32
    %3 = arith.extf %a : bf16 to f32
    %4 = arith.mulf %3, %3 : f32
    %5 = arith.mulf %4, %3 : f32
    %6 = arith.mulf %5, %c0 : f32
    %7 = arith.addf %3, %6 : f32
    %8 = arith.mulf %7, %c1 : f32
    %9 = math.tanh %8 : f32
    %10 = arith.addf %9, %c2 : f32
    %11 = arith.mulf %3, %c3 : f32
    %12 = arith.mulf %11, %10 : f32
    %13 = arith.truncf %12 : f32 to bf16
    weft.yield %13 : bf16
  }
  return %2, %1 : tensor<8x16xbf16>, tensor<8x16xbf16>
}

// CHECK-LABEL: @gelu_gradient(
// CHECK-SAME:    %[[G:[^:]*]]: {{[^,]*}}, %[[W:[^:]*]]: {{[^,]*}}, %[[P:[^:]*]]:
// CHECK-NEXT:    %[[Y:.*]] = weft.matmul "bn,nk->bk"(%[[G]], %[[W]]) gelu_gradient %[[P]]
// CHECK-NEXT:    return %[[Y]]
func.func @gelu_gradient(%g: tensor<8x16xf32>, %w: tensor<16x32xf32>, %p: tensor<8x32xf32>)
    -> tensor<8x32xf32> {
  %0 = weft.contract "bn,nk->bk"(%g, %w)
      : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
  %1 = weft.map ins(%p, %0 : tensor<8x32xf32>, tensor<8x32xf32>) maps [#id, #id]
      -> tensor<8x32xf32> {
  ^bb0(%x: f32, %d: f32):
    %c0 = arith.constant 4.471500e-02 : f32
    %c1 = arith.constant 0.797884583 : f32
    %c2 = arith.constant 1.000000e+00 : f32
    %c3 = arith.constant 5.000000e-01 : f32
    %c4 = arith.constant 3.000000e+00 : f32
    %2 = arith.mulf %x, %x : f32
    %3 = arith.mulf %2, %c0 : f32
    %4 = arith.addf %3, %c2 : f32
    %5 = arith.mulf %4, %x : f32
    %6 = arith.mulf %5, %c1 : f32
    %7 = math.tanh %6 : f32
    %8 = arith.addf %7, %c2 : f32
    %9 = arith.mulf %8, %c3 : f32
    %10 = arith.mulf %7, %7 : f32
    %11 = arith.subf %c2, %10 : f32
    %12 = arith.mulf %3, %c4 : f32
    %13 = arith.addf %12, %c2 : f32
    %14 = arith.mulf %13, %c1 : f32
    %15 = arith.mulf %14, %11 : f32
    %16 = arith.mulf %15, %x : f32
    %17 = arith.mulf %16, %c3 : f32
    %18 = arith.addf %9, %17 : f32
    %19 = arith.mulf %18, %d : f32
    weft.yield %19 : f32
  }
  return %1 : tensor<8x32xf32>
}

// Each adds what the one before it gives, the first what was there.
// CHECK-LABEL: @sum_of_matmuls(
// CHECK-SAME:    %[[X:[^:]*]]: {{[^,]*}}, %[[W:[^:]*]]: {{[^,]*}}, %[[R:[^:]*]]:
// CHECK-NEXT:    %[[P:.*]] = weft.matmul "bk,nk->bn"(%[[X]], %[[W]]) plus %[[R]]
// CHECK-NEXT:    %[[Q:.*]] = weft.matmul "bk,nk->bn"(%[[X]], %[[W]]) plus %[[P]]
// CHECK-NEXT:    return %[[Q]]
func.func @sum_of_matmuls(%x: tensor<8x3xf32>, %w: tensor<5x3xf32>, %r: tensor<8x5xf32>)
    -> tensor<8x5xf32> {
  %0 = weft.contract "bk,nk->bn"(%x, %w) : (tensor<8x3xf32>, tensor<5x3xf32>) -> tensor<8x5xf32>
  %1 = weft.contract "bk,nk->bn"(%x, %w) : (tensor<8x3xf32>, tensor<5x3xf32>) -> tensor<8x5xf32>
  %2 = weft.map ins(%1, %r, %0 : tensor<8x5xf32>, tensor<8x5xf32>, tensor<8x5xf32>)
      maps [#id, #id, #id] -> tensor<8x5xf32> {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %3 = arith.addf %a, %b : f32
    %4 = arith.addf %3, %c : f32
    weft.yield %4 : f32
  }
  return %2 : tensor<8x5xf32>
}

// The gradient of a bias, beside that of weights.
// CHECK-LABEL: @sums(
// CHECK-SAME:    %[[G:[^:]*]]: {{[^,]*}}, %[[X:[^:]*]]:
// CHECK-NEXT:    %[[W:.*]], %[[S:.*]] = weft.matmul "bn,bk->nk"(%[[G]], %[[X]])
// CHECK-SAME:      -> tensor<16x32xf32> sums tensor<16xf32>
// CHECK-NEXT:    return %[[S]], %[[W]]
func.func @sums(%g: tensor<8x16xbf16>, %x: tensor<8x32xbf16>)
    -> (tensor<16xf32>, tensor<16x32xf32>) {
  %0 = weft.contract "bn->n"(%g) : (tensor<8x16xbf16>) -> tensor<16xf32>
  %1 = weft.contract "bk,bn->nk"(%x, %g)
      : (tensor<8x32xbf16>, tensor<8x16xbf16>) -> tensor<16x32xf32>
  return %0, %1 : tensor<16xf32>, tensor<16x32xf32>
}

// A matmul stays where it is: what it would add is not there yet.
// CHECK-LABEL: @too_late(
// CHECK-NEXT:    weft.contract
// CHECK-NEXT:    weft.norm
// CHECK-NEXT:    weft.map
func.func @too_late(%x: tensor<8x32xf32>, %w: tensor<16x32xf32>, %s: tensor<16xf32>,
                    %y: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %0 = weft.contract "bk,nk->bn"(%x, %w)
      : (tensor<8x32xf32>, tensor<16x32xf32>) -> tensor<8x16xf32>
  %1 = weft.norm rms %y scale(%s : tensor<16xf32>) epsilon = 1.000000e-05
      : tensor<8x16xf32> -> tensor<8x16xf32>
  %2 = weft.map ins(%0, %1 : tensor<8x16xf32>, tensor<8x16xf32>) maps [#id, #id]
      -> tensor<8x16xf32> {
  ^bb0(%a: f32, %c: f32):
    %3 = arith.addf %a, %c : f32
    weft.yield %3 : f32
  }
  return %2 : tensor<8x16xf32>
}

// Others read the matmul, rows of 12 are no multiple of 8, and this is no GELU.
// CHECK-LABEL: @left(
// CHECK-NOT:     weft.matmul
func.func @left(%x: tensor<8x32xf32>, %w: tensor<16x32xf32>, %v: tensor<12x32xf32>,
                %b: tensor<16xf32>, %c: tensor<12xf32>)
    -> (tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x12xf32>, tensor<8x16xf32>) {
  %0 = weft.contract "bk,nk->bn"(%x, %w)
      : (tensor<8x32xf32>, tensor<16x32xf32>) -> tensor<8x16xf32>
  %1 = weft.map ins(%0, %b : tensor<8x16xf32>, tensor<16xf32>) maps [#id, #row]
      -> tensor<8x16xf32> {
  ^bb0(%p: f32, %q: f32):
    %6 = arith.addf %p, %q : f32
    weft.yield %6 : f32
  }
  %2 = weft.contract "bk,nk->bn"(%x, %v)
      : (tensor<8x32xf32>, tensor<12x32xf32>) -> tensor<8x12xf32>
  %3 = weft.map ins(%2, %c : tensor<8x12xf32>, tensor<12xf32>) maps [#id, #row]
      -> tensor<8x12xf32> {
  ^bb0(%p: f32, %q: f32):
    %6 = arith.addf %p, %q : f32
    weft.yield %6 : f32
  }
  %4 = weft.contract "bk,nk->bn"(%x, %w)
      : (tensor<8x32xf32>, tensor<16x32xf32>) -> tensor<8x16xf32>
  %5 = weft.map ins(%4 : tensor<8x16xf32>) maps [#id] -> tensor<8x16xf32> {
  ^bb0(%p: f32):
    %6 = math.tanh %p : f32
    weft.yield %6 : f32
  }
  return %0, %1, %3, %5
      : tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x12xf32>, tensor<8x16xf32>
}

}

// -----

// On the host nothing changes.
// CHECK-LABEL: @host(
// CHECK-NEXT:    weft.contract
// CHECK-NEXT:    weft.map
func.func @host(%x: tensor<8x32xf32>, %w: tensor<16x32xf32>, %b: tensor<16xf32>)
    -> tensor<8x16xf32> {
  %0 = weft.contract "bk,nk->bn"(%x, %w)
      : (tensor<8x32xf32>, tensor<16x32xf32>) -> tensor<8x16xf32>
  %1 = weft.map ins(%0, %b : tensor<8x16xf32>, tensor<16xf32>)
      maps [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>] -> tensor<8x16xf32> {
  ^bb0(%a: f32, %c: f32):
    %2 = arith.addf %a, %c : f32
    weft.yield %2 : f32
  }
  return %1 : tensor<8x16xf32>
}
