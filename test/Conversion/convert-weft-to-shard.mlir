// RUN: weft-opt --convert-weft-to-shard %s 2>&1 | FileCheck %s

#mesh = #weft.mesh<"dp"=2, "tp"=2>
#whole = #weft.sharding<#mesh, [{}, {}]>
#rows = #weft.sharding<#mesh, [{"dp"}, {}]>
#columns = #weft.sharding<#mesh, [{}, {"tp"}]>
#both = #weft.sharding<#mesh, [{"dp"}, {"tp"}]>
#last = #weft.sharding<#mesh, [{"tp"}, {}]>
#terms = #weft.sharding<#mesh, [{"dp"}, {}], unreduced = sum{"tp"}>

// CHECK: remark: {{.*}}pending sum over tp has no form in the shard dialect: it is reduced here
// CHECK: remark: {{.*}}pending sum over dp, tp has no form in the shard dialect: it is reduced here

// CHECK: module {
// CHECK-NEXT: shard.grid @mesh(shape = 2x2) {weft.axes = ["dp", "tp"]}
// CHECK-NEXT: weft.variable parameter @w ["ffn", "hidden"] : tensor<8x4xf64>
module attributes {weft.mesh = #mesh} {
  weft.variable parameter @w ["ffn", "hidden"] : tensor<8x4xf64, #last>

  // Arguments, reads and results are said to lie as their types said, by one shard.sharding for
  // each way. A pending sum that is only brought to another sharding is said to lie in that.
  // CHECK-LABEL: func.func @matmul(
  // CHECK-SAME: %[[X:.*]]: tensor<4x8xf64>) -> tensor<4x4xf64>
  // CHECK-DAG: %[[BOTH:.*]] = shard.sharding @mesh split_axes = {{\[\[}}0], [1]]
  // CHECK-DAG: %[[LAST:.*]] = shard.sharding @mesh split_axes = {{\[\[}}1]]
  // CHECK-DAG: %[[ROWS:.*]] = shard.sharding @mesh split_axes = {{\[\[}}0]]
  // CHECK-DAG: %[[WHOLE:.*]] = shard.sharding @mesh split_axes = {{\[\[}}]]
  // CHECK: %[[XS:.*]] = shard.shard %[[X]] to %[[BOTH]] : tensor<4x8xf64>
  // CHECK: %[[W:.*]] = weft.read @w : tensor<8x4xf64>
  // CHECK: %[[WS:.*]] = shard.shard %[[W]] to %[[LAST]] : tensor<8x4xf64>
  // CHECK: %[[P:.*]] = weft.contract "bn,nk->bk"(%[[XS]], %[[WS]])
  // CHECK: %[[PS:.*]] = shard.shard %[[P]] to %[[ROWS]] : tensor<4x4xf64>
  // CHECK: %[[Z:.*]] = shard.shard %[[PS]] to %[[WHOLE]] annotate_for_users : tensor<4x4xf64>
  // CHECK: return %[[Z]]
  func.func @matmul(%x: tensor<4x8xf64, #both>) -> tensor<4x4xf64, #whole> {
    %w = weft.read @w : tensor<8x4xf64, #last>
    %p = weft.contract "bn,nk->bk"(%x, %w) : (tensor<4x8xf64, #both>, tensor<8x4xf64, #last>)
        -> tensor<4x4xf64, #terms>
    %y = weft.reshard %p : tensor<4x4xf64, #terms> -> tensor<4x4xf64, #rows>
    %z = weft.reshard %y : tensor<4x4xf64, #rows> -> tensor<4x4xf64, #whole>
    return %z : tensor<4x4xf64, #whole>
  }

  // A pending sum that is used as one is reduced where it arises; what was then reduced is not said
  // twice.
  // CHECK-LABEL: func.func @two_uses(
  // CHECK: %[[P:.*]] = weft.contract
  // CHECK-NEXT: %[[PS:.*]] = shard.shard %[[P]] to
  // CHECK-NEXT: return %[[PS]], %[[PS]]
  func.func @two_uses(%x: tensor<4x8xf64, #both>, %w: tensor<8x4xf64, #last>)
      -> (tensor<4x4xf64, #terms>, tensor<4x4xf64, #rows>) {
    %p = weft.contract "bn,nk->bk"(%x, %w) : (tensor<4x8xf64, #both>, tensor<8x4xf64, #last>)
        -> tensor<4x4xf64, #terms>
    %y = weft.reshard %p : tensor<4x4xf64, #terms> -> tensor<4x4xf64, #rows>
    return %p, %y : tensor<4x4xf64, #terms>, tensor<4x4xf64, #rows>
  }

  // A scalar has one list, as every shard.sharding; what becomes pending does not there.
  // CHECK-LABEL: func.func @scalar(
  // CHECK-SAME: %[[A:.*]]: tensor<f64>) -> tensor<f64>
  // CHECK: %[[S:.*]] = shard.sharding @mesh split_axes = {{\[\[}}]]
  // CHECK: %[[AS:.*]] = shard.shard %[[A]] to %[[S]]
  // CHECK: return %[[AS]]
  func.func @scalar(%a: tensor<f64, #weft.sharding<#mesh, []>>)
      -> tensor<f64, #weft.sharding<#mesh, [], unreduced = sum{"dp", "tp"}>> {
    %b = weft.reshard %a : tensor<f64, #weft.sharding<#mesh, []>>
        -> tensor<f64, #weft.sharding<#mesh, [], unreduced = sum{"dp", "tp"}>>
    return %b : tensor<f64, #weft.sharding<#mesh, [], unreduced = sum{"dp", "tp"}>>
  }
}
