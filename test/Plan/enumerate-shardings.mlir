// RUN: weft-opt %s -split-input-file -enumerate-shardings -verify-plan | FileCheck %s
// RUN: weft-opt %s -split-input-file -enumerate-shardings="only=weft.map" | FileCheck %s --check-prefix=ONLY
// RUN: weft-opt %s -split-input-file -enumerate-shardings="sample=2 seed=1" | grep -c observe | FileCheck %s --check-prefix=SAMPLE

// Two modules of one op, whole and in two ways.
// SAMPLE: 6

// The example of the pass's description, and pending operands of an additive op.

#mesh = #weft.mesh<"a"=2>
module attributes {weft.mesh = #mesh} {
  weft.variable parameter @x ["rows", "columns"] : tensor<4x6xf64, #weft.sharding<#mesh, [{}, {}]>>

  // CHECK-LABEL: func.func @step
  // CHECK:         %[[X:.*]] = weft.read @x
  // CHECK:         %[[Y:.*]] = weft.contract "bk->b"(%[[X]])
  // CHECK-NOT:     weft.observe
  // CHECK:         weft.observe "gradient/weft.contract 0 1 whole"
  // CHECK:         weft.observe "gradient/weft.contract 0 1 a:-"
  // CHECK:         %[[ROWS:.*]] = weft.reshard %[[X]] {{.*}} -> tensor<4x6xf64, {{.*}}[{"a"}, {}]>>
  // CHECK:         weft.contract "bk->b"(%[[ROWS]])
  // CHECK:         weft.observe "gradient/weft.contract 0 1 a:a"
  // CHECK:         %[[COLUMNS:.*]] = weft.reshard %[[X]] {{.*}} -> tensor<4x6xf64, {{.*}}[{}, {"a"}]>>
  // CHECK:         %[[PARTS:.*]] = weft.contract "bk->b"(%[[COLUMNS]])
  // CHECK:         weft.reshard %[[PARTS]] {{.*}}unreduced = sum{"a"}>> -> tensor<4xf64, {{.*}}[{}]>>
  // CHECK:         weft.observe "gradient/weft.contract 0 1 a:b"
  // CHECK:         weft.iota : tensor<2xi32, {{.*}}[{"a"}]>>
  // CHECK:         math.sin
  // CHECK:         %[[TERMS:.*]] = weft.contract "abc->bc"
  // CHECK:         %[[REST:.*]] = weft.reshard {{.*}} -> tensor<4x6xf64, {{.*}}unreduced = sum{"a"}>>
  // CHECK:         %[[SUM:.*]] = weft.map ins(%[[REST]], %[[TERMS]]
  // CHECK:         weft.contract "bk->b"(%[[SUM]])
  // CHECK:         weft.observe "gradient/weft.contract 0 1 a:pending#0"
  // ONLY-NOT:      weft.observe
  func.func @step() {
    %x = weft.read @x : tensor<4x6xf64>
    %y = weft.contract "bk->b"(%x) : (tensor<4x6xf64>) -> tensor<4xf64>
    return
  }
}

// -----

// Two axes on one dimension stand in both orders; equal ops count once.

#mesh = #weft.mesh<"a"=2, "b"=2>
#map = affine_map<(i) -> (i)>
module attributes {weft.mesh = #mesh} {
  weft.variable parameter @x ["rows"] : tensor<4xf64, #weft.sharding<#mesh, [{}]>>

  // ONLY-LABEL: func.func @step
  // ONLY:         weft.observe "gradient/weft.map 0 1 whole"
  // ONLY:         weft.observe "gradient/weft.map 0 1 a:a b:a"
  // ONLY:         weft.reshard {{.*}} -> tensor<4xf64, {{.*}}[{"b", "a"}]>>
  // ONLY:         weft.observe "gradient/weft.map 0 1 a:a b:a reversed"
  // ONLY-NOT:     "gradient/weft.map 0 2
  func.func @step() {
    %x = weft.read @x : tensor<4xf64>
    %y = weft.map ins(%x : tensor<4xf64>) maps [#map] -> tensor<4xf64> {
    ^bb0(%0: f64):
      %1 = math.exp %0 : f64
      weft.yield %1 : f64
    }
    %z = weft.map ins(%y : tensor<4xf64>) maps [#map] -> tensor<4xf64> {
    ^bb0(%0: f64):
      %1 = math.exp %0 : f64
      weft.yield %1 : f64
    }
    return
  }
}
