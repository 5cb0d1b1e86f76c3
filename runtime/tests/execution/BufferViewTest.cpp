//===- BufferViewTest.cpp - runs whose buffers are out of reach -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Whole runs on executors that lend copies (see FarExecutor.h), and on CUDA
// executors with the simulator. They must print, write and return the same as on
// the host.
//
//===----------------------------------------------------------------------===//

#include "execution/BufferView.h"
#include "backends/cuda/CudaExecutor.h"
#include "checkpoint/Checkpoint.h"
#include "executable/Executable.h"
#include "testing/Simulator.h"
#include "tests/ErrorOf.h"
#include "tests/TemporaryFolder.h"
#include "tests/Toy.h"
#include "tests/execution/FarExecutor.h"

#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

using namespace weft::rt;

namespace {

std::unique_ptr<Executor> makeFarExecutor(const Program &program, const KernelCode *kernels,
                                          int64_t rank, int64_t threads) {
  return std::make_unique<FarExecutor>(program, kernels, rank, threads);
}

/// table[i] *= 1 - step/100
void shrink(void *const *buffers, const int64_t *immediates, const int64_t *, int64_t, int64_t,
            int64_t) {
  double *table = static_cast<double *>(buffers[0]);
  for (int64_t i = 0; i < immediates[0]; ++i) {
    table[i] *= 1 - double(*static_cast<const int64_t *>(buffers[1])) / 100;
  }
}

/// The toy program on four ranks, with an update that depends on the step number, and with a padded
/// table but an unpadded momentum.
Program makeProgram() {
  Program program = makeToy(2, 2);
  TensorLayout &layout = program.parameters[0].layout;
  layout.globalShape = {kToyVocabulary - 6};
  layout.paddedShape = {kToyVocabulary};
  auto number = uint32_t(program.buffers.size());
  program.buffers.push_back({8, program.arenaBytes, BufferClass::Input, true, ElementType::I64});
  program.arenaBytes += kAlignment;
  program.inputs.push_back({"step_number", {ElementType::I64, {}, {}}, number});
  program.kernels.push_back({"shrink"});
  program.stepBody().push_back(
      {Opcode::Kernel,
       uint32_t(program.kernels.size() - 1),
       0,
       {{program.parameters[0].buffer, Access::ReadWrite}, {number, Access::Read}},
       {kToyVocabulary / 2}});
  EXPECT_EQ(errorOf(checkWellFormed(program)), "");
  return program;
}

class Views : public testing::Test {
protected:
  Views() {
    static const int64_t once[] = {1};
    kernels.assign(kToyKernels, kToyKernels + program.kernels.size() - 1);
    kernels.push_back({shrink, 1, once});
    std::string text;
    for (size_t i = 0; i < 4000; ++i) {
      text.push_back(char(i * i % 101));
    }
    data = folder.write("data", text);
  }

  /// The result of a run in a folder of its own: files by name, and the exit status.
  using Traces = std::map<std::string, std::string>;

  /// Runs with `arguments`, in which '@' stands for that folder.
  Traces traces(const MakeExecutor &makeExecutor, const std::vector<std::string> &arguments) {
    std::string home = folder.file("run");
    std::filesystem::create_directory(home);
    Traces all;
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    for (const std::string &line : arguments) {
      all["ends"] += std::to_string(int(run(makeExecutor, home, line))) + " ";
    }
    testing::internal::GetCapturedStdout(); // Times.
    all["errors"] = testing::internal::GetCapturedStderr();
    for (const auto &entry : std::filesystem::recursive_directory_iterator(home)) {
      if (entry.is_regular_file()) {
        std::string name = entry.path().lexically_relative(folder.path).string();
        all[name] = name == "run/metrics" ? metrics(name) : folder.read(name);
      }
    }
    std::filesystem::remove_all(home);
    return all;
  }

  /// Runs on all kinds of executors and expects equal results; returns that of the host.
  Traces expectSame(const std::vector<std::string> &arguments) {
    Traces host = traces(makeHostExecutor, arguments);
    expectSame(host, traces(makeFarExecutor, arguments));
    for (uint64_t seed : {1, 2, 3}) {
      cuda::Simulator simulator({.seed = seed, .devices = 4}, {{&program, 1}, kernels.data()});
      expectSame(host, traces(onDevices(simulator, /*usesGraphs=*/seed == 2), arguments));
    }
    return host;
  }

  void expectSame(const Traces &host, Traces other) {
    EXPECT_EQ(host.size(), other.size());
    for (const auto &[name, content] : host) {
      EXPECT_TRUE(content == other[name]) << name << ": " << other[name].substr(0, 1000);
    }
  }

  MakeExecutor onDevices(const cuda::Simulator &simulator, bool usesGraphs) {
    static const DeviceImage image = {80, true, "", 1};
    return [&simulator, usesGraphs](const Program &program, const KernelCode *kernels, int64_t rank,
                                    int64_t) {
      return std::make_unique<cuda::CudaExecutor>(program, kernels, rank, simulator.library(), rank,
                                                  std::span(&image, 1),
                                                  cuda::CudaOptions{.usesGraphs = usesGraphs});
    };
  }

  /// Writes a table with `value` at element 4, without optimizer state.
  std::string writeTable(double value) {
    std::vector<double> table(kToyVocabulary - 6, 0.25);
    table[4] = value;
    auto read = [&](size_t, const Region &, std::span<char> bytes) {
      std::copy_n(reinterpret_cast<const char *>(table.data()), bytes.size(), bytes.begin());
      return true;
    };
    std::string path = folder.file("table");
    EXPECT_TRUE(saveTensors(path, {{"table", ElementType::F64, {kToyVocabulary - 6}}}, {}, read));
    return path;
  }

  Program program = makeProgram();
  std::vector<KernelCode> kernels;
  TemporaryFolder folder;
  std::string data;

private:
  ExitCode run(const MakeExecutor &makeExecutor, const std::string &home, std::string line) {
    for (size_t at; (at = line.find('@')) != std::string::npos;) {
      line.replace(at, 1, home);
    }
    std::istringstream stream("--data " + data + " " + line);
    std::vector<std::string> words{std::istream_iterator<std::string>(stream), {}};
    std::vector<const char *> arguments;
    for (const std::string &word : words) {
      arguments.push_back(word.c_str());
    }
    Result<Options> options = parseOptions(program, arguments);
    EXPECT_EQ(errorOf(options), "");
    return train({&program, 1}, kernels.data(), *options,
                 [&] { return Result<MakeExecutor>(makeExecutor); });
  }

  /// Returns the metrics without times.
  std::string metrics(const std::string &name) {
    std::istringstream stream(folder.read(name));
    std::string all;
    for (std::string line; std::getline(stream, line);) {
      nlohmann::json fields = nlohmann::json::parse(line), kept;
      for (const char *key : {"step", "loss", "gradient_norm", "validation_loss"}) {
        if (fields.contains(key)) {
          kept[key] = fields[key];
        }
      }
      all += kept.dump() + "\n";
    }
    return all;
  }
};

TEST_F(Views, ARunThatIsResumed) {
  std::string options = "--validation-split 0.2 --validation-every 2 --validation-steps 2 "
                        "--checkpoint-dir @/ck --checkpoint-every 3 --metrics @/metrics ";
  Traces traces = expectSame({options + "--steps 7", options + "--steps 10 --save-gradients "
                                                               "@/gradients --gradients-step 8 "
                                                               "--save @/whole"});
  EXPECT_EQ(traces["ends"], "0 0 ");
  EXPECT_EQ(traces["run/ck/LATEST"], "step-00000010\n");
  EXPECT_NE(traces["run/metrics"].find("validation_loss"), std::string::npos);
  EXPECT_TRUE(traces.count("run/gradients") && traces.count("run/whole"));
  EXPECT_TRUE(traces.count("run/ck/step-00000006/" + std::string("manifest.json")));
}

TEST_F(Views, ARunThatBeginsWithAFile) {
  Traces traces = expectSame({"--steps 3 --save @/one", "--steps 6 --load @/one --save @/two",
                              "--steps 3 --load " + writeTable(0.5) + " --save @/three"});
  EXPECT_EQ(traces["ends"], "0 0 0 ");
}

TEST_F(Views, ARunThatEndsWithAValueThatIsNotFinite) {
  // The token comes in the second batch.
  Traces traces = expectSame({"--steps 3 --load " + writeTable(INFINITY)});
  EXPECT_EQ(traces["ends"], "3 ");
  EXPECT_EQ(traces["errors"],
            "error: step 1: loss is inf; 'table' held inf already before the step, in element 4 "
            "of its shard on rank 0\n");
}

TEST_F(Views, ARunThatEndsWithAnOverflow) {
  Observation &observed = program.observations[1];
  observed.name = "load/layers.1";
  observed.limit = 0.0001;
  observed.mean = 0.0001;
  Traces traces = expectSame({"--steps 3"});
  EXPECT_EQ(traces["ends"], "1 ");
  EXPECT_NE(traces["errors"].find("layers.1: expert "), std::string::npos) << traces["errors"];
}

/// A gradient that no Observer wants is not copied.
TEST_F(Views, OnlyOfWhatIsWanted) {
  auto viewsOf = [&](const std::string &arguments) {
    FarExecutor::views = 0;
    traces(makeFarExecutor, {arguments});
    return FarExecutor::views.load();
  };
  // Loss and norm on each rank and step.
  EXPECT_EQ(viewsOf("--steps 5"), 2 * 4 * 5);
  // The gradient in one step; the other steps as before.
  EXPECT_EQ(viewsOf("--steps 5 --save-gradients @/gradients"), 2 * 4 * 5 + 4);
}

/// Any failed copy ends the run with its error, and the run leaves no wrong files.
TEST_F(Views, ThatFailEndTheRun) {
  const std::string table = writeTable(0.5);
  auto run = [&](const MakeExecutor &makeExecutor) {
    return traces(makeExecutor, {"--steps 4 --load " + table + " --validation-split 0.5 " +
                                 "--validation-steps 1 --checkpoint-dir @/ck " +
                                 "--checkpoint-every 2 --save @/whole --save-gradients @/grad"});
  };
  const Traces whole = run(makeHostExecutor);
  FarExecutor::views = FarExecutor::drafts = 0;
  EXPECT_EQ(run(makeFarExecutor), whole);
  int64_t count = FarExecutor::views + FarExecutor::drafts;
  EXPECT_GT(count, 100);
  for (int64_t number = 1; number <= count; ++number) {
    FarExecutor::failing = number;
    Traces partly = run(makeFarExecutor);
    EXPECT_EQ(partly["ends"], "1 ") << number;
    EXPECT_EQ(partly["errors"], "error: the device is lost\n") << number;
    for (const char *written : {"ends", "errors", "run/ck/LATEST"}) {
      partly.erase(written);
    }
    for (const auto &[name, content] : partly) {
      EXPECT_TRUE(whole.count(name) && whole.at(name) == content) << number << " " << name;
    }
  }
  FarExecutor::failing = 0;
}

} // namespace
