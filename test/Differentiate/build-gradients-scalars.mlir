// RUN: weft-opt %s -build-gradients | FileCheck %s

// The derivative of each scalar op, in a layer of its own.

#id = affine_map<(i) -> (i)>
weft.variable parameter @x ["hidden"] : tensor<4xf64>
weft.variable parameter @y ["hidden"] : tensor<4xf64>

func.func @loss() -> tensor<f64> {
  %x = weft.read @x : tensor<4xf64>
  %y = weft.read @y : tensor<4xf64>
  %0 = weft.call @sub(%x, %y) label "" : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  %1 = weft.call @div(%0, %y) label "" : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  %2 = weft.call @maximum(%1, %y) label "" : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  %3 = weft.call @minimum(%2, %y) label "" : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  %4 = weft.call @select(%3, %y) label "" : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  %5 = weft.call @log(%4) label "" : (tensor<4xf64>) -> tensor<4xf64>
  %6 = weft.call @tanh(%5) label "" : (tensor<4xf64>) -> tensor<4xf64>
  %7 = weft.call @sqrt(%6) label "" : (tensor<4xf64>) -> tensor<4xf64>
  %8 = weft.call @rsqrt(%7) label "" : (tensor<4xf64>) -> tensor<4xf64>
  %9 = weft.call @erf(%8) label "" : (tensor<4xf64>) -> tensor<4xf64>
  %10 = weft.call @sin(%9) label "" : (tensor<4xf64>) -> tensor<4xf64>
  %11 = weft.call @cos(%10) label "" : (tensor<4xf64>) -> tensor<4xf64>
  %12 = weft.call @cast(%11) label "" : (tensor<4xf64>) -> tensor<4xf64>
  %13 = weft.call @used_twice(%12) label "" : (tensor<4xf64>) -> tensor<4xf64>
  %14 = weft.call @power(%13, %y) label "" : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  %15 = weft.contract "a->" (%14) : (tensor<4xf64>) -> tensor<f64>
  return %15 : tensor<f64>
}

// The gradient goes to x as it is, and negated to y; nothing is saved.
// CHECK-LABEL: func.func private @sub_backward
// CHECK-SAME:      (%[[G:.*]]: tensor<4xf64>)
// CHECK-NEXT:    %[[NEG:.*]] = weft.map ins(%[[G]] :
// CHECK-NEXT:    ^bb0(%[[A:.*]]: f64):
// CHECK-NEXT:      %[[N:.*]] = arith.negf %[[A]]
// CHECK-NEXT:      weft.yield %[[N]]
// CHECK:         return %[[G]], %[[NEG]]
func.func private @sub(%x: tensor<4xf64>, %y: tensor<4xf64>) -> tensor<4xf64> {
  %0 = weft.map ins(%x, %y : tensor<4xf64>, tensor<4xf64>) maps [#id, #id] -> tensor<4xf64> {
  ^bb0(%a: f64, %b: f64):
    %c = arith.subf %a, %b : f64
    weft.yield %c : f64
  }
  return %0 : tensor<4xf64>
}

// CHECK-LABEL: func.func private @div_backward
// CHECK:         ^bb0(%[[A:.*]]: f64, %[[B:.*]]: f64, %[[G:.*]]: f64):
// CHECK-NEXT:      %[[Y:.*]] = arith.divf %[[A]], %[[B]]
// CHECK-NEXT:      %[[DA:.*]] = arith.divf %[[G]], %[[B]]
// CHECK-NEXT:      %[[GY:.*]] = arith.mulf %[[G]], %[[Y]]
// CHECK-NEXT:      %[[Q:.*]] = arith.divf %[[GY]], %[[B]]
// CHECK-NEXT:      %[[DB:.*]] = arith.negf %[[Q]]
// CHECK-NEXT:      weft.yield %[[DA]], %[[DB]]
func.func private @div(%x: tensor<4xf64>, %y: tensor<4xf64>) -> tensor<4xf64> {
  %0 = weft.map ins(%x, %y : tensor<4xf64>, tensor<4xf64>) maps [#id, #id] -> tensor<4xf64> {
  ^bb0(%a: f64, %b: f64):
    %c = arith.divf %a, %b : f64
    weft.yield %c : f64
  }
  return %0 : tensor<4xf64>
}

// CHECK-LABEL: func.func private @maximum_backward
// CHECK:         %[[FIRST:.*]] = arith.cmpf oge, %{{.*}}, %{{.*}}
// CHECK-DAG:     arith.select %[[FIRST]], %[[G:.*]], %{{.*}} : f64
// CHECK-DAG:     arith.select %[[FIRST]], %{{.*}}, %[[G]] : f64
func.func private @maximum(%x: tensor<4xf64>, %y: tensor<4xf64>) -> tensor<4xf64> {
  %0 = weft.map ins(%x, %y : tensor<4xf64>, tensor<4xf64>) maps [#id, #id] -> tensor<4xf64> {
  ^bb0(%a: f64, %b: f64):
    %c = arith.maximumf %a, %b : f64
    weft.yield %c : f64
  }
  return %0 : tensor<4xf64>
}

// CHECK-LABEL: func.func private @minimum_backward
// CHECK:         arith.cmpf ole
func.func private @minimum(%x: tensor<4xf64>, %y: tensor<4xf64>) -> tensor<4xf64> {
  %0 = weft.map ins(%x, %y : tensor<4xf64>, tensor<4xf64>) maps [#id, #id] -> tensor<4xf64> {
  ^bb0(%a: f64, %b: f64):
    %c = arith.minimumf %a, %b : f64
    weft.yield %c : f64
  }
  return %0 : tensor<4xf64>
}

// CHECK-LABEL: func.func private @select_backward
// CHECK:         %[[LESS:.*]] = arith.cmpf olt
// CHECK-DAG:     arith.select %[[LESS]], %[[G:.*]], %{{.*}} : f64
// CHECK-DAG:     arith.select %[[LESS]], %{{.*}}, %[[G]] : f64
func.func private @select(%x: tensor<4xf64>, %y: tensor<4xf64>) -> tensor<4xf64> {
  %0 = weft.map ins(%x, %y : tensor<4xf64>, tensor<4xf64>) maps [#id, #id] -> tensor<4xf64> {
  ^bb0(%a: f64, %b: f64):
    %less = arith.cmpf olt, %a, %b : f64
    %c = arith.select %less, %a, %b : f64
    weft.yield %c : f64
  }
  return %0 : tensor<4xf64>
}

// CHECK-LABEL: func.func private @log_backward
// CHECK:         ^bb0(%[[X:.*]]: f64, %[[G:.*]]: f64):
// CHECK-NEXT:      %[[ONE:.*]] = arith.constant 1.000000e+00
// CHECK-NEXT:      %[[D:.*]] = arith.divf %[[ONE]], %[[X]]
// CHECK-NEXT:      %[[R:.*]] = arith.mulf %[[G]], %[[D]]
// CHECK-NEXT:      weft.yield %[[R]]
func.func private @log(%x: tensor<4xf64>) -> tensor<4xf64> {
  %0 = weft.map ins(%x : tensor<4xf64>) maps [#id] -> tensor<4xf64> {
  ^bb0(%a: f64):
    %b = math.log %a : f64
    weft.yield %b : f64
  }
  return %0 : tensor<4xf64>
}

// CHECK-LABEL: func.func private @tanh_backward
// CHECK:         ^bb0(%[[X:.*]]: f64, %[[G:.*]]: f64):
// CHECK-NEXT:      %[[Y:.*]] = math.tanh %[[X]]
// CHECK-NEXT:      %[[ONE:.*]] = arith.constant 1.000000e+00
// CHECK-NEXT:      %[[S:.*]] = arith.mulf %[[Y]], %[[Y]]
// CHECK-NEXT:      %[[D:.*]] = arith.subf %[[ONE]], %[[S]]
// CHECK-NEXT:      %[[R:.*]] = arith.mulf %[[G]], %[[D]]
// CHECK-NEXT:      weft.yield %[[R]]
func.func private @tanh(%x: tensor<4xf64>) -> tensor<4xf64> {
  %0 = weft.map ins(%x : tensor<4xf64>) maps [#id] -> tensor<4xf64> {
  ^bb0(%a: f64):
    %b = math.tanh %a : f64
    weft.yield %b : f64
  }
  return %0 : tensor<4xf64>
}

// CHECK-LABEL: func.func private @sqrt_backward
// CHECK:         ^bb0(%[[X:.*]]: f64, %[[G:.*]]: f64):
// CHECK-NEXT:      %[[Y:.*]] = math.sqrt %[[X]]
// CHECK-NEXT:      %[[HALF:.*]] = arith.constant 5.000000e-01
// CHECK-NEXT:      %[[D:.*]] = arith.divf %[[HALF]], %[[Y]]
// CHECK-NEXT:      %[[R:.*]] = arith.mulf %[[G]], %[[D]]
// CHECK-NEXT:      weft.yield %[[R]]
func.func private @sqrt(%x: tensor<4xf64>) -> tensor<4xf64> {
  %0 = weft.map ins(%x : tensor<4xf64>) maps [#id] -> tensor<4xf64> {
  ^bb0(%a: f64):
    %b = math.sqrt %a : f64
    weft.yield %b : f64
  }
  return %0 : tensor<4xf64>
}

// CHECK-LABEL: func.func private @rsqrt_backward
// CHECK:         ^bb0(%[[X:.*]]: f64, %[[G:.*]]: f64):
// CHECK-NEXT:      %[[Y:.*]] = math.rsqrt %[[X]]
// CHECK-NEXT:      %[[HALF:.*]] = arith.constant -5.000000e-01
// CHECK-NEXT:      %[[S:.*]] = arith.mulf %[[Y]], %[[Y]]
// CHECK-NEXT:      %[[C:.*]] = arith.mulf %[[S]], %[[Y]]
// CHECK-NEXT:      %[[D:.*]] = arith.mulf %[[HALF]], %[[C]]
// CHECK-NEXT:      %[[R:.*]] = arith.mulf %[[G]], %[[D]]
// CHECK-NEXT:      weft.yield %[[R]]
func.func private @rsqrt(%x: tensor<4xf64>) -> tensor<4xf64> {
  %0 = weft.map ins(%x : tensor<4xf64>) maps [#id] -> tensor<4xf64> {
  ^bb0(%a: f64):
    %b = math.rsqrt %a : f64
    weft.yield %b : f64
  }
  return %0 : tensor<4xf64>
}

// CHECK-LABEL: func.func private @erf_backward
// CHECK:         ^bb0(%[[X:.*]]: f64, %[[G:.*]]: f64):
// CHECK-NEXT:      %[[C:.*]] = arith.constant 1.1283791670955126
// CHECK-NEXT:      %[[S:.*]] = arith.mulf %[[X]], %[[X]]
// CHECK-NEXT:      %[[N:.*]] = arith.negf %[[S]]
// CHECK-NEXT:      %[[E:.*]] = math.exp %[[N]]
// CHECK-NEXT:      %[[D:.*]] = arith.mulf %[[C]], %[[E]]
// CHECK-NEXT:      %[[R:.*]] = arith.mulf %[[G]], %[[D]]
// CHECK-NEXT:      weft.yield %[[R]]
func.func private @erf(%x: tensor<4xf64>) -> tensor<4xf64> {
  %0 = weft.map ins(%x : tensor<4xf64>) maps [#id] -> tensor<4xf64> {
  ^bb0(%a: f64):
    %b = math.erf %a : f64
    weft.yield %b : f64
  }
  return %0 : tensor<4xf64>
}

// CHECK-LABEL: func.func private @sin_backward
// CHECK:         ^bb0(%[[X:.*]]: f64, %[[G:.*]]: f64):
// CHECK-NEXT:      %[[D:.*]] = math.cos %[[X]]
// CHECK-NEXT:      %[[R:.*]] = arith.mulf %[[G]], %[[D]]
// CHECK-NEXT:      weft.yield %[[R]]
func.func private @sin(%x: tensor<4xf64>) -> tensor<4xf64> {
  %0 = weft.map ins(%x : tensor<4xf64>) maps [#id] -> tensor<4xf64> {
  ^bb0(%a: f64):
    %b = math.sin %a : f64
    weft.yield %b : f64
  }
  return %0 : tensor<4xf64>
}

// CHECK-LABEL: func.func private @cos_backward
// CHECK:         ^bb0(%[[X:.*]]: f64, %[[G:.*]]: f64):
// CHECK-NEXT:      %[[S:.*]] = math.sin %[[X]]
// CHECK-NEXT:      %[[D:.*]] = arith.negf %[[S]]
// CHECK-NEXT:      %[[R:.*]] = arith.mulf %[[G]], %[[D]]
// CHECK-NEXT:      weft.yield %[[R]]
func.func private @cos(%x: tensor<4xf64>) -> tensor<4xf64> {
  %0 = weft.map ins(%x : tensor<4xf64>) maps [#id] -> tensor<4xf64> {
  ^bb0(%a: f64):
    %b = math.cos %a : f64
    weft.yield %b : f64
  }
  return %0 : tensor<4xf64>
}

// Back through the casts, the other way round; their operands are not read.
// CHECK-LABEL: func.func private @cast_backward(
// CHECK-SAME:      tensor<4xf64>) -> tensor<4xf64>
// CHECK:         ^bb0(%[[G:.*]]: f64):
// CHECK-NEXT:      %[[NARROW:.*]] = arith.truncf %[[G]] : f64 to f32
// CHECK-NEXT:      %[[WIDE:.*]] = arith.extf %[[NARROW]] : f32 to f64
// CHECK-NEXT:      weft.yield %[[WIDE]]
func.func private @cast(%x: tensor<4xf64>) -> tensor<4xf64> {
  %0 = weft.map ins(%x : tensor<4xf64>) maps [#id] -> tensor<4xf64> {
  ^bb0(%a: f64):
    %b = arith.truncf %a : f64 to f32
    %c = arith.extf %b : f32 to f64
    weft.yield %c : f64
  }
  return %0 : tensor<4xf64>
}

// Contributions to one scalar are added within the map: x * x.
// CHECK-LABEL: func.func private @used_twice_backward
// CHECK:         ^bb0(%[[X:.*]]: f64, %[[G:.*]]: f64):
// CHECK-NEXT:      %[[LEFT:.*]] = arith.mulf %[[G]], %[[X]]
// CHECK-NEXT:      %[[RIGHT:.*]] = arith.mulf %[[G]], %[[X]]
// CHECK-NEXT:      %[[SUM:.*]] = arith.addf %[[LEFT]], %[[RIGHT]]
// CHECK-NEXT:      weft.yield %[[SUM]]
func.func private @used_twice(%x: tensor<4xf64>) -> tensor<4xf64> {
  %0 = weft.map ins(%x : tensor<4xf64>) maps [#id] -> tensor<4xf64> {
  ^bb0(%a: f64):
    %b = arith.mulf %a, %a : f64
    weft.yield %b : f64
  }
  return %0 : tensor<4xf64>
}

// y x^(y-1) and x^y log x.
// CHECK-LABEL: func.func private @power_backward
// CHECK:         ^bb0(%[[X:.*]]: f64, %[[Y:.*]]: f64, %[[G:.*]]: f64):
// CHECK-NEXT:      %[[P:.*]] = math.powf %[[X]], %[[Y]]
// CHECK-NEXT:      %[[GY:.*]] = arith.mulf %[[G]], %[[Y]]
// CHECK-NEXT:      %[[ONE:.*]] = arith.constant 1.000000e+00
// CHECK-NEXT:      %[[LESS:.*]] = arith.subf %[[Y]], %[[ONE]]
// CHECK-NEXT:      %[[Q:.*]] = math.powf %[[X]], %[[LESS]]
// CHECK-NEXT:      %[[DX:.*]] = arith.mulf %[[GY]], %[[Q]]
// CHECK-DAG:       %[[GP:.*]] = arith.mulf %[[G]], %[[P]]
// CHECK-DAG:       %[[LOG:.*]] = math.log %[[X]]
// CHECK:           %[[DY:.*]] = arith.mulf %[[GP]], %[[LOG]]
// CHECK-NEXT:      weft.yield %[[DX]], %[[DY]]
func.func private @power(%x: tensor<4xf64>, %y: tensor<4xf64>) -> tensor<4xf64> {
  %0 = weft.map ins(%x, %y : tensor<4xf64>, tensor<4xf64>) maps [#id, #id] -> tensor<4xf64> {
  ^bb0(%a: f64, %b: f64):
    %c = math.powf %a, %b : f64
    weft.yield %c : f64
  }
  return %0 : tensor<4xf64>
}
