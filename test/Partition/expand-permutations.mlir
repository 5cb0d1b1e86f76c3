// RUN: weft-opt %s -split-input-file -expand-permutations | FileCheck %s

// The example of the pass's description.

#mesh = #weft.mesh<"cp"=2>

// CHECK-LABEL: func.func private @description(
// CHECK-SAME:      %[[Q:arg0]]: {{.*}}, %[[K:arg1]]: {{.*}}, %[[V:arg2]]: {{.*}}, %[[O:arg3]]: index)
// CHECK-NEXT:    %[[K1:.*]] = weft.permute %[[K]] over ["cp"] of #mesh from [1, 0]
// CHECK-NEXT:    %[[V1:.*]] = weft.permute %[[V]] over ["cp"] of #mesh from [1, 0]
// CHECK-NEXT:    %[[C0:.*]] = arith.constant 0 : index
// CHECK-NEXT:    %[[O0:.*]], %[[L0:.*]] = weft.attention(%[[Q]], %[[K]], %[[V]]) {{.*}} offsets(%[[O]], %[[O]]) of [8, 8] turn %[[C0]] :
// CHECK-NEXT:    %[[C1:.*]] = arith.constant 1 : index
// CHECK-NEXT:    %[[O1:.*]], %[[L1:.*]] = weft.attention(%[[Q]], %[[K1]], %[[V1]]) {{.*}} offsets(%[[O]], %[[O]]) of [8, 8] turn %[[C1]] :
// CHECK-NEXT:    %[[L:.*]]:3 = weft.map ins(%[[L0]], %[[L1]] :
// CHECK:           math.log
// CHECK:         %[[S0:.*]] = weft.contract "bgrs->bsgr"(%[[L]]#1)
// CHECK-NEXT:    %[[S1:.*]] = weft.contract "bgrs->bsgr"(%[[L]]#2)
// CHECK-NEXT:    %[[OUT:.*]] = weft.map ins(%[[O0]], %[[O1]], %[[S0]], %[[S1]] :
// CHECK:           arith.mulf
// CHECK:         return %[[OUT]], %[[L]]#0
func.func private @description(%q: tensor<2x4x1x1x2xf64>, %k: tensor<2x4x1x2xf64>,
                               %v: tensor<2x4x1x2xf64>, %o: index)
    -> (tensor<2x4x1x1x2xf64>, tensor<2x1x1x4xf64>) {
  %output, %lse = weft.attention(%q, %k, %v) scale = 1.0 dropout = 0.0 offsets(%o, %o) of [8, 8]
      over ["cp"] of #mesh
      : tensor<2x4x1x1x2xf64>, tensor<2x4x1x2xf64>, tensor<2x4x1x2xf64>
      -> tensor<2x4x1x1x2xf64>, tensor<2x1x1x4xf64>
  return %output, %lse : tensor<2x4x1x1x2xf64>, tensor<2x1x1x4xf64>
}

// -----

// The derivative: keys and values as before, their gradients each time, and home in the end. Turn
// k adds to the gradient of the shard that is here in turn k.

#mesh = #weft.mesh<"cp"=3>

// CHECK-LABEL: func.func private @derivative(
// CHECK-SAME:      %[[Q:arg0]]: {{.*}}, %[[K:arg1]]: {{.*}}, %[[V:arg2]]: {{.*}}, %[[LSE:arg3]]:
// CHECK-NEXT:    %[[K1:.*]] = weft.permute %[[K]] over ["cp"] of #mesh from [2, 0, 1]
// CHECK-NEXT:    %[[V1:.*]] = weft.permute %[[V]]
// CHECK:         %[[Q0:.*]], %[[DK0:.*]], %[[DV0:.*]] = weft.attention_grad(%[[Q]], %[[K]], %[[V]]) {{.*}} turn
// CHECK-NEXT:    %[[K2:.*]] = weft.permute %[[K1]]
// CHECK-NEXT:    %[[V2:.*]] = weft.permute %[[V1]]
// CHECK:         %[[Q1:.*]], %[[DK1:.*]], %[[DV1:.*]] = weft.attention_grad(%[[Q]], %[[K1]], %[[V1]]) {{.*}} turn
// CHECK-NEXT:    %[[Q01:.*]] = weft.map ins(%[[Q0]], %[[Q1]] :
// CHECK:         %[[MK0:.*]] = weft.permute %[[DK0]]
// CHECK-NEXT:    %[[DK01:.*]] = weft.map ins(%[[MK0]], %[[DK1]] :
// CHECK:         %[[MV0:.*]] = weft.permute %[[DV0]]
// CHECK-NEXT:    %[[DV01:.*]] = weft.map ins(%[[MV0]], %[[DV1]] :
// CHECK-NOT:     weft.permute %[[K2]]
// CHECK:         %[[Q2:.*]], %[[DK2:.*]], %[[DV2:.*]] = weft.attention_grad(%[[Q]], %[[K2]], %[[V2]]) {{.*}} turn
// CHECK-NEXT:    %[[Q012:.*]] = weft.map ins(%[[Q01]], %[[Q2]] :
// CHECK:         %[[MK01:.*]] = weft.permute %[[DK01]]
// CHECK-NEXT:    %[[DK012:.*]] = weft.map ins(%[[MK01]], %[[DK2]] :
// CHECK:         %[[MV01:.*]] = weft.permute %[[DV01]]
// CHECK-NEXT:    %[[DV012:.*]] = weft.map ins(%[[MV01]], %[[DV2]] :
// CHECK:         %[[DK:.*]] = weft.permute %[[DK012]]
// CHECK-NEXT:    %[[DV:.*]] = weft.permute %[[DV012]]
// CHECK-NEXT:    return %[[Q012]], %[[DK]], %[[DV]]
func.func private @derivative(%q: tensor<2x4x1x1x2xf64>, %k: tensor<2x4x1x2xf64>,
                              %v: tensor<2x4x1x2xf64>, %l: tensor<2x1x1x4xf64>, %o: index)
    -> (tensor<2x4x1x1x2xf64>, tensor<2x4x1x2xf64>, tensor<2x4x1x2xf64>) {
  %0:3 = weft.attention_grad(%q, %k, %v) output(%q, %l) gradient(%q) scale = 1.0 dropout = 0.0
      offsets(%o, %o) of [12, 12] over ["cp"] of #mesh
      : tensor<2x4x1x1x2xf64>, tensor<2x4x1x2xf64>, tensor<2x4x1x2xf64>, tensor<2x4x1x1x2xf64>,
        tensor<2x1x1x4xf64>, tensor<2x4x1x1x2xf64>
      -> tensor<2x4x1x1x2xf64>, tensor<2x4x1x2xf64>, tensor<2x4x1x2xf64>
  return %0#0, %0#1, %0#2 : tensor<2x4x1x1x2xf64>, tensor<2x4x1x2xf64>, tensor<2x4x1x2xf64>
}

// -----

// Outputs are joined in the wide type, and rounded once. A value that is both key and value is sent
// once. Two axes are one group. An attention that sees all keys does not ask where they are from.

#mesh = #weft.mesh<"a"=2, "b"=2>

// CHECK-LABEL: func.func private @narrow
// CHECK-COUNT-3: weft.permute {{.*}} over ["a", "b"] of #mesh from [3, 0, 1, 2]
// CHECK-NOT:     weft.permute
// CHECK:         weft.attention({{.*}} bidirectional : {{.*}} -> tensor<2x4x1x1x2xf32>, tensor<2x1x1x4xf32>
// CHECK:         arith.truncf
// CHECK-NOT:     arith.truncf
// CHECK:         return
func.func private @narrow(%q: tensor<2x4x1x1x2xbf16>, %k: tensor<2x4x1x2xbf16>)
    -> tensor<2x4x1x1x2xbf16> {
  %output, %lse = weft.attention(%q, %k, %k) scale = 1.0 dropout = 0.0 bidirectional
      over ["a", "b"] of #mesh
      : tensor<2x4x1x1x2xbf16>, tensor<2x4x1x2xbf16>, tensor<2x4x1x2xbf16>
      -> tensor<2x4x1x1x2xbf16>, tensor<2x1x1x4xf32>
  return %output : tensor<2x4x1x1x2xbf16>
}

// -----

// What is over no shards stays.

// CHECK-LABEL: func.func private @whole
// CHECK-NEXT:    weft.attention
// CHECK-NEXT:    return
func.func private @whole(%q: tensor<2x4x1x1x2xf64>, %k: tensor<2x4x1x2xf64>) {
  %0:2 = weft.attention(%q, %k, %k) scale = 1.0 dropout = 0.0
      : tensor<2x4x1x1x2xf64>, tensor<2x4x1x2xf64>, tensor<2x4x1x2xf64>
      -> tensor<2x4x1x1x2xf64>, tensor<2x1x1x4xf64>
  return
}
