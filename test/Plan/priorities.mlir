// DEFINE: %{axis} = version: 1 mesh {axis {name: 'x' size: 2}}
// RUN: weft-opt %s -apply-plan="plan={%{axis} sharding {dimension: 'ffn' axes: 'x'} sharding {dimension: 'hidden' axes: 'x' priority: 1}}" 2>&1 | FileCheck %s --check-prefix=FFN
// RUN: weft-opt %s -apply-plan="plan={%{axis} sharding {dimension: 'ffn' axes: 'x' priority: 2} sharding {dimension: 'hidden' axes: 'x' priority: 1}}" 2>&1 | FileCheck %s --check-prefix=HIDDEN
// RUN: weft-opt %s -apply-plan="plan={%{axis} sharding {value: 'w' dimension: 'ffn' axes: 'x'} sharding {dimension: 'ffn' priority: 1} sharding {value: 'matmul' dimension: 'ffn' axes: 'x'}}" 2>&1 | FileCheck %s --check-prefix=ORDER
// RUN: weft-opt %s -apply-plan="origins plan={%{axis} sharding {dimension: 'ffn' axes: 'x'}}" 2>&1 | FileCheck %s --check-prefix=ORIGINS

// RUN: weft-opt %s -apply-plan="plan={%{axis} sharding {dimension: 'ffn' axes: 'x'} sharding {value: 'matmul' dimension: 'hidden' axes: 'x' priority: 1}}" 2>&1 | FileCheck %s --check-prefix=OP

// Of entries that give one axis to two dimensions the stronger holds, of variables and ops, and both
// are shown. Wide entries are shown once for all ops.

// FFN:     plan:1:82: warning: axes: { value: "*" dimension: "hidden" axes: ["x"] priority: 1 } does not hold for 'w', as one axis cannot cut two dimensions
// FFN:     plan:1:44: note: stronger is { value: "*" dimension: "ffn" axes: ["x"] }
// FFN-NOT: warning
// FFN:     @w ["ffn", "hidden"] {weft.pins = {{\[}}["x"], unit]}
// FFN:     weft.contract {{.*}} {weft.pins = [unit, unit, ["x"]]}

// OP:     plan:1:82: warning: axes: { value: "matmul" {{.*}} does not hold for 'matmul/contract/1'
// OP:     plan:1:44: note: stronger is { value: "*" dimension: "ffn" axes: ["x"] }
// OP-NOT: warning
// OP:     weft.contract {{.*}} {weft.pins = [unit, unit, ["x"]]}

// HIDDEN:     warning: axes: {{.*}}"ffn" axes: ["x"] priority: 2 } does not hold for 'w'
// HIDDEN:     @w ["ffn", "hidden"] {weft.pins = [unit, ["x"]]}
// HIDDEN:     weft.contract {{.*}} {weft.pins = [unit, ["x"], unit]}

// A weaker entry holds where no other speaks, wherever it stands.
// ORDER-NOT: warning
// ORDER:     @w ["ffn", "hidden"] {weft.pins = {{\[}}["x"], unit]}
// ORDER:     weft.contract "bk,nk->bn"{{.*}} {weft.pins = [unit, unit, ["x"]]}
// ORDER:     weft.contract "bn->b"{{.*}} {weft.pins = [unit, []]}

// ORIGINS: @w ["ffn", "hidden"] {weft.pinned_by = ["plan:1:{{[0-9]+}}: { value: \22*\22 dimension: \22ffn\22 axes: [\22x\22] }", unit], weft.pins = {{\[}}["x"], unit]}
// ORIGINS: weft.contract {{.*}} {weft.pinned_by = [unit, unit, "plan:1:

weft.variable parameter @w ["ffn", "hidden"] : tensor<8x4xf64>
func.func @step() {
  %x = weft.fill constant 1.0 : tensor<4x4xf64>
  %w = weft.read @w : tensor<8x4xf64>
  %y = weft.contract "bk,nk->bn"(%x, %w)
      : (tensor<4x4xf64>, tensor<8x4xf64>) -> tensor<4x8xf64> loc("matmul")
  %z = weft.contract "bn->b"(%y) : (tensor<4x8xf64>) -> tensor<4xf64> loc("sum")
  weft.observe "z", %z : tensor<4xf64>
  return
}
