//===- ProfiledRun.cpp - lets a compiled program measure itself ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProfiledRun.h"

#include "CommandLine.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Program.h"

#include <algorithm>

using namespace weft;

llvm::Error TemporaryFile::create(llvm::StringRef suffix) {
  std::error_code code = llvm::sys::fs::createTemporaryFile("weft", suffix, path);
  if (code) {
    return makeError("cannot make a temporary file: " + code.message());
  }
  remover.setFile(path);
  return llvm::Error::success();
}

/// Two bytes for each token, of a small generator; enough for one batch, which may repeat.
static llvm::Error writeTokens(llvm::StringRef path, const rt::Program &program) {
  uint64_t range = std::clamp<int64_t>(program.vocabulary, 1, 1 << 16);
  uint64_t count = static_cast<uint64_t>(program.globalBatch) * program.sequenceLength + 1;
  std::error_code code;
  llvm::raw_fd_ostream stream(path, code);
  uint64_t state = 1;
  for (uint64_t i = 0; i < count && !code; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u; // Knuth's MMIX.
    uint64_t token = (state >> 33) % range;
    stream << static_cast<char>(token) << static_cast<char>(token >> 8);
  }
  stream.close();
  code = code ? code : stream.error();
  stream.clear_error();
  return code ? makeError("cannot write '" + path + "': " + code.message())
              : llvm::Error::success();
}

llvm::Error weft::profileProgram(llvm::StringRef path, const rt::Program &program, int64_t steps,
                                 llvm::StringRef threads, llvm::StringRef profile) {
  TemporaryFile tokens;
  if (llvm::Error error = tokens.create("tokens")) {
    return error;
  }
  if (llvm::Error error = writeTokens(tokens.getPath(), program)) {
    return error;
  }
  llvm::SmallString<128> absolute(path);
  if (std::error_code code = llvm::sys::fs::make_absolute(absolute)) {
    return makeError("cannot run '" + path + "': " + code.message());
  }
  std::string stepsText = std::to_string(steps);
  llvm::SmallVector<llvm::StringRef> words = {
      absolute,  "--quiet", "--data",  tokens.getPath(), "--data-format",
      "nanogpt", "--steps", stepsText, "--profile",      profile};
  if (!threads.empty()) {
    words.append({"--threads", threads});
  }
  std::string reason;
  int status = llvm::sys::ExecuteAndWait(absolute, words, /*Env=*/std::nullopt, /*Redirects=*/{},
                                         /*SecondsToWait=*/0, /*MemoryLimit=*/0, &reason);
  if (status == 0) {
    return llvm::Error::success();
  }
  return makeError("'" + path + "' did not run to its end: " +
                   (reason.empty() ? "exit status " + std::to_string(status) : reason));
}
