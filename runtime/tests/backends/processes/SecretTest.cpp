//===- SecretTest.cpp - the secret that the processes of a run share ------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/processes/connections/Secret.h"

#include "tests/TemporaryFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <sys/stat.h>
#include <unistd.h>

using namespace weft::rt;
using namespace weft::rt::tcp;
using testing::HasSubstr;

namespace {

Result<Secret> find(const std::map<std::string, std::string> &variables) {
  return Secret::find([&](const char *name) {
    auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

std::string errorOf(const std::map<std::string, std::string> &variables) {
  Result<Secret> secret = find(variables);
  return secret ? "" : secret.error().message;
}

constexpr const char *kText = "correct horse battery";

TEST(SecretTest, OneTextHasOneKey) {
  TemporaryFolder folder;
  std::string file = folder.write("secret", kText),
              line = folder.write("line", std::string(kText) + "\n");
  chmod(file.c_str(), 0600);
  chmod(line.c_str(), 0400);
  Bytes32 key = find({{"WEFT_SECRET", kText}})->key();
  EXPECT_EQ(find({{"WEFT_SECRET_FILE", file}})->key(), key);
  EXPECT_EQ(find({{"WEFT_SECRET_FILE", line}})->key(), key);
  EXPECT_NE(find({{"WEFT_SECRET", std::string(kText) + "\n"}})->key(), key);
  EXPECT_NE(find({})->key(), key);
  EXPECT_EQ(find({})->key(), Secret().key());
  EXPECT_EQ(find({{"WEFT_SECRET_FILE", file}})->text(),
            "this process has the one in '" + file + "' of WEFT_SECRET_FILE");
}

TEST(SecretTest, ARunsKeyNeedsSecretAndNumber) {
  Secret secret = *find({{"WEFT_SECRET", kText}});
  Bytes32 key = secret.keyOf({1});
  EXPECT_EQ(key, secret.keyOf({1}));
  EXPECT_NE(key, secret.keyOf({2}));
  EXPECT_NE(key, Secret().keyOf({1}));
  EXPECT_EQ(publicNameOf(key).size(), 16);
  EXPECT_EQ(hexText(key).find(publicNameOf(key)), std::string::npos);
}

TEST(SecretTest, WhatIsNoSecretIsRefused) {
  EXPECT_EQ(errorOf({{"WEFT_SECRET", "short"}}),
            "the secret in WEFT_SECRET has 5 bytes, expected 16 to 4096");
  EXPECT_EQ(errorOf({{"WEFT_SECRET", ""}}),
            "the secret in WEFT_SECRET has 0 bytes, expected 16 to 4096");
  EXPECT_EQ(errorOf({{"WEFT_SECRET", kText}, {"WEFT_SECRET_FILE", "file"}}),
            "both WEFT_SECRET and WEFT_SECRET_FILE are set, expected one of them");
  TemporaryFolder folder;
  std::string large = folder.write("large", std::string(5000, 'x'));
  chmod(large.c_str(), 0600);
  EXPECT_EQ(errorOf({{"WEFT_SECRET_FILE", large}}),
            "the secret in '" + large +
                "' of WEFT_SECRET_FILE has more than 4096 bytes, expected "
                "16 to 4096");
}

TEST(SecretTest, AFileIsTheUsersAlone) {
  TemporaryFolder folder;
  std::string file = folder.write("secret", kText);
  for (auto [mode, text] : {std::pair(0644, "0644"), std::pair(0640, "0640"),
                            std::pair(0602, "0602"), std::pair(0610, "0610")}) {
    chmod(file.c_str(), mode_t(mode));
    EXPECT_EQ(errorOf({{"WEFT_SECRET_FILE", file}}),
              "other users can open '" + file +
                  "' of WEFT_SECRET_FILE: expected mode 0600 or 0400, got " + text +
                  "; chmod go= removes their rights");
  }
  chmod(file.c_str(), 0600);
  EXPECT_EQ(errorOf({{"WEFT_SECRET_FILE", file}}), "");
  if (geteuid() != 0) {
    GTEST_SKIP() << "only root can give a file away";
  }
  ASSERT_EQ(chown(file.c_str(), 4711, gid_t(-1)), 0);
  EXPECT_EQ(errorOf({{"WEFT_SECRET_FILE", file}}),
            "'" + file +
                "' of WEFT_SECRET_FILE belongs to user 4711, expected the user of this "
                "process, 0, or root");
}

TEST(SecretTest, AFileIsAFile) {
  TemporaryFolder folder;
  EXPECT_EQ(errorOf({{"WEFT_SECRET_FILE", folder.file("none")}}),
            "cannot read '" + folder.file("none") +
                "' of WEFT_SECRET_FILE: No such file or directory");
  EXPECT_THAT(errorOf({{"WEFT_SECRET_FILE", folder.path}}), HasSubstr("expected a regular file"));
  ASSERT_EQ(mkfifo(folder.file("pipe").c_str(), 0600), 0); // And it does not wait for a writer.
  EXPECT_THAT(errorOf({{"WEFT_SECRET_FILE", folder.file("pipe")}}),
              HasSubstr("expected a regular file"));
}

} // namespace
