// RUN: weft-opt %s --split-input-file --join-launches | FileCheck %s
// RUN: weft-opt %s --split-input-file --join-launches --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefix=NAMES

// The example of the pass's description, with a variable in the place of each tensor, and a launch
// in between that shares nothing with them but is of another kind.
module attributes {weft.target = "cuda"} {
weft.variable parameter @w ["x"] : tensor<4xf32>
weft.variable parameter @v ["x"] : tensor<8xf32>
weft.variable parameter @u ["x"] : tensor<8xf32>
func.func @init() {
  return
}
// CHECK-LABEL: func.func @step
// CHECK-NEXT:    %[[W:.*]] = weft.read @w
// CHECK-NEXT:    %[[U:.*]] = weft.read @u
// CHECK-NEXT:    %[[S:.*]] = weft.launch @kernel_contract_0(%[[U]]) tied [-1]
// CHECK-NEXT:    %[[V:.*]] = weft.read @v
// CHECK-NEXT:    %[[NEW:.*]]:2 = weft.launch @kernel_joined_map_0(%[[W]], %[[V]]) tied [0, 1]
// CHECK-SAME:      : (tensor<4xf32>, tensor<8xf32>) -> (tensor<4xf32>, tensor<8xf32>)
// CHECK-NEXT:    weft.observe "sum", %[[S]]
// CHECK-NEXT:    weft.assign @w, %[[NEW]]#0
// CHECK-NEXT:    weft.assign @v, %[[NEW]]#1
func.func @step() {
  %w = weft.read @w : tensor<4xf32>
  %0 = weft.launch @kernel_map_0(%w) tied [0] : (tensor<4xf32>) -> tensor<4xf32>
  %u = weft.read @u : tensor<8xf32>
  %s = weft.launch @kernel_contract_0(%u) tied [-1] : (tensor<8xf32>) -> tensor<f32>
  %v = weft.read @v : tensor<8xf32>
  %1 = weft.launch @kernel_map_1(%v) tied [0] : (tensor<8xf32>) -> tensor<8xf32>
  weft.observe "sum", %s : tensor<f32>
  weft.assign @w, %0 : tensor<4xf32>
  weft.assign @v, %1 : tensor<8xf32>
  return
}
// CHECK-NOT:   @kernel_map_0
// CHECK-NOT:   @kernel_map_1
// CHECK-LABEL: func.func private @kernel_joined_map_0
// CHECK-SAME:    (%[[W:[^:]*]]: tensor<4xf32>, %[[V:[^:]*]]: tensor<8xf32>)
// CHECK-SAME:    weft.tied = array<i64: 0, 1>
// CHECK-NEXT:    %[[A:.*]] = weft.map ins(%[[W]]
// CHECK:           arith.addf
// CHECK:         %[[B:.*]] = weft.map ins(%[[V]]
// CHECK:           arith.mulf
// CHECK:         return %[[A]], %[[B]]
func.func private @kernel_map_0(%w: tensor<4xf32>) -> tensor<4xf32>
    attributes {weft.tied = array<i64: 0>} {
  %0 = weft.map ins(%w : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %1 = arith.addf %a, %a : f32
    weft.yield %1 : f32
  }
  return %0 : tensor<4xf32>
}
func.func private @kernel_map_1(%v: tensor<8xf32>) -> tensor<8xf32>
    attributes {weft.tied = array<i64: 0>} {
  %0 = weft.map ins(%v : tensor<8xf32>) maps [affine_map<(i) -> (i)>] -> tensor<8xf32> {
  ^bb0(%a: f32):
    %1 = arith.mulf %a, %a : f32
    weft.yield %1 : f32
  }
  return %0 : tensor<8xf32>
}
func.func private @kernel_contract_0(%u: tensor<8xf32>) -> tensor<f32>
    attributes {weft.tied = array<i64: -1>} {
  %0 = weft.contract "a->"(%u) : (tensor<8xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
}

// -----

// Functions that only launch a kernel are inlined, and layers share the joined kernel. Numbers of
// all members come first, then tensors; both members read the factor. The name of the launch has
// the labels of the calls.
module attributes {weft.target = "cuda"} {
weft.variable parameter @a ["x"] : tensor<4xf32>
weft.variable parameter @b ["x"] : tensor<4xf32>
weft.variable parameter @c ["x"] : tensor<4xf32>
weft.variable parameter @d ["x"] : tensor<4xf32>
weft.variable input @f [] : tensor<f32>
func.func @init() {
  return
}
// NAMES:         weft.launch @kernel_joined_map_0({{.*}} loc(fused<unit>["one/scale"])
// NAMES:         weft.launch @kernel_joined_map_0({{.*}} loc(fused<unit>["two/scale"])
// CHECK-NOT:     @scale
// CHECK-LABEL: func.func @step
// CHECK:         weft.launch @kernel_joined_map_0(%[[N:.*]], %[[M:.*]], %{{.*}}, %[[F:.*]], %{{.*}}) tied [2, 4]
// CHECK:         weft.launch @kernel_joined_map_0(%[[N]], %[[M]], %{{.*}}, %[[F]], %{{.*}}) tied [2, 4]
func.func @step() {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %a = weft.read @a : tensor<4xf32>
  %b = weft.read @b : tensor<4xf32>
  %c = weft.read @c : tensor<4xf32>
  %d = weft.read @d : tensor<4xf32>
  %f = weft.read @f : tensor<f32>
  %0 = weft.call @scale(%c1, %a, %f) label "one" : (index, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = weft.call @scale(%c2, %b, %f) label "one" : (index, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  weft.observe "a", %0 : tensor<4xf32>
  %2 = weft.call @scale(%c1, %c, %f) label "two" : (index, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %3 = weft.call @scale(%c2, %d, %f) label "two" : (index, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  weft.assign @a, %0 : tensor<4xf32>
  weft.assign @b, %1 : tensor<4xf32>
  weft.assign @c, %2 : tensor<4xf32>
  weft.assign @d, %3 : tensor<4xf32>
  return
}
func.func private @scale(%n: index, %x: tensor<4xf32>, %f: tensor<f32>) -> tensor<4xf32> {
  %0 = weft.launch @kernel_map_0(%n, %x, %f) tied [1]
      : (index, tensor<4xf32>, tensor<f32>) -> tensor<4xf32> loc("scale")
  return %0 : tensor<4xf32>
}
func.func private @kernel_map_0(%n: index, %x: tensor<4xf32>, %f: tensor<f32>) -> tensor<4xf32>
    attributes {weft.tied = array<i64: 1>} {
  %0 = weft.map ins(%x, %f : tensor<4xf32>, tensor<f32>)
      maps [affine_map<(i) -> (i)>, affine_map<(i) -> ()>] -> tensor<4xf32> {
  ^bb0(%a: f32, %b: f32):
    %1 = arith.mulf %a, %b : f32
    weft.yield %1 : f32
  }
  return %0 : tensor<4xf32>
}
}

// -----

// A launch that needs another, that overwrites what another reads, or whose result could take the
// place of another's operand, as that of a variable, stays by itself; so does one in @init.
module attributes {weft.target = "cuda"} {
weft.variable parameter @w ["x"] : tensor<8xf32>
weft.variable parameter @v ["x"] : tensor<8xf32>
// CHECK-LABEL: func.func @init
// CHECK-COUNT-2: weft.launch @kernel_fill_0
// CHECK-LABEL: func.func @step
// CHECK:         %[[W:.*]] = weft.read @w
// CHECK-NEXT:    %[[X:.*]] = weft.launch @kernel_map_0(%[[W]]) tied [-1]
// CHECK-NEXT:    %[[Y:.*]] = weft.launch @kernel_map_0(%[[X]]) tied [-1]
// CHECK-NEXT:    %[[Z:.*]] = weft.launch @kernel_map_0(%[[W]]) tied [-1]
// CHECK-NEXT:    weft.observe "y"
// CHECK-NEXT:    weft.observe "z"
// CHECK-NEXT:    weft.launch @kernel_map_0(%[[W]]) tied [-1]
// CHECK-NEXT:    weft.launch @kernel_map_1(%[[W]]) tied [0]
// CHECK:         %[[V:.*]] = weft.read @v
// CHECK:         weft.launch @kernel_map_0(%[[V]]) tied [-1]
// CHECK-NEXT:    weft.launch @kernel_map_0(%{{.*}}) tied [-1]
func.func @init() {
  %0 = weft.launch @kernel_fill_0() tied [-1] : () -> tensor<8xf32>
  %1 = weft.launch @kernel_fill_0() tied [-1] : () -> tensor<8xf32>
  weft.assign @w, %0 : tensor<8xf32>
  weft.assign @v, %1 : tensor<8xf32>
  return
}
func.func @step() {
  %w = weft.read @w : tensor<8xf32>
  %x = weft.launch @kernel_map_0(%w) tied [-1] : (tensor<8xf32>) -> tensor<8xf32>
  %y = weft.launch @kernel_map_0(%x) tied [-1] : (tensor<8xf32>) -> tensor<8xf32>
  %z = weft.launch @kernel_map_0(%w) tied [-1] : (tensor<8xf32>) -> tensor<8xf32>
  weft.observe "y", %y : tensor<8xf32>
  weft.observe "z", %z : tensor<8xf32>
  %u = weft.launch @kernel_map_0(%w) tied [-1] : (tensor<8xf32>) -> tensor<8xf32>
  %new = weft.launch @kernel_map_1(%w) tied [0] : (tensor<8xf32>) -> tensor<8xf32>
  weft.observe "u", %u : tensor<8xf32>
  %v = weft.read @v : tensor<8xf32>
  %old = weft.launch @kernel_map_0(%v) tied [-1] : (tensor<8xf32>) -> tensor<8xf32>
  %next = weft.launch @kernel_map_0(%u) tied [-1] : (tensor<8xf32>) -> tensor<8xf32>
  weft.observe "old", %old : tensor<8xf32>
  weft.assign @w, %new : tensor<8xf32>
  weft.assign @v, %next : tensor<8xf32>
  return
}
func.func private @kernel_fill_0() -> tensor<8xf32> attributes {weft.tied = array<i64: -1>} {
  %0 = weft.fill constant 1.0 : tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @kernel_map_0(%w: tensor<8xf32>) -> tensor<8xf32>
    attributes {weft.tied = array<i64: -1>} {
  %0 = weft.map ins(%w : tensor<8xf32>) maps [affine_map<(i) -> (i)>] -> tensor<8xf32> {
  ^bb0(%a: f32):
    %1 = arith.addf %a, %a : f32
    weft.yield %1 : f32
  }
  return %0 : tensor<8xf32>
}
func.func private @kernel_map_1(%w: tensor<8xf32>) -> tensor<8xf32>
    attributes {weft.tied = array<i64: 0>} {
  %0 = weft.map ins(%w : tensor<8xf32>) maps [affine_map<(i) -> (i)>] -> tensor<8xf32> {
  ^bb0(%a: f32):
    %1 = arith.addf %a, %a : f32
    weft.yield %1 : f32
  }
  return %0 : tensor<8xf32>
}
}

// -----

// Without the target nothing changes.
weft.variable parameter @w ["x"] : tensor<4xf32>
weft.variable parameter @v ["x"] : tensor<4xf32>
func.func @init() {
  return
}
// CHECK-LABEL: func.func @step
// CHECK-COUNT-2: weft.launch @kernel_map_0
func.func @step() {
  %w = weft.read @w : tensor<4xf32>
  %v = weft.read @v : tensor<4xf32>
  %0 = weft.launch @kernel_map_0(%w) tied [0] : (tensor<4xf32>) -> tensor<4xf32>
  %1 = weft.launch @kernel_map_0(%v) tied [0] : (tensor<4xf32>) -> tensor<4xf32>
  weft.assign @w, %0 : tensor<4xf32>
  weft.assign @v, %1 : tensor<4xf32>
  return
}
func.func private @kernel_map_0(%w: tensor<4xf32>) -> tensor<4xf32>
    attributes {weft.tied = array<i64: 0>} {
  %0 = weft.map ins(%w : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%a: f32):
    %1 = arith.addf %a, %a : f32
    weft.yield %1 : f32
  }
  return %0 : tensor<4xf32>
}
