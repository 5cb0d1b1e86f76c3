// The steps that make a program of a scheduled module, each on what the one before it leaves. The machine
// computes 1e12 operations, moves 1e12 bytes and sends 1e11 bytes in a second, with 1 us of latency.

// DEFINE: %{steps} =
// DEFINE: %{translate} = weft-translate --program-to-text %s --step-flops=1e9 --program-times \
// DEFINE:   --machine=%S/Inputs/machine.textproto --program-steps=%{steps}

// flatten: one instruction after another, and a place for every buffer. %2 and %3 share one.
// RUN: weft-translate --program-to-text %s --step-flops=1e9 --program-times | FileCheck %s --check-prefix=FLATTEN
// FLATTEN:      program 'tiny'
// FLATTEN-NEXT: mesh dp=2
// FLATTEN:      flops 1e+09 peak 0{{$}}
// FLATTEN-NEXT: arena 12582912
// FLATTEN:      buffer %2 f32 4194304 at 8388608 parameter copy
// FLATTEN-NEXT: buffer %3 f32 4194304 at 8388608 parameter copy
// FLATTEN:      init:
// FLATTEN-NEXT:   0: kernel @kernel_fill_0 -> %0
// FLATTEN-NEXT:   1: kernel @kernel_fill_0 -> %1
// FLATTEN-NEXT: step:
// FLATTEN-NEXT:   0: kernel @kernel_map_0 %0 -> %2  "step (map)"
// FLATTEN-NEXT:   1: all-reduce sum f32 [1048576] over {dp} %2 -> %0  "step (all_reduce)"
// FLATTEN-NEXT:   2: kernel @kernel_map_0 %1 -> %3
// FLATTEN-NEXT:   3: kernel @kernel_map_0 %3 -> %1
// FLATTEN-NEXT: times:
// FLATTEN:        step 1: 0.000 us

// describe-device: the peak of the machine's devices, where it is known what a step asks for.
// REDEFINE: %{steps} = describe-device
// RUN: %{translate} | FileCheck %s --check-prefix=DEVICE --implicit-check-not='beside it'
// DEVICE: flops 1e+09 peak 1e+12
// DEVICE: step 1: 0.000 us

// RUN: weft-translate --program-to-text %s --machine=%S/Inputs/machine.textproto --program-steps=%{steps} | FileCheck %s --check-prefix=NO-FLOPS
// NO-FLOPS: flops 0 peak 0

// predict-times: a map reads and writes 8 MiB; the ranks send half of 4 MiB twice.
// REDEFINE: %{steps} = describe-device,predict-times
// RUN: %{translate} | FileCheck %s --check-prefix=TIMES --implicit-check-not='on communication'
// TIMES:      init 0: 4.194 us
// TIMES-NEXT: init 1: 4.194 us
// TIMES-NEXT: step 0: 8.389 us
// TIMES-NEXT: step 1: 43.943 us
// TIMES-NEXT: step 2: 8.389 us
// TIMES-NEXT: step 3: 8.389 us

// predict-memory: what the machine's file says; code and its stacks are known only when they are emitted.
// REDEFINE: %{steps} = describe-device,predict-times,predict-memory
// RUN: %{translate} | FileCheck %s --check-prefix=MEMORY --implicit-check-not='on communication'
// MEMORY:      arena 12582912
// MEMORY-NEXT: beside it context 1000
// MEMORY-NEXT: beside it libraries 2000
// MEMORY-NEXT: beside it communicators 3000
// MEMORY-NEXT: beside it inputs 0
// MEMORY-NEXT: beside it code unknown
// MEMORY-NEXT: beside it stacks unknown

// use-streams: the all-reduce runs beside the two kernels behind it, so that %2 and %3 share no bytes.
// REDEFINE: %{steps} = describe-device,predict-times,predict-memory,use-streams
// RUN: %{translate} | FileCheck %s --check-prefix=STREAMS
// STREAMS:      arena 16777216
// STREAMS:      buffer %2 f32 4194304 at 8388608 parameter copy
// STREAMS-NEXT: buffer %3 f32 4194304 at 12582912 parameter copy
// STREAMS:      0: kernel @kernel_map_0 %0 -> %2  "
// STREAMS-NEXT: 1: all-reduce sum f32 [1048576] over {dp} %2 -> %0 on communication after 0  "
// STREAMS-NEXT: 2: kernel @kernel_map_0 %1 -> %3  "
// STREAMS-NEXT: 3: kernel @kernel_map_0 %3 -> %1  "

// REDEFINE: %{steps} = guess-times
// RUN: not %{translate} 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: unknown step 'guess-times', expected one of describe-device, predict-times, predict-memory, use-streams
// RUN: not weft-translate --program-to-text %s --program-steps=predict-times 2>&1 | FileCheck %s --check-prefix=NO-MACHINE
// NO-MACHINE: expected --machine=FILE beside --program-steps
// RUN: sed '/^links/d; s/devices_per_node: 2/devices_per_node: 1/' %S/Inputs/machine.textproto > %t.machine
// RUN: not weft-translate --program-to-text %s --program-steps=predict-times --machine=%t.machine 2>&1 | FileCheck %s --check-prefix=FEW
// FEW: the program is for 2 ranks, but machine 'two' has 1 device

#mesh = #weft.mesh<"dp" = 2>
#vector = affine_map<(i) -> (i)>
module @tiny attributes {weft.mesh = #mesh} {
  weft.variable parameter @x ["hidden"] : tensor<1048576xf32, #weft.sharding<#mesh, [{}]>>
  weft.variable parameter @y ["hidden"] : tensor<1048576xf32, #weft.sharding<#mesh, [{}]>>
  func.func private @kernel_map_0(%x: tensor<1048576xf32>) -> tensor<1048576xf32>
      attributes {weft.tied = array<i64: -1>} {
    %0 = weft.map ins(%x : tensor<1048576xf32>) maps [#vector] -> tensor<1048576xf32> {
    ^bb0(%a: f32):
      %1 = arith.addf %a, %a : f32
      weft.yield %1 : f32
    }
    return %0 : tensor<1048576xf32>
  }
  func.func private @kernel_fill_0() -> tensor<1048576xf32>
      attributes {weft.tied = array<i64: -1>} {
    %0 = weft.fill constant 1.0 : tensor<1048576xf32>
    return %0 : tensor<1048576xf32>
  }
  func.func @init() {
    %0 = weft.launch @kernel_fill_0() tied [-1] : () -> tensor<1048576xf32>
    weft.assign @x, %0 : tensor<1048576xf32>
    %1 = weft.launch @kernel_fill_0() tied [-1] : () -> tensor<1048576xf32>
    weft.assign @y, %1 : tensor<1048576xf32>
    return
  }
  func.func @step() {
    %0 = weft.read @x : tensor<1048576xf32>
    %1 = weft.read @y : tensor<1048576xf32>
    %2 = weft.launch @kernel_map_0(%0) tied [-1] : (tensor<1048576xf32>) -> tensor<1048576xf32>
    %3 = weft.all_reduce sum %2 over ["dp"] of #mesh : tensor<1048576xf32> -> tensor<1048576xf32>
    %4 = weft.launch @kernel_map_0(%1) tied [-1] : (tensor<1048576xf32>) -> tensor<1048576xf32>
    %5 = weft.launch @kernel_map_0(%4) tied [-1] : (tensor<1048576xf32>) -> tensor<1048576xf32>
    weft.assign @x, %3 : tensor<1048576xf32>
    weft.assign @y, %5 : tensor<1048576xf32>
    return
  }
}
