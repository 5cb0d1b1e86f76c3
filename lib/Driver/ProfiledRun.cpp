//===- ProfiledRun.cpp - lets a compiled program measure itself ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Driver/ProfiledRun.h"

#include "weft/Driver/ChildProcess.h"
#include "weft/Driver/CommandLine.h"
#include "weft/Driver/MadeUpData.h"
#include "weft/Driver/ProgramFile.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

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
  ChildRequest child;
  child.words = {absolute.str().str(),  "--quiet",   "--data",     data.getPath().str(), "--steps",
                 std::to_string(steps), "--profile", profile.str()};
  if (readsTokens(program)) {
    child.words.insert(child.words.end(), {"--data-format", "nanogpt"});
  }
  if (!threads.empty()) {
    child.words.insert(child.words.end(), {"--threads", threads.str()});
  }
  ChildEnd end = runChild(child);
  return end.fault.empty() ? llvm::Error::success()
                           : makeError("'" + path + "' did not run to its end: " + end.fault);
}

/// The profile in the file `profile`, which a run of `program` at `path` has written.
static llvm::Expected<KernelReports> readReports(llvm::StringRef path, const rt::Program &program,
                                                 llvm::StringRef profile) {
  auto file = llvm::MemoryBuffer::getFile(profile);
  if (!file) {
    return makeError("cannot read '" + profile + "': " + file.getError().message());
  }
  auto reports = readProfile((*file)->getBuffer(), profile);
  if (!reports) {
    return reports.takeError();
  }
  for (const KernelReport &report : *reports) {
    if (report.planHash != program.planHash) {
      return makeError("'" + profile + "' is a profile of plan " + report.planHash + ", but '" +
                       path + "' follows plan " + program.planHash);
    }
  }
  return reports;
}

llvm::Expected<KernelReports> weft::reportKernels(llvm::StringRef path, int64_t steps,
                                                  const std::string &threads) {
  auto programs = readProgramsOf(path);
  if (!programs) {
    return programs.takeError();
  }
  TemporaryFile profile;
  if (llvm::Error error = profile.create("json")) {
    return error;
  }
  if (llvm::Error error =
          profileProgram(path, programs->front(), steps, threads, profile.getPath())) {
    return error;
  }
  return readReports(path, programs->front(), profile.getPath());
}

llvm::Expected<KernelReports> weft::readKernelReports(llvm::StringRef path,
                                                      llvm::StringRef profile) {
  auto programs = readProgramsOf(path);
  return programs ? readReports(path, programs->front(), profile) : programs.takeError();
}
