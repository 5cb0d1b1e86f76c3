//===- CompileToFile.cpp - descriptions to a file ---------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Driver/CompileToFile.h"

#include "weft/Driver/Compilation.h"
#include "weft/Driver/OutputFile.h"

#include <chrono>

using namespace weft;

namespace {

/// The files of a compilation to a program; each output is moved to its place at the end.
struct ProgramFiles {
  OutputFile program, plan;
  /// The object files between the compiler and the linker, no output.
  FileBeside archive;
  /// Empty where no object file is kept.
  std::optional<OutputFile> object;

  static llvm::Expected<ProgramFiles> create(const std::string &path, bool keepsObject) {
    auto program = OutputFile::create(path);
    if (!program) {
      return program.takeError();
    }
    auto plan = OutputFile::create(path + ".plan.textproto");
    if (!plan) {
      return plan.takeError();
    }
    auto archive = FileBeside::create(path + ".a");
    if (!archive) {
      return archive.takeError();
    }
    ProgramFiles files{std::move(*program), std::move(*plan), std::move(*archive), std::nullopt};
    if (keepsObject) {
      auto object = OutputFile::create(path + ".o");
      if (!object) {
        return object.takeError();
      }
      files.object.emplace(std::move(*object));
    }
    return files;
  }
};

} // namespace

llvm::Expected<CompileReport> weft::compileToProgram(const CompileOptions &options,
                                                     const Descriptions &descriptions) {
  auto start = std::chrono::steady_clock::now();
  auto files = ProgramFiles::create(options.output, options.keepObject);
  if (!files) {
    return files.takeError();
  }
  Compilation compilation(options, descriptions);
  if (failed(compilation.begin()) || failed(compilation.runPhases()) ||
      failed(compilation.emit(files->archive.getPath(), files->program.getTemporaryPath(),
                              files->object ? files->object->getTemporaryPath() : ""))) {
    return makeSilentError();
  }
  if (llvm::Error error = files->plan.write(compilation.getPrograms().front().planText)) {
    return error;
  }
  // The program is moved last: if it exists, so do the others.
  if (llvm::Error error = files->plan.commit()) {
    return error;
  }
  if (files->object) {
    if (llvm::Error error = files->object->commit()) {
      return error;
    }
  }
  if (llvm::Error error = files->program.commit()) {
    return error;
  }
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return CompileReport{compilation.getPrograms(), compilation.getEmitReport(), seconds.count()};
}

llvm::Error weft::compileToModule(const CompileOptions &options, const Descriptions &descriptions) {
  std::optional<OutputFile> file;
  if (!options.output.empty() && options.output != "-") {
    auto created = OutputFile::create(options.output);
    if (!created) {
      return created.takeError();
    }
    file.emplace(std::move(*created));
  }
  Compilation compilation(options, descriptions);
  if (failed(compilation.begin()) || failed(compilation.runPhases())) {
    return makeSilentError();
  }
  std::string text;
  llvm::raw_string_ostream stream(text);
  // With locations, so that a later start knows the names of the model's parts.
  compilation.getModule().print(stream, mlir::OpPrintingFlags().enableDebugInfo());
  if (!file) {
    llvm::outs() << text;
    return llvm::Error::success();
  }
  if (llvm::Error error = file->write(text)) {
    return error;
  }
  return file->commit();
}
