// RUN: not weft-opt %s -apply-plan="pins=qq=2" 2>&1 | FileCheck %s --check-prefix=PIN
// PIN: error: apply-plan: --pin: unknown name 'qq'

// RUN: not weft-opt %s -apply-plan="pins=tp=0" 2>&1 | FileCheck %s --check-prefix=SIZE
// SIZE: error: apply-plan: --pin: tp: expected a number from 1 to 1048576, got '0'

// RUN: not weft-opt %s -apply-plan="plan={version: 1 mesh {axis {size: 2}}}" 2>&1 | FileCheck %s --check-prefix=PLAN
// PLAN: plan:1:18: error: apply-plan: mesh.axis[0].name: missing required field

// Errors are at entries: in lines of a text, or in line 0 of --pin.
// RUN: not weft-opt %s -substitute-batch -apply-plan="pins=tp=4" 2>&1 | FileCheck %s --check-prefix=SHARDS
// SHARDS: --pin:0:0: error: axes: expected shards that divide "ffn"=6 of 'w', got tp=4

// RUN: not weft-opt %s -substitute-batch="batch=3" -apply-plan="plan={version: 1 mesh {axis {name: 'x' size: 2}} sharding {dimension: 'batch' axes: 'x'}}" 2>&1 | FileCheck %s --check-prefix=SAMPLES
// SAMPLES: plan:1:44: error: axes: expected shards that divide "batch"=3 of 'tokens', got x=2

// RUN: not weft-opt %s -apply-plan="plan={version: 1 mesh {axis {name: 'x' size: 2}} sharding {dimension: 'ffn' axes: 'x'} sharding {dimension: 'hidden' axes: 'x'}}" 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: plan:1:82: error: axes: expected an axis for one dimension of 'w', or priorities that differ, got 'x' for "ffn" and "hidden"
// TWICE: plan:1:44: note: by { value: "*" dimension: "ffn" axes: ["x"] }
// TWICE: plan:1:82: note: by { value: "*" dimension: "hidden" axes: ["x"] }

// Entries of a text match something, with their dimension; those of pins may match nothing.
// RUN: not weft-opt %s -apply-plan="plan={version: 1 mesh {axis {name: 'x' size: 2}} sharding {value: 'v' dimension: 'ffn' axes: 'x'} sharding {value: '*oken' dimension: 'batch'} sharding {value: 'tract/1' dimension: 'ffn'} home {value: 'w' dimension: 'batch'} home {value: 'x/w' dimension: 'ffn'} sharding {value: 'matmul' dimension: 'factor2'} sharding {value: 'matmul' dimension: 'terms2'} sharding {value: '*' dimension: 'vocab'} sharding {value: 'w*' dimension: 'ffn'} sharding {value: 'matmul/contract/1' dimension: 'terms1'}}" 2>&1 | FileCheck %s --check-prefix=UNMATCHED --implicit-check-not=error:
// UNMATCHED: plan:1:{{[0-9]+}}: error: value: no variable or op is called 'v', near is 'w'
// UNMATCHED: plan:1:{{[0-9]+}}: error: value: no variable or op is called '*oken', near is 'tokens'
// UNMATCHED: plan:1:{{[0-9]+}}: error: value: no variable or op is called 'tract/1', near is 'matmul/contract/1'
// UNMATCHED: plan:1:{{[0-9]+}}: error: dimension: what is called 'matmul' has no dimension 'factor2', only ffn, hidden
// UNMATCHED: plan:1:{{[0-9]+}}: error: dimension: what is called 'matmul' has no dimension 'terms2', only ffn, hidden
// UNMATCHED: plan:1:{{[0-9]+}}: error: dimension: what is called '*' has no dimension 'vocab', only batch, ffn, hidden
// UNMATCHED: plan:1:{{[0-9]+}}: error: dimension: what is called 'w' has no dimension 'batch', only ffn, hidden
// UNMATCHED: plan:1:{{[0-9]+}}: error: value: no variable is called 'x/w', near is 'w'
// RUN: weft-opt %s -substitute-batch="batch=2" -apply-plan="pins=ep=2"

weft.variable parameter @w ["ffn", "hidden"] : tensor<6x4xf64>
weft.variable input @tokens ["batch"] : tensor<?xi32>

func.func @step() {
  %w = weft.read @w : tensor<6x4xf64>
  %v = weft.contract "fh,fh->f"(%w, %w) : (tensor<6x4xf64>, tensor<6x4xf64>) -> tensor<6xf64> loc("matmul")
  return
}
