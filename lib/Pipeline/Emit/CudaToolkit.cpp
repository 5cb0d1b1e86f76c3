//===- CudaToolkit.cpp - where the tools for CUDA devices are -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Pipeline/Emit/CudaToolkit.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"

namespace weft {

using namespace llvm;

static std::string pathIn(StringRef folder, const Twine &file) {
  SmallString<128> path(folder);
  sys::path::append(path, file);
  return path.str().str();
}

static CudaToolkit toolkitIn(StringRef folder) {
  return {pathIn(folder, "bin/ptxas"), pathIn(folder, "nvvm/libdevice/libdevice.10.bc")};
}

/// The first file that is missing; empty where all are there.
static std::string missingIn(const CudaToolkit &toolkit) {
  if (!sys::fs::can_execute(toolkit.ptxas)) {
    return toolkit.ptxas;
  }
  return sys::fs::exists(toolkit.libdevice) ? "" : toolkit.libdevice;
}

/// The folder above that of the `ptxas` on the path, which may be a link.
static std::string folderOnPath() {
  ErrorOr<std::string> found = sys::findProgramByName("ptxas");
  SmallString<128> real;
  if (!found || sys::fs::real_path(*found, real)) {
    return "";
  }
  return sys::path::parent_path(sys::path::parent_path(real)).str();
}

Expected<CudaToolkit> findCudaToolkit() {
  if (std::optional<std::string> home = sys::Process::GetEnv("CUDA_HOME"); home && !home->empty()) {
    CudaToolkit toolkit = toolkitIn(*home);
    std::string missing = missingIn(toolkit);
    if (missing.empty()) {
      return toolkit;
    }
    return createStringError("found no CUDA toolkit in '" + *home +
                             "', which CUDA_HOME names: there is no '" + missing + "'");
  }
  std::vector<std::string> folders = {WEFT_CUDA_FOLDER, folderOnPath(), "/usr/local/cuda"};
  erase_if(folders, [](const std::string &folder) { return folder.empty(); });
  for (const std::string &folder : folders) {
    if (CudaToolkit toolkit = toolkitIn(folder); missingIn(toolkit).empty()) {
      return toolkit;
    }
  }
  return createStringError("found no CUDA toolkit: looked in " + join(folders, ", ") +
                           "; utils/setup-cuda installs one, CUDA_HOME may name another");
}

} // namespace weft
