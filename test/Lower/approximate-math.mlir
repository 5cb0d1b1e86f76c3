// RUN: weft-opt %s -approximate-math | FileCheck %s

// CHECK-LABEL: func @single
// CHECK-NOT: math.exp
// CHECK-NOT: math.fma
// CHECK: return
func.func @single(%x: f32) -> f32 {
  %y = math.exp %x : f32
  return %y : f32
}

// CHECK-LABEL: func @double
// CHECK: math.exp
func.func @double(%x: f64) -> f64 {
  %y = math.exp %x : f64
  return %y : f64
}
