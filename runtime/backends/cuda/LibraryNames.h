//===- LibraryNames.h - loads CUDA's libraries by name ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The libraries that programs for CUDA devices load by name. The simulator for whole programs loads
// the same names if it shall simulate machines that lack some.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_CUDA_LIBRARYNAMES_H
#define WEFT_RT_BACKENDS_CUDA_LIBRARYNAMES_H

#include "support/Text.h"
#include "weft-rt/Status.h"

#include <dlfcn.h>

namespace weft::rt::cuda {

/// The file of a library, that of an older version for which it is searched then, or null, and its
/// description for errors.
struct LibraryName {
  const char *file, *older, *what;
};

inline constexpr LibraryName kDriver = {"libcuda.so.1", nullptr, "the CUDA driver"};
inline constexpr LibraryName kMatmuls = {"libcublasLt.so.13", "libcublasLt.so.12",
                                         "CUDA's library of matmuls"};
inline constexpr LibraryName kCommunication = {"libnccl.so.2", nullptr,
                                               "CUDA's library of collectives"};
inline constexpr LibraryName kAttention = {"libcudnn.so.9", nullptr, "CUDA's library of attention"};

/// A library in this process, and the file that it was loaded from.
struct LoadedLibrary {
  void *handle;
  const char *file;
};

/// Loads the file, else the older one, and keeps it. Any thread may call it. Fails with the
/// loader's reason for each file.
inline Result<LoadedLibrary> openLibrary(const LibraryName &name) {
  std::string reasons;
  for (const char *file : {name.file, name.older}) {
    if (!file) {
      continue;
    }
    if (void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL)) {
      return LoadedLibrary{handle, file};
    }
    reasons += concat(reasons.empty() ? "" : "; ", dlerror());
  }
  return makeError("cannot load ", name.file, ", ", name.what, ": ", reasons);
}

} // namespace weft::rt::cuda

#endif // WEFT_RT_BACKENDS_CUDA_LIBRARYNAMES_H
