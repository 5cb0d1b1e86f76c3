// RUN: weft-opt %s -split-input-file -split-stages=layers=1,1 | FileCheck %s --enable-var-scope
// RUN: weft-opt %s -split-input-file -split-stages=stages=2 | FileCheck %s --enable-var-scope
// RUN: weft-opt %s -split-input-file -split-stages=layers=2 | FileCheck %s --check-prefix=ONE
// ONE-NOT: weft.stage

// The example of the pass's description.

weft.variable input @x ["micro_batch", "batch", "hidden"] : tensor<2x?x4xf64>

func.func private @layer(%x: tensor<?x4xf64>) -> tensor<?x4xf64> {
  return %x : tensor<?x4xf64>
}

// CHECK-LABEL: func.func private @step_forward_0(
// CHECK-SAME:    %[[NUMBER:.*]]: index) -> tensor<?x4xf64> attributes {weft.micro_batch, weft.stage = 0 : i64}
// CHECK-NEXT:    %[[ALL:.*]] = weft.read @x : tensor<2x?x4xf64>
// CHECK-NEXT:    %[[PART:.*]] = weft.select %[[ALL]][%[[NUMBER]]] : tensor<2x?x4xf64> -> tensor<?x4xf64>
// CHECK-NEXT:    %[[Y:.*]] = weft.call @layer(%[[PART]]) label "layers.0"
// CHECK-NEXT:    return %[[Y]]

// CHECK-LABEL: func.func private @step_forward_1(
// CHECK-SAME:    %{{.*}}: index, %[[SUM:.*]]: tensor<f64> {weft.may_pend}, %[[X:.*]]: tensor<?x4xf64>) -> (tensor<f64> {weft.may_pend})
// CHECK-SAME:    attributes {weft.micro_batch, weft.stage = 1 : i64}
// CHECK-NEXT:    %[[Y:.*]] = weft.call @layer(%[[X]]) label "layers.1"
// CHECK-NEXT:    %[[TERM:.*]] = weft.contract "bk->"(%[[Y]])
// CHECK-NEXT:    %[[NEXT:.*]] = weft.map ins(%[[SUM]], %[[TERM]]
// CHECK:         return %[[NEXT]]

// CHECK-NOT:   @step_micro_batch
// CHECK-LABEL: func.func @step()
// CHECK:         %[[ZERO:.*]] = weft.fill constant 0.0{{.*}} : tensor<f64>
// CHECK:         %[[A:.*]] = weft.call @step_forward_0(%c0) label "micro-batch 0" {weft.stage = 0 : i64}
// CHECK-NEXT:    %[[B:.*]] = weft.transfer %[[A]] from 0 to 1 : tensor<?x4xf64>
// CHECK-NEXT:    %[[C:.*]] = weft.call @step_forward_1(%c0, %[[ZERO]], %[[B]]) label "micro-batch 0" {weft.stage = 1 : i64}
// CHECK:         %[[D:.*]] = weft.call @step_forward_0(%c1) label "micro-batch 1" {weft.stage = 0 : i64}
// CHECK-NEXT:    %[[E:.*]] = weft.transfer %[[D]] from 0 to 1 : tensor<?x4xf64>
// CHECK-NEXT:    %[[F:.*]] = weft.call @step_forward_1(%c1, %[[C]], %[[E]]) label "micro-batch 1" {weft.stage = 1 : i64}
// CHECK-NEXT:    weft.observe "loss", %[[F]] {weft.stage = 1 : i64}

func.func private @step_micro_batch(%number: index, %sum: tensor<f64> {weft.may_pend}) -> (tensor<f64> {weft.may_pend})
    attributes {weft.micro_batch} {
  %0 = weft.read @x : tensor<2x?x4xf64>
  %1 = weft.select %0[%number] : tensor<2x?x4xf64> -> tensor<?x4xf64>
  %2 = weft.call @layer(%1) label "layers.0" : (tensor<?x4xf64>) -> tensor<?x4xf64>
  %3 = weft.call @layer(%2) label "layers.1" : (tensor<?x4xf64>) -> tensor<?x4xf64>
  %4 = weft.contract "bk->"(%3) : (tensor<?x4xf64>) -> tensor<f64>
  %5 = weft.map ins(%sum, %4 : tensor<f64>, tensor<f64>) maps [affine_map<() -> ()>, affine_map<() -> ()>] -> tensor<f64> {
  ^bb0(%a: f64, %b: f64):
    %c = arith.addf %a, %b : f64
    weft.yield %c : f64
  }
  return %5 : tensor<f64>
}
func.func @step() {
  %0 = weft.fill constant 0.0 : tensor<f64>
  %c0 = arith.constant 0 : index
  %1 = weft.call @step_micro_batch(%c0, %0) label "micro-batch 0" : (index, tensor<f64>) -> tensor<f64>
  %c1 = arith.constant 1 : index
  %2 = weft.call @step_micro_batch(%c1, %1) label "micro-batch 1" : (index, tensor<f64>) -> tensor<f64>
  weft.observe "loss", %2 : tensor<f64>
  return
}

// -----

// A step with backward and an optimizer. Each stage has its parameters and their sums, what forward keeps for
// backward, and copies of what is computed from inputs and constants.

// CHECK:       weft.variable input @x {{.*}}"hidden"] : tensor
// CHECK-NEXT:  weft.variable parameter @embed ["hidden"] {weft.stage = 0 : i64}
// CHECK-NEXT:  weft.variable parameter @layers.0 ["hidden"] {weft.stage = 0 : i64}
// CHECK-NEXT:  weft.variable parameter @layers.1 ["hidden"] {weft.stage = 1 : i64}
// CHECK-NEXT:  weft.variable parameter @head ["hidden"] {weft.stage = 1 : i64}
// CHECK-NEXT:  weft.variable optimizer @momentum ["hidden"] {weft.stage = 0 : i64}
// CHECK-NEXT:  weft.variable optimizer @steps [] {weft.stage = 1 : i64}

// CHECK-LABEL: func.func private @step_forward_0(
// CHECK:         %[[MASK:.*]] = weft.fill constant 2.0
// CHECK:         %[[H0:.*]] = weft.call @scale(%{{.*}}, %{{.*}}, %[[MASK]]) label "embed"
// CHECK:         %[[H1:.*]] = weft.call @scale(%[[H0]], %{{.*}}, %[[MASK]]) label "layers.0"
// CHECK-NEXT:    return %[[H1]], %[[H0]]

// CHECK-LABEL: func.func private @step_forward_1(
// CHECK-SAME:      %{{.*}}: index, %[[SUM:.*]]: tensor<4xf64>, %[[H1:.*]]: tensor<?x4xf64>)
// CHECK:         %[[MASK:.*]] = weft.fill constant 2.0
// CHECK:         %[[H2:.*]] = weft.call @scale(%[[H1]], %{{.*}}, %[[MASK]]) label "layers.1"
// CHECK:         %[[HEAD:.*]] = weft.read @head
// CHECK:         %[[Z:.*]] = weft.contract "bk,k->b"(%[[H2]], %[[HEAD]])
// CHECK:         %[[TERM:.*]] = weft.contract "b,bk->k"(%[[Z]], %[[H2]])
// CHECK:         %[[NEXT:.*]] = weft.call @next(%[[SUM]], %[[TERM]])
// CHECK:         %[[DH2:.*]] = weft.contract "b,k->bk"(%[[Z]], %[[HEAD]])
// CHECK-NEXT:    return %[[NEXT]], %[[DH2]]

// CHECK-LABEL: func.func private @step_backward_1(
// CHECK-SAME:      %{{.*}}: index, %[[SUM:.*]]: tensor<4xf64>, %[[H1:.*]]: tensor<?x4xf64>, %[[DH2:.*]]: tensor<?x4xf64>)
// CHECK:         %[[D:.*]]:2 = weft.call @scale_backward(%[[H1]], %{{.*}}, %[[DH2]]) label "layers.1 backward"
// CHECK:         %[[NEXT:.*]] = weft.call @next(%[[SUM]], %[[D]]#1)
// CHECK-NEXT:    return %[[NEXT]], %[[D]]#0

// CHECK-LABEL: func.func private @step_backward_0(
// CHECK-SAME:      %[[NUMBER:.*]]: index, %[[E_SUM:.*]]: tensor<4xf64>, %[[SUM:.*]]: tensor<4xf64>, %[[H0:.*]]: tensor<?x4xf64>, %[[DH1:.*]]: tensor<?x4xf64>)
// CHECK:         %[[D:.*]]:2 = weft.call @scale_backward(%[[H0]], %{{.*}}, %[[DH1]]) label "layers.0 backward"
// CHECK:         weft.call @next(%[[SUM]], %[[D]]#1)
// CHECK:         %[[ALL:.*]] = weft.read @x
// CHECK-NEXT:    %[[X:.*]] = weft.select %[[ALL]][%[[NUMBER]]]
// CHECK-NEXT:    weft.contract "bk,bk->k"(%[[X]], %[[D]]#0)

// Both stages assign the same constant.

// CHECK-LABEL: func.func @init()
// CHECK-NEXT:    %[[UNIT:.*]] = weft.fill constant 1.0{{.*}} : tensor<4xf64>
// CHECK-NEXT:    weft.assign @embed, %[[UNIT]] {weft.stage = 0 : i64}
// CHECK-NEXT:    weft.assign @layers.0, %[[UNIT]] {weft.stage = 0 : i64}
// CHECK-NEXT:    weft.assign @layers.1, %[[UNIT]] {weft.stage = 1 : i64}

// What reaches stage 1 for forward is there for backward. The norm of two stages is inlined, and the last
// stage adds it up. The momentum belongs to the gradients that it is of; what is of no stage to the last.
// An update lies where its variable is.

// CHECK-LABEL: func.func @step()
// CHECK:         %[[ZERO:.*]] = weft.fill constant 0.0
// CHECK:         %[[F0:.*]]:2 = weft.call @step_forward_0(%c0)
// CHECK-NEXT:    %[[H1:.*]] = weft.transfer %[[F0]]#0 from 0 to 1 : tensor<?x4xf64>
// CHECK-NEXT:    %[[F1:.*]]:2 = weft.call @step_forward_1(%c0, %[[ZERO]], %[[H1]])
// CHECK-NEXT:    %[[B1:.*]]:2 = weft.call @step_backward_1(%c0, %[[ZERO]], %[[H1]], %[[F1]]#1)
// CHECK-NEXT:    %[[DH1:.*]] = weft.transfer %[[B1]]#1 from 1 to 0 : tensor<?x4xf64>
// CHECK-NEXT:    %[[B0:.*]]:2 = weft.call @step_backward_0(%c0, %[[ZERO]], %[[ZERO]], %[[F0]]#1, %[[DH1]])
// CHECK:         weft.call @step_forward_0(%c1)
// CHECK:         %[[G1:.*]]:2 = weft.call @step_forward_1(%c1, %[[F1]]#0,
// CHECK:         weft.call @step_backward_1(%c1, %[[B1]]#0,
// CHECK:         %[[C0:.*]]:2 = weft.call @step_backward_0(%c1, %[[B0]]#0, %[[B0]]#1,
// CHECK-NEXT:    %[[A:.*]] = weft.contract "k,k->"(%[[C0]]#0, %[[C0]]#0) {weft.stage = 0 : i64}
// CHECK-NEXT:    %[[B:.*]] = weft.contract "k,k->"(%[[G1]]#0, %[[G1]]#0) {weft.stage = 1 : i64}
// CHECK-NEXT:    %[[OTHER:.*]] = weft.transfer %[[A]] from 0 to 1 : tensor<f64>
// CHECK-NEXT:    %[[NORM:.*]] = weft.map ins(%[[OTHER]], %[[B]]{{.*}} {weft.stage = 1 : i64}
// CHECK:         %[[M:.*]] = weft.read @momentum {weft.stage = 0 : i64}
// CHECK:         %[[MOVED:.*]] = weft.transfer %[[NORM]] from 1 to 0 : tensor<f64>
// CHECK-NEXT:    weft.call @update(%[[M]], %[[C0]]#1, %[[MOVED]]) label "layers.0 update" {weft.stage = 0 : i64}
// CHECK-NEXT:    weft.call @update(%{{.*}}, %{{.*}}, %[[MOVED]]) label "layers.0 update" {weft.stage = 0 : i64}
// CHECK-NEXT:    weft.call @update(%{{.*}}, %{{.*}}, %[[NORM]]) label "layers.1 update" {weft.stage = 1 : i64}
// CHECK:         %[[EMBED:.*]] = weft.read @embed
// CHECK-NEXT:    %[[G:.*]] = weft.transfer %[[G1]]#0 from 1 to 0 : tensor<4xf64>
// CHECK-NEXT:    %[[U:.*]] = weft.map ins(%[[EMBED]], %[[G]] {{.*}} {weft.stage = 0 : i64}
// CHECK:         weft.assign @embed, %[[U]] {weft.stage = 0 : i64}
// CHECK:         weft.observe "steps", %{{.*}} {weft.stage = 1 : i64}
// CHECK-NOT:     @square_norm

#id = affine_map<(b, k) -> (b, k)>
#row = affine_map<(b, k) -> (k)>
#k = affine_map<(k) -> (k)>
#none = affine_map<() -> ()>
#each = affine_map<(k) -> ()>

weft.variable input @x ["micro_batch", "batch", "hidden"] : tensor<2x?x4xf64>
weft.variable parameter @embed ["hidden"] : tensor<4xf64>
weft.variable parameter @layers.0 ["hidden"] : tensor<4xf64>
weft.variable parameter @layers.1 ["hidden"] : tensor<4xf64>
weft.variable parameter @head ["hidden"] : tensor<4xf64>
weft.variable optimizer @momentum ["hidden"] : tensor<4xf64>
weft.variable optimizer @steps [] : tensor<f64>

func.func private @scale(%x: tensor<?x4xf64>, %w: tensor<4xf64>, %mask: tensor<4xf64>) -> tensor<?x4xf64> {
  %0 = weft.map ins(%x, %w, %mask : tensor<?x4xf64>, tensor<4xf64>, tensor<4xf64>) maps [#id, #row, #row] -> tensor<?x4xf64> {
  ^bb0(%a: f64, %b: f64, %m: f64):
    %c = arith.mulf %a, %b : f64
    %d = arith.mulf %c, %m : f64
    weft.yield %d : f64
  }
  return %0 : tensor<?x4xf64>
}
func.func private @scale_backward(%x: tensor<?x4xf64>, %w: tensor<4xf64>, %dy: tensor<?x4xf64>) -> (tensor<?x4xf64>, tensor<4xf64>) {
  %0 = weft.map ins(%dy, %w : tensor<?x4xf64>, tensor<4xf64>) maps [#id, #row] -> tensor<?x4xf64> {
  ^bb0(%a: f64, %b: f64):
    %c = arith.mulf %a, %b : f64
    weft.yield %c : f64
  }
  %1 = weft.contract "bk,bk->k"(%x, %dy) : (tensor<?x4xf64>, tensor<?x4xf64>) -> tensor<4xf64>
  return %0, %1 : tensor<?x4xf64>, tensor<4xf64>
}
func.func private @next(%sum: tensor<4xf64>, %term: tensor<4xf64>) -> tensor<4xf64> {
  %0 = weft.map ins(%sum, %term : tensor<4xf64>, tensor<4xf64>) maps [#k, #k] -> tensor<4xf64> {
  ^bb0(%a: f64, %b: f64):
    %c = arith.addf %a, %b : f64
    weft.yield %c : f64
  }
  return %0 : tensor<4xf64>
}
func.func private @step_micro_batch(%number: index, %embed_sum: tensor<4xf64>, %sum_0: tensor<4xf64>, %sum_1: tensor<4xf64>, %head_sum: tensor<4xf64>)
    -> (tensor<4xf64>, tensor<4xf64>, tensor<4xf64>, tensor<4xf64>) attributes {weft.micro_batch} {
  %all = weft.read @x : tensor<2x?x4xf64>
  %x = weft.select %all[%number] : tensor<2x?x4xf64> -> tensor<?x4xf64>
  %embed = weft.read @embed : tensor<4xf64>
  %w0 = weft.read @layers.0 : tensor<4xf64>
  %w1 = weft.read @layers.1 : tensor<4xf64>
  %head = weft.read @head : tensor<4xf64>
  %mask = weft.fill constant 2.0 : tensor<4xf64>
  %h0 = weft.call @scale(%x, %embed, %mask) label "embed" : (tensor<?x4xf64>, tensor<4xf64>, tensor<4xf64>) -> tensor<?x4xf64>
  %h1 = weft.call @scale(%h0, %w0, %mask) label "layers.0" : (tensor<?x4xf64>, tensor<4xf64>, tensor<4xf64>) -> tensor<?x4xf64>
  %h2 = weft.call @scale(%h1, %w1, %mask) label "layers.1" : (tensor<?x4xf64>, tensor<4xf64>, tensor<4xf64>) -> tensor<?x4xf64>
  %z = weft.contract "bk,k->b"(%h2, %head) : (tensor<?x4xf64>, tensor<4xf64>) -> tensor<?xf64>
  %dhead = weft.contract "b,bk->k"(%z, %h2) : (tensor<?xf64>, tensor<?x4xf64>) -> tensor<4xf64>
  %head_next = weft.call @next(%head_sum, %dhead) label "" : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  %dh2 = weft.contract "b,k->bk"(%z, %head) : (tensor<?xf64>, tensor<4xf64>) -> tensor<?x4xf64>
  %dh1, %dw1 = weft.call @scale_backward(%h1, %w1, %dh2) label "layers.1 backward" : (tensor<?x4xf64>, tensor<4xf64>, tensor<?x4xf64>) -> (tensor<?x4xf64>, tensor<4xf64>)
  %next_1 = weft.call @next(%sum_1, %dw1) label "layers.1 backward" : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  %dh0, %dw0 = weft.call @scale_backward(%h0, %w0, %dh1) label "layers.0 backward" : (tensor<?x4xf64>, tensor<4xf64>, tensor<?x4xf64>) -> (tensor<?x4xf64>, tensor<4xf64>)
  %next_0 = weft.call @next(%sum_0, %dw0) label "layers.0 backward" : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  %dembed = weft.contract "bk,bk->k"(%x, %dh0) : (tensor<?x4xf64>, tensor<?x4xf64>) -> tensor<4xf64>
  %embed_next = weft.call @next(%embed_sum, %dembed) label "" : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  return %embed_next, %next_0, %next_1, %head_next : tensor<4xf64>, tensor<4xf64>, tensor<4xf64>, tensor<4xf64>
}
func.func private @square_norm(%a: tensor<4xf64>, %b: tensor<4xf64>) -> tensor<f64> {
  %0 = weft.contract "k,k->"(%a, %a) : (tensor<4xf64>, tensor<4xf64>) -> tensor<f64>
  %1 = weft.contract "k,k->"(%b, %b) : (tensor<4xf64>, tensor<4xf64>) -> tensor<f64>
  %2 = weft.map ins(%0, %1 : tensor<f64>, tensor<f64>) maps [#none, #none] -> tensor<f64> {
  ^bb0(%x: f64, %y: f64):
    %z = arith.addf %x, %y : f64
    weft.yield %z : f64
  }
  return %2 : tensor<f64>
}
func.func private @update(%w: tensor<4xf64>, %dw: tensor<4xf64>, %factor: tensor<f64>) -> tensor<4xf64> {
  %0 = weft.map ins(%w, %dw, %factor : tensor<4xf64>, tensor<4xf64>, tensor<f64>) maps [#k, #k, #each] -> tensor<4xf64> {
  ^bb0(%x: f64, %y: f64, %f: f64):
    %z = arith.mulf %y, %f : f64
    %u = arith.addf %x, %z : f64
    weft.yield %u : f64
  }
  return %0 : tensor<4xf64>
}
func.func @init() {
  %0 = weft.fill constant 1.0 : tensor<4xf64>
  weft.assign @embed, %0 : tensor<4xf64>
  weft.assign @layers.0, %0 : tensor<4xf64>
  weft.assign @layers.1, %0 : tensor<4xf64>
  weft.assign @head, %0 : tensor<4xf64>
  weft.assign @momentum, %0 : tensor<4xf64>
  %1 = weft.fill constant 0.0 : tensor<f64>
  weft.assign @steps, %1 : tensor<f64>
  return
}
func.func @step() {
  %0 = weft.fill constant 0.0 : tensor<4xf64>
  %c0 = arith.constant 0 : index
  %1:4 = weft.call @step_micro_batch(%c0, %0, %0, %0, %0) label "micro-batch 0"
      : (index, tensor<4xf64>, tensor<4xf64>, tensor<4xf64>, tensor<4xf64>) -> (tensor<4xf64>, tensor<4xf64>, tensor<4xf64>, tensor<4xf64>)
  %c1 = arith.constant 1 : index
  %2:4 = weft.call @step_micro_batch(%c1, %1#0, %1#1, %1#2, %1#3) label "micro-batch 1"
      : (index, tensor<4xf64>, tensor<4xf64>, tensor<4xf64>, tensor<4xf64>) -> (tensor<4xf64>, tensor<4xf64>, tensor<4xf64>, tensor<4xf64>)
  %norm = weft.call @square_norm(%2#0, %2#3) label "update" : (tensor<4xf64>, tensor<4xf64>) -> tensor<f64>
  %momentum = weft.read @momentum : tensor<4xf64>
  %w0 = weft.read @layers.0 : tensor<4xf64>
  %w1 = weft.read @layers.1 : tensor<4xf64>
  %m = weft.call @update(%momentum, %2#1, %norm) label "layers.0 update" : (tensor<4xf64>, tensor<4xf64>, tensor<f64>) -> tensor<4xf64>
  %3 = weft.call @update(%w0, %m, %norm) label "layers.0 update" : (tensor<4xf64>, tensor<4xf64>, tensor<f64>) -> tensor<4xf64>
  %4 = weft.call @update(%w1, %2#2, %norm) label "layers.1 update" : (tensor<4xf64>, tensor<4xf64>, tensor<f64>) -> tensor<4xf64>
  weft.assign @momentum, %m : tensor<4xf64>
  weft.assign @layers.0, %3 : tensor<4xf64>
  weft.assign @layers.1, %4 : tensor<4xf64>
  %embed = weft.read @embed : tensor<4xf64>
  %5 = weft.call @next(%embed, %2#3) label "update" : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  weft.assign @embed, %5 : tensor<4xf64>
  %steps = weft.read @steps : tensor<f64>
  weft.observe "steps", %steps : tensor<f64>
  return
}

// -----

// An embedding that is the head. It belongs to the stage of the embedding, and is transferred to the other, once for
// all micro-batches. Each stage adds up its own gradients; the sum of the other is transferred after the last one.

// CHECK:       weft.variable parameter @w ["hidden"] {weft.stage = 0 : i64}

// CHECK-LABEL: func.func private @step_forward_0(
// CHECK:         weft.read @w

// CHECK-LABEL: func.func private @step_forward_1(
// CHECK-SAME:      %{{.*}}: index, %[[SUM:.*]]: tensor<4xf64> {weft.may_pend}, %[[W:.*]]: tensor<4xf64>, %[[H1:.*]]: tensor<?x4xf64>)
// CHECK-SAME:      -> (tensor<4xf64> {weft.may_pend}, tensor<?x4xf64>)
// CHECK:         %[[H2:.*]] = weft.call @layer(%[[H1]]) label "layers.1"
// CHECK-NEXT:    %[[Z:.*]] = weft.contract "bk,k->b"(%[[H2]], %[[W]])
// CHECK-NEXT:    %[[TERM:.*]] = weft.contract "b,bk->k"(%[[Z]], %[[H2]])
// CHECK-NEXT:    %[[NEXT:.*]] = weft.map ins(%[[SUM]], %[[TERM]]
// CHECK:         %[[DH2:.*]] = weft.contract "b,k->bk"(%[[Z]], %[[W]])
// CHECK-NEXT:    return %[[NEXT]], %[[DH2]]

// CHECK-LABEL: func.func private @step_backward_1(

// CHECK-LABEL: func.func private @step_backward_0(
// CHECK-SAME:      %{{.*}}: index, %[[SUM:.*]]: tensor<4xf64> {weft.may_pend}, %{{.*}}: tensor<?x4xf64>)
// CHECK-SAME:      -> (tensor<4xf64> {weft.may_pend})
// CHECK:         %[[TERM:.*]] = weft.contract "b,bk->k"
// CHECK-NEXT:    %[[NEXT:.*]] = weft.map ins(%[[SUM]], %[[TERM]]
// CHECK-NOT:     weft.map
// CHECK:         return %[[NEXT]]

// CHECK-LABEL: func.func @step()
// CHECK:         %[[ZERO:.*]] = weft.fill constant 0.0
// CHECK:         %[[READ:.*]] = weft.read @w {weft.stage = 0 : i64}
// CHECK-NEXT:    weft.call @step_forward_0(%c0)
// CHECK:         %[[W:.*]] = weft.transfer %[[READ]] from 0 to 1 : tensor<4xf64>
// CHECK-NEXT:    %[[F1:.*]]:2 = weft.call @step_forward_1(%c0, %[[ZERO]], %[[W]],
// CHECK:         %[[B0:.*]] = weft.call @step_backward_0(%c0, %[[ZERO]],
// CHECK-NOT:     weft.transfer {{.*}} : tensor<4xf64>
// CHECK:         %[[G1:.*]]:2 = weft.call @step_forward_1(%c1, %[[F1]]#0, %[[W]],
// CHECK-NOT:     weft.transfer {{.*}} : tensor<4xf64>
// CHECK:         %[[C0:.*]] = weft.call @step_backward_0(%c1, %[[B0]],
// CHECK-NEXT:    %[[OTHER:.*]] = weft.transfer %[[G1]]#0 from 1 to 0 : tensor<4xf64>
// CHECK-NEXT:    %[[SUM:.*]] = weft.map ins(%[[C0]], %[[OTHER]] {{.*}} {weft.stage = 0 : i64}
// CHECK:         weft.observe "gradient/w", %[[SUM]] {weft.stage = 0 : i64}

#k = affine_map<(k) -> (k)>
weft.variable input @x ["micro_batch", "batch"] : tensor<2x?xf64>
weft.variable parameter @w ["hidden"] : tensor<4xf64>
func.func private @layer(%x: tensor<?x4xf64>) -> tensor<?x4xf64> {
  return %x : tensor<?x4xf64>
}
func.func private @step_micro_batch(%number: index, %sum: tensor<4xf64> {weft.may_pend}) -> (tensor<4xf64> {weft.may_pend})
    attributes {weft.micro_batch} {
  %all = weft.read @x : tensor<2x?xf64>
  %x = weft.select %all[%number] : tensor<2x?xf64> -> tensor<?xf64>
  %w = weft.read @w : tensor<4xf64>
  %h0 = weft.contract "b,k->bk"(%x, %w) : (tensor<?xf64>, tensor<4xf64>) -> tensor<?x4xf64>
  %h1 = weft.call @layer(%h0) label "layers.0" : (tensor<?x4xf64>) -> tensor<?x4xf64>
  %h2 = weft.call @layer(%h1) label "layers.1" : (tensor<?x4xf64>) -> tensor<?x4xf64>
  %z = weft.contract "bk,k->b"(%h2, %w) : (tensor<?x4xf64>, tensor<4xf64>) -> tensor<?xf64>
  %head = weft.contract "b,bk->k"(%z, %h2) : (tensor<?xf64>, tensor<?x4xf64>) -> tensor<4xf64>
  %dh2 = weft.contract "b,k->bk"(%z, %w) : (tensor<?xf64>, tensor<4xf64>) -> tensor<?x4xf64>
  %dh1 = weft.call @layer(%dh2) label "layers.1 backward" : (tensor<?x4xf64>) -> tensor<?x4xf64>
  %dh0 = weft.call @layer(%dh1) label "layers.0 backward" : (tensor<?x4xf64>) -> tensor<?x4xf64>
  %embed = weft.contract "b,bk->k"(%x, %dh0) : (tensor<?xf64>, tensor<?x4xf64>) -> tensor<4xf64>
  %term = weft.map ins(%embed, %head : tensor<4xf64>, tensor<4xf64>) maps [#k, #k] -> tensor<4xf64> {
  ^bb0(%a: f64, %b: f64):
    %c = arith.addf %a, %b : f64
    weft.yield %c : f64
  }
  %next = weft.map ins(%sum, %term : tensor<4xf64>, tensor<4xf64>) maps [#k, #k] -> tensor<4xf64> {
  ^bb0(%a: f64, %b: f64):
    %c = arith.addf %a, %b : f64
    weft.yield %c : f64
  }
  return %next : tensor<4xf64>
}
func.func @step() {
  %0 = weft.fill constant 0.0 : tensor<4xf64>
  %c0 = arith.constant 0 : index
  %1 = weft.call @step_micro_batch(%c0, %0) label "micro-batch 0" : (index, tensor<4xf64>) -> tensor<4xf64>
  %c1 = arith.constant 1 : index
  %2 = weft.call @step_micro_batch(%c1, %1) label "micro-batch 1" : (index, tensor<4xf64>) -> tensor<4xf64>
  weft.observe "gradient/w", %2 : tensor<4xf64>
  weft.assign @w, %2 : tensor<4xf64>
  return
}

// -----

// Two layers have one parameter. The other stage gets the narrow copy that all micro-batches read. Of three terms two
// belong to one stage, which adds them up; the sum of numbers stays in one stage.

// CHECK-LABEL: func.func private @step_forward_0(
// CHECK-SAME:      %{{.*}}: index, %[[SUM:.*]]: tensor<4xf32>, %[[W:.*]]: tensor<4xbf16>)
// CHECK:         %[[Y:.*]]:2 = weft.call @layer(%{{.*}}, %[[W]]) label "layers.0"
// CHECK-NEXT:    weft.map ins(%[[SUM]], %[[Y]]#1

// CHECK-LABEL: func.func private @step_forward_1(
// CHECK-SAME:      %{{.*}}: index, %[[LOSSES:.*]]: tensor<f32>, %[[SUM:.*]]: tensor<4xf32>, %[[W:.*]]: tensor<4xbf16>, %[[Y:.*]]: tensor<f32>)
// CHECK:         %[[Z:.*]]:2 = weft.call @layer(%[[Y]], %[[W]]) label "layers.1"
// CHECK-NEXT:    %[[V:.*]]:2 = weft.call @layer(%[[Z]]#0, %[[W]]) label "head"
// CHECK-NEXT:    %[[TERM:.*]] = weft.map ins(%[[Z]]#1, %[[V]]#1 : tensor<4xf32>, tensor<4xf32>)
// CHECK:         %[[NEXT:.*]] = weft.map ins(%[[SUM]], %[[TERM]]
// CHECK:         %[[LOSS:.*]] = weft.map ins(%[[Y]], %[[V]]#0
// CHECK:         weft.map ins(%[[LOSSES]], %[[LOSS]]

// CHECK-LABEL: func.func @step()
// CHECK:         %[[W:.*]] = weft.read @w {weft.stage = 0 : i64}
// CHECK-NEXT:    %[[NARROW:.*]] = weft.map ins(%[[W]] {{.*}} {weft.stage = 0 : i64}
// CHECK:         weft.call @step_forward_0(%c0, %{{.*}}, %[[NARROW]])
// CHECK:         %[[V:.*]] = weft.transfer %[[NARROW]] from 0 to 1 : tensor<4xbf16>
// CHECK:         weft.call @step_forward_1(%c0, %{{.*}}, %[[V]],
// CHECK-NOT:     weft.transfer {{.*}} : tensor<4xbf16>
// CHECK:         weft.call @step_forward_0(%c1, %{{.*}}, %[[NARROW]])
// CHECK:         weft.call @step_forward_1(%c1, %{{.*}}, %[[V]],

#k = affine_map<(k) -> (k)>
#none = affine_map<() -> ()>
weft.variable input @x ["micro_batch", "batch"] : tensor<2x?xf32>
weft.variable parameter @w ["hidden"] : tensor<4xf32>
func.func private @layer(%x: tensor<f32>, %w: tensor<4xbf16>) -> (tensor<f32>, tensor<4xf32>) {
  %0 = weft.map ins(%w, %x : tensor<4xbf16>, tensor<f32>) maps [#k, affine_map<(k) -> ()>] -> tensor<4xf32> {
  ^bb0(%a: bf16, %b: f32):
    weft.yield %b : f32
  }
  return %x, %0 : tensor<f32>, tensor<4xf32>
}
func.func private @step_micro_batch(%number: index, %losses: tensor<f32>, %sum: tensor<4xf32>, %w: tensor<4xbf16>)
    -> (tensor<f32>, tensor<4xf32>) attributes {weft.micro_batch} {
  %all = weft.read @x : tensor<2x?xf32>
  %samples = weft.select %all[%number] : tensor<2x?xf32> -> tensor<?xf32>
  %x = weft.contract "b->"(%samples) : (tensor<?xf32>) -> tensor<f32>
  %y, %dw0 = weft.call @layer(%x, %w) label "layers.0" : (tensor<f32>, tensor<4xbf16>) -> (tensor<f32>, tensor<4xf32>)
  %z, %dw1 = weft.call @layer(%y, %w) label "layers.1" : (tensor<f32>, tensor<4xbf16>) -> (tensor<f32>, tensor<4xf32>)
  %v, %dw2 = weft.call @layer(%z, %w) label "head" : (tensor<f32>, tensor<4xbf16>) -> (tensor<f32>, tensor<4xf32>)
  %dw = weft.map ins(%dw0, %dw1, %dw2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) maps [#k, #k, #k] -> tensor<4xf32> {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.addf %a, %b : f32
    %e = arith.addf %d, %c : f32
    weft.yield %e : f32
  }
  %next = weft.map ins(%sum, %dw : tensor<4xf32>, tensor<4xf32>) maps [#k, #k] -> tensor<4xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    weft.yield %c : f32
  }
  %loss = weft.map ins(%y, %v : tensor<f32>, tensor<f32>) maps [#none, #none] -> tensor<f32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    weft.yield %c : f32
  }
  %next_loss = weft.map ins(%losses, %loss : tensor<f32>, tensor<f32>) maps [#none, #none] -> tensor<f32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    weft.yield %c : f32
  }
  return %next_loss, %next : tensor<f32>, tensor<4xf32>
}
func.func @step() {
  %w = weft.read @w : tensor<4xf32>
  %narrow = weft.map ins(%w : tensor<4xf32>) maps [#k] -> tensor<4xbf16> {
  ^bb0(%a: f32):
    %b = arith.truncf %a : f32 to bf16
    weft.yield %b : bf16
  }
  %zero = weft.fill constant 0.0 : tensor<f32>
  %zeros = weft.fill constant 0.0 : tensor<4xf32>
  %c0 = arith.constant 0 : index
  %1:2 = weft.call @step_micro_batch(%c0, %zero, %zeros, %narrow) label "micro-batch 0"
      : (index, tensor<f32>, tensor<4xf32>, tensor<4xbf16>) -> (tensor<f32>, tensor<4xf32>)
  %c1 = arith.constant 1 : index
  %2:2 = weft.call @step_micro_batch(%c1, %1#0, %1#1, %narrow) label "micro-batch 1"
      : (index, tensor<f32>, tensor<4xf32>, tensor<4xbf16>) -> (tensor<f32>, tensor<4xf32>)
  weft.observe "loss", %2#0 : tensor<f32>
  weft.assign @w, %2#1 : tensor<4xf32>
  return
}
