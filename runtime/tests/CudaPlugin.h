//===- CudaPlugin.h - the table of libweft-rt-cuda ----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_TESTS_CUDAPLUGIN_H
#define WEFT_RT_TESTS_CUDAPLUGIN_H

#include "FakeCuda.h"
#include "backends/cuda/Library.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <string>

namespace weft::rt {

inline decltype(&weft_rt_cuda) plugin() {
  void *library = dlopen(PLUGIN, RTLD_NOW | RTLD_LOCAL);
  EXPECT_TRUE(library) << dlerror();
  return reinterpret_cast<decltype(&weft_rt_cuda)>(dlsym(library, "weft_rt_cuda"));
}

inline const cuda::Library &table() { return *plugin()(cuda::Library::kVersion); }

inline std::string textOf(cuda::Library::Result result) { return result ? result : "success"; }

/// The functions of FakeCuda.h, of the library that the plugin has loaded.
template <typename Function> Function fake(const char *library, const char *name) {
  void *loaded = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
  auto *found = loaded ? dlsym(loaded, name) : nullptr;
  EXPECT_TRUE(found) << "no " << name << " in " << library;
  return reinterpret_cast<Function>(found);
}

} // namespace weft::rt

#endif // WEFT_RT_TESTS_CUDAPLUGIN_H
