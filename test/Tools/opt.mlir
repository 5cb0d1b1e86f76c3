// weft-opt knows the passes of all phases and MLIR's own.
// RUN: weft-opt %s --canonicalize | FileCheck %s
// RUN: weft-opt --help | FileCheck %s --check-prefix=PASSES

// PASSES-DAG: --apply-plan
// PASSES-DAG: --build-gradients
// PASSES-DAG: --convert-kernels-to-llvm
// PASSES-DAG: --fuse-maps
// PASSES-DAG: --localize
// PASSES-DAG: --verify-import

// CHECK-LABEL: @f
// CHECK-NEXT: return
func.func @f() {
  %0 = weft.iota : tensor<4xi32>
  return
}
