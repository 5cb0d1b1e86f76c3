//===- FakeFaults.h - errors that a fake library returns on request -------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each library of a whole program reads two environment variables:
//
//   WEFT_FAKE_FAIL   F:N:CODE: call N of function F, counted from 1, does nothing and returns CODE
//   WEFT_FAKE_CALLS  FILE: at the end, appends the number of calls of each function, and as "left"
//                    that of the library's objects that were not freed
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_TESTS_BACKENDS_CUDA_FAKEFAULTS_H
#define WEFT_RT_TESTS_BACKENDS_CUDA_FAKEFAULTS_H

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <string>

namespace {

class FakeFaults {
public:
  FakeFaults() {
    if (const char *wanted = std::getenv("WEFT_FAKE_FAIL")) {
      std::istringstream in(wanted);
      std::getline(in, function, ':');
      char colon = 0;
      in >> number >> colon >> code;
    }
  }

  ~FakeFaults() {
    if (const char *name = std::getenv("WEFT_FAKE_CALLS")) {
      std::ofstream file(name, std::ios::app);
      for (const auto &[called, count] : counts) {
        file << called << " " << count << "\n";
      }
      file << "left " << left << "\n";
    }
  }

  /// Counts a call. Returns the error that it must return, or 0. Any thread may call it.
  int call(const std::string &called) {
    std::lock_guard lock(mutex);
    return ++counts[called] == number && called == function ? code : 0;
  }

  /// The number of objects that exist.
  std::atomic<long> left = 0;

private:
  std::mutex mutex;
  std::map<std::string, long> counts;
  std::string function;
  long number = 0;
  int code = 0;
};

FakeFaults fakeFaults;

} // namespace

#endif // WEFT_RT_TESTS_BACKENDS_CUDA_FAKEFAULTS_H
