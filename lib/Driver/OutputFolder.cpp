//===- OutputFolder.cpp - a folder that is written whole or not at all ----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Driver/OutputFolder.h"

#include "weft/Driver/CommandLine.h"
#include "weft/Driver/OutputFile.h"

#include "llvm/Support/FileSystem.h"

#include <unistd.h>

using namespace weft;

namespace {

/// "a/b/" and "a/b" are one folder, whose temporary name must not lie inside of it.
llvm::StringRef withoutSlashes(llvm::StringRef path) {
  llvm::StringRef trimmed = path.rtrim('/');
  return trimmed.empty() ? path : trimmed;
}

/// Returns true if a folder is empty; false also if it cannot be listed.
bool isEmptyFolder(llvm::StringRef path) {
  std::error_code code;
  llvm::sys::fs::directory_iterator entry(path, code);
  return !code && entry == llvm::sys::fs::directory_iterator();
}

} // namespace

llvm::Expected<OutputFolder> OutputFolder::create(llvm::StringRef path) {
  path = withoutSlashes(path);
  if (llvm::sys::fs::exists(path) && !isEmptyFolder(path)) {
    return makeError("cannot write '" + path + "': it exists already, and is no empty folder");
  }
  std::string temporaryPath = (path + "." + llvm::Twine(::getpid()) + ".tmp").str();
  if (std::error_code code =
          llvm::sys::fs::create_directory(temporaryPath, /*IgnoreExisting=*/false)) {
    return makeError("cannot write '" + path + "': " + code.message());
  }
  return OutputFolder(path.str(), std::move(temporaryPath));
}

OutputFolder::OutputFolder(OutputFolder &&other) noexcept
    : path(std::move(other.path)), temporaryPath(std::move(other.temporaryPath)) {
  other.temporaryPath.clear();
}

OutputFolder::~OutputFolder() {
  if (!temporaryPath.empty()) {
    // It may have been moved to its place. A failure cannot be reported any more.
    (void)llvm::sys::fs::remove_directories(temporaryPath);
  }
}

llvm::Error OutputFolder::commit() { return moveToPlace(temporaryPath, path); }
