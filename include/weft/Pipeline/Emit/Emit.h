//===- Emit.h - from the LLVM dialect to an executable -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The last phase: kernels become machine code in an object file, beside the instruction table,
// and the object is linked with the runtime library into a program of its own.
//
// The object defines
//   weft_kernels        array of weft::rt::KernelFunction, in the order of Program::kernels
//   weft_program        the bytes of weft::rt::serialize
//   weft_program_size   their number, uint64_t
//
// and for CUDA devices also
//
//   weft_images         array of weft::rt::DeviceImage
//   weft_image_count    their number, uint64_t
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_EMIT_EMIT_H
#define WEFT_PIPELINE_EMIT_EMIT_H

#include <optional>
#include <string>

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "weft-rt/Program.h"
#include "weft/Pipeline/Target.h"

namespace weft {

/// What watches the program while it runs. Address watches for undefined behaviour, too, in the
/// runtime alone: the code of kernels has none that could be instrumented.
enum class Sanitizer { None, Address, Thread };

/// "address", "thread", or "none".
llvm::StringRef nameOf(Sanitizer sanitizer);

struct EmitOptions {
  /// For Cuda kernels are emitted twice: as images for devices, and for the host, which is what
  /// tests run in their place. The toolkit is looked for as findCudaToolkit says.
  TargetKind target = TargetKind::Host;
  /// Processor by LLVM's name for it, or "native" for the one that this runs on, with all that it
  /// can do.
  std::string cpu = "native";
  /// Features to add to or take from the processor's: "+avx512f,-fma".
  std::string features = "";
  /// 0 to 3, as compilers count. 3 takes half as long again as 2, for code that is no faster.
  unsigned optLevel = 2;
  Sanitizer sanitize = Sanitizer::None;
  /// Of a device, if that is known: each has stacks for as many threads as may run on it.
  std::optional<int64_t> multiprocessors = {};
};

/// Teaches the dialects of a lowered module how to become LLVM IR.
void registerEmitTranslations(mlir::DialectRegistry &registry);

/// Writes the object file of `module`, which the Lower phase has made from the kernels of
/// `program`. Reports on the module what fails: a processor that LLVM does not know, a kernel
/// without code or with other operands than an instruction gives it, a file that cannot be
/// written. The file is there whole or not at all. For devices, gives the program what its code and
/// the stacks of that take of their memory.
llvm::LogicalResult emitObject(mlir::ModuleOp module, rt::Program &program,
                               const EmitOptions &options, llvm::StringRef path);

struct LinkOptions {
  std::string objectPath;
  /// libweft-rt.a.
  std::string runtimeLibraryPath;
  std::string outputPath;
  Sanitizer sanitize = Sanitizer::None;
};

/// Links an executable by the system's C++ compiler: the one that the environment variable CXX
/// names, or the first of c++, clang++-22 and g++ that there is. Reports where `emitError` says.
/// The executable is there whole or not at all.
llvm::LogicalResult linkExecutable(const LinkOptions &options,
                                   llvm::function_ref<mlir::InFlightDiagnostic()> emitError);

} // namespace weft

#endif // WEFT_PIPELINE_EMIT_EMIT_H
