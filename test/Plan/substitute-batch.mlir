// RUN: weft-opt %s -substitute-batch="batch=3" | FileCheck %s
// RUN: not weft-opt %s -substitute-batch="batch=0" 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: substitute-batch: expected a batch of at least 1, got 0

// The batch becomes a number in every type, and no other size changes.

// CHECK:       weft.variable input @x ["batch", "hidden"] : tensor<3x4xf64>
// CHECK-LABEL: func.func private @layer(%{{.*}}: tensor<3x4xf64>) -> tensor<3xf64>
// CHECK:         weft.contract {{.*}} : (tensor<3x4xf64>) -> tensor<3xf64>
// CHECK-LABEL: func.func @step
// CHECK:         weft.read @x : tensor<3x4xf64>
// CHECK:         weft.call @layer({{.*}}) label "" : (tensor<3x4xf64>) -> tensor<3xf64>
weft.variable input @x ["batch", "hidden"] : tensor<?x4xf64>

func.func private @layer(%x: tensor<?x4xf64>) -> tensor<?xf64> {
  %0 = weft.contract "bh->b" (%x) : (tensor<?x4xf64>) -> tensor<?xf64>
  return %0 : tensor<?xf64>
}

func.func @step() {
  %0 = weft.read @x : tensor<?x4xf64>
  %1 = weft.call @layer(%0) label "" : (tensor<?x4xf64>) -> tensor<?xf64>
  return
}
