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

/// Flushes a file, or the entries of a folder, to the disk.
std::error_code syncToDisk(const std::string &path) {
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

} // namespace

llvm::Expected<FileBeside> FileBeside::create(llvm::StringRef path) {
  std::string temporaryPath = (path + "." + llvm::Twine(::getpid()) + ".tmp").str();
  int descriptor =
      ::open(temporaryPath.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (descriptor < 0) {
    return cannotWrite(path, {errno, std::generic_category()});
  }
  ::close(descriptor);
  llvm::sys::RemoveFileOnSignal(temporaryPath);
  return FileBeside(std::move(temporaryPath));
}

FileBeside::FileBeside(FileBeside &&other) noexcept : path(std::move(other.path)) {
  other.path.clear();
}

FileBeside::~FileBeside() {
  if (!path.empty()) {
    // It may have been moved to its place. A failure cannot be reported any more.
    (void)llvm::sys::fs::remove(path);
    llvm::sys::DontRemoveFileOnSignal(path);
  }
}

llvm::Error weft::moveToPlace(const std::string &temporaryPath, const std::string &path) {
  llvm::StringRef folder = llvm::sys::path::parent_path(path);
  std::error_code code = syncToDisk(temporaryPath);
  code = code ? code : llvm::sys::fs::rename(temporaryPath, path);
  code = code ? code : syncToDisk(folder.empty() ? "." : folder.str());
  return code ? cannotWrite(path, code) : llvm::Error::success();
}

llvm::Expected<OutputFile> OutputFile::create(llvm::StringRef path) {
  if (llvm::sys::fs::is_directory(path)) {
    return makeError("cannot write '" + path + "': it is a folder");
  }
  // A rename would put a plain file in the place of a device or pipe.
  if (llvm::sys::fs::exists(path) && !llvm::sys::fs::is_regular_file(path)) {
    return makeError("cannot write '" + path + "': it is no regular file");
  }
  llvm::Expected<FileBeside> temporary = FileBeside::create(path);
  if (!temporary) {
    return temporary.takeError();
  }
  return OutputFile(path.str(), std::move(*temporary));
}

llvm::Error OutputFile::write(llvm::StringRef text) {
  std::error_code code;
  llvm::raw_fd_ostream stream(getTemporaryPath(), code);
  if (!code) {
    stream << text;
    stream.close();
    code = stream.error();
    stream.clear_error();
  }
  return code ? cannotWrite(path, code) : llvm::Error::success();
}
