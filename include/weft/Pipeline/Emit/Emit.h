//===- Emit.h - from the LLVM dialect to an executable -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The last phase: each kernel becomes machine code in an object file of its own. An archive holds
// these files and the object file of the instruction table; the linker makes an executable of it
// and the runtime library. Kernels with the same code share one object file, and a cache keeps
// these files between compilations.
//
// Functions that write a file may leave a part of it if they fail: callers that need it whole or
// not at all pass the temporary path of an OutputFile (Driver).
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

/// The sanitizer of the program. Address also checks for undefined behaviour, but only in the
/// runtime: the code of kernels has none that could be instrumented.
enum class Sanitizer { None, Address, Thread };

/// "address", "thread", or "none".
llvm::StringRef nameOf(Sanitizer sanitizer);

struct EmitOptions {
  /// For Cuda, kernels are emitted twice: as images for devices, and for the host, where tests run
  /// them instead. findCudaToolkit finds the toolkit.
  TargetKind target = TargetKind::Host;
  /// The processor by LLVM's name, or "native" for the one of this machine with all its features.
  std::string cpu = "native";
  /// Features to add to or take from the processor's: "+avx512f,-fma".
  std::string features = "";
  /// 0 to 3, as in C compilers. 3 takes half as long again as 2, and the code is no faster.
  unsigned optLevel = 2;
  Sanitizer sanitize = Sanitizer::None;
  /// The multiprocessors of a device, if known: a device reserves stacks for as many threads as may
  /// run on it.
  std::optional<int64_t> multiprocessors = {};
  /// The folder of the code cache; empty for none.
  std::string cacheFolder = "";
};

/// The value that stands for no cache where a user may name a folder.
inline constexpr llvm::StringLiteral kNoCache = "none";

/// Returns the folder that the environment variable WEFT_CACHE names, else `weft` in the user's
/// cache folder; empty if WEFT_CACHE is "none" or the user has no such folder.
std::string defaultCacheFolder();

/// Statistics of the code cache.
struct CacheUse {
  /// The number of hits.
  size_t found = 0;
  /// The seconds that it took to make the code of these hits.
  double savedSeconds = 0;
  /// The first error with the folder; empty if there was none.
  std::string problem;
};

/// Statistics of emitArchive.
struct EmitReport {
  /// The number of kernels of the program, and of kernels with different code.
  size_t kernels = 0, distinct = 0;
  /// How many of the `distinct` kernels came from the cache.
  size_t reused = 0;
  CacheUse cache;
};

/// Registers the translations of a lowered module's dialects to LLVM IR.
void registerEmitTranslations(mlir::DialectRegistry &registry);

/// Writes to `path` the archive of the object files of `module`, which the Lower phase has made
/// from the kernels that all `programs` share, those of an executable. The same input gives the
/// same bytes. On errors emits a diagnostic at the module: a processor unknown to LLVM, a kernel
/// without code or with other operands than an instruction has, a file that cannot be written.
/// Warns if the cache cannot be used. For devices, sets in `programs` how much device memory the
/// code and the stacks take.
llvm::FailureOr<EmitReport> emitArchive(mlir::ModuleOp module,
                                        llvm::MutableArrayRef<rt::Program> programs,
                                        const EmitOptions &options, llvm::StringRef path);

struct LinkOptions {
  /// The archive that emitArchive wrote.
  std::string archivePath;
  /// Path of libweft-rt.a.
  std::string runtimeLibraryPath;
  std::string outputPath;
  Sanitizer sanitize = Sanitizer::None;
};

/// Links an executable with the system's C++ compiler: the one that the environment variable CXX
/// names, or the first of c++, clang++-22 and g++ found on the path. Reports errors by `emitError`.
llvm::LogicalResult linkExecutable(const LinkOptions &options,
                                   llvm::function_ref<mlir::InFlightDiagnostic()> emitError);

/// Merges the object files of `archivePath` into one, `objectPath`, with the same compiler.
llvm::LogicalResult mergeObjects(const LinkOptions &options, llvm::StringRef objectPath,
                                 llvm::function_ref<mlir::InFlightDiagnostic()> emitError);

} // namespace weft

#endif // WEFT_PIPELINE_EMIT_EMIT_H
