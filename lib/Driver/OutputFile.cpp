//===- OutputFile.cpp - a file that is written whole or not at all --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Driver/OutputFile.h"

#include "weft/Driver/CommandLine.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

using namespace weft;

namespace {

llvm::Error cannotWrite(llvm::StringRef path, std::error_code code) {
  return makeError("cannot write '" + path + "': " + code.message());
}

} // namespace

std::error_code weft::syncToDisk(const std::string &path) {
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    return {errno, std::generic_category()};
  }
  std::error_code code;
  if (::fsync(descriptor) != 0) {
    code = {errno, std::generic_category()};
  }
  ::close(descriptor);
  return code;
}

llvm::Expected<OutputFile> OutputFile::create(llvm::StringRef path) {
  if (llvm::sys::fs::is_directory(path)) {
    return makeError("cannot write '" + path + "': it is a folder");
  }
  // A rename would put a plain file in the place of a device or pipe.
  if (llvm::sys::fs::exists(path) && !llvm::sys::fs::is_regular_file(path)) {
    return makeError("cannot write '" + path + "': it is no regular file");
  }
  // The process number keeps apart compilations that write the same file at the same time.
  std::string temporaryPath = (path + "." + llvm::Twine(::getpid()) + ".tmp").str();
  int descriptor =
      ::open(temporaryPath.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (descriptor < 0) {
    return cannotWrite(path, {errno, std::generic_category()});
  }
  ::close(descriptor);
  llvm::sys::RemoveFileOnSignal(temporaryPath);
  return OutputFile(path.str(), std::move(temporaryPath));
}

OutputFile::OutputFile(OutputFile &&other) noexcept
    : path(std::move(other.path)), temporaryPath(std::move(other.temporaryPath)) {
  other.temporaryPath.clear();
}

OutputFile::~OutputFile() {
  if (!temporaryPath.empty()) {
    // A failure cannot be reported any more, and leaves only a temporary file.
    (void)llvm::sys::fs::remove(temporaryPath);
    llvm::sys::DontRemoveFileOnSignal(temporaryPath);
  }
}

llvm::Error OutputFile::write(llvm::StringRef text) {
  std::error_code code;
  llvm::raw_fd_ostream stream(temporaryPath, code);
  if (!code) {
    stream << text;
    stream.close();
    code = stream.error();
    stream.clear_error();
  }
  return code ? cannotWrite(path, code) : llvm::Error::success();
}

llvm::Error OutputFile::commit() {
  std::error_code code = syncToDisk(temporaryPath);
  if (!code) {
    code = llvm::sys::fs::rename(temporaryPath, path);
  }
  if (code) {
    return cannotWrite(path, code);
  }
  llvm::sys::DontRemoveFileOnSignal(temporaryPath);
  temporaryPath.clear();
  llvm::StringRef folder = llvm::sys::path::parent_path(path);
  code = syncToDisk(folder.empty() ? "." : folder.str());
  return code ? cannotWrite(path, code) : llvm::Error::success();
}
