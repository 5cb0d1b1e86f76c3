//===- DeviceCode.h - kernels for CUDA devices ----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The Lower phase leaves of a kernel phases, one after another, whose iterations may run in any
// order and on any number of threads (weft::rt::KernelFunction). On a device each phase is an entry
// of its own, whose threads take turns at the iterations:
//
//   kernel_norm_0(coordinates, operands…, phase, begin, end)
//   ──▶  kernel_norm_0_phase_0<<<blocks, threads>>>(coordinates, buffers…, immediates…)
//        kernel_norm_0_phase_1<<<blocks, threads>>>(coordinates, buffers…, immediates…)
//
// with any number of blocks, of up to weft::rt::kBlockThreads threads.
//
// LLVM makes PTX of it, for the oldest architecture that is supported; the toolkit's assembler
// makes machine code of that for each architecture, and a driver does so for newer ones. No device
// is asked for anything.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_EMIT_DEVICECODE_H
#define WEFT_PIPELINE_EMIT_DEVICECODE_H

#include "weft/Pipeline/Emit/CudaToolkit.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace weft {

/// Those that machine code is made for: compute capability times ten.
inline constexpr unsigned kDeviceArchitectures[] = {80, 90, 100};

/// The oldest that PTX is for.
inline constexpr unsigned kPtxArchitecture = 80;

/// What an entry takes of a multiprocessor, as the assembler says.
struct EntryResources {
  std::string name;
  unsigned registers = 0;
  /// Of each thread, in memory: what the code asks for, and what the registers do not hold.
  unsigned stackBytes = 0, spillBytes = 0;
  /// Of each block.
  unsigned sharedBytes = 0;
};

/// Machine code for one architecture.
struct Cubin {
  unsigned architecture = 0;
  std::string bytes;
  /// What kernels keep in a device's memory from phase to phase.
  uint64_t keptBytes = 0;
  /// In the order of their names.
  std::vector<EntryResources> entries;
};

/// What an executable carries for devices.
struct DeviceImages {
  std::vector<Cubin> cubins;
  /// For devices that are newer than all of these, for architecture kPtxArchitecture and up.
  std::string ptx;
};

/// PTX of the kernels of `module`, which the Lower phase has made. Fails where a kernel calls a
/// function that `toolkit` has not.
llvm::Expected<std::string> emitPtx(mlir::ModuleOp module, const CudaToolkit &toolkit);

/// That PTX, and machine code for all of kDeviceArchitectures, which the assembler makes side by
/// side, in processes of its own. Fails with what the assembler says. Leaves no file behind.
llvm::Expected<DeviceImages> emitImages(mlir::ModuleOp module, const CudaToolkit &toolkit);

} // namespace weft

#endif // WEFT_PIPELINE_EMIT_DEVICECODE_H
