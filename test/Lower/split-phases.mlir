// RUN: weft-opt %s -split-phases -split-input-file | FileCheck %s -enable-var-scope
// RUN: weft-opt %s -split-phases=for-devices -split-input-file | FileCheck %s -enable-var-scope -check-prefix=DEVICES

// The example of the pass' description.
// CHECK-LABEL: func.func private @two_loops
// CHECK-SAME: %[[PHASE:[^:,]*]]: index, %[[BEGIN:[^:,]*]]: index, %[[END:[^:,]*]]: index)
// CHECK-SAME: weft.iterations = array<i64: 4, 8>
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[PHASE]], %{{.*}} : index
// CHECK: scf.if %[[FIRST]] {
// CHECK-NEXT: scf.for %{{.*}} = %[[BEGIN]] to %[[END]]
// CHECK: %[[SECOND:.*]] = arith.cmpi eq, %[[PHASE]], %{{.*}} : index
// CHECK: scf.if %[[SECOND]] {
// CHECK-NEXT: scf.for %{{.*}} = %[[BEGIN]] to %[[END]]
// For devices, one phase: its iterations 4 to 11 are those of the second loop.
// DEVICES-LABEL: func.func private @two_loops
// DEVICES-SAME: %{{[^:,]*}}: index, %[[BEGIN:[^:,]*]]: index, %[[END:[^:,]*]]: index)
// DEVICES-SAME: weft.iterations = array<i64: 12>
// DEVICES: scf.if
// DEVICES-NEXT: scf.for
// DEVICES: %[[LAST:.*]] = arith.constant 12 : index
// DEVICES: %[[BEFORE:.*]] = arith.cmpi slt, %[[BEGIN]], %[[LAST]]
// DEVICES: %[[FOUR:.*]] = arith.constant 4 : index
// DEVICES: %[[AFTER:.*]] = arith.cmpi sgt, %[[END]], %[[FOUR]]
// DEVICES: %[[OWN:.*]] = arith.andi %[[BEFORE]], %[[AFTER]]
// DEVICES: %[[FROM:.*]] = arith.maxsi
// DEVICES: %[[TO:.*]] = arith.minsi
// DEVICES: scf.if %[[OWN]] {
// DEVICES-NEXT: scf.for %{{.*}} = %[[FROM]] to %[[TO]]
func.func private @two_loops(%x: memref<4xf32>, %y: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
    memref.store %zero, %x[%i] : memref<4xf32>
  }
  scf.parallel (%i) = (%c0) to (%c8) step (%c1) {
    memref.store %zero, %y[%i] : memref<8xf32>
  }
  return
}

// -----

// One phase needs no question which; a loop inside is an ordinary one.
// CHECK-LABEL: func.func private @one_loop
// CHECK-SAME: %[[BEGIN:[^:,]*]]: index, %[[END:[^:,]*]]: index) attributes {weft.iterations = array<i64: 4>}
// CHECK-NOT: scf.if
// CHECK: memref.load
// CHECK: scf.for %{{.*}} = %[[BEGIN]] to %[[END]]
// CHECK: scf.for
// CHECK-NOT: scf.parallel
func.func private @one_loop(%s: memref<f32>, %x: memref<4x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %value = memref.load %s[] : memref<f32>
  scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
    scf.parallel (%j) = (%c0) to (%c8) step (%c1) {
      memref.store %value, %x[%i, %j] : memref<4x8xf32>
    }
  }
  return
}

// -----

// What stands between loops is a phase that runs once.
// CHECK-LABEL: func.func private @serial_between
// CHECK-SAME: weft.iterations = array<i64: 4, 1>
// CHECK: scf.if
// CHECK: scf.if
// CHECK-NEXT: memref.store
// CHECK-NEXT: memref.store
func.func private @serial_between(%s: memref<2xf32>, %x: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
    memref.store %zero, %x[%i] : memref<4xf32>
  }
  memref.store %zero, %s[%c0] : memref<2xf32>
  memref.store %zero, %s[%c1] : memref<2xf32>
  return
}

// -----

// The kernel's own memory is each part's own.
// CHECK-LABEL: func.func private @own_memory
// CHECK-SAME: weft.iterations = array<i64: 4>
// CHECK: memref.alloca
// CHECK-NEXT: memref.store
// CHECK-NEXT: scf.for
func.func private @own_memory(%x: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %own = memref.alloca() : memref<f32>
  memref.store %zero, %own[] : memref<f32>
  scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
    %value = memref.load %own[] : memref<f32>
    memref.store %value, %x[%i] : memref<4xf32>
  }
  return
}

// -----

// What a loop leaves in the kernel's own memory would be lost: nothing is shared.
// CHECK-LABEL: func.func private @own_memory_of_a_phase
// CHECK-SAME: weft.iterations = array<i64: 1>
// CHECK-NOT: scf.parallel
func.func private @own_memory_of_a_phase(%x: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %own = memref.alloca() : memref<f32>
  scf.parallel (%i) = (%c0) to (%c1) step (%c1) {
    memref.store %zero, %own[] : memref<f32>
  }
  scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
    %value = memref.load %own[] : memref<f32>
    memref.store %value, %x[%i] : memref<4xf32>
  }
  return
}

// -----

// The sum is read before all parts, but must be read after the first loop.
// CHECK-LABEL: func.func private @reads_what_a_loop_wrote
// CHECK-SAME: weft.iterations = array<i64: 1>
// CHECK-NOT: scf.parallel
// CHECK: scf.for %{{.*}} = %c0 to %c4
// CHECK: memref.load
// CHECK: scf.for %{{.*}} = %c0 to %c4
func.func private @reads_what_a_loop_wrote(%x: memref<4xf32>, %y: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
    memref.store %zero, %x[%i] : memref<4xf32>
  }
  %value = memref.load %x[%c0] : memref<4xf32>
  scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
    memref.store %value, %y[%i] : memref<4xf32>
  }
  return
}

// -----

// A loop's sum is used by a later one: nothing is shared.
// CHECK-LABEL: func.func private @value_of_a_phase
// CHECK-SAME: weft.iterations = array<i64: 1>
func.func private @value_of_a_phase(%x: memref<4xf32>, %y: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %sum = scf.for %i = %c0 to %c4 step %c1 iter_args(%before = %zero) -> f32 {
    memref.store %before, %x[%i] : memref<4xf32>
    scf.yield %before : f32
  }
  scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
    memref.store %sum, %y[%i] : memref<4xf32>
  }
  return
}

// -----

// A loop that says how many threads take a round together says so of its phase.
// CHECK-LABEL: func.func private @blocks
// CHECK-SAME: weft.iterations = array<i64: 4, 8>, weft.threads = array<i64: 0, 96>
// Phases of single threads and of blocks stay apart.
// DEVICES-LABEL: func.func private @blocks
// DEVICES-SAME: weft.iterations = array<i64: 4, 8>, weft.threads = array<i64: 0, 96>
func.func private @blocks(%x: memref<4xf32>, %y: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
    memref.store %zero, %x[%i] : memref<4xf32>
  }
  scf.parallel (%i) = (%c0) to (%c8) step (%c1) {
    memref.store %zero, %y[%i] : memref<8xf32>
  } {weft.threads = 96 : i64}
  return
}

// -----

// For devices the first and the third phase become one, and so do the others, which need them.
// DEVICES-LABEL: func.func private @two_by_two
// DEVICES-SAME: weft.iterations = array<i64: 12, 6>
func.func private @two_by_two(%x: memref<4xf32>, %y: memref<8xf32>, %s: memref<4xf32>,
                              %t: memref<2xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
    memref.store %zero, %x[%i] : memref<4xf32>
  }
  scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
    %0 = memref.load %x[%i] : memref<4xf32>
    memref.store %0, %s[%i] : memref<4xf32>
  }
  scf.parallel (%i) = (%c0) to (%c8) step (%c1) {
    memref.store %zero, %y[%i] : memref<8xf32>
  }
  scf.parallel (%i) = (%c0) to (%c2) step (%c1) {
    %0 = memref.load %y[%i] : memref<8xf32>
    memref.store %0, %t[%i] : memref<2xf32>
  }
  return
}

// -----

// What is read may not be overwritten beside it.
// DEVICES-LABEL: func.func private @overwrites
// DEVICES-SAME: weft.iterations = array<i64: 4, 4>
func.func private @overwrites(%x: memref<4xf32>, %y: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
    %0 = memref.load %x[%i] : memref<4xf32>
    memref.store %0, %y[%i] : memref<4xf32>
  }
  scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
    memref.store %zero, %x[%i] : memref<4xf32>
  }
  return
}

// -----

// Blocks of two such phases would need 12 KiB of shared memory each.
memref.global "private" @first : memref<1536xf32, 3> = uninitialized
memref.global "private" @second : memref<1536xf32, 3> = uninitialized
// DEVICES-LABEL: func.func private @much_shared_memory
// DEVICES-SAME: weft.iterations = array<i64: 4, 4>
func.func private @much_shared_memory(%x: memref<4xf32>, %y: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %first = memref.get_global @first : memref<1536xf32, 3>
  %second = memref.get_global @second : memref<1536xf32, 3>
  scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
    %0 = memref.load %first[%i] : memref<1536xf32, 3>
    memref.store %0, %x[%i] : memref<4xf32>
  }
  scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
    %0 = memref.load %second[%i] : memref<1536xf32, 3>
    memref.store %0, %y[%i] : memref<4xf32>
  }
  return
}

// -----

// Loops that write elements of their own are one phase of a device, unlike a loop that may write any.
// DEVICES-LABEL: func.func private @parts
// DEVICES-SAME: weft.iterations = array<i64: 6, 6>
// CHECK-LABEL: func.func private @parts
// CHECK-SAME: weft.iterations = array<i64: 4, 2, 6>
// CHECK-NOT: weft.apart
func.func private @parts(%x: memref<6xf32>, %y: memref<6xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c6 = arith.constant 6 : index
  scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
    %v = memref.load %x[%i] : memref<6xf32>
    memref.store %v, %y[%i] : memref<6xf32>
  } {weft.apart}
  scf.parallel (%i) = (%c0) to (%c2) step (%c1) {
    %j = arith.addi %i, %c4 : index
    %v = memref.load %x[%j] : memref<6xf32>
    memref.store %v, %y[%j] : memref<6xf32>
  } {weft.apart}
  scf.parallel (%i) = (%c0) to (%c6) step (%c1) {
    %v = memref.load %x[%i] : memref<6xf32>
    memref.store %v, %y[%i] : memref<6xf32>
  }
  return
}

// -----

// What one of them reads, none writes.
// DEVICES-LABEL: func.func private @reads
// DEVICES-SAME: weft.iterations = array<i64: 4, 2>
func.func private @reads(%x: memref<6xf32>, %y: memref<6xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
    %v = memref.load %x[%i] : memref<6xf32>
    memref.store %v, %y[%i] : memref<6xf32>
  } {weft.apart}
  scf.parallel (%i) = (%c0) to (%c2) step (%c1) {
    %j = arith.addi %i, %c4 : index
    %v = memref.load %y[%i] : memref<6xf32>
    memref.store %v, %x[%j] : memref<6xf32>
  } {weft.apart}
  return
}
