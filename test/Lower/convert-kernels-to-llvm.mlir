// RUN: weft-opt %s -convert-kernels-to-llvm | FileCheck %s
// RUN: weft-opt %s -convert-kernels-to-llvm=for-devices=true | FileCheck %s --check-prefix=DEVICES

// CHECK-LABEL: llvm.func @copy(
// CHECK-SAME: %[[X:[^:]*]]: !llvm.ptr {llvm.align = 64 : i64, llvm.noalias}, %{{[^:]*}}: i64,
// CHECK-SAME: %[[Y:[^:]*]]: !llvm.ptr
// CHECK: llvm.cond_br
// CHECK: llvm.load
// CHECK: llvm.store
func.func private @copy(%x: memref<4xf32> {llvm.align = 64 : i64, llvm.noalias}, %n: index,
    %y: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %0 = memref.load %x[%i] : memref<4xf32>
    memref.store %0, %y[%i] : memref<4xf32>
  }
  return
}

// CHECK-LABEL: llvm.func @bits(
// CHECK:         %[[BITS:.*]] = llvm.load {{.*}} -> i16
// CHECK:         %[[NUMBER:.*]] = llvm.bitcast %[[BITS]] : i16 to bf16
// CHECK:         %[[STORED:.*]] = llvm.bitcast %[[NUMBER]] : bf16 to i16
// CHECK:         llvm.store %[[STORED]], {{.*}} : i16
// DEVICES-LABEL: llvm.func @bits(
// DEVICES:         llvm.load {{.*}} -> bf16
// DEVICES:         llvm.store {{.*}} : bf16
func.func private @bits(%x: memref<4xbf16>, %y: memref<4xbf16>, %i: index) {
  %0 = memref.load %x[%i] : memref<4xbf16>
  memref.store %0, %y[%i] : memref<4xbf16>
  return
}
