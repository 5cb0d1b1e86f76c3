//===- CalibrateCommand.cpp - measures this machine ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"

#include "weft/Driver/Calibration.h"
#include "weft/Driver/CommandLine.h"
#include "weft/Driver/CompileOptions.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Chrono.h"
#include "llvm/Support/FormatVariadic.h"

using namespace weft;

namespace {

CommandLine declare(CalibrateOptions &options) {
  CommandLine line(
      "weft calibrate -o FILE [options]",
      "Measures this machine, on which nothing else should run, and writes the machine's file\n"
      "for 'weft compile'.");
  line.addText("-o", "FILE", "the machine's file", options.output);
  line.addText("--name", "NAME", "the machine's name in reports (default: calibrated)",
               options.name);
  line.addNumber("--ranks", "N",
                 "devices to divide the processors into, or CUDA devices to measure (default: one\n"
                 "for each processor, or all)",
                 1, 1024, options.ranks);
  line.add(targetOption(options.target));
  line.addText("--measured", "FILE",
               "output of weft-rt-calibrate on another machine; kernels are not measured",
               options.measured);
  line.addSwitch("--quick", "take some seconds instead of a minute or two, with fewer cases",
                 options.quick);
  Option seconds;
  seconds.name = "--seconds";
  seconds.valueName = "S";
  seconds.help = "take about this long for the host, and as little as possible for kernels";
  seconds.forTesting = true;
  seconds.set = [&options](llvm::StringRef value) -> llvm::Error {
    bool ok = !value.getAsDouble(options.seconds) && options.seconds > 0 && options.seconds <= 3600;
    return ok ? llvm::Error::success()
              : makeError("option '--seconds' expects a number up to 3600, got '" + value + "'");
  };
  line.add(std::move(seconds));
  return line;
}

llvm::Error check(const CommandLine &line, const CalibrateOptions &options) {
  if (options.output.empty()) {
    return makeError("expected -o FILE");
  }
  if (options.quick && line.wasGiven("--seconds")) {
    return makeError("options '--quick' and '--seconds' exclude each other");
  }
  for (const char *name : {"--quick", "--seconds", "--ranks", "--target"}) {
    if (!options.measured.empty() && line.wasGiven(name)) {
      return makeError("options '--measured' and '" + llvm::Twine(name) + "' exclude each other");
    }
  }
  bool isLabel = options.name.size() <= 64 && llvm::all_of(options.name, [](char letter) {
                   return llvm::isAlnum(letter) || llvm::StringRef("._-").contains(letter);
                 });
  if (!isLabel) {
    return makeError("option '--name' expects at most 64 letters, digits or any of '._-', got '" +
                     options.name + "'");
  }
  return llvm::Error::success();
}

std::string commandOf(llvm::ArrayRef<const char *> arguments) {
  std::string command = "weft calibrate";
  for (const char *argument : arguments) {
    command += " " + std::string(argument);
  }
  llvm::erase_if(command, [](char letter) { return !llvm::isPrint(letter); });
  return command;
}

llvm::Error run(const CommandLine &line, const CalibrateOptions &options,
                llvm::ArrayRef<const char *> arguments) {
  if (llvm::Error error = check(line, options)) {
    return error;
  }
  std::string date = llvm::formatv("{0:%Y-%m-%d}", std::chrono::system_clock::now()).str();
  return calibrate(options, {date, processorName(), commandOf(arguments)});
}

} // namespace

int weft::calibrateCommand(llvm::ArrayRef<const char *> arguments) {
  CalibrateOptions options;
  CommandLine line = declare(options);
  return line.run("calibrate", arguments, [&] { return run(line, options, arguments); });
}
