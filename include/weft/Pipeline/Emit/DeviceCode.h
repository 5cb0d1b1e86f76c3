//===- DeviceCode.h - kernels for CUDA devices ----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The Lower phase cuts a kernel into phases, one after another, whose iterations may run in any
// order and on any number of threads (weft::rt::KernelFunction). On a device each phase is an entry
// of its own, whose threads take turns at the iterations:
//
//   kernel_norm_0(coordinates, operands…, phase, begin, end)
//   ──▶  kernel_norm_0_phase_0<<<blocks, threads>>>(coordinates, buffers…, immediates…)
//        kernel_norm_0_phase_1<<<blocks, threads>>>(coordinates, buffers…, immediates…)
//
// with any number of blocks, of up to weft::rt::kBlockThreads threads.
//
// LLVM compiles this to PTX for the oldest supported architecture; the toolkit's assembler compiles
// the PTX to machine code for each architecture, and a driver does so for newer ones. No device is
// needed here.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_EMIT_DEVICECODE_H
#define WEFT_PIPELINE_EMIT_DEVICECODE_H

#include "weft/Pipeline/Emit/CudaToolkit.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace weft {

/// The architectures that machine code is made for: compute capability times ten.
inline constexpr unsigned kDeviceArchitectures[] = {80, 90, 100};

/// The oldest architecture that the PTX supports.
inline constexpr unsigned kPtxArchitecture = 80;

/// The resources of a multiprocessor that an entry takes, as the assembler reports them.
struct EntryResources {
  std::string name;
  unsigned registers = 0;
  /// In memory, for each thread: the stack that the code asks for, and spilled registers.
  unsigned stackBytes = 0, spillBytes = 0;
  /// For each block.
  unsigned sharedBytes = 0;
};

/// Machine code for one architecture.
struct Cubin {
  unsigned architecture = 0;
  std::string bytes;
  /// Bytes of device memory that kernels keep from phase to phase.
  uint64_t keptBytes = 0;
  /// Sorted by name.
  std::vector<EntryResources> entries;
};

/// The code for devices in an executable.
struct DeviceImages {
  std::vector<Cubin> cubins;
  /// For devices newer than all `cubins`: architecture kPtxArchitecture and up.
  std::string ptx;
};

/// Returns the PTX of the kernels of `module`, the result of the Lower phase. Fails if a kernel
/// calls a function that `toolkit` lacks.
llvm::Expected<std::string> emitPtx(mlir::ModuleOp module, const CudaToolkit &toolkit);

/// Returns that PTX and machine code for all of kDeviceArchitectures, which concurrent processes of
/// the assembler make. Fails with the assembler's message. Leaves no file behind.
llvm::Expected<DeviceImages> emitImages(mlir::ModuleOp module, const CudaToolkit &toolkit);

} // namespace weft

#endif // WEFT_PIPELINE_EMIT_DEVICECODE_H
