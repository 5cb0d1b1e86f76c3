//===- RankClassesTest.cpp - runs of several rank classes -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "executable/Executable.h"
#include "execution/HostExecutor.h"
#include "support/Json.h"
#include "tests/ErrorOf.h"
#include "tests/TemporaryFolder.h"
#include "tests/Toy.h"
#include "tests/ToyFiles.h"
#include "training/Options.h"

#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace weft::rt;
using testing::HasSubstr;

namespace {

class RankClasses : public testing::Test {
protected:
  /// Trains on the host, as threads; stores the output.
  int run(const Programs &programs, const std::vector<std::string> &more) {
    std::vector<std::string> words = {"--data", data};
    words.insert(words.end(), more.begin(), more.end());
    std::vector<const char *> arguments;
    for (const std::string &word : words) {
      arguments.push_back(word.c_str());
    }
    Result<Options> options = parseOptions(programs.front(), arguments);
    EXPECT_EQ(errorOf(options), "");
    auto find = [] { return Result<MakeExecutor>(makeHostExecutor); };
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    int code = int(train(programs, kToyKernels, *options, find));
    out = testing::internal::GetCapturedStdout();
    err = testing::internal::GetCapturedStderr();
    return code;
  }

  /// The numbers `field` of all steps.
  std::vector<double> metrics(const std::string &file, const char *field) {
    std::vector<double> numbers;
    std::istringstream stream(folder.read(file));
    for (std::string line; std::getline(stream, line);) {
      numbers.push_back(nlohmann::json::parse(line)[field]);
    }
    return numbers;
  }

  std::vector<double> tensor(const std::string &file, const std::string &name) {
    return tensorIn(folder.file(file), name);
  }

  TemporaryFolder folder;
  std::string data = folder.write("data", toyText()), out, err;
};

TEST_F(RankClasses, EachRunsItsProgram) {
  ASSERT_EQ(run({makeToy(1, 2)}, {"--steps", "1", "--metrics", folder.file("one")}), 0) << err;
  ASSERT_EQ(
      run(makeToyClasses(2), {"--steps", "3", "--metrics", folder.file("both"), "--save",
                              folder.file("saved"), "--save-gradients", folder.file("gradients")}),
      0)
      << err;
  // Both begin with the same values and add their gradients.
  EXPECT_EQ(metrics("both", "loss")[0], 2 * metrics("one", "loss")[0]);
  EXPECT_EQ(metrics("both", "gradient_norm")[0], 2 * metrics("one", "gradient_norm")[0]);
  EXPECT_LT(metrics("both", "loss")[2], metrics("both", "loss")[0]);
  for (const char *what : {"", "momentum/"}) {
    EXPECT_EQ(tensor("saved", what + std::string("table")),
              tensor("saved", what + std::string("second")));
  }
  EXPECT_EQ(tensor("gradients", "gradient/table"), tensor("gradients", "gradient/second"));
  EXPECT_THAT(out, HasSubstr("rank class 1: where a step's time went, mean of 2 steps on 2 ranks"));
}

TEST_F(RankClasses, StartFromFilesWithTheTensorsOfAll) {
  std::string half = folder.file("half"), whole = folder.file("whole"), rest = folder.file("rest");
  ASSERT_EQ(run(makeToyClasses(2), {"--steps", "4", "--save", whole}), 0) << err;
  ASSERT_EQ(run(makeToyClasses(2), {"--steps", "2", "--save", half}), 0) << err;
  ASSERT_EQ(run(makeToyClasses(1), {"--steps", "4", "--load", half, "--save", rest}), 0) << err;
  EXPECT_EQ(tensor("whole", "second"), tensor("rest", "second"));
  ASSERT_EQ(run({makeToy(1, 1)}, {"--steps", "1", "--save", half}), 0) << err;
  EXPECT_EQ(run(makeToyClasses(1), {"--load", half}), 1);
  EXPECT_THAT(err, HasSubstr("half' lacks the parameter 'second'"));
}

TEST_F(RankClasses, ResumeFromCheckpoints) {
  std::string whole = folder.file("whole"), rest = folder.file("rest"), kept = folder.file("kept");
  ASSERT_EQ(run(makeToyClasses(2), {"--steps", "4", "--save", whole}), 0) << err;
  ASSERT_EQ(run(makeToyClasses(2), {"--steps", "2", "--checkpoint-dir", kept}), 0) << err;
  ASSERT_EQ(run(makeToyClasses(1), {"--steps", "4", "--checkpoint-dir", kept, "--save", rest}), 0)
      << err;
  for (const char *name : {"table", "second", "momentum/table", "momentum/second"}) {
    EXPECT_EQ(tensor("whole", name), tensor("rest", name)) << name;
  }
}

TEST_F(RankClasses, ValidateTogether) {
  ASSERT_EQ(run(makeToyClasses(2),
                {"--steps", "2", "--validation-split", "0.2", "--metrics", folder.file("metrics")}),
            0)
      << err;
  EXPECT_THAT(folder.read("metrics"), HasSubstr("validation_loss"));
}

TEST_F(RankClasses, HaveAProfileEach) {
  ASSERT_EQ(run(makeToyClasses(1), {"--steps", "3", "--profile", folder.file("profile")}), 0)
      << err;
  auto profiles = nlohmann::json::parse(folder.read("profile"));
  ASSERT_EQ(profiles.size(), 2u);
  EXPECT_EQ(profiles[1]["ranks"], 1);
  EXPECT_GT(profiles[1]["step"]["seconds"], 0);
}

TEST_F(RankClasses, StopTogetherAtAValueThatIsNotFinite) {
  std::string saved = folder.file("saved");
  ASSERT_EQ(run(makeToyClasses(2), {"--steps", "1", "--save", saved}), 0) << err;
  std::string bytes = folder.read("saved");
  double bad = std::numeric_limits<double>::infinity();
  // The file begins with the header, whose length stands in 8 bytes.
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  size_t at = bytes.find("\"second\"");
  size_t offset = std::stoul(bytes.substr(bytes.find("data_offsets", at) + 15));
  // That of a token in the data.
  std::memcpy(bytes.data() + 8 + header + offset + ' ' * sizeof bad, &bad, sizeof bad);
  EXPECT_EQ(run(makeToyClasses(2), {"--steps", "3", "--load", folder.write("bad", bytes)}), 3);
  EXPECT_THAT(err, HasSubstr("'second' held inf already before the step, in element 32 of its "
                             "shard on rank 2 of class 1"));
}

TEST_F(RankClasses, AreToldOf) {
  EXPECT_EQ(meshText(makeToyClasses(2).front()), "4 ranks (2 classes)");
}

} // namespace
