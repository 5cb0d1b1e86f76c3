//===- OutputFileTest.cpp - files and folders that are written whole ------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Driver/OutputFile.h"

#include "weft/Driver/OutputFolder.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

#include "gtest/gtest.h"

#include <fstream>

using namespace weft;

namespace {

class OutputFileTest : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("weft-output", folder));
  }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }

  std::string path(const std::string &name) const { return (folder + "/" + name).str(); }
  void write(const std::string &name, const char *text) const { std::ofstream(path(name)) << text; }
  std::string read(const std::string &name) const {
    auto text = llvm::MemoryBuffer::getFile(path(name));
    return text ? (*text)->getBuffer().str() : "missing";
  }
  /// The number of files and folders, temporary ones included.
  size_t count() const {
    size_t found = 0;
    std::error_code code;
    for (llvm::sys::fs::directory_iterator it(folder, code), end; it != end && !code;
         it.increment(code)) {
      ++found;
    }
    return found;
  }
  static std::string textOf(llvm::Error error) { return llvm::toString(std::move(error)); }

  llvm::SmallString<128> folder;
};

TEST_F(OutputFileTest, ChangesNothingUntilItIsCommitted) {
  write("out", "old");
  {
    llvm::Expected<OutputFile> file = OutputFile::create(path("out"));
    ASSERT_TRUE(bool(file)) << textOf(file.takeError());
    EXPECT_EQ(textOf(file->write("new")), "");
    EXPECT_EQ(read("out"), "old");
    EXPECT_EQ(count(), 2u);
  }
  EXPECT_EQ(read("out"), "old");
  EXPECT_EQ(count(), 1u) << "what is not committed is removed";
}

TEST_F(OutputFileTest, CommitReplacesTheFile) {
  write("out", "old");
  {
    llvm::Expected<OutputFile> file = OutputFile::create(path("out"));
    ASSERT_TRUE(bool(file)) << textOf(file.takeError());
    EXPECT_EQ(textOf(file->write("new")), "");
    EXPECT_EQ(textOf(file->commit()), "");
    EXPECT_EQ(read("out"), "new");
  }
  EXPECT_EQ(read("out"), "new");
  EXPECT_EQ(count(), 1u);
}

TEST_F(OutputFileTest, SaysAtOnceWhatCannotBeWritten) {
  EXPECT_EQ(textOf(OutputFile::create(folder).takeError()),
            "cannot write '" + folder.str().str() + "': it is a folder");
  EXPECT_EQ(textOf(OutputFile::create("/dev/null").takeError()),
            "cannot write '/dev/null': it is no regular file");
  EXPECT_EQ(textOf(OutputFile::create(path("none/out")).takeError()),
            "cannot write '" + path("none/out") + "': No such file or directory");
}

TEST_F(OutputFileTest, AFileBesideAnotherIsRemoved) {
  ASSERT_FALSE(llvm::sys::fs::create_directory(path("out")));
  {
    llvm::Expected<FileBeside> file = FileBeside::create(path("out"));
    ASSERT_TRUE(bool(file)) << textOf(file.takeError());
    FileBeside moved = std::move(*file);
    EXPECT_EQ(count(), 2u) << "whatever lies at the path itself";
    EXPECT_TRUE(llvm::sys::fs::exists(moved.getPath()));
  }
  EXPECT_EQ(count(), 1u);
}

TEST_F(OutputFileTest, AFolderAppearsWithAllItsFiles) {
  for (bool commits : {false, true}) {
    llvm::Expected<OutputFolder> made = OutputFolder::create(path("out/"));
    ASSERT_TRUE(bool(made)) << textOf(made.takeError());
    std::ofstream(made->getTemporaryPath() + "/inside") << "new";
    EXPECT_EQ(read("out/inside"), "missing");
    EXPECT_EQ(commits ? textOf(made->commit()) : "", "");
    EXPECT_EQ(read("out/inside"), commits ? "new" : "missing");
  }
  EXPECT_EQ(count(), 1u);
  EXPECT_EQ(textOf(OutputFolder::create(path("out")).takeError()),
            "cannot write '" + path("out") + "': it exists already, and is no empty folder");
}

} // namespace
