// RUN: weft-opt %s --outline-kernels --split-input-file --verify-diagnostics

weft.variable parameter @a ["hidden"] : tensor<4xf32>
weft.variable parameter @b ["hidden"] : tensor<4xf32>
func.func @init() {
  return
}
func.func @step() {
  %0 = weft.read @a : tensor<4xf32>
  // expected-error @+1 {{needs a copy; run copy-assignments first}}
  weft.assign @b, %0 : tensor<4xf32>
  return
}
