//===- Passes.td - from kernel functions to the LLVM dialect -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LOWER_PASSES_TD
#define WEFT_LOWER_PASSES_TD

include "mlir/Pass/PassBase.td"

def KeepKernelsPass : Pass<"keep-kernels", "::mlir::ModuleOp"> {
  let summary = "drops everything but kernel functions";
  let description = [{
    Before: the instruction table has been made from the module. Kernel functions are those with
    the attribute `weft.tied`. After: the module holds only kernel functions, also those of the
    modules of pipeline stages that it held, each name once: those of one name are equal (see
    share-kernels).

    ```mlir
    weft.variable parameter @w ["hidden"] : tensor<4xf32>
    func.func private @kernel_0(%x: tensor<4xf32>) -> tensor<4xf32>
        attributes {weft.tied = array<i64: -1>} { … }
    func.func @step() { … }
    ```

    becomes

    ```mlir
    func.func private @kernel_0(%x: tensor<4xf32>) -> tensor<4xf32>
        attributes {weft.tied = array<i64: -1>} { … }
    ```
  }];
}

def CopyForDevicesPass : Pass<"copy-for-devices", "::mlir::ModuleOp"> {
  let summary = "copies the kernels for devices";
  let description = [{
    Before: the module holds kernel functions. After: it also holds a module `@devices` with the
    same functions, which later passes convert to the form that devices run.

    ```mlir
    func.func private @kernel_0(%x: tensor<4xf32>) -> tensor<4xf32>
        attributes {weft.tied = array<i64: -1>} { … }
    ```

    becomes

    ```mlir
    func.func private @kernel_0(%x: tensor<4xf32>) -> tensor<4xf32>
        attributes {weft.tied = array<i64: -1>} { … }
    module @devices {
      func.func private @kernel_0(%x: tensor<4xf32>) -> tensor<4xf32>
          attributes {weft.tied = array<i64: -1>} { … }
    }
    ```
  }];
}

def LowerKernelsToLoopsPass : Pass<"lower-kernels-to-loops", "::mlir::ModuleOp"> {
  let summary = "turns kernel functions on tensors into loops on memrefs";
  let description = [{
    Before: each kernel function takes immediates (`index`) and local tensors of static shape,
    holds ops with a HostLoweringOpInterface and scalar code, and returns tensors. After: it
    takes the rank's mesh coordinates, then its arguments in order, a memref for each tensor,
    then a memref for each result that is not tied to an argument, and returns nothing. Loops
    whose rounds are independent are `scf.parallel`.
    Memrefs are distinct (`llvm.noalias`) and aligned to 64 bytes.

    A value that stays inside of the kernel must be a single element, because kernels get no memory
    besides their operands; or a map computes its elements where the only reader loads them, or
    takes them where its op stores them, if that op's lowering allows this.

    ```mlir
    func.func private @kernel_0(%layer: index, %x: tensor<4xf32>) -> tensor<4xf32>
        attributes {weft.tied = array<i64: -1>} {
      %y = weft.map ins(%x : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
      ^bb0(%0: f32):
        %1 = arith.mulf %0, %0 : f32
        weft.yield %1 : f32
      }
      return %y : tensor<4xf32>
    }
    ```

    becomes

    ```mlir
    func.func private @kernel_0(%coordinates: memref<0xi64> {…}, %layer: index,
                                %x: memref<4xf32> {…}, %y: memref<4xf32> {…}) {
      scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
        %0 = memref.load %x[%i] : memref<4xf32>
        %1 = arith.mulf %0, %0 : f32
        memref.store %1, %y[%i] : memref<4xf32>
      }
      return
    }
    ```

    For devices the rounds of a parallel loop are short. If a loop has the attribute `weft.threads`,
    a block of that many threads takes each round together: the threads get their numbers from
    `@weft_device_thread` and synchronize by `@weft_device_barrier`; the 32 threads of a warp
    exchange values by `@weft_device_shuffle` and synchronize by `@weft_device_warp_barrier`.
    `@weft_device_exp2` is a device's instruction for powers of two.
  }];
  let options = [
    Option<"forDevices", "for-devices", "bool", /*default=*/"false",
           "make code for the threads of devices">,
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
      "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
      "::mlir::vector::VectorDialect"];
}

def SplitPhasesPass : Pass<"split-phases", "::mlir::ModuleOp"> {
  let summary = "cuts kernels into phases whose iterations threads can share";
  let description = [{
    Before: functions on memrefs, made by `lower-kernels-to-loops`. An `scf.parallel` of one
    dimension from 0 is a loop whose rounds are independent; one in the entry block can be shared
    by threads.

    After: there is no `scf.parallel`. Each function takes three more indices, the number of a phase
    and the first and the end of its iterations, and runs just these; the attribute
    `weft.iterations` holds the number of iterations of each phase. A phase is one parallel loop of
    the entry block, or the code between two of them, which is one iteration. Code without effects
    outside of the function runs for every part. If one phase uses a value of another or memory of
    the function that another wrote, or if memory is read before the phase that writes it is over,
    the function is one phase of one iteration. The attribute `weft.threads` of a loop, the number
    of threads that take a round together, becomes an attribute of the function with a number for
    each phase, 0 for one thread.

    A device launches each phase by itself, so for devices up to 16 phases of equally many threads
    become one phase if none writes what another one touches. Loops with the attribute `weft.apart`
    may write one memref, as no two of them write the same element. The phase's iterations are those
    of all: here 12, of which the first 4 are those of the first loop.

    ```mlir
    func.func private @kernel_0(%x: memref<4xf32>, %y: memref<8xf32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %c8 = arith.constant 8 : index
      scf.parallel (%i) = (%c0) to (%c4) step (%c1) { … }
      scf.parallel (%i) = (%c0) to (%c8) step (%c1) { … }
      return
    }
    ```

    becomes

    ```mlir
    func.func private @kernel_0(%x: memref<4xf32>, %y: memref<8xf32>, %phase: index,
                                %begin: index, %end: index)
        attributes {weft.iterations = array<i64: 4, 8>} {
      %0 = arith.cmpi eq, %phase, %c0 : index
      scf.if %0 {
        scf.for %i = %begin to %end step %c1 { … }
      }
      %1 = arith.cmpi eq, %phase, %c1 : index
      scf.if %1 {
        scf.for %i = %begin to %end step %c1 { … }
      }
      return
    }
    ```
  }];
  let options = [
    Option<"forDevices", "for-devices", "bool", /*default=*/"false",
           "join phases that do not depend on each other">,
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def ApproximateMathPass : Pass<"approximate-math", "::mlir::ModuleOp"> {
  let summary = "turns float32 functions into arithmetic that vectorizes";
  let description = [{
    Before: functions of `math` on f32 and f64. After: f32 functions with polynomial approximations
    that are accurate to a few units of the last place are arithmetic; f64 functions are unchanged,
    and become calls of the C library later.

    ```mlir
    %1 = math.exp %0 : f32
    ```

    becomes about thirty operations of `arith`, and

    ```mlir
    %1 = math.exp %0 : f64
    ```

    stays. For devices only functions of vectors become arithmetic, and `math.tanh`: the toolkit has
    functions of scalars that take fewer instructions, but this one has a branch.
  }];
  let options = [
    Option<"forDevices", "for-devices", "bool", /*default=*/"false",
           "keep functions of scalars but math.tanh">,
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::vector::VectorDialect"];
}

def ExpandBF16Pass : Pass<"expand-bf16", "::mlir::ModuleOp"> {
  let summary = "turns conversions from and to bf16 into integer arithmetic";
  let description = [{
    Before: `arith.extf` and `arith.truncf` between bf16 and f32. After: shifts, and additions
    that round to the nearest, ties to even. The results are then the same bits on every processor,
    and the code vectorizes. LLVM's own code calls a function for each element where there is no
    instruction, and uses an instruction that flushes small numbers to zero where there is one.

    ```mlir
    %1 = arith.extf %0 : bf16 to f32
    ```

    becomes

    ```mlir
    %c16 = arith.constant 16 : i32
    %1 = arith.bitcast %0 : bf16 to i16
    %2 = arith.extui %1 : i16 to i32
    %3 = arith.shli %2, %c16 : i32
    %4 = arith.bitcast %3 : i32 to f32
    ```

    An `arith.select` of bf16 selects bits, because LLVM would convert there too.

    Devices have an instruction for rounding, which keeps small numbers: for them the rounding of a
    scalar becomes a call of `@weft_device_round`.
  }];
  let options = [
    Option<"forDevices", "for-devices", "bool", /*default=*/"false",
           "round scalars by an instruction of devices">,
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
                           "::mlir::vector::VectorDialect"];
}

def ConvertKernelsToLLVMPass : Pass<"convert-kernels-to-llvm", "::mlir::ModuleOp"> {
  let summary = "turns loops on memrefs into the LLVM dialect";
  let description = [{
    Before: functions on `index` and memrefs of static shape, in `scf`, `memref`, `arith`,
    `math` and `vector`. After: the module is in the LLVM dialect; an index is an i64, a memref
    argument a bare pointer.

    ```mlir
    func.func private @kernel_0(%x: memref<f32>) { … }
    ```

    becomes

    ```mlir
    llvm.func @kernel_0(%x: !llvm.ptr) attributes {sym_visibility = "private"} { … }
    ```

    On the host, loads and stores of bf16 move i16, the bits that expand-bf16 computes on, so that
    LLVM leaves them bits.
  }];
  let options = [
    Option<"forDevices", "for-devices", "bool", /*default=*/"false",
           "load and store bf16 as such, for which devices have instructions">,
  ];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::cf::ControlFlowDialect",
                           "::mlir::func::FuncDialect"];
}

#endif // WEFT_LOWER_PASSES_TD
