// RUN: weft-opt %s -split-phases -verify-diagnostics

// expected-error @below {{has loops for blocks of threads, but cannot be cut into phases}}
func.func private @kernel(%x: memref<4xf32>, %y: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
    memref.store %zero, %x[%i] : memref<4xf32>
  } {weft.threads = 32 : i64}
  %value = memref.load %x[%c0] : memref<4xf32>
  scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
    memref.store %value, %y[%i] : memref<4xf32>
  }
  return
}
