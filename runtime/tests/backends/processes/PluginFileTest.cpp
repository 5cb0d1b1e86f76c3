//===- PluginFileTest.cpp - finds the shared libraries of the runtime -----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/PluginFile.h"

#include "tests/TemporaryFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <sys/stat.h>
#include <unistd.h>

using namespace weft::rt;
using testing::Contains;
using testing::MatchesRegex;

namespace {

std::string errorOf(const std::string &path) {
  Result<std::string> real = checkPlugin(path);
  return real ? "" : real.error().message;
}

/// A plugin in a folder of a folder, for this user alone.
struct Places {
  TemporaryFolder outer;
  std::string inner = outer.file("inner"), file = inner + "/plugin.so";

  Places() {
    std::filesystem::create_directory(inner);
    outer.write("inner/plugin.so", "");
    chmod(inner.c_str(), 0755);
    chmod(file.c_str(), 0644);
  }
};

TEST(PluginFileTest, OthersMayNotWriteThere) {
  Places places;
  EXPECT_EQ(errorOf(places.file), "");
  for (const std::string &place : {places.file, places.inner, places.outer.path.string()}) {
    chmod(place.c_str(), 0757);
    EXPECT_EQ(errorOf(places.file), "'" + places.file +
                                        "' could be other users' code: other users "
                                        "can write '" +
                                        place +
                                        "' (mode 0757), expected a place that "
                                        "only root and this program's user can write");
    chmod(place.c_str(), 0755);
  }
  EXPECT_EQ(errorOf(places.file), "");
}

TEST(PluginFileTest, AFolderLikeTmpIsSafeAboveOnly) {
  Places places;
  chmod(places.outer.path.c_str(), 01777);
  EXPECT_EQ(errorOf(places.file), "");
  chmod(places.inner.c_str(), 01777);
  EXPECT_THAT(errorOf(places.file), MatchesRegex(".*other users can write .*inner' .mode 01777.*"));
}

TEST(PluginFileTest, ALinkIsWhereItLeads) {
  Places places;
  TemporaryFolder other;
  std::filesystem::create_symlink(places.file, other.path / "link.so");
  EXPECT_EQ(*checkPlugin(other.file("link.so")), std::filesystem::canonical(places.file));
  chmod(places.inner.c_str(), 0777);
  EXPECT_THAT(errorOf(other.file("link.so")), MatchesRegex("'.*link.so' could be .*inner'.*"));
}

TEST(PluginFileTest, OthersMayNotOwnIt) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "only root can give a file away";
  }
  Places places;
  ASSERT_EQ(chown(places.inner.c_str(), 4711, 4712), 0);
  EXPECT_THAT(errorOf(places.file), MatchesRegex(".* user 4711 owns '.*inner', expected .*"));
  ASSERT_EQ(chown(places.inner.c_str(), 0, 4712), 0);
  chmod(places.inner.c_str(), 0775);
  EXPECT_THAT(errorOf(places.file), MatchesRegex(".*other users can write '.*inner' .mode 0775.*"));
  ASSERT_EQ(chown(places.inner.c_str(), 0, 0), 0); // A group of one user.
  EXPECT_EQ(errorOf(places.file), "");
}

TEST(PluginFileTest, IsFoundWhereTheLinkerLooks) {
  EXPECT_THAT(libraryFolders(), Contains(MatchesRegex("/usr/lib.*")));
  ASSERT_EQ(unsetenv("WEFT_TEST_PLUGIN"), 0);
  EXPECT_THAT(*findPlugin("WEFT_TEST_PLUGIN", "libm.so.6"), MatchesRegex("/.*/libm.so.6"));
  EXPECT_EQ(findPlugin("WEFT_TEST_PLUGIN", "libnone.so").error().message,
            "no folder has 'libnone.so'");
  Places places;
  ASSERT_EQ(setenv("WEFT_TEST_PLUGIN", places.file.c_str(), 1), 0);
  EXPECT_EQ(*findPlugin("WEFT_TEST_PLUGIN", "libm.so.6"), std::filesystem::canonical(places.file));
  ASSERT_EQ(setenv("WEFT_TEST_PLUGIN", "/nowhere.so", 1), 0);
  EXPECT_EQ(findPlugin("WEFT_TEST_PLUGIN", "libm.so.6").error().message,
            "'/nowhere.so': No such file or directory");
}

} // namespace
