//===- ExecutableTest.cpp - runs of the toy program's executable ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "executable/Executable.h"
#include "checkpoint/Checkpoint.h"
#include "support/Random.h"
#include "tests/ErrorOf.h"
#include "tests/Toy.h"
#include "tests/executable/ToyExecutable.h"

#include <cmath>
#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace weft::rt;
using testing::HasSubstr;
using testing::MatchesRegex;

namespace {

class Executable : public ToyExecutable {
protected:
  std::vector<double> tensor(const std::string &file, const std::string &name) {
    return tensorIn(folder.file(file), name);
  }

  std::vector<nlohmann::json> metrics(const std::string &file) {
    std::vector<nlohmann::json> lines;
    std::istringstream stream(folder.read(file));
    for (std::string line; std::getline(stream, line);) {
      lines.push_back(nlohmann::json::parse(line));
    }
    return lines;
  }
};

TEST_F(Executable, TrainsAndTells) {
  ASSERT_EQ(run(data + " --steps 30 --metrics m --curve"), 0) << err;
  EXPECT_EQ(err, "");
  EXPECT_THAT(out, HasSubstr("step  0/30  loss 0."));
  EXPECT_THAT(out, HasSubstr("step 29/30  loss 0."));
  EXPECT_THAT(out, HasSubstr("% of peak\n"));
  EXPECT_THAT(out, HasSubstr(" loss +----"));
  EXPECT_THAT(out, HasSubstr("30 steps in "));
  EXPECT_THAT(out, HasSubstr(" tokens/s without the first\n"));
  EXPECT_THAT(out, HasSubstr("memory of each rank: "));
  std::vector<nlohmann::json> lines = metrics("m");
  ASSERT_EQ(lines.size(), 30u);
  EXPECT_EQ(lines[29]["step"], 29);
  EXPECT_LT(lines[29]["loss"], lines[0]["loss"]);
}

TEST_F(Executable, WritesAProfile) {
  ASSERT_EQ(run(data + " --steps 4 --profile p"), 0) << err;
  EXPECT_THAT(out, HasSubstr("where a step's time went, mean of 3 steps on 4 ranks:\n"));
  auto profile = nlohmann::json::parse(folder.read("p"));
  EXPECT_EQ(profile["steps"], 3);
  EXPECT_GT(profile["step"]["seconds"], 0);
  EXPECT_GT(profile["entries"][0]["median_seconds_of_call"], 0);
  EXPECT_EQ(run("--steps 0 --profile q"), 1);
  EXPECT_THAT(err, HasSubstr("--profile has nothing to measure, since this run does no step"));
  EXPECT_FALSE(folder.has("q"));
}

TEST_F(Executable, OverlapChangesNoBit) {
  ASSERT_EQ(run(data + " --steps 4 --save beside"), 0) << err;
  EXPECT_THAT(out, HasSubstr("mean of 3 steps on 4 ranks, of collectives beside computation until "
                             "they were issued: --profile runs them in line:\n"));
  ASSERT_EQ(run(data + " --steps 4 --save line --no-overlap"), 0) << err;
  EXPECT_THAT(out, HasSubstr("mean of 3 steps on 4 ranks:\n"));
  EXPECT_EQ(folder.read("beside"), folder.read("line"));
  setenv("WEFT_TEST_SHAKE", "5,0.001", 1);
  setenv("WEFT_TEST_LINK", "0.001,1e9", 1);
  ASSERT_EQ(run(data + " --steps 4 --save shaken"), 0) << err;
  EXPECT_EQ(folder.read("shaken"), folder.read("line"));
  setenv("WEFT_TEST_SHAKE", "five", 1);
  EXPECT_EQ(run(data + " --steps 4"), 1);
  EXPECT_EQ(err, "error: WEFT_TEST_SHAKE is 'five', expected SEED,SECONDS, a whole number and at "
                 "most 10\n");
  unsetenv("WEFT_TEST_SHAKE");
  unsetenv("WEFT_TEST_LINK");
}

TEST_F(Executable, TellsAsMuchAsIsAskedFor) {
  ASSERT_EQ(run(data + " --quiet"), 0);
  EXPECT_EQ(out, "");
  ASSERT_EQ(run(data + " --no-progress"), 0);
  EXPECT_THAT(out, testing::Not(HasSubstr("step 0")));
  EXPECT_THAT(out, HasSubstr("5 steps in "));
}

TEST_F(Executable, InitialWeightsAreThoseOfTheSeed) {
  ASSERT_EQ(run("--steps 0 --seed 3 --save c"), 0) << err; // Without data, since no step needs it.
  std::vector<double> table = tensor("c", "table");
  ASSERT_EQ(table.size(), 256u);
  for (int64_t token = 0; token < 256; ++token) {
    EXPECT_EQ(table[size_t(token)], toyInitial(3, token));
  }
  EXPECT_EQ(tensor("c", "momentum/table"), std::vector<double>(256));
}

TEST_F(Executable, SavedAndLoadedIsTheSameAsNeverStopped) {
  ASSERT_EQ(run(data + " --steps 20 --save whole --metrics m1"), 0) << err;
  ASSERT_EQ(run(data + " --steps 8 --save part"), 0) << err;
  ASSERT_EQ(run(data + " --steps 20 --load part --save rest --metrics m2"), 0) << err;
  EXPECT_EQ(folder.read("whole"), folder.read("rest"));
  std::vector<nlohmann::json> all = metrics("m1"), rest = metrics("m2");
  ASSERT_EQ(rest.size(), 12u);
  EXPECT_EQ(rest[0]["step"], 8);
  EXPECT_EQ(rest[11]["loss"], all[19]["loss"]);
  EXPECT_EQ(run(data + " --steps 7 --load part"), 1);
  EXPECT_EQ(err, "error: 'part' has seen 8 steps, --steps is 7\n");
}

TEST_F(Executable, ValidatesAsOftenAsAskedOnTheSameSamples) {
  std::string split = data + " --steps 7 --validation-split 0.2 ";
  ASSERT_EQ(run(split + "--validation-every 3 --metrics m --save a --no-progress"), 0) << err;
  EXPECT_THAT(out, HasSubstr("validation on 6 batches from the last 49 of these samples\n"));
  EXPECT_THAT(out, HasSubstr("validation step 3 loss 0."));
  std::vector<nlohmann::json> lines;
  for (const nlohmann::json &line : metrics("m")) {
    if (line.contains("validation_loss")) {
      lines.push_back(line);
    }
  }
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0]["step"], 3);
  EXPECT_EQ(lines[1]["step"], 6);
  EXPECT_EQ(lines[2]["step"], 7);
  EXPECT_LT(lines[2]["validation_loss"], lines[0]["validation_loss"]);
  // The mean over the file's end, by hand from the weights.
  std::vector<double> table = tensor("a", "table");
  std::string text = folder.read("data");
  double sum = 0;
  int64_t first = 200 * kToySequence, count = 6 * kToyBatch * kToySequence;
  for (int64_t i = first; i < first + count; ++i) {
    double difference = table[uint8_t(text[size_t(i)])] - uint8_t(text[size_t(i) + 1]) / 256.0;
    sum += difference * difference;
  }
  EXPECT_NEAR(lines[2]["validation_loss"], sum / double(count), 1e-12);
  // Only at the end, and training does not notice.
  ASSERT_EQ(run(split + "--metrics n --save b"), 0) << err;
  EXPECT_EQ(metrics("n").size(), 8u);
  EXPECT_EQ(metrics("n")[7]["validation_loss"], lines[2]["validation_loss"]);
  EXPECT_EQ(folder.read("a"), folder.read("b"));
}

TEST_F(Executable, ValidatesOnAFileOfItsOwn) {
  folder.write("val", folder.read("data").substr(0, 1000));
  std::string file = " --validation-data '" + folder.file("val") + "'";
  ASSERT_EQ(run(data + file + " --validation-steps 2 --save a --metrics m"), 0) << err;
  EXPECT_THAT(out, HasSubstr("validation on 2 batches from '"));
  ASSERT_EQ(run(data + " --save b"), 0) << err;
  EXPECT_EQ(folder.read("a"), folder.read("b"));
  // Without a training step, training data is not needed.
  ASSERT_EQ(run(file + " --validation-steps 2 --steps 5 --load a --metrics n"), 0) << err;
  ASSERT_EQ(metrics("n").size(), 1u);
  EXPECT_EQ(metrics("n")[0]["validation_loss"], metrics("m")[5]["validation_loss"]);
  EXPECT_EQ(metrics("n")[0]["step"], 5);
}

TEST_F(Executable, RefusesValidationsThatCannotBe) {
  const std::pair<const char *, const char *> cases[] = {
      {"--validation-split 0.03", "error: one batch takes 8 samples, there are 7 to validate on\n"},
      {"--validation-split 0.999999999999999999",
       "error: --validation-split is '0.999999999999999999', expected a number above 0 and below "
       "1\n"},
      {"--validation-split 0.5 --validation-steps 99",
       "error: --validation-steps is 99, expected at most 15: there are 124 samples to validate "
       "on, one batch takes 8\n"},
      {"--validation-split 0.5 --validation-data x",
       "error: --validation-data and --validation-split exclude each other\n"},
      {"--validation-every 3",
       "error: --validation-every needs --validation-data or --validation-split\n"},
      {"--validation-steps 3",
       "error: --validation-steps needs --validation-data or --validation-split\n"},
      {"--save-logits l", "error: --save-logits needs --validation-data or --validation-split\n"},
      {"--validation-split 0.5 --save-logits l",
       "error: --save-logits is given, but the program was compiled without --observe-logits\n"},
      {"--validation-split 0.5 --validation-every 0",
       "error: --validation-every is '0', expected a whole number, 1 or more\n"},
      {"--validation-data none", "error: cannot read 'none': No such file or directory\n"},
  };
  for (const auto &[options, message] : cases) {
    EXPECT_EQ(run(data + " " + options), 1);
    EXPECT_EQ(err, message);
    EXPECT_EQ(out, "");
  }
}

TEST_F(Executable, GradientsAreThoseOfTheStep) {
  ASSERT_EQ(run(data + " --steps 3 --save before"), 0) << err;
  ASSERT_EQ(run(data + " --steps 4 --save after"), 0) << err;
  ASSERT_EQ(run(data + " --steps 6 --save-gradients g --gradients-step 3"), 0) << err;
  std::vector<double> gradient = tensor("g", "gradient/table");
  std::vector<double> m0 = tensor("before", "momentum/table"),
                      m1 = tensor("after", "momentum/table");
  ASSERT_EQ(gradient.size(), 256u);
  for (size_t i = 0; i < 256; ++i) {
    EXPECT_NEAR(m1[i] - 0.9 * m0[i], gradient[i], 1e-15);
  }
  EXPECT_EQ(run(data + " --steps 3 --save-gradients g --gradients-step 3"), 1);
  EXPECT_EQ(err, "error: --gradients-step is 3, expected a step of this run, from 0 to before 3\n");
}

TEST_F(Executable, PrintsInsteadOfTraining) {
  EXPECT_EQ(run("--print-plan"), 0);
  EXPECT_EQ(out, "data 2\n");
  EXPECT_EQ(run("--print-program"), 0);
  EXPECT_EQ(out, toText(makeToy(2, 2)));
  EXPECT_EQ(run("--print-times"), 0);
  EXPECT_EQ(out, timesText(makeToy(2, 2)));
  EXPECT_THAT(out, HasSubstr("\nstep:\n  0: "));
  EXPECT_EQ(run("--version"), 0);
  EXPECT_THAT(out, MatchesRegex("weft runtime [0-9.]*, program version 16\nmodel toy\nplan "
                                "0123456789abcdef for 4 ranks .data=2, model=2.\n"
                                "proven " +
                                makeToy(2, 2).certificate + "\n"));
  EXPECT_EQ(run("--help"), 0);
  EXPECT_THAT(out, HasSubstr("usage: "));
  EXPECT_THAT(out, HasSubstr("WEFT_SECRET_FILE"));
}

TEST_F(Executable, WrongUseIsAnError) {
  EXPECT_EQ(run(""), 1);
  EXPECT_EQ(err, "error: --data is missing: the program reads tokens from a file\n");
  EXPECT_EQ(run("--dada x"), 1);
  EXPECT_EQ(err, "error: unknown option --dada; the nearest is --data\n");
  EXPECT_EQ(run("--data none"), 1);
  EXPECT_EQ(err, "error: cannot read 'none': No such file or directory\n");
  EXPECT_EQ(run(data + " --load none"), 1);
  EXPECT_EQ(err, "error: cannot read 'none': No such file or directory\n");
  EXPECT_EQ(run(data + " --steps 9223372036854775807"), 1);
  EXPECT_THAT(err, HasSubstr("too many for the samples to be counted in 64 bits"));
}

TEST_F(Executable, OutputsAreTriedBeforeTraining) {
  for (const char *option : {"--save", "--metrics", "--save-gradients"}) {
    EXPECT_EQ(run(data + " " + option + " none/file"), 1);
    EXPECT_EQ(err, "error: cannot write 'none/file': No such file or directory\n");
    EXPECT_EQ(out, "");
  }
}

TEST_F(Executable, AFullDiskIsAnError) {
  for (const char *option : {"--save", "--metrics", "--save-gradients"}) {
    EXPECT_EQ(run(data + " " + option + " /dev/full"), 1);
    EXPECT_EQ(err, "error: cannot write '/dev/full': No space left on device\n");
  }
  EXPECT_EQ(run(data + " >/dev/full"), 1);
  EXPECT_EQ(err, "error: cannot write to standard output: No space left on device\n");
  EXPECT_EQ(run("--help >/dev/full"), 1);
  EXPECT_EQ(err, "error: cannot write to standard output: No space left on device\n");
}

TEST_F(Executable, ValuesThatAreNotFiniteAreTracedAndNothingIsSaved) {
  ASSERT_EQ(run("--steps 0 --save start"), 0) << err;
  std::string bytes = folder.read("start");
  std::vector<TensorHeader> headers = {{"table", ElementType::F64, {256}}};
  auto huge = [](size_t, const Region &, std::span<char> out) {
    std::vector<double> values(256, 1e200);
    std::memcpy(out.data(), values.data(), out.size());
    return true;
  };
  ASSERT_TRUE(saveTensors(folder.file("huge"), headers, {}, huge));
  EXPECT_EQ(run(data + " --load huge --save end"), 3);
  EXPECT_THAT(out, HasSubstr("'huge': no optimizer state, which starts at zero"));
  EXPECT_THAT(err, MatchesRegex("error: step 0: loss is inf; the first value that is not finite is "
                                "inf, element 0 of buffer 5, written by step instruction 0 "
                                ".table: loss and gradient. on rank 0\n"));
  EXPECT_FALSE(folder.has("end"));
}

TEST_F(Executable, AValidationLossThatIsNotFiniteEndsTheRun) {
  std::vector<TensorHeader> headers = {{"table", ElementType::F64, {256}}};
  auto hugeAtZ = [](size_t, const Region &, std::span<char> out) {
    std::vector<double> values(256, 0.5);
    values['Z'] = 1e200;
    std::memcpy(out.data(), values.data(), out.size());
    return true;
  };
  ASSERT_TRUE(saveTensors(folder.file("huge"), headers, {}, hugeAtZ));
  folder.write("val", std::string(1000, 'Z')); // Training data does not contain it.
  EXPECT_EQ(run(data + " --load huge --validation-data val --validation-every 2 --save end"), 3);
  EXPECT_THAT(out, HasSubstr("step 1/5  loss "));
  EXPECT_THAT(out, testing::Not(HasSubstr("step 2/5")));
  EXPECT_EQ(err, "error: validation step 2: the loss is not finite\n");
  EXPECT_FALSE(folder.has("end"));
}

TEST_F(Executable, ARankThatHangsIsNamed) {
  EXPECT_EQ(run(data + " --timeout 2", "WEFT_TOY_HANG=2"), int(ExitCode::Stuck));
  EXPECT_THAT(err, MatchesRegex("error: rank [013] waited 2 s in all-reduce sum f64 .* .step "
                                "instruction [12], .*; rank 2 is missing: it last finished "
                                "no collective at all.*\n"));
}

/// Returns the error of an executable with these bytes in it.
std::string refusalOf(std::span<const char> bytes) {
  const char *arguments[] = {"toy", "--help"};
  testing::internal::CaptureStderr();
  EXPECT_EQ(runExecutable(bytes, kToyKernels, {}, arguments), 1);
  return testing::internal::GetCapturedStderr();
}

TEST(DamagedExecutable, IsAnErrorWithoutACrash) {
  std::vector<char> bytes = serialize(makeToy(1, 1));
  bytes[100] = char(bytes[100] + 1);
  EXPECT_EQ(refusalOf(bytes), "error: this executable cannot be run: the program is damaged: its "
                              "checksum does not match its content\n");
}

TEST(DamagedExecutable, RunsNoTablesButThoseThatWereProven) {
  Program toy = makeToy(1, 1);
  toy.certificate.clear();
  EXPECT_EQ(refusalOf(serialize(toy)), "error: this executable cannot be run: its tables have no "
                                       "certificate: they were not proven\n");
  toy.certificate = std::string(64, '0');
  EXPECT_EQ(refusalOf(serialize(toy)),
            "error: this executable cannot be run: its tables are not those that were proven: "
            "expected the certificate " +
                toy.certificate + ", got " + makeToy(1, 1).certificate + "\n");
  toy = makeToy(1, 1);
  toy.planHash = "fedcba9876543210";
  EXPECT_THAT(refusalOf(serialize(toy)), HasSubstr("its tables are not those that were proven"));
  Programs classes = makeToyClasses(1);
  classes[1].stepBody()[0].cost.seconds += 1;
  EXPECT_THAT(refusalOf(serialize(classes)),
              HasSubstr("its tables are not those that were proven"));
  classes = makeToyClasses(1);
  classes[1].certificate[0] ^= 1;
  EXPECT_THAT(refusalOf(serialize(classes)),
              HasSubstr("rank classes 0 and 1 have different certificates"));
}

} // namespace
