//===- SanitizerDefaults.cpp - options of sanitizers in fuzz targets -------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

/// LLVM's allocators poison unallocated memory in the code of their headers only: in Weft's code,
/// which is built with the sanitizer, but not in LLVM's library, which is built without.
extern "C" const char *__asan_default_options() { return "allow_user_poisoning=0"; }

extern "C" const char *__ubsan_default_options() { return "print_stacktrace=1"; }
