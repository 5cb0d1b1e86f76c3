//===- Emit.h - from the LLVM dialect to an executable -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The last phase: each kernel becomes machine code in an object file of its own. An archive holds
// these files and that of the instruction table, and is linked with the runtime library into a
// program of its own. Kernels of the same code share one object file, and a cache keeps these files
// from compilation to compilation.
//
// The table defines
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
  /// The folder that keeps code from compilation to compilation; empty for none.
  std::string cacheFolder = "";
};

/// The name that stands for no cache, where a user may name a folder.
inline constexpr llvm::StringLiteral kNoCache = "none";

/// The folder that the environment variable WEFT_CACHE names, else `weft` in the user's folder for
/// caches; empty if WEFT_CACHE is "none" or the user has no such folder.
std::string defaultCacheFolder();

/// What a cache of code was good for.
struct CacheUse {
  /// How often code was found in it.
  size_t found = 0;
  /// What making that code took when it was made, in seconds.
  double savedSeconds = 0;
  /// The first thing that was wrong with the folder; empty if nothing was.
  std::string problem;
};

/// What emitting has come to.
struct EmitReport {
  /// Kernels of the program, and how many of them differ in their code.
  size_t kernels = 0, distinct = 0;
  /// Of these, those whose code was in the cache.
  size_t reused = 0;
  CacheUse cache;
};

/// Teaches the dialects of a lowered module how to become LLVM IR.
void registerEmitTranslations(mlir::DialectRegistry &registry);

/// Writes to `path` the archive of the object files of `module`, which the Lower phase has made
/// from the kernels of `program`. The same input gives the same bytes. Reports on the module what
/// fails: a processor that LLVM does not know, a kernel without code or with other operands than an
/// instruction gives it, a file that cannot be written. Warns if the cache cannot be used. The file
/// is there whole or not at all. For devices, gives the program what its code and the stacks of
/// that take of their memory.
llvm::FailureOr<EmitReport> emitArchive(mlir::ModuleOp module, rt::Program &program,
                                        const EmitOptions &options, llvm::StringRef path);

struct LinkOptions {
  /// What emitArchive wrote.
  std::string archivePath;
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

/// Merges the object files of `archivePath` into one, `objectPath`, by the same compiler.
llvm::LogicalResult mergeObjects(const LinkOptions &options, llvm::StringRef objectPath,
                                 llvm::function_ref<mlir::InFlightDiagnostic()> emitError);

} // namespace weft

#endif // WEFT_PIPELINE_EMIT_EMIT_H
