// The module of split-stages-chunks: two chunks of each of two stages. Both micro-batches pass through the first
// chunks before they pass through the second ones.
// RUN: weft-opt %S/../Plan/split-stages-chunks.mlir -split-stages=placement=0,1,0,1 --order-stages | FileCheck %s
// CHECK-LABEL: func.func @step()
// CHECK:      %[[A0:.*]] = weft.call @step_forward_0({{.*}}) label "micro-batch 0"
// CHECK-NEXT: weft.transfer %[[A0]] from 0 to 1
// CHECK-NEXT: %[[A1:.*]] = weft.call @step_forward_0({{.*}}) label "micro-batch 1"
// CHECK-NEXT: %[[B0:.*]] = weft.call @step_forward_1({{.*}}) label "micro-batch 0"
// CHECK-NEXT: weft.transfer %[[A1]] from 0 to 1
// CHECK-NEXT: %[[T:.*]] = weft.transfer %[[B0]] from 1 to 0
// CHECK-NEXT: %[[C0:.*]] = weft.call @step_forward_2({{.*}}, %[[T]]) label "micro-batch 0"
// CHECK-NEXT: %[[B1:.*]] = weft.call @step_forward_1({{.*}}) label "micro-batch 1"
// CHECK-NEXT: weft.transfer %[[C0]] from 0 to 1
// CHECK-NEXT: weft.transfer %[[B1]] from 1 to 0
// CHECK-NEXT: weft.call @step_forward_2({{.*}}) label "micro-batch 1"
// CHECK-NEXT: weft.call @step_forward_3({{.*}}) label "micro-batch 0"
// CHECK:      weft.assign @layers.0
