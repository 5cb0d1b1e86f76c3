// RUN: weft-opt %s -apply-plan="plan={version: 1 mesh {axis {name: 'x' size: 2}} sharding {dimension: 'terms'} sharding {value: 'sum/map/2' dimension: 'terms' axes: 'x'} sharding {value: 'mul' dimension: 'terms1' axes: 'x'} sharding {value: 'sum/map/1' dimension: 'factor0' axes: 'x'}}" | FileCheck %s --check-prefix=PINS
// RUN: weft-opt %s -apply-plan="plan={version: 1 mesh {axis {name: 'x' size: 2}} sharding {dimension: 'terms'} sharding {value: 'sum/map/2' dimension: 'terms' axes: 'x'} sharding {value: 'mul' dimension: 'terms1' axes: 'x'} sharding {value: 'sum/map/1' dimension: 'factor0' axes: 'x'}}" -search-shardings | FileCheck %s --check-prefix=CHOSEN
// RUN: weft-opt %s -apply-plan="plan={version: 1 mesh {axis {name: 'x' size: 2}} sharding {value: 'mul' dimension: 'terms0' axes: 'x'} sharding {value: 'mul' dimension: 'hidden' axes: 'x'} sharding {value: 'square' dimension: 'terms0' axes: 'x'}}" -search-shardings | FileCheck %s --check-prefix=BOTH

// Ops have names of their own, factors numbers, and operands terms of pending sums.
weft.variable parameter @w ["hidden"] : tensor<4xf64>

// PINS-LABEL: func.func @step
// PINS: weft.map {{.*}} {weft.pins = {{\[}}["x"], {}]}
// PINS: weft.map {{.*}} {weft.pins = [unit, {all = ["x"]}]}
// PINS: weft.map {{.*}} {weft.pins = [unit, {"1" = ["x"]}]}
// PINS: weft.map {{.*}} {weft.pins = [unit, {}]}

// The first sum is cut, the second is one of terms, as is the matmul's second operand. What is not
// linear has no terms.
// CHOSEN-LABEL: func.func @step
// CHOSEN: weft.map ins(%{{.*}}, %{{.*}} : tensor<4xf64, #weft.sharding<#mesh, [{"x"}]>>
// CHOSEN: weft.map ins(%{{.*}}, %{{.*}} : tensor<4xf64, #weft.sharding<#mesh, [{}], unreduced = sum{"x"}>>, tensor<4xf64, #weft.sharding<#mesh, [{}], unreduced = sum{"x"}>>
// CHOSEN: weft.map ins(%{{.*}}, %{{.*}} : tensor<4xf64, #weft.sharding<#mesh, [{}]>>, tensor<4xf64, #weft.sharding<#mesh, [{}], unreduced = sum{"x"}>>
// CHOSEN: weft.map ins(%{{.*}} : tensor<4xf64, #weft.sharding<#mesh, [{{{.*}}}]>>)

// Where a plan wants two things of one axis, terms are what it gets; what an op cannot do is not wanted.
// BOTH-LABEL: func.func @step
// BOTH: weft.map ins(%{{.*}}, %{{.*}} : tensor<4xf64, #weft.sharding<#mesh, [{}], unreduced = sum{"x"}>>, tensor<4xf64, #weft.sharding<#mesh, [{}]>>
#id = affine_map<(d0) -> (d0)>
func.func @step() {
  %w = weft.read @w : tensor<4xf64>
  %a = weft.map ins(%w, %w : tensor<4xf64>, tensor<4xf64>) maps [#id, #id] -> tensor<4xf64> {
  ^bb0(%x: f64, %y: f64):
    %s = arith.addf %x, %y : f64
    weft.yield %s : f64
  } loc("sum")
  %b = weft.map ins(%a, %w : tensor<4xf64>, tensor<4xf64>) maps [#id, #id] -> tensor<4xf64> {
  ^bb0(%x: f64, %y: f64):
    %s = arith.addf %x, %y : f64
    weft.yield %s : f64
  } loc("sum")
  %c = weft.map ins(%a, %b : tensor<4xf64>, tensor<4xf64>) maps [#id, #id] -> tensor<4xf64> {
  ^bb0(%x: f64, %y: f64):
    %s = arith.mulf %x, %y : f64
    weft.yield %s : f64
  } loc("mul")
  %d = weft.map ins(%c : tensor<4xf64>) maps [#id] -> tensor<4xf64> {
  ^bb0(%x: f64):
    %s = arith.mulf %x, %x : f64
    weft.yield %s : f64
  } loc("square")
  weft.assign @w, %d : tensor<4xf64>
  return
}
