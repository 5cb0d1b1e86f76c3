//===- ChildProcessTest.cpp - tests of child processes --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// test/Execution/verify.py and test/Tools/explain.test check that a child does not outlive its
// parent.
//
//===----------------------------------------------------------------------===//

#include "weft/Driver/ChildProcess.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"

using namespace weft;

namespace {

class ChildProcess : public testing::Test {
protected:
  ChildProcess() {
    EXPECT_FALSE(llvm::sys::fs::createTemporaryFile("weft-child", "text", said));
    remover.setFile(said);
  }

  ChildEnd runShell(const std::string &command, unsigned seconds = 60) const {
    return runChild({{"/bin/sh", "-c", command}, path(), path(), seconds});
  }

  std::string path() const { return said.str().str(); }
  std::string text() const {
    auto file = llvm::MemoryBuffer::getFile(said);
    return file ? (*file)->getBuffer().str() : "";
  }

  llvm::SmallString<128> said;
  llvm::FileRemover remover;
};

TEST_F(ChildProcess, EndsWellAndSaysSomething) {
  EXPECT_EQ(runShell("echo one; echo two >&2; cat").fault, "");
  EXPECT_EQ(text(), "one\ntwo\n");
}

TEST_F(ChildProcess, SaysEachToItsPlace) {
  ChildRequest request = {{"/bin/sh", "-c", "echo one; echo two >&2"}};
  request.output = path();
  testing::internal::CaptureStderr();
  EXPECT_EQ(runChild(request).fault, "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "two\n");
  EXPECT_EQ(text(), "one\n");
}

TEST_F(ChildProcess, TellsHowItEnded) {
  EXPECT_EQ(runShell("exit 3").fault, "exit status 3");
  EXPECT_EQ(runShell("exit 3").status, 3);
  EXPECT_EQ(runShell("kill -6 $$").fault, "signal 6");
}

TEST_F(ChildProcess, IsEndedWhenItTakesTooLong) {
  EXPECT_EQ(runShell("exec sleep 600", 1).fault, "it was not done after 1 s");
}

TEST_F(ChildProcess, CannotBeginWithoutAProgram) {
  EXPECT_EQ(runChild({{"/no/such/program"}}).fault, "it could not begin");
  EXPECT_EQ(runChild({{"/bin/sh"}, "/no/such/folder/said"}).fault, "it could not begin");
  EXPECT_EQ(runChild({{"/bin/sh"}, "", "/no/such/folder/said"}).fault, "it could not begin");
}

} // namespace
