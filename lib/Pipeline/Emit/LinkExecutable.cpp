//===- LinkExecutable.cpp - links with the system's C++ compiler ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Diagnostics.h"
#include "weft/Pipeline/Emit/Emit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"

namespace weft {

using namespace llvm;

namespace {

/// Returns the path of the C++ compiler to link with; fails if there is none.
Expected<std::string> findCompiler(Sanitizer sanitize) {
  if (std::optional<std::string> chosen = sys::Process::GetEnv("CXX"); chosen && !chosen->empty()) {
    if (ErrorOr<std::string> path = sys::findProgramByName(*chosen)) {
      return *path;
    }
    return createStringError("found no C++ compiler '" + *chosen + "', which CXX names");
  }
  // The compiler must have the sanitizer library of LLVM, which instrumented the kernels.
  SmallVector<StringRef> names = {"c++", "clang++-22", "g++"};
  if (sanitize != Sanitizer::None) {
    names = {"clang++-22", "clang++"};
  }
  for (StringRef name : names) {
    if (ErrorOr<std::string> path = sys::findProgramByName(name)) {
      return *path;
    }
  }
  return createStringError("found no C++ compiler: tried " + llvm::join(names, ", ") +
                           "; CXX may name another");
}

SmallVector<std::string> makeArguments(const LinkOptions &options) {
  SmallVector<std::string> arguments = {"-Wl,--whole-archive",
                                        options.archivePath,
                                        "-Wl,--no-whole-archive",
                                        options.runtimeLibraryPath,
                                        "-ldnnl",
                                        "-lgomp",
                                        "-lm",
                                        "-lpthread",
                                        "-ldl"};
  // The program loads some libraries only if asked to: it looks beside itself, then beside the
  // runtime.
  SmallString<128> folder(sys::path::parent_path(options.runtimeLibraryPath));
  if (!sys::fs::make_absolute(folder)) {
    arguments.push_back(("-Wl,--enable-new-dtags,-rpath,$ORIGIN:" + folder).str());
  }
  if (options.sanitize == Sanitizer::Address) {
    arguments.push_back("-fsanitize=address,undefined");
  } else if (options.sanitize == Sanitizer::Thread) {
    arguments.push_back("-fsanitize=thread");
  }
  return arguments;
}

/// Returns the first lines of the compiler's output.
std::string firstLines(StringRef path) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> text = MemoryBuffer::getFile(path);
  constexpr size_t kMost = 2000;
  return text ? (*text)->getBuffer().take_front(kMost).trim().str() : "";
}

} // namespace

StringRef nameOf(Sanitizer sanitizer) {
  static constexpr StringLiteral names[] = {"none", "address", "thread"};
  return names[static_cast<size_t>(sanitizer)];
}

/// Runs the C++ compiler for `sanitize` on `inputs`, with `arguments`.
static LogicalResult runCompiler(Sanitizer sanitize, ArrayRef<std::string> inputs,
                                 ArrayRef<std::string> arguments, StringRef outputPath,
                                 function_ref<mlir::InFlightDiagnostic()> emitError) {
  Expected<std::string> compiler = findCompiler(sanitize);
  if (!compiler) {
    return emitError() << "cannot link '" << outputPath << "': " << toString(compiler.takeError());
  }
  for (const std::string &input : inputs) {
    if (!sys::fs::exists(input)) {
      return emitError() << "cannot link '" << outputPath << "': there is no '" << input << "'";
    }
  }
  SmallString<128> log;
  if (std::error_code code = sys::fs::createTemporaryFile("weft-link", "log", log)) {
    return emitError() << "cannot write a temporary file: " << code.message();
  }
  FileRemover removeLog(log);

  SmallVector<StringRef> command = {*compiler};
  append_range(command, arguments);
  append_range(command, ArrayRef<StringRef>{"-o", outputPath});
  std::string error;
  int status = sys::ExecuteAndWait(*compiler, command, /*Env=*/std::nullopt,
                                   {std::nullopt, StringRef(log), StringRef(log)},
                                   /*SecondsToWait=*/0, /*MemoryLimit=*/0, &error);
  if (status != 0) {
    return emitError() << "cannot link '" << outputPath << "': '" << *compiler
                       << "' failed: " << (error.empty() ? firstLines(log) : error);
  }
  return success();
}

LogicalResult linkExecutable(const LinkOptions &options,
                             function_ref<mlir::InFlightDiagnostic()> emitError) {
  return runCompiler(options.sanitize, {options.archivePath, options.runtimeLibraryPath},
                     makeArguments(options), options.outputPath, emitError);
}

LogicalResult mergeObjects(const LinkOptions &options, StringRef objectPath,
                           function_ref<mlir::InFlightDiagnostic()> emitError) {
  return runCompiler(options.sanitize, {options.archivePath},
                     {"-r", "-nostdlib", "-Wl,--whole-archive", options.archivePath}, objectPath,
                     emitError);
}

} // namespace weft
