// RUN: weft-opt %s -split-input-file -build-gradients | FileCheck %s

// The example of the pass's description: a parameter that an op reads twice.

weft.variable parameter @w ["hidden"] : tensor<4xf64>

// CHECK-LABEL: func.func @step() {
// CHECK-NEXT:    %[[W:.*]] = weft.read @w
// CHECK-NEXT:    %[[LOSS:.*]] = weft.contract "a,a->"(%[[W]], %[[W]])
// CHECK-NEXT:    weft.observe "loss", %[[LOSS]] : tensor<f64>
// CHECK-NEXT:    %[[SEED:.*]] = weft.map maps [] -> tensor<f64> {
// CHECK-NEXT:      %[[ONE:.*]] = arith.constant 1.000000e+00
// CHECK-NEXT:      weft.yield %[[ONE]]
// CHECK:         %[[LEFT:.*]] = weft.contract ",a->a"(%[[SEED]], %[[W]])
// CHECK-NEXT:    %[[RIGHT:.*]] = weft.contract ",a->a"(%[[SEED]], %[[W]])
// CHECK-NEXT:    %[[SUM:.*]] = weft.map ins(%[[LEFT]], %[[RIGHT]]
// CHECK:           arith.addf
// CHECK:         weft.observe "gradient/w", %[[SUM]] : tensor<4xf64>
// CHECK-NEXT:    return
// CHECK-NOT:   @loss
func.func @loss() -> tensor<f64> {
  %w = weft.read @w : tensor<4xf64>
  %0 = weft.contract "a,a->" (%w, %w) : (tensor<4xf64>, tensor<4xf64>) -> tensor<f64>
  return %0 : tensor<f64>
}

// -----

// Two reads of one parameter give one gradient.

weft.variable parameter @read_twice ["hidden"] : tensor<4xf64>

// CHECK-LABEL: func.func @step() {
// CHECK:         %[[LEFT:.*]] = weft.contract ",a->a"
// CHECK-NEXT:    %[[RIGHT:.*]] = weft.contract ",a->a"
// CHECK-NEXT:    %[[SUM:.*]] = weft.map ins(%[[LEFT]], %[[RIGHT]]
// CHECK:         weft.observe "gradient/read_twice", %[[SUM]]
// CHECK-NOT:     weft.observe
func.func @loss() -> tensor<f64> {
  %w = weft.read @read_twice : tensor<4xf64>
  %v = weft.read @read_twice : tensor<4xf64>
  %0 = weft.contract "a,a->" (%w, %v) : (tensor<4xf64>, tensor<4xf64>) -> tensor<f64>
  return %0 : tensor<f64>
}

// -----

// The gradient of a value with three uses is one map, whose order is that of the uses from the
// last to the first.

#id = affine_map<(i) -> (i)>
weft.variable parameter @several_uses ["hidden"] : tensor<4xf64>
weft.variable input @x ["batch"] : tensor<4xf64>

// CHECK-LABEL: func.func @step() {
// CHECK-DAG:     %[[W:.*]] = weft.read @several_uses
// CHECK-DAG:     %[[X:.*]] = weft.read @x
// CHECK:         weft.observe "loss"
// CHECK:         %[[THIRD:.*]] = weft.contract ",a->a"(%{{.*}}, %[[X]])
// CHECK-NEXT:    %[[SECOND:.*]] = weft.contract ",a->a"(%{{.*}}, %[[X]])
// CHECK-NEXT:    %[[FIRST:.*]] = weft.contract ",a->a"(%{{.*}}, %[[X]])
// CHECK-NEXT:    %[[SUM:.*]] = weft.map ins(%[[THIRD]], %[[SECOND]], %[[FIRST]] :
// CHECK:         weft.observe "gradient/several_uses", %[[SUM]]
// CHECK-NOT:     gradient/x
func.func @loss() -> tensor<f64> {
  %w = weft.read @several_uses : tensor<4xf64>
  %x = weft.read @x : tensor<4xf64>
  %0 = weft.contract "a,a->" (%w, %x) : (tensor<4xf64>, tensor<4xf64>) -> tensor<f64>
  %1 = weft.contract "a,a->" (%w, %x) : (tensor<4xf64>, tensor<4xf64>) -> tensor<f64>
  %2 = weft.contract "a,a->" (%w, %x) : (tensor<4xf64>, tensor<4xf64>) -> tensor<f64>
  %3 = weft.map ins(%0, %1, %2 : tensor<f64>, tensor<f64>, tensor<f64>)
      maps [affine_map<() -> ()>, affine_map<() -> ()>, affine_map<() -> ()>] -> tensor<f64> {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %d = arith.addf %a, %b : f64
    %e = arith.addf %d, %c : f64
    weft.yield %e : f64
  }
  return %3 : tensor<f64>
}

// -----

// A bias that a map spreads over rows: its gradient is the sum over them, and nothing of the map
// itself has to be computed.

weft.variable parameter @w ["batch", "hidden"] : tensor<2x4xf64>
weft.variable parameter @bias ["hidden"] : tensor<4xf64>

// CHECK-LABEL: func.func @step() {
// CHECK:         weft.observe "loss"
// CHECK:         %[[SPREAD:.*]] = weft.map ins(%{{.*}}, %{{.*}} : tensor<f64>, tensor<2x4xf64>) maps [#{{.*}}, #{{.*}}] -> tensor<2x4xf64>
// CHECK-NEXT:    ^bb0(%[[G:.*]]: f64, %{{.*}}: f64):
// CHECK-NEXT:      weft.yield %[[G]]
// CHECK:         %[[BIAS:.*]] = weft.contract "ab->b"(%[[SPREAD]]) : (tensor<2x4xf64>) -> tensor<4xf64>
// CHECK-NEXT:    weft.observe "gradient/w", %[[SPREAD]]
// CHECK-NEXT:    weft.observe "gradient/bias", %[[BIAS]]
func.func @loss() -> tensor<f64> {
  %w = weft.read @w : tensor<2x4xf64>
  %b = weft.read @bias : tensor<4xf64>
  %0 = weft.map ins(%w, %b : tensor<2x4xf64>, tensor<4xf64>)
      maps [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>] -> tensor<2x4xf64> {
  ^bb0(%x: f64, %y: f64):
    %s = arith.addf %x, %y : f64
    weft.yield %s : f64
  }
  %1 = weft.contract "ab->" (%0) : (tensor<2x4xf64>) -> tensor<f64>
  return %1 : tensor<f64>
}

// -----

// A parameter without dimensions, through a function: exp(w) * 1.

weft.variable parameter @no_dimensions [] : tensor<f64>

// CHECK-LABEL: func.func @step() {
// CHECK:         %[[W:.*]] = weft.read @no_dimensions
// CHECK:         weft.observe "loss"
// CHECK:         %[[G:.*]] = weft.map ins(%[[W]], %{{.*}} : tensor<f64>, tensor<f64>)
// CHECK-NEXT:    ^bb0(%[[X:.*]]: f64, %[[SEED:.*]]: f64):
// CHECK-NEXT:      %[[Y:.*]] = math.exp %[[X]]
// CHECK-NEXT:      %[[P:.*]] = arith.mulf %[[SEED]], %[[Y]]
// CHECK-NEXT:      weft.yield %[[P]]
// CHECK:         weft.observe "gradient/no_dimensions", %[[G]]
func.func @loss() -> tensor<f64> {
  %w = weft.read @no_dimensions : tensor<f64>
  %0 = weft.map ins(%w : tensor<f64>) maps [affine_map<() -> ()>] -> tensor<f64> {
  ^bb0(%x: f64):
    %y = math.exp %x : f64
    weft.yield %y : f64
  }
  return %0 : tensor<f64>
}

// -----

// A parameter that the loss does not depend on has no gradient, and its read goes.

weft.variable parameter @used ["hidden"] : tensor<4xf64>
weft.variable parameter @unused ["hidden"] : tensor<4xf64>

// CHECK-LABEL: func.func @step() {
// CHECK-NOT:     @unused
// CHECK:         weft.observe "gradient/used"
// CHECK-NOT:     weft.observe
func.func @loss() -> tensor<f64> {
  %w = weft.read @used : tensor<4xf64>
  %v = weft.read @unused : tensor<4xf64>
  %0 = weft.contract "a->" (%w) : (tensor<4xf64>) -> tensor<f64>
  return %0 : tensor<f64>
}

// -----

// A layer that is called twice: one forward and one backward function. Backward needs the
// argument w and the value of exp's operand, which forward returns besides; the layer's number and the
// intermediate tensors that no derivative reads are not saved.

weft.variable parameter @a ["hidden"] : tensor<4xf64>
weft.variable parameter @b ["hidden"] : tensor<4xf64>
weft.variable input @x ["batch"] : tensor<4xf64>

// CHECK-LABEL: func.func @step() {
// CHECK-DAG:     %[[A:.*]] = weft.read @a
// CHECK-DAG:     %[[B:.*]] = weft.read @b
// CHECK-DAG:     %[[X:.*]] = weft.read @x
// CHECK:         %[[FIRST:.*]]:2 = weft.call @layer_forward(%{{.*}}, %[[X]], %[[A]]) label "layers.0"
// CHECK:         %[[SECOND:.*]]:2 = weft.call @layer_forward(%{{.*}}, %[[FIRST]]#0, %[[B]]) label "layers.1"
// CHECK-NEXT:    %[[LOSS:.*]] = weft.contract "a->"(%[[SECOND]]#0)
// CHECK-NEXT:    weft.observe "loss", %[[LOSS]]
// CHECK:         %[[BACK:.*]]:2 = weft.call @layer_backward(%[[FIRST]]#0, %[[B]], %[[SECOND]]#1, %{{.*}}) label "layers.1 backward"
// CHECK-NEXT:    %[[FRONT:.*]]:2 = weft.call @layer_backward(%[[X]], %[[A]], %[[FIRST]]#1, %[[BACK]]#0) label "layers.0 backward"
// CHECK-NEXT:    weft.observe "gradient/a", %[[FRONT]]#1
// CHECK-NEXT:    weft.observe "gradient/b", %[[BACK]]#1
// CHECK-NEXT:    return

// CHECK-LABEL: func.func private @layer_forward(
// CHECK-SAME:      %{{.*}}: index, %{{.*}}: tensor<4xf64>, %{{.*}}: tensor<4xf64>) -> (tensor<4xf64>, tensor<4xf64>)
// CHECK:         %[[P:.*]] = weft.contract
// CHECK:         %[[E:.*]] = weft.map ins(%[[P]]
// CHECK:         %[[R:.*]] = weft.map ins(%[[E]]
// CHECK:         return %[[R]], %[[P]] : tensor<4xf64>, tensor<4xf64>

// CHECK-LABEL: func.func private @layer_backward(
// CHECK-SAME:      %[[X:.*]]: tensor<4xf64>, %[[W:.*]]: tensor<4xf64>, %[[P:.*]]: tensor<4xf64>, %[[G:.*]]: tensor<4xf64>) -> (tensor<4xf64>, tensor<4xf64>)
// CHECK:         math.exp
// CHECK-DAG:     %[[DX:.*]] = weft.contract "a,a->a"(%{{.*}}, %[[W]])
// CHECK-DAG:     %[[DW:.*]] = weft.contract "a,a->a"(%{{.*}}, %[[X]])
// CHECK:         return %[[DX]], %[[DW]]
// CHECK-NOT:   func.func
func.func @loss() -> tensor<f64> {
  %0 = weft.read @a : tensor<4xf64>
  %1 = weft.read @b : tensor<4xf64>
  %2 = weft.read @x : tensor<4xf64>
  %c0 = arith.constant 0 : index
  %3 = weft.call @layer(%c0, %2, %0) label "layers.0"
      : (index, tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  %c1 = arith.constant 1 : index
  %4 = weft.call @layer(%c1, %3, %1) label "layers.1"
      : (index, tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  %5 = weft.contract "a->" (%4) : (tensor<4xf64>) -> tensor<f64>
  return %5 : tensor<f64>
}
func.func private @layer(%n: index, %x: tensor<4xf64>, %w: tensor<4xf64>) -> tensor<4xf64> {
  %0 = weft.contract "a,a->a" (%x, %w) : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  %1 = weft.map ins(%0 : tensor<4xf64>) maps [affine_map<(i) -> (i)>] -> tensor<4xf64> {
  ^bb0(%a: f64):
    %b = math.exp %a : f64
    weft.yield %b : f64
  }
  %2 = weft.map ins(%1 : tensor<4xf64>) maps [affine_map<(i) -> (i)>] -> tensor<4xf64> {
  ^bb0(%a: f64):
    %b = arith.negf %a : f64
    weft.yield %b : f64
  }
  return %2 : tensor<4xf64>
}

// -----

// A layer of a layer, and a result that the loss does not depend on: its gradient is zero.

weft.variable parameter @nested ["hidden"] : tensor<4xf64>

// CHECK-LABEL: func.func @step() {
// CHECK:         %[[OUT:.*]]:{{.*}} = weft.call @outer_forward
// CHECK:         %[[ZERO:.*]] = weft.map ins(%[[OUT]]#1
// CHECK:           arith.constant 0.000000e+00
// CHECK:         weft.call @outer_backward({{.*}}%[[ZERO]]) label "outer backward"
// CHECK-LABEL: func.func private @outer_forward
// CHECK:         weft.call @inner_forward({{.*}}) label "inner"
// CHECK-LABEL: func.func private @outer_backward
// CHECK:         weft.call @inner_backward({{.*}}) label "inner backward"
// CHECK-LABEL: func.func private @inner_forward
// CHECK-LABEL: func.func private @inner_backward
func.func @loss() -> tensor<f64> {
  %0 = weft.read @nested : tensor<4xf64>
  %1:2 = weft.call @outer(%0) label "outer" : (tensor<4xf64>) -> (tensor<4xf64>, tensor<4xf64>)
  %2 = weft.contract "a->" (%1#0) : (tensor<4xf64>) -> tensor<f64>
  return %2 : tensor<f64>
}
func.func private @outer(%x: tensor<4xf64>) -> (tensor<4xf64>, tensor<4xf64>) {
  %0 = weft.call @inner(%x) label "inner" : (tensor<4xf64>) -> tensor<4xf64>
  return %0, %x : tensor<4xf64>, tensor<4xf64>
}
func.func private @inner(%x: tensor<4xf64>) -> tensor<4xf64> {
  %0 = weft.contract "a,a->a" (%x, %x) : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  return %0 : tensor<4xf64>
}

// -----

// What backward needs of later values is single numbers only, so it stands behind its forward, and the
// gradient of what all take is added up on the way.

#none = affine_map<() -> ()>
weft.variable parameter @table ["hidden"] : tensor<4xf64>
weft.variable input @first ["batch"] : tensor<4xf64>
weft.variable input @second ["batch"] : tensor<4xf64>

// CHECK-LABEL: func.func @step() {
// CHECK:         %[[W:.*]] = weft.read @table
// CHECK:         weft.call @part_forward(%{{.*}}, %{{.*}}, %[[W]]) label "part.0"
// CHECK:         %[[ONE:.*]] = weft.map maps [] -> tensor<f64>
// CHECK:         %[[FIRST:.*]]:2 = weft.call @part_backward(%{{.*}}) label "part.0 backward"
// CHECK:         weft.call @part_forward(%{{.*}}, %{{.*}}, %[[W]]) label "part.1"
// CHECK-NEXT:    %[[SECOND:.*]]:2 = weft.call @part_backward(%{{.*}}) label "part.1 backward"
// CHECK-NEXT:    %[[SUM:.*]] = weft.map ins(%[[FIRST]]#1, %[[SECOND]]#1
// CHECK:         weft.observe "loss"
// CHECK:         weft.observe "gradient/table", %[[SUM]]
func.func private @part(%number: index, %x: tensor<4xf64>, %w: tensor<4xf64>) -> tensor<f64> {
  %0 = weft.map ins(%x, %w : tensor<4xf64>, tensor<4xf64>)
      maps [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>] -> tensor<4xf64> {
  ^bb0(%a: f64, %b: f64):
    %c = arith.mulf %a, %b : f64
    %d = math.exp %c : f64
    weft.yield %d : f64
  }
  %1 = weft.contract "a->"(%0) : (tensor<4xf64>) -> tensor<f64>
  return %1 : tensor<f64>
}
func.func @loss() -> tensor<f64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %w = weft.read @table : tensor<4xf64>
  %x = weft.read @first : tensor<4xf64>
  %y = weft.read @second : tensor<4xf64>
  %0 = weft.call @part(%c0, %x, %w) label "part.0" : (index, tensor<4xf64>, tensor<4xf64>) -> tensor<f64>
  %1 = weft.call @part(%c1, %y, %w) label "part.1" : (index, tensor<4xf64>, tensor<4xf64>) -> tensor<f64>
  %2 = weft.map ins(%0, %1 : tensor<f64>, tensor<f64>) maps [#none, #none] -> tensor<f64> {
  ^bb0(%a: f64, %b: f64):
    %c = arith.addf %a, %b : f64
    weft.yield %c : f64
  }
  return %2 : tensor<f64>
}
