// RUN: weft-opt %s -convert-kernels-to-llvm | FileCheck %s

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
