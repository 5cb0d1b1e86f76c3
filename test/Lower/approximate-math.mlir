// RUN: weft-opt %s -approximate-math | FileCheck %s
// RUN: weft-opt %s -approximate-math=for-devices=true | FileCheck %s --check-prefix=DEVICES

// CHECK-LABEL: func @single
// CHECK-NOT: math.exp
// CHECK-NOT: math.fma
// CHECK: return
// DEVICES-LABEL: func @single
// DEVICES: math.exp
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

// CHECK-LABEL: func @vector
// CHECK-NOT: math.exp
// CHECK: return
// DEVICES-LABEL: func @vector
// DEVICES-NOT: math.exp
// DEVICES: return
func.func @vector(%x: vector<8xf32>) -> vector<8xf32> {
  %y = math.exp %x : vector<8xf32>
  return %y : vector<8xf32>
}

// CHECK-LABEL: func @tangent
// CHECK-NOT: math.tanh
// CHECK: return
// DEVICES-LABEL: func @tangent
// DEVICES-NOT: math.tanh
// DEVICES: math.exp2
// DEVICES: arith.divf {{.*}} fastmath<afn> : f32
// DEVICES: arith.select
func.func @tangent(%x: f32) -> f32 {
  %y = math.tanh %x : f32
  return %y : f32
}

// DEVICES-LABEL: func @double_tangent
// DEVICES: math.tanh
func.func @double_tangent(%x: f64) -> f64 {
  %y = math.tanh %x : f64
  return %y : f64
}
