// RUN: weft-opt %s -split-input-file -search-shardings -verify-plan | FileCheck %s

// What is transferred is as it is, but not pending: its sum is reduced before.

#mesh = #weft.mesh<"tp"=2>
#columns = #weft.sharding<#mesh, [{}, {"tp"}]>
module attributes {weft.mesh = #mesh} {
  weft.variable parameter @x ["sequence", "hidden"] : tensor<128x32xf64, #columns>
  // CHECK-LABEL: func.func @step
  // CHECK:         %[[X:.*]] = weft.read @x : tensor<128x32xf64, #weft.sharding<#mesh, [{}, {"tp"}]>>
  // CHECK-NEXT:    %[[Y:.*]] = weft.transfer %[[X]] from 0 to 1 : tensor<128x32xf64, #weft.sharding<#mesh, [{}, {"tp"}]>>
  // CHECK-NEXT:    %[[PARTS:.*]] = weft.contract "sk->s"(%[[Y]]) {{.*}}unreduced = sum{"tp"}>>
  // CHECK-NEXT:    %[[SUM:.*]] = weft.reshard %[[PARTS]]
  // CHECK-NEXT:    weft.transfer %[[SUM]] from 1 to 0
  func.func @step() {
    %x = weft.read @x : tensor<128x32xf64>
    %0 = weft.transfer %x from 0 to 1 : tensor<128x32xf64>
    %1 = weft.contract "sk->s"(%0) : (tensor<128x32xf64>) -> tensor<128xf64>
    %2 = weft.transfer %1 from 1 to 0 : tensor<128xf64>
    weft.observe "sums", %2 : tensor<128xf64>
    return
  }
}

// -----

// Where stages split a value differently, the smaller shard is transferred: the sender has it and the receiver gathers,
// or the sender slices.

#mesh = #weft.mesh<"a"=2, "b"=2>
#quarters = #weft.sharding<#mesh, [{"a", "b"}, {}]>
#halves = #weft.sharding<#mesh, [{"a"}, {}]>
module attributes {weft.mesh = #mesh} {
  weft.variable parameter @first ["sequence", "hidden"] : tensor<128x32xf64, #quarters>
  weft.variable parameter @second ["sequence", "hidden"] : tensor<128x32xf64, #halves>
  // CHECK-LABEL: func.func @step
  // CHECK:         %[[X:.*]] = weft.read @first
  // CHECK-NEXT:    %[[Y:.*]] = weft.transfer %[[X]] from 0 to 1 : tensor<128x32xf64, #weft.sharding<#mesh{{[0-9]*}}, [{"a", "b"}, {}]>>
  // CHECK-NEXT:    %[[Z:.*]] = weft.reshard %[[Y]] : {{.*}} -> tensor<128x32xf64, #weft.sharding<#mesh{{[0-9]*}}, [{"a"}, {}]>>
  // CHECK-NEXT:    weft.assign @second, %[[Z]]
  // CHECK-NEXT:    %[[X:.*]] = weft.read @second
  // CHECK-NEXT:    %[[Y:.*]] = weft.reshard %[[X]] : {{.*}} -> tensor<128x32xf64, #weft.sharding<#mesh{{[0-9]*}}, [{"a", "b"}, {}]>>
  // CHECK-NEXT:    %[[Z:.*]] = weft.transfer %[[Y]] from 1 to 0 : tensor<128x32xf64, #weft.sharding<#mesh{{[0-9]*}}, [{"a", "b"}, {}]>>
  // CHECK-NEXT:    weft.assign @first, %[[Z]]
  func.func @step() {
    %x = weft.read @first : tensor<128x32xf64>
    %0 = weft.transfer %x from 0 to 1 : tensor<128x32xf64>
    weft.assign @second, %0 : tensor<128x32xf64>
    %y = weft.read @second : tensor<128x32xf64>
    %1 = weft.transfer %y from 1 to 0 : tensor<128x32xf64>
    weft.assign @first, %1 : tensor<128x32xf64>
    return
  }
}
