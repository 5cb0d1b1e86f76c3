//===- CacheFolder.cpp - the default folder of the code cache -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Pipeline/Emit/Emit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"

namespace weft {

using namespace llvm;

std::string defaultCacheFolder() {
  if (std::optional<std::string> chosen = sys::Process::GetEnv("WEFT_CACHE")) {
    return *chosen == kNoCache ? "" : *chosen;
  }
  SmallString<128> path;
  if (!sys::path::cache_directory(path)) {
    return "";
  }
  sys::path::append(path, "weft");
  return path.str().str();
}

} // namespace weft
