//===- ProgramFile.cpp - the program inside of an executable -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Driver/ProgramFile.h"

#include "weft/Driver/CommandLine.h"

#include "llvm/Support/MemoryBuffer.h"

using namespace weft;

/// The magic word and the version are followed by the length of the payload and a checksum.
static constexpr size_t kLengthAt = 12, kHeaderBytes = 28;

llvm::Expected<rt::Programs> weft::readProgramsOf(llvm::StringRef path) {
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file) {
    return makeError("cannot read '" + path + "': " + file.getError().message());
  }
  llvm::StringRef bytes = (*file)->getBuffer();
  std::string reason = "it has no program in it, expected a file that 'weft compile' made";
  // The word alone stands in the code of the runtime too; only a program has the right checksum.
  for (size_t at = bytes.find("WEFTPROG"); at != llvm::StringRef::npos;
       at = bytes.find("WEFTPROG", at + 1)) {
    llvm::StringRef rest = bytes.drop_front(at);
    if (rest.size() < kHeaderBytes) {
      break;
    }
    uint64_t length = 0;
    for (size_t i = 8; i-- > 0;) {
      length = length << 8 | static_cast<uint8_t>(rest[kLengthAt + i]);
    }
    if (length > rest.size() - kHeaderBytes) {
      continue;
    }
    rt::Result<rt::Programs> programs =
        rt::deserialize({rest.data(), kHeaderBytes + static_cast<size_t>(length)});
    rt::Status status = programs ? rt::checkCertificate(*programs) : programs.error();
    if (status) {
      return std::move(*programs);
    }
    reason = status.error().message;
  }
  return makeError("cannot read '" + path + "': " + reason);
}
