//===- ToyExecutable.h - runs the toy program's executable ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_TESTS_EXECUTABLE_TOYEXECUTABLE_H
#define WEFT_RT_TESTS_EXECUTABLE_TOYEXECUTABLE_H

#include "tests/TemporaryFolder.h"
#include "tests/ToyFiles.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

namespace weft::rt {

/// The toy executable, which has 4 ranks, in a folder with data.
class ToyExecutable : public testing::Test {
protected:
  ToyExecutable() { data = "--data " + folder.write("data", toyText()); }

  /// Runs the executable, stores its output and returns its exit status.
  int run(const std::string &arguments, const std::string &environment = "") {
    std::string command = "cd " + folder.path.string() + " && " + environment + " " + TOY + " " +
                          arguments + (arguments.find('>') == std::string::npos ? " >out" : "") +
                          " 2>err";
    int status = std::system(command.c_str());
    out = folder.read("out");
    err = folder.read("err");
    EXPECT_TRUE(WIFEXITED(status)) << command;
    return WEXITSTATUS(status);
  }

  TemporaryFolder folder;
  /// "--data FILE".
  std::string data;
  /// The output of the last run.
  std::string out, err;
};

} // namespace weft::rt

#endif // WEFT_RT_TESTS_EXECUTABLE_TOYEXECUTABLE_H
