//===- ResumeTest.cpp - runs that go on from checkpoints --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "checkpoint/Checkpoint.h"
#include "tests/executable/ToyExecutable.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>

using namespace weft::rt;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

namespace {

class Resume : public ToyExecutable {
protected:
  /// Trains up to `steps` with checkpoints in "ck"; gives the exit status.
  int train(int64_t steps, const std::string &options = "") {
    return run(data + " --steps " + std::to_string(steps) + " --checkpoint-dir ck " + options);
  }

  /// Returns the lines of a metrics file without fields that differ between runs.
  std::vector<nlohmann::json> metrics(const std::string &file) {
    std::vector<nlohmann::json> lines;
    std::istringstream stream(folder.read(file));
    for (std::string line; std::getline(stream, line);) {
      nlohmann::json fields = nlohmann::json::parse(line);
      lines.push_back({fields["step"], fields["loss"], fields["gradient_norm"]});
    }
    return lines;
  }

  void flip(const std::string &file) {
    std::string content = folder.read(file);
    content[content.size() / 2] ^= 4;
    folder.write(file, content);
  }
};

TEST_F(Resume, IsTheSameAsNeverStopped) {
  ASSERT_EQ(run(data + " --steps 20 --save whole --metrics m1"), 0) << err;
  ASSERT_EQ(train(8, "--checkpoint-every 3 --metrics m2"), 0) << err;
  EXPECT_THAT(out, HasSubstr("checkpoint of step 3 is in 'ck/step-00000003'\n"));
  EXPECT_THAT(out, HasSubstr("checkpoint of step 8 is in 'ck/step-00000008'\n"));
  std::filesystem::remove_all(folder.file("ck/step-00000008")); // As after a kill.
  ASSERT_EQ(train(20, "--checkpoint-every 3 --metrics m2 --save rest"), 0) << err;
  EXPECT_THAT(err, HasSubstr("warning: 'ck/LATEST' names 'step-00000008', which is not there\n"));
  EXPECT_THAT(out, StartsWith("going on at step 6 from 'ck/step-00000006'\n"));
  EXPECT_EQ(folder.read("whole"), folder.read("rest"));
  EXPECT_EQ(metrics("m1"), metrics("m2"));
  EXPECT_EQ(folder.read("ck/LATEST"), "step-00000020\n");
  // With nothing left to do, it needs no data, and writes no checkpoint.
  ASSERT_EQ(run("--steps 20 --checkpoint-dir ck --save again"), 0) << err;
  EXPECT_EQ(folder.read("whole"), folder.read("again"));
  EXPECT_THAT(out, Not(HasSubstr("checkpoint of")));
}

TEST_F(Resume, KeepsAsManyAsAsked) {
  ASSERT_EQ(train(9, "--checkpoint-every 2 --checkpoint-keep 2"), 0) << err;
  for (int64_t step = 1; step <= 9; ++step) {
    EXPECT_EQ(folder.has("ck/step-0000000" + std::to_string(step)), step >= 8) << step;
  }
}

TEST_F(Resume, PassesOverDamage) {
  ASSERT_EQ(run(data + " --steps 12 --save whole"), 0) << err;
  ASSERT_EQ(train(8, "--checkpoint-every 2"), 0) << err;
  flip("ck/step-00000008/rank-00001.safetensors");
  std::filesystem::remove(folder.file("ck/step-00000006/manifest.json"));
  ASSERT_EQ(train(12, "--checkpoint-every 2 --checkpoint-keep 2 --quiet --save rest"), 0) << err;
  EXPECT_THAT(err, HasSubstr("warning: passed over a checkpoint: 'ck/step-00000008/"
                             "rank-00001.safetensors' is damaged: its checksum is xxh3-128:"));
  EXPECT_THAT(err, HasSubstr("warning: passed over a checkpoint: cannot read 'ck/step-00000006/"
                             "manifest.json': No such file or directory\n"));
  EXPECT_EQ(folder.read("whole"), folder.read("rest"));
  EXPECT_TRUE(folder.has("ck/step-00000010"));
  EXPECT_FALSE(folder.has("ck/step-00000008")); // Replaced, then removed.
}

TEST_F(Resume, NeverStartsAnewWhereCheckpointsWere) {
  ASSERT_EQ(train(2), 0) << err;
  flip("ck/step-00000002/manifest.json");
  const std::string message = "error: 'ck' has had checkpoints, but none is whole; to start anew, "
                              "name another folder\n";
  EXPECT_EQ(train(4), 1);
  EXPECT_THAT(err, HasSubstr("warning: passed over a checkpoint: 'ck/step-00000002/manifest.json' "
                             "is damaged: its first line is not the checksum of its other "
                             "lines\n" +
                             message));
  std::filesystem::remove_all(folder.file("ck/step-00000002"));
  EXPECT_EQ(train(4), 1);
  EXPECT_THAT(err, HasSubstr(message));
  folder.write("ck/LATEST", "\n");
  EXPECT_EQ(train(4), 1);
  EXPECT_EQ(err, "warning: 'ck/LATEST' does not name a checkpoint\n" + message);
  std::filesystem::remove(folder.file("ck/LATEST"));
  EXPECT_EQ(train(4), 0) << err;
}

TEST_F(Resume, AnotherRunIsRefused) {
  ASSERT_EQ(train(2), 0) << err;
  EXPECT_EQ(train(4, "--seed 9"), 1);
  EXPECT_EQ(err, "error: 'ck/step-00000002' was made by another run: seed 7, now 9; "
                 "--allow-changes goes on nevertheless\n");
  folder.write("other", folder.read("data") + "more");
  EXPECT_EQ(run("--data other --checkpoint-dir ck"), 1);
  EXPECT_EQ(err, "error: 'ck/step-00000002' was made by another run: samples 249, now 250; "
                 "--allow-changes goes on nevertheless\n");
  EXPECT_EQ(train(1), 1);
  EXPECT_EQ(err, "error: 'ck/step-00000002' has seen 2 steps, --steps is 1\n");
  ASSERT_EQ(train(4, "--seed 9 --allow-changes"), 0) << err;
  EXPECT_THAT(out, StartsWith("going on at step 2 from 'ck/step-00000002'; changed: seed 7, now 9"
                              "\n"));
  ASSERT_EQ(train(5, "--seed 9"), 0) << err; // The newest checkpoint has this seed.
}

TEST_F(Resume, NoCheckpointHasNumbersThatAreNotFinite) {
  // Three updates make the row of 'Z' infinite; the data does not contain it.
  std::vector<TensorHeader> headers = {{"table", ElementType::F64, {256}},
                                       {"momentum/table", ElementType::F64, {256}}};
  auto fastAtZ = [](size_t tensor, const Region &, std::span<char> out) {
    std::vector<double> values(256, tensor == 0 ? 0.5 : 0.0);
    values['Z'] = tensor == 0 ? 0.5 : 2e307;
    std::memcpy(out.data(), values.data(), out.size());
    return true;
  };
  ASSERT_TRUE(saveTensors(folder.file("fast"), headers, {{"step", "0"}}, fastAtZ));
  const std::string message = "error: after 3 steps 'table' has -inf at [90], expected finite "
                              "numbers: nothing of it is saved\n";
  // The checkpoint of step 2 stays, also as the only one to keep; and that of a resumed run.
  for (int attempt = 0; attempt < 2; ++attempt) {
    EXPECT_EQ(train(9, "--load fast --checkpoint-every 1 --checkpoint-keep 1 --save end"), 3);
    EXPECT_EQ(err, message);
    EXPECT_TRUE(folder.has("ck/step-00000002/manifest.json"));
    EXPECT_FALSE(folder.has("ck/step-00000003"));
    EXPECT_FALSE(folder.has("ck/.writing-step-00000003"));
    EXPECT_EQ(folder.read("ck/LATEST"), "step-00000002\n");
  }
  EXPECT_EQ(run(data + " --load fast --steps 3 --save end"), 3);
  EXPECT_EQ(err, message);
  EXPECT_FALSE(folder.has("end"));
}

TEST_F(Resume, OnlyOneRunUsesAFolder) {
  ASSERT_EQ(train(2), 0) << err;
  int lock = open(folder.file("ck/.lock").c_str(), O_RDWR);
  ASSERT_EQ(flock(lock, LOCK_EX), 0);
  EXPECT_EQ(train(4), 1);
  EXPECT_EQ(err, "error: 'ck' is in use: another run writes its checkpoints there\n");
  close(lock);
  EXPECT_EQ(train(4), 0) << err;
}

TEST_F(Resume, ALoadedFileIsOnlyForTheStart) {
  ASSERT_EQ(run("--steps 0 --seed 1 --save start"), 0) << err;
  ASSERT_EQ(train(2, "--load start --save a"), 0) << err;
  EXPECT_THAT(out, Not(HasSubstr("going on")));
  ASSERT_EQ(train(2, "--load start --save b"), 0) << err;
  EXPECT_THAT(out, StartsWith("going on at step 2 from 'ck/step-00000002'; --load is for the start "
                              "and is not used\n"));
  EXPECT_EQ(folder.read("a"), folder.read("b"));
}

TEST_F(Resume, AWrongMetricsFileIsLeftAlone) {
  ASSERT_EQ(train(2), 0) << err;
  folder.write("m", "Dear diary\n");
  EXPECT_EQ(train(4, "--metrics m"), 1);
  EXPECT_EQ(err, "error: 'm' is not a metrics file to continue: line 1 is not a line of metrics\n");
  EXPECT_EQ(folder.read("m"), "Dear diary\n");
}

TEST_F(Resume, WrongUseLeavesNothing) {
  EXPECT_EQ(run("--data none --checkpoint-dir ck"), 1);
  EXPECT_FALSE(folder.has("ck"));
  EXPECT_EQ(run(data + " --checkpoint-dir a/ck"), 1);
  EXPECT_EQ(err, "error: cannot write 'a/ck': No such file or directory\n");
  folder.write("file", "");
  EXPECT_EQ(run(data + " --checkpoint-dir file"), 1);
  EXPECT_EQ(err, "error: cannot write 'file/.lock': Not a directory\n");
}

} // namespace
