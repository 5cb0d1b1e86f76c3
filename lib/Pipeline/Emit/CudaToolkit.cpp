//===- CudaToolkit.cpp - finds the CUDA toolkit ---------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Pipeline/Emit/CudaToolkit.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/VersionTuple.h"

namespace weft {

using namespace llvm;

/// The oldest release whose assembler supports all of kDeviceArchitectures, namely sm_100.
/// utils/setup-cuda and runtime/CudaHeaders.cmake require the same.
static constexpr VersionTuple kOldestToolkit(12, 8);

static std::string pathIn(StringRef folder, const Twine &file) {
  SmallString<128> path(folder);
  sys::path::append(path, file);
  return path.str().str();
}

static CudaToolkit toolkitIn(StringRef folder) {
  return {pathIn(folder, "bin/ptxas"), pathIn(folder, "nvvm/libdevice/libdevice.10.bc"), ""};
}

/// Returns the first missing file; empty if none is.
static std::string missingIn(const CudaToolkit &toolkit) {
  if (!sys::fs::can_execute(toolkit.ptxas)) {
    return toolkit.ptxas;
  }
  return sys::fs::exists(toolkit.libdevice) ? "" : toolkit.libdevice;
}

/// Returns the parent of the folder of the `ptxas` on the path, which may be a link.
static std::string folderOnPath() {
  ErrorOr<std::string> found = sys::findProgramByName("ptxas");
  SmallString<128> real;
  if (!found || sys::fs::real_path(*found, real)) {
    return "";
  }
  return sys::path::parent_path(sys::path::parent_path(real)).str();
}

/// Returns the assembler's output about its version; empty if it does not run.
static std::string versionText(StringRef ptxas) {
  SmallString<128> said;
  if (sys::fs::createTemporaryFile("weft-ptxas", "log", said)) {
    return "";
  }
  FileRemover remover(said);
  int status = sys::ExecuteAndWait(ptxas, {ptxas, "--version"}, /*Env=*/std::nullopt,
                                   {StringRef(""), StringRef(said), StringRef("")});
  ErrorOr<std::unique_ptr<MemoryBuffer>> text = MemoryBuffer::getFile(said);
  return status == 0 && text ? (*text)->getBuffer().str() : "";
}

/// Returns the release of CUDA in the assembler's version. If there is none, the assembler is still
/// accepted: its use will report errors.
static std::optional<VersionTuple> releaseIn(StringRef text) {
  SmallVector<StringRef> found;
  VersionTuple version;
  if (!Regex("release ([0-9]+\\.[0-9]+)").match(text, &found) || version.tryParse(found[1])) {
    return std::nullopt;
  }
  return version;
}

/// Reads the toolkit's version. Returns an error with the folder and its origin if the toolkit is
/// too old, else nothing.
static std::string readAge(CudaToolkit &toolkit, const Twine &place) {
  toolkit.version = versionText(toolkit.ptxas);
  std::optional<VersionTuple> release = releaseIn(toolkit.version);
  if (!release || *release >= kOldestToolkit) {
    return "";
  }
  return ("expected a CUDA toolkit of " + Twine(kOldestToolkit.getAsString()) +
          " or newer, got one of " + release->getAsString() + " in " + place)
      .str();
}

static Expected<CudaToolkit> toolkitOfHome(const std::string &home) {
  CudaToolkit toolkit = toolkitIn(home);
  std::string place = "'" + home + "', which CUDA_HOME names";
  if (std::string missing = missingIn(toolkit); !missing.empty()) {
    return createStringError("found no CUDA toolkit in " + place + ": there is no '" + missing +
                             "'");
  }
  if (std::string age = readAge(toolkit, place); !age.empty()) {
    return createStringError(age + "; utils/setup-cuda installs one where CUDA_HOME is unset");
  }
  return toolkit;
}

Expected<CudaToolkit> findCudaToolkit() {
  if (std::optional<std::string> home = sys::Process::GetEnv("CUDA_HOME"); home && !home->empty()) {
    return toolkitOfHome(*home);
  }
  std::pair<std::string, StringRef> places[] = {{WEFT_CUDA_FOLDER, ""},
                                                {folderOnPath(), ", whose ptxas is on the path"},
                                                {"/usr/local/cuda", ""}};
  SmallVector<std::string> folders;
  std::string tooOld;
  for (const auto &[folder, origin] : places) {
    CudaToolkit toolkit = toolkitIn(folder);
    if (folder.empty()) {
      continue;
    }
    folders.push_back(folder);
    if (!missingIn(toolkit).empty()) {
      continue;
    }
    std::string age = readAge(toolkit, "'" + folder + "'" + origin);
    if (age.empty()) {
      return toolkit;
    }
    tooOld = tooOld.empty() ? age : tooOld;
  }
  std::string what =
      tooOld.empty() ? "found no CUDA toolkit: looked in " + join(folders, ", ") : tooOld;
  return createStringError(what + "; utils/setup-cuda installs one, CUDA_HOME may name another");
}

} // namespace weft
