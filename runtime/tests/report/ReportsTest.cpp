//===- ReportsTest.cpp - command line, lines, curve and memory --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "report/LossCurve.h"
#include "report/MemoryReport.h"
#include "report/Metrics.h"
#include "report/RunLog.h"
#include "support/ErrorOutput.h"
#include "support/Text.h"
#include "tests/ErrorOf.h"
#include "tests/TemporaryFolder.h"
#include "tests/Toy.h"
#include "training/Options.h"

#include <cmath>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/ioctl.h>
#include <thread>
#include <unistd.h>

using namespace weft::rt;
using testing::HasSubstr;

namespace {

class CommandLine : public testing::Test {
protected:
  std::string errorOf(std::vector<const char *> arguments) {
    Result<Options> parsed = parseOptions(program, arguments);
    options = parsed ? *parsed : Options();
    return weft::rt::errorOf(parsed);
  }

  Program program = makeToy(2, 2);
  Options options;
};

TEST_F(CommandLine, DefaultsComeFromTheProgram) {
  EXPECT_EQ(errorOf({}), "");
  EXPECT_EQ(options.steps, 5);
  EXPECT_EQ(options.seed, 7u);
  EXPECT_EQ(options.timeoutSeconds, 60);
  EXPECT_EQ(options.action, Options::Action::Train);
}

TEST_F(CommandLine, ReadsEveryOption) {
  EXPECT_EQ(errorOf({"--data",
                     "d",
                     "--data-format=llmc",
                     "--validation-data=v",
                     "--validation-every=7",
                     "--validation-steps=8",
                     "--steps=12",
                     "--seed",
                     "18446744073709551615",
                     "--metrics=m",
                     "--profile=p",
                     "--timeline=t",
                     "--timeline-steps=3-11",
                     "--timeline-ranks=0,2-3",
                     "--timeline-detail=actions",
                     "--save",
                     "s",
                     "--load",
                     "l",
                     "--ranks",
                     "4",
                     "--timeout",
                     "0.5",
                     "--save-gradients",
                     "g",
                     "--gradients-step",
                     "3",
                     "--checkpoint-dir",
                     "c",
                     "--checkpoint-every=5",
                     "--checkpoint-keep=2",
                     "--allow-changes",
                     "--save-logits",
                     "o",
                     "--no-progress",
                     "--quiet",
                     "--curve"}),
            "");
  EXPECT_EQ(options.checkpointDir, "c");
  EXPECT_EQ(options.checkpointEvery, 5);
  EXPECT_EQ(options.checkpointKeep, 2);
  EXPECT_TRUE(options.allowChanges);
  EXPECT_EQ(options.data + options.metrics + options.save + options.load + options.saveGradients +
                options.saveLogits,
            "dmslgo");
  EXPECT_EQ(options.dataFormat, DataFormat::Llmc);
  EXPECT_EQ(options.validationData, "v");
  EXPECT_EQ(options.validationEvery, 7);
  EXPECT_EQ(options.validationSteps, 8);
  EXPECT_EQ(options.timeLine + options.timeLineRanks, "t0,2-3");
  EXPECT_FALSE(options.timeLineHasInstructions);
  ASSERT_TRUE(options.timeLineSteps);
  EXPECT_EQ(options.timeLineSteps->first, 3);
  EXPECT_EQ(options.timeLineSteps->last, 11);
  EXPECT_EQ(options.steps, 12);
  EXPECT_EQ(options.seed, 18446744073709551615u);
  EXPECT_EQ(options.timeoutSeconds, 0.5);
  EXPECT_EQ(options.gradientsStep, 3);
  EXPECT_TRUE(options.noProgress && options.quiet && options.curve);
  EXPECT_EQ(errorOf({"--print-plan"}), "");
  EXPECT_EQ(options.action, Options::Action::PrintPlan);
}

TEST_F(CommandLine, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(errorOf({"--stpes", "3"}), "unknown option --stpes; the nearest is --steps");
  EXPECT_EQ(errorOf({"--save-gradient=x"}),
            "unknown option --save-gradient; the nearest is --save-gradients");
  EXPECT_EQ(errorOf({"--learning-rate", "3"}), "unknown option --learning-rate; --help lists all");
  EXPECT_EQ(errorOf({"data.txt"}), "unexpected argument 'data.txt'; options begin with --");
  EXPECT_EQ(errorOf({"--steps"}), "--steps needs a value, N");
  EXPECT_EQ(errorOf({"--data-format", "csv"}),
            "--data-format is 'csv', expected bytes, nanogpt, llmc or megatron");
  EXPECT_EQ(errorOf({"--quiet=yes"}), "--quiet takes no value, got 'yes'");
  EXPECT_EQ(errorOf({"--steps", "-1"}), "--steps is '-1', expected a whole number, 0 or more");
  EXPECT_EQ(errorOf({"--steps", "5x"}), "--steps is '5x', expected a whole number, 0 or more");
  EXPECT_EQ(errorOf({"--steps", "99999999999999999999"}),
            "--steps is '99999999999999999999', expected a whole number, 0 or more");
  EXPECT_EQ(errorOf({"--seed", "-1"}),
            "--seed is '-1', expected a whole number from 0 to 2^64 - 1");
  EXPECT_EQ(errorOf({"--timeout", "0"}),
            "--timeout is '0', expected seconds, more than 0 and at most a year");
  EXPECT_THAT(errorOf({"--timeout", "nan"}), HasSubstr("--timeout is 'nan', expected seconds"));
  EXPECT_EQ(errorOf({"--data", ""}), "--data is '', expected the name of a file");
  EXPECT_EQ(errorOf({"--checkpoint-dir="}),
            "--checkpoint-dir is '', expected the name of a folder");
  EXPECT_EQ(errorOf({"--checkpoint-dir=c", "--checkpoint-every=0"}),
            "--checkpoint-every is '0', expected a whole number, 1 or more");
  EXPECT_EQ(errorOf({"--checkpoint-dir=c", "--checkpoint-keep=none"}),
            "--checkpoint-keep is 'none', expected a whole number, 1 or more");
  EXPECT_EQ(errorOf({"--checkpoint-every=1"}),
            "--checkpoint-every has no effect without --checkpoint-dir");
  EXPECT_EQ(errorOf({"--checkpoint-keep=1"}),
            "--checkpoint-keep has no effect without --checkpoint-dir");
  EXPECT_EQ(errorOf({"--allow-changes"}), "--allow-changes has no effect without --checkpoint-dir");
  EXPECT_EQ(errorOf({"--ranks", "0"}), "--ranks is '0', expected a whole number, 1 or more");
  EXPECT_EQ(errorOf({"--threads", "2"}),
            "--threads is 2, but the work of a rank is cut for 1 core; compile again for a machine "
            "whose devices have more");
  EXPECT_EQ(errorOf({"--ranks", "8"}),
            "--ranks is 8, but the plan of this program is for 4 ranks (data=2, model=2); compile "
            "again for another number of ranks");
}

TEST_F(CommandLine, RefusesTimeLinesOfNothing) {
  for (const char *steps : {"", "x", "-1", "3-", "3-2", "1-2-3", "1,2"}) {
    EXPECT_EQ(errorOf({"--timeline=t", "--timeline-steps", steps}),
              std::string("--timeline-steps is '") + steps +
                  "', expected a step or the first and last of several, as 10 or 10-12");
  }
  EXPECT_EQ(errorOf({"--timeline=t", "--timeline-ranks="}),
            "--timeline-ranks is '', expected ranks, as 0,4-7");
  EXPECT_EQ(errorOf({"--timeline=t", "--timeline-detail=all"}),
            "--timeline-detail is 'all', expected instructions or actions");
  for (const char *option :
       {"--timeline-steps=1", "--timeline-ranks=0", "--timeline-detail=actions"}) {
    EXPECT_EQ(errorOf({option}), std::string(option).substr(0, std::string(option).find('=')) +
                                     " has no effect without --timeline");
  }
}

TEST_F(CommandLine, RefusesToOverwriteItsOwnFiles) {
  EXPECT_EQ(errorOf({"--profile", "a", "--timeline", "./a"}),
            "--profile and --timeline name the same file, 'a'");
  EXPECT_EQ(errorOf({"--save", "a", "--metrics", "./a"}),
            "--save and --metrics name the same file, 'a'");
  EXPECT_EQ(errorOf({"--data", "a", "--metrics", "a"}),
            "--metrics would overwrite 'a', which --data reads");
  EXPECT_EQ(errorOf({"--validation-data", "a", "--save", "a"}),
            "--save would overwrite 'a', which --validation-data reads");
  EXPECT_EQ(errorOf({"--load", "a", "--save", "a"}), "");
  EXPECT_EQ(errorOf({"--save", "a", "--checkpoint-dir", "a"}),
            "--save and --checkpoint-dir name the same file, 'a'");
}

TEST_F(CommandLine, HelpNamesEveryOptionAndTheDefaults) {
  std::string help = helpText(program, "./train");
  EXPECT_THAT(help, HasSubstr("usage: ./train --data FILE [OPTION]...\n\nTrains toy on 4 ranks "
                              "(data=2, model=2), batches of 8 sequences of 16 tokens.\n"));
  EXPECT_THAT(help, HasSubstr("  --steps N               train up to this step; steps count from 0 "
                              "(default 5)\n"));
  for (const char *name : {"--data",
                           "--seed",
                           "--ranks",
                           "--timeout",
                           "--load",
                           "--save",
                           "--metrics",
                           "--timeline",
                           "--timeline-steps",
                           "--timeline-ranks",
                           "--timeline-detail",
                           "--save-gradients",
                           "--gradients-step",
                           "--save-logits",
                           "--data-format",
                           "--validation-data",
                           "--validation-split",
                           "--validation-every",
                           "--validation-steps",
                           "--checkpoint-dir",
                           "--checkpoint-every",
                           "--checkpoint-keep",
                           "--allow-changes",
                           "--no-progress",
                           "--quiet",
                           "--curve",
                           "--print-plan",
                           "--print-program",
                           "--print-times",
                           "--version",
                           "--help"}) {
    EXPECT_THAT(help, HasSubstr(std::string("\n  ") + name + " "));
  }
}

std::string textOf(const Line &line) { return {line.text().begin(), line.text().end()}; }

TEST(Lines, ForPeopleAndForPrograms) {
  StepMetrics metrics = {3, 100, 1.0 / 3, 2.5, 0.0125, "tokens", 8000, 0.25};
  EXPECT_EQ(
      textOf(humanLine(metrics)),
      "step   3/100  loss 0.333333  gradient norm 2.5  12.5 ms  8000 tokens/s  25.0% of peak\n");
  auto json = nlohmann::json::parse(textOf(jsonLine(metrics)));
  EXPECT_EQ(json["step"], 3);
  EXPECT_EQ(json["loss"].get<double>(), 1.0 / 3); // All bits.
  EXPECT_EQ(json["gradient_norm"], 2.5);
  EXPECT_EQ(json["ms"], 12.5);
  EXPECT_EQ(json["tokens_per_second"], 8000);
  EXPECT_EQ(json["peak_share"], 0.25);
  EXPECT_EQ(json.size(), 6u);
}

TEST(RunLog, TheShareOfPeakIsOfWhatAStepMultiplies) {
  Program program = makeToy(1, 2);
  program.matmuls = {kToyBytes, {}};
  program.stepBody().resize(2);
  for (uint32_t number : {0, 1}) {
    program.stepBody()[number].opcode = Opcode::Matmul;
    program.stepBody()[number].target = number;
  }
  // 15 ms and 10 ms: 160 Mflop/s, on each of two ranks.
  program.stepBody()[0].cost.flops = 3e6;
  program.stepBody()[1].cost.flops = 1e6;
  program.peakFlopsPerRank = 100e6;
  program.peakByteFlopsPerRank = 200e6;
  program.stepFlops = 8e6;
  TemporaryFolder folder;
  Options options;
  options.metrics = folder.file("metrics");
  options.quiet = true;
  RunLog runLog(program, options);
  ASSERT_EQ(errorOf(runLog.open(0, 1, RunLog::MetricsFile::Anew)), "");
  runLog.beginStep();
  ASSERT_EQ(errorOf(runLog.endStep()), "");
  ASSERT_EQ(errorOf(runLog.close()), "");
  auto json = nlohmann::json::parse(std::ifstream(options.metrics));
  EXPECT_NEAR(double(json["peak_share"]) * double(json["ms"]), 25, 1e-6);
}

TEST(Lines, TellOfValidations) {
  ValidationMetrics metrics = {20, 1.0 / 3, 0.0125};
  EXPECT_EQ(textOf(humanLine(metrics)), "validation step 20 loss 0.333333\n");
  auto json = nlohmann::json::parse(textOf(jsonLine(metrics)));
  EXPECT_EQ(json["step"], 20);
  EXPECT_EQ(json["validation_loss"].get<double>(), 1.0 / 3); // All bits.
  EXPECT_EQ(json["ms"], 12.5);
  EXPECT_EQ(json.size(), 3u);
}

TEST(Lines, TellOfDrops) {
  StepMetrics metrics = {3, 100, 0.5, 2.5, 0.0125, "tokens", 8000, {}, 12};
  EXPECT_EQ(textOf(humanLine(metrics)),
            "step   3/100  loss 0.500000  gradient norm 2.5  12.5 ms  8000 tokens/s  12 dropped\n");
  EXPECT_EQ(nlohmann::json::parse(textOf(jsonLine(metrics)))["dropped"], 12);
  EXPECT_EQ(textOf(jsonLine(DropMetrics{3, "layers.1", 7})),
            "{\"step\": 3, \"layer\": \"layers.1\", \"dropped\": 7}\n");
}

TEST(Lines, TellOfSkippedSteps) {
  StepMetrics metrics = {3, 100, 0.5, {}, 0.0125, "tokens", 8000, {}, {}, 4096, true};
  EXPECT_EQ(textOf(humanLine(metrics)),
            "step   3/100  loss 0.500000  skipped at loss scale 4096  12.5 ms  8000 tokens/s\n");
  auto json = nlohmann::json::parse(textOf(jsonLine(metrics)));
  EXPECT_TRUE(json["gradient_norm"].is_null());
  EXPECT_EQ(json["loss_scale"], 4096);
  metrics.isSkipped = false;
  metrics.gradientNorm = 2.5;
  EXPECT_EQ(textOf(humanLine(metrics)),
            "step   3/100  loss 0.500000  gradient norm 2.5  12.5 ms  8000 tokens/s\n");
}

TEST(Lines, SayNothingOfWhatIsNotKnown) {
  StepMetrics metrics = {0, 1, {}, {}, 0.001, "images", 10, {}};
  EXPECT_EQ(textOf(humanLine(metrics)), "step 0/1  1.0 ms  10 images/s\n");
  auto json = nlohmann::json::parse(textOf(jsonLine(metrics)));
  EXPECT_TRUE(json["loss"].is_null() && json["peak_share"].is_null());
}

TEST(Curve, FallsFromTheUpperLeft) {
  std::vector<double> losses;
  for (int i = 0; i < 640; ++i) {
    losses.push_back(std::exp(-i / 200.0));
  }
  std::string text = drawLossCurve(losses, 10);
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    EXPECT_LE(line.size(), 80u);
    lines.push_back(line);
  }
  ASSERT_EQ(lines.size(), 12u);
  EXPECT_EQ(lines[0].substr(0, 13), "    0.9779 |*");
  EXPECT_EQ(lines[9].back(), '*');
  EXPECT_EQ(lines[9].size(), 12u + 64u);
  EXPECT_EQ(lines[11].substr(0, 14), "       step 10");
  EXPECT_EQ(lines[11].substr(lines[11].size() - 4), " 649");
}

TEST(Curve, OfOneStepIsNone) {
  const double one[] = {1}, same[] = {2, 2};
  EXPECT_EQ(drawLossCurve(one, 0), "");
  EXPECT_THAT(drawLossCurve(same, 0), HasSubstr("|**"));
}

TEST(Memory, PeakIsWhereMostIsAlive) {
  MemoryPeak peak = memoryPeak(makeToy(2, 2));
  EXPECT_EQ(peak.use.bytes[size_t(BufferClass::Parameter)], 128 * 8u);
  EXPECT_EQ(peak.use.bytes[size_t(BufferClass::Optimizer)], 128 * 8u);
  EXPECT_EQ(peak.use.bytes[size_t(BufferClass::Input)], 2 * 64 * 4 + 8u);
  EXPECT_EQ(peak.use.bytes[size_t(BufferClass::Gradient)], 128 * 8u);
  EXPECT_EQ(peak.use.bytes[size_t(BufferClass::Activation)], 8u);
  EXPECT_EQ(peak.section, "step");
  EXPECT_EQ(peak.instant, Instant());
  EXPECT_THAT(memoryReport(makeToy(2, 2)),
              HasSubstr("at the peak (step instruction 0, table: loss and gradient):\n"
                        "  parameter 1.00 KiB, optimizer 1.00 KiB, input 520 bytes, activation 8 "
                        "bytes, gradient 1.00 KiB\n"));
}

TEST(Memory, OfADeviceIsToldWithWhatIsNotKnown) {
  Program program = makeToy(1, 1);
  EXPECT_THAT(memoryReport(program), testing::Not(HasSubstr("device")));
  program.arenaBytes = 4096;
  program.deviceUses = {{DevicePart::Context, 2048},    {DevicePart::Libraries, {}},
                        {DevicePart::Communicators, 0}, {DevicePart::Inputs, 1024},
                        {DevicePart::Code, {}},         {DevicePart::Stacks, 1024}};
  EXPECT_THAT(
      memoryReport(program),
      testing::EndsWith(
          "\nmemory of each device: 8.00 KiB, beside the arena context 2.00 KiB, "
          "communicators 0 bytes, inputs 1.00 KiB, stacks 1.00 KiB; not known: libraries, code\n"));
}

TEST(Words, Bytes) {
  EXPECT_EQ(bytesText(1), "1 byte");
  EXPECT_EQ(bytesText(1023), "1023 bytes");
  EXPECT_EQ(bytesText(1536), "1.50 KiB");
  EXPECT_EQ(bytesText(uint64_t(100) << 30), "100 GiB");
  EXPECT_EQ(bytesText(~uint64_t(0)), "16.0 EiB");
}

TEST(Words, EditDistance) {
  EXPECT_EQ(editDistance("", "abc"), 3u);
  EXPECT_EQ(editDistance("steps", "stpes"), 2u);
  EXPECT_EQ(editDistance("kitten", "sitting"), 3u);
}

/// printError returns only after its output was read, as a launcher may stop reading afterwards.
TEST(ErrorOutput, WaitsForWhoReads) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  int kept = dup(STDERR_FILENO);
  dup2(ends[1], STDERR_FILENO);
  char text[64] = {};
  std::thread reader([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(read(ends[0], text, sizeof text - 1), 13);
  });
  auto begun = std::chrono::steady_clock::now();
  printError("a way");
  // Waits at most a second; on a busy machine the reader may not have started by then.
  bool hasWaited = std::chrono::steady_clock::now() - begun >= std::chrono::seconds(1);
  int unread = -1;
  ioctl(STDERR_FILENO, FIONREAD, &unread);
  dup2(kept, STDERR_FILENO);
  reader.join();
  EXPECT_TRUE(unread == 0 || hasWaited) << unread;
  EXPECT_STREQ(text, "error: a way\n");
  for (int descriptor : {ends[0], ends[1], kept}) {
    close(descriptor);
  }
}

} // namespace
