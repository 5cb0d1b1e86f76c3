//===- ProfiledRun.cpp - lets a compiled program measure itself ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProfiledRun.h"

#include "CommandLine.h"
#include "MadeUpData.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Program.h"

using namespace weft;

llvm::Error TemporaryFile::create(llvm::StringRef suffix) {
  std::error_code code = llvm::sys::fs::createTemporaryFile("weft", suffix, path);
  if (code) {
    return makeError("cannot make a temporary file: " + code.message());
  }
  remover.setFile(path);
  return llvm::Error::success();
}

llvm::Error weft::profileProgram(llvm::StringRef path, const rt::Program &program, int64_t steps,
                                 llvm::StringRef threads, llvm::StringRef profile) {
  TemporaryFile data;
  if (llvm::Error error = data.create("data")) {
    return error;
  }
  if (llvm::Error error = writeMadeUpData(data.getPath(), program, 1)) {
    return error;
  }
  llvm::SmallString<128> absolute(path);
  if (std::error_code code = llvm::sys::fs::make_absolute(absolute)) {
    return makeError("cannot run '" + path + "': " + code.message());
  }
  std::string stepsText = std::to_string(steps);
  llvm::SmallVector<llvm::StringRef> words = {absolute,  "--quiet", "--data",    data.getPath(),
                                              "--steps", stepsText, "--profile", profile};
  if (readsTokens(program)) {
    words.append({"--data-format", "nanogpt"});
  }
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
