//===- Executable.cpp - the main function of executables ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "executable/Executable.h"

#include "backends/cuda/CudaExecutor.h"
#include "backends/cuda/Devices.h"
#include "executable/MakeBackend.h"
#include "execution/HostExecutor.h"
#include "support/ErrorOutput.h"
#include "support/Text.h"

#include <cerrno>
#include <cstdio>

using namespace weft::rt;

static std::string versionText(const Program &program) {
  return concat("weft runtime " WEFT_VERSION ", program version ", uint32_t(Program::kVersion),
                "\nmodel ", program.modelName, "\nplan ", program.planHash, " for ",
                meshText(program), "\nproven ", program.certificate, "\n");
}

static ExitCode printAndEnd(const std::string &text) {
  if (!isFirstProcess()) {
    return ExitCode::Success; // Once is enough.
  }
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) {
    return ExitCode::Success;
  }
  std::fprintf(stderr, "error: cannot write to standard output: %s\n", systemError(errno).c_str());
  return ExitCode::Error;
}

ExitCode weft::rt::train(std::span<const Program> programs, const KernelCode *kernels,
                         const Options &options, const FindExecutors &find) {
  // Comes before processes connect, because that has a deadline if this hangs.
  Result<MakeExecutor> makeExecutor = find();
  Result<ChosenBackend> chosen = makeBackend(programs.front(), options);
  if (!chosen) {
    printStartError(chosen.error());
    return ExitCode::Error;
  }
  Backend &backend = *chosen->backend;
  Result<std::string> agreed =
      backend.agree(makeExecutor ? Result(std::string()) : makeExecutor.error());
  if (!agreed) {
    if (backend.reportsErrors()) {
      printError(agreed.error().message);
    }
    return ExitCode::Error;
  }
  return train(programs, kernels, options, *makeExecutor, backend);
}

/// Returns the device options among `options`.
static cuda::CudaOptions deviceOptions(const Options &options) {
  std::chrono::duration<double> timeout(options.timeoutSeconds);
  return {.timeout = std::chrono::duration_cast<std::chrono::nanoseconds>(timeout),
          .isDeterministic = options.isDeterministic,
          .cacheFile = options.algorithmCache,
          .usesGraphs = options.usesGraphs,
          .takesTimes = options.takesTimes()};
}

static ExitCode trainOn(std::span<const DeviceImage> images, std::span<const Program> programs,
                        const KernelCode *kernels, const Options &options) {
  return train(programs, kernels, options, [&] {
    return images.empty() ? Result<MakeExecutor>(makeHostExecutor)
                          : cuda::makeExecutors(programs, kernels, images, deviceOptions(options));
  });
}

/// Returns the texts of all programs; each begins with its ranks if there are several.
static std::string textOfEach(std::span<const Program> programs,
                              std::string (*textOf)(const Program &)) {
  std::string text;
  for (const Program &program : programs) {
    auto [first, count] = program.ranks();
    text += programs.size() > 1 ? concat("rank class ", program.rankClass, ", ranks ", first,
                                         " to ", first + count - 1, ":\n")
                                : "";
    text += textOf(program);
  }
  return text;
}

static ExitCode perform(std::span<const Program> programs, const KernelCode *kernels,
                        std::span<const DeviceImage> images, const Options &options,
                        const std::string &name) {
  const Program &program = programs.front();
  switch (options.action) {
  case Options::Action::Train:
    return trainOn(images, programs, kernels, options);
  case Options::Action::Help:
    return printAndEnd(helpText(program, name));
  case Options::Action::Version:
    return printAndEnd(versionText(program));
  case Options::Action::PrintPlan:
    return printAndEnd(program.planText);
  case Options::Action::PrintProgram:
    return printAndEnd(textOfEach(programs, toText));
  case Options::Action::PrintTimes:
    return printAndEnd(textOfEach(programs, timesText));
  }
  return ExitCode::Error;
}

int weft::rt::runExecutable(std::span<const char> bytes, const KernelCode *kernels,
                            std::span<const DeviceImage> images,
                            std::span<const char *const> arguments) {
  Result<Programs> programs = deserialize(bytes);
  Status status = programs ? checkCertificate(*programs) : programs.error();
  if (!status) {
    std::fprintf(stderr, "error: this executable cannot be run: %s\n",
                 status.error().message.c_str());
    return int(ExitCode::Error);
  }
  std::string name = arguments.empty() ? "train" : arguments.front();
  Result<Options> options =
      parseOptions(programs->front(), arguments.subspan(arguments.empty() ? 0 : 1));
  if (!options) {
    printStartError(options.error());
    return int(ExitCode::Error);
  }
  return int(perform(*programs, kernels, images, *options, name));
}
