// RUN: weft-opt %s -expand-bf16 | FileCheck %s
// RUN: weft-opt %s -expand-bf16=for-devices=true | FileCheck %s --check-prefix=DEVICES

// CHECK-LABEL: func @widen
// CHECK:         %[[BITS:.*]] = arith.bitcast %{{.*}} : bf16 to i16
// CHECK:         %[[LONG:.*]] = arith.extui %[[BITS]] : i16 to i32
// CHECK:         %[[UP:.*]] = arith.shli %[[LONG]]
// CHECK:         arith.bitcast %[[UP]] : i32 to f32
func.func @widen(%x: bf16) -> f32 {
  %y = arith.extf %x : bf16 to f32
  return %y : f32
}

// Half of the last bit and the bit itself are added; NaN stays NaN.
// CHECK-LABEL: func @round
// CHECK-NOT:     arith.truncf
// CHECK:         %[[NAN:.*]] = arith.cmpf une
// CHECK:         %[[BITS:.*]] = arith.bitcast %{{.*}} : vector<16xf32> to vector<16xi32>
// CHECK:         %[[LAST:.*]] = arith.andi
// CHECK:         %[[BIAS:.*]] = arith.addi %[[LAST]]
// CHECK:         arith.addi %[[BITS]], %[[BIAS]]
// CHECK:         arith.select %[[NAN]]
// CHECK-NOT:     arith.truncf
func.func @round(%x: vector<16xf32>) -> vector<16xbf16> {
  %y = arith.truncf %x : vector<16xf32> to vector<16xbf16>
  return %y : vector<16xbf16>
}

// Devices have an instruction for numbers.
// CHECK-LABEL: func @round_number
// CHECK-NOT:     arith.truncf
// DEVICES-LABEL: func @round_number
// DEVICES:         %[[BITS:.*]] = call @weft_device_round(%{{.*}}) : (f32) -> i16
// DEVICES:         arith.bitcast %[[BITS]] : i16 to bf16
func.func @round_number(%x: f32) -> bf16 {
  %y = arith.truncf %x : f32 to bf16
  return %y : bf16
}

// CHECK-LABEL: func @choose
// CHECK-SAME:    %[[IF:.*]]: i1, %[[X:.*]]: bf16
// CHECK-DAG:     %[[BITS:.*]] = arith.bitcast %[[X]] : bf16 to i16
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant 0 : i16
// CHECK:         %[[CHOSEN:.*]] = arith.select %[[IF]], %[[BITS]], %[[ZERO]] : i16
// CHECK:         arith.bitcast %[[CHOSEN]] : i16 to bf16
func.func @choose(%if: i1, %x: bf16) -> bf16 {
  %zero = arith.constant 0.0 : bf16
  %y = arith.select %if, %x, %zero : bf16
  return %y : bf16
}

// CHECK-LABEL: func @choose_vector
// CHECK:         arith.select %{{.*}}, %{{.*}}, %{{.*}} : vector<16xi1>, vector<16xi16>
func.func @choose_vector(%if: vector<16xi1>, %x: vector<16xbf16>, %y: vector<16xbf16>)
    -> vector<16xbf16> {
  %z = arith.select %if, %x, %y : vector<16xi1>, vector<16xbf16>
  return %z : vector<16xbf16>
}
