// RUN: weft-opt --convert-shard-to-weft --split-input-file %s | FileCheck %s

// CHECK: #mesh = #weft.mesh<"dp"=2, "tp"=4>
// CHECK: module attributes {weft.mesh = #mesh} {
// CHECK-NOT: shard.
module {
  shard.grid @grid(shape = 2x1x4) {weft.axes = ["dp", "pp", "tp"]}
  // CHECK-DAG: @w ["ffn", "hidden"] : tensor<8x4xf64, #weft.sharding<#mesh, [{"tp"}, {}]>>
  weft.variable parameter @w ["ffn", "hidden"] : tensor<8x4xf64>
  // Nothing is said of these: the one lies as what is assigned, the other is whole.
  // CHECK-DAG: @assigned ["hidden", "ffn"] : tensor<4x4xf64, #weft.sharding<#mesh, [{"dp"}, {}]>>
  weft.variable parameter @assigned ["hidden", "ffn"] : tensor<4x4xf64>
  // CHECK-DAG: @unused ["hidden"] : tensor<4xf64, #weft.sharding<#mesh, [{}]>>
  weft.variable parameter @unused ["hidden"] : tensor<4xf64>
  // CHECK-DAG: @unsaid ["hidden"] : tensor<4xf64, #weft.sharding<#mesh, [{}]>>
  weft.variable parameter @unsaid ["hidden"] : tensor<4xf64>

  // A matmul of what is cut gives a pending sum, which a reshard brings to what is said.
  // CHECK-LABEL: func.func @matmul(
  // CHECK-SAME: -> tensor<4x4xf64, #weft.sharding<#mesh, [{}, {}]>>
  // CHECK: %[[W:.*]] = weft.read @w : tensor<8x4xf64, #weft.sharding<#mesh, [{"tp"}, {}]>>
  // CHECK: %[[P:.*]] = weft.contract
  // CHECK-SAME: -> tensor<4x4xf64, #weft.sharding<#mesh, [{"dp"}, {}], unreduced = sum{"tp"}>>
  // CHECK-NEXT: %[[Y:.*]] = weft.reshard %[[P]] {{.*}} -> tensor<4x4xf64, #weft.sharding<#mesh, [{"dp"}, {}]>>
  // CHECK-NEXT: %[[Z:.*]] = weft.reshard %[[Y]] {{.*}} -> tensor<4x4xf64, #weft.sharding<#mesh, [{}, {}]>>
  // CHECK-NEXT: weft.assign @assigned, %[[Y]]
  // CHECK-NEXT: weft.read @unsaid
  // CHECK-NEXT: return %[[Z]]
  func.func @matmul(%x: tensor<4x8xf64>) -> tensor<4x4xf64> {
    %both = shard.sharding @grid split_axes = [[0], [1, 2]] : !shard.sharding
    %last = shard.sharding @grid split_axes = [[2]] : !shard.sharding
    %rows = shard.sharding @grid split_axes = [[0]] : !shard.sharding
    %whole = shard.sharding @grid split_axes = [[]] : !shard.sharding
    %xs = shard.shard %x to %both : tensor<4x8xf64>
    %w = weft.read @w : tensor<8x4xf64>
    %ws = shard.shard %w to %last : tensor<8x4xf64>
    %p = weft.contract "bn,nk->bk"(%xs, %ws) : (tensor<4x8xf64>, tensor<8x4xf64>)
        -> tensor<4x4xf64>
    %ps = shard.shard %p to %rows : tensor<4x4xf64>
    %z = shard.shard %ps to %whole annotate_for_users : tensor<4x4xf64>
    weft.assign @assigned, %ps : tensor<4x4xf64>
    %u = weft.read @unsaid : tensor<4xf64>
    return %z : tensor<4x4xf64>
  }

  // Rows that no operand has are cut as is said, unless by an axis that cuts an operand: then the
  // pending sum over it is scattered.
  // CHECK-LABEL: func.func @rows(
  // CHECK: weft.embedding_grad
  // CHECK-SAME: -> tensor<16x8xf64, #weft.sharding<#mesh, [{"tp"}, {}], unreduced = sum{"dp"}>>
  // CHECK: %[[G:.*]] = weft.embedding_grad
  // CHECK-SAME: -> tensor<16x8xf64, #weft.sharding<#mesh, [{}, {}], unreduced = sum{"dp"}>>
  // CHECK-NEXT: weft.reshard %[[G]] {{.*}} -> tensor<16x8xf64, #weft.sharding<#mesh, [{"dp"}, {}]>>
  func.func @rows(%x: tensor<2x4x8xf64>, %i: tensor<2x4xi32>) {
    %first = shard.sharding @grid split_axes = [[0]] : !shard.sharding
    %last = shard.sharding @grid split_axes = [[2]] : !shard.sharding
    %xs = shard.shard %x to %first : tensor<2x4x8xf64>
    %is = shard.shard %i to %first : tensor<2x4xi32>
    %a = weft.embedding_grad %xs[%is] : tensor<2x4x8xf64>[tensor<2x4xi32>] -> tensor<16x8xf64>
    %as = shard.shard %a to %last : tensor<16x8xf64>
    %b = weft.embedding_grad %xs[%is] : tensor<2x4x8xf64>[tensor<2x4xi32>] -> tensor<16x8xf64>
    %bs = shard.shard %b to %first : tensor<16x8xf64>
    return
  }

  // Of what nothing is said, a pending sum is reduced. A call's operands are brought to what its
  // function takes, wherever that stands.
  // CHECK-LABEL: func.func @caller(
  // CHECK: %[[P:.*]] = weft.contract
  // CHECK-NEXT: %[[R:.*]] = weft.reshard %[[P]] {{.*}}unreduced = sum{"tp"}>> -> tensor<4x4xf64, #weft.sharding<#mesh, [{}, {}]>>
  // CHECK-NEXT: %[[C:.*]] = weft.reshard %[[R]] {{.*}} -> tensor<4x4xf64, #weft.sharding<#mesh, [{"dp"}, {}]>>
  // CHECK-NEXT: weft.call @callee(%[[C]])
  func.func @caller(%x: tensor<4x8xf64>, %w: tensor<8x4xf64>) -> tensor<4x4xf64> {
    %columns = shard.sharding @grid split_axes = [[], [2]] : !shard.sharding
    %last = shard.sharding @grid split_axes = [[2]] : !shard.sharding
    %xs = shard.shard %x to %columns : tensor<4x8xf64>
    %ws = shard.shard %w to %last : tensor<8x4xf64>
    %p = weft.contract "bn,nk->bk"(%xs, %ws) : (tensor<4x8xf64>, tensor<8x4xf64>)
        -> tensor<4x4xf64>
    %r = weft.call @callee(%p) label "c" : (tensor<4x4xf64>) -> tensor<4x4xf64>
    return %r : tensor<4x4xf64>
  }
  func.func private @callee(%x: tensor<4x4xf64>) -> tensor<4x4xf64> {
    %rows = shard.sharding @grid split_axes = [[0]] : !shard.sharding
    %xs = shard.shard %x to %rows : tensor<4x4xf64>
    return %xs : tensor<4x4xf64>
  }
}

// -----

// Axes without names get some; a grid of one rank has none.
// CHECK: #mesh = #weft.mesh<"axis0"=2, "axis2"=3>
module {
  shard.grid @g(shape = 2x1x3)
}

// -----

// CHECK: #mesh = #weft.mesh<>
module {
  shard.grid @g(shape = 1)
}
