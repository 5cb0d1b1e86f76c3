//===- CalibrateCommand.cpp - measures this machine ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Driver/ChildProcess.h"
#include "weft/Driver/CommandLine.h"
#include "Commands.h"
#include "weft/Driver/CompileOptions.h"
#include "weft/Driver/KernelRates.h"
#include "weft/Driver/MachineText.h"
#include "weft/Driver/OutputFile.h"
#include "weft/Driver/ProfiledRun.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Chrono.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/TargetParser/Host.h"

using namespace weft;

namespace {

/// Seconds that the measurements of the host take, about; the kernels come on top.
constexpr double kSeconds = 60, kQuickSeconds = 8;

struct CalibrateOptions {
  std::string output, name = "calibrated", measured;
  TargetKind target = TargetKind::Host;
  /// 0 for as many as there are processors.
  int64_t ranks = 0;
  bool quick = false;
  /// For tests; 0 for what `quick` says.
  double seconds = 0;
};

CommandLine declare(CalibrateOptions &options) {
  CommandLine line(
      "weft calibrate -o FILE [options]",
      "Measures this machine, which should have nothing else to do, and writes the file\n"
      "that describes it to 'weft compile'.");
  line.addText("-o", "FILE", "the machine's file", options.output);
  line.addText("--name", "NAME", "the machine's name in reports (default: calibrated)",
               options.name);
  line.addNumber("--ranks", "N",
                 "devices to divide the processors into, or CUDA devices to measure (default: one\n"
                 "for each processor, or all)",
                 1, 1024, options.ranks);
  line.add(targetOption(options.target));
  line.addText("--measured", "FILE",
               "what weft-rt-calibrate has printed on another machine; kernels are not measured",
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

/// The processor as the system calls it, in characters that a comment may hold.
std::string processorName() {
  if (auto info = llvm::MemoryBuffer::getFileAsStream("/proc/cpuinfo")) {
    llvm::StringRef rest = (*info)->getBuffer();
    while (!rest.empty()) {
      auto [line, others] = rest.split('\n');
      auto [key, value] = line.split(':');
      if (key.trim() == "model name") {
        std::string name = value.trim().take_front(100).str();
        llvm::erase_if(name, [](char letter) { return !llvm::isPrint(letter); });
        return name;
      }
      rest = others;
    }
  }
  return llvm::sys::getHostCPUName().str();
}

llvm::Expected<HostMeasurements> readMeasured(const CalibrateOptions &options,
                                              llvm::StringRef path) {
  auto text = llvm::MemoryBuffer::getFile(path);
  if (!text) {
    return makeError("cannot read '" + path + "': " + text.getError().message());
  }
  return readMeasurements((*text)->getBuffer(), options.name, llvm::sys::getHostCPUName());
}

/// Runs the program that measures, which stands beside this one.
llvm::Expected<HostMeasurements> measureHost(const CalibrateOptions &options) {
  int anchor = 0; // Any address inside of this program.
  std::string self = llvm::sys::fs::getMainExecutable("weft", &anchor);
  llvm::SmallString<256> path = llvm::sys::path::parent_path(self);
  llvm::sys::path::append(path, "weft-rt-calibrate");
  if (!llvm::sys::fs::can_execute(path)) {
    return makeError("cannot find '" + path + "', which belongs to weft");
  }
  double seconds = options.seconds ? options.seconds : options.quick ? kQuickSeconds : kSeconds;
  TemporaryFile output;
  if (llvm::Error error = output.create("json")) {
    return error;
  }
  ChildRequest child;
  child.words = {path.str().str(), std::to_string(options.ranks),
                 llvm::formatv("{0:f3}", seconds).str()};
  if (options.target == TargetKind::Cuda) {
    child.words.push_back("cuda");
  }
  child.output = output.getPath().str();
  ChildEnd end = runChild(child);
  if (!end.fault.empty()) {
    return makeError("the measurements failed: " + end.fault);
  }
  return readMeasured(options, output.getPath());
}

/// The machine that `text` describes. It was written by us, so that something is wrong with it
/// means that something is wrong with the measurements.
llvm::Expected<desc::MachineSpec> readBack(const std::string &text) {
  auto machine = desc::parseMachine(text);
  if (!machine) {
    return makeError("the measurements make no machine: " + desc::str(machine.diagnostics()));
  }
  return *machine;
}

/// Times of kernels, which small programs take on this machine.
llvm::Error addKernels(const CalibrateOptions &options, const Occasion &occasion,
                       HostMeasurements &host) {
  auto machine = readBack(machineText(host, occasion));
  if (!machine) {
    return machine.takeError();
  }
  llvm::errs() << "kernels\n";
  auto kernels = measureKernels(*machine, {options.target,
                                           options.seconds ? 3
                                           : options.quick ? 20
                                                           : 60,
                                           options.seconds > 0});
  if (!kernels) {
    return kernels.takeError();
  }
  host.machine.device.measured.kernels = *kernels;
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

/// Says so if the machine was not left alone.
void warnOfSpread(const HostMeasurements &host) {
  constexpr double kUsual = 0.3;
  double spread = std::max({host.spreadOfProducts, host.spreadOfMemory, host.spreadOfCollectives});
  if (spread > kUsual) {
    llvm::errs() << llvm::formatv(
        "warning: samples spread by {0:f0} %, as they do on a machine that "
        "has other work; measure again when it has none\n",
        100 * spread);
  }
}

llvm::Error calibrate(const CalibrateOptions &options, const Occasion &occasion) {
  auto file = OutputFile::create(options.output);
  if (!file) {
    return file.takeError();
  }
  bool isHere = options.measured.empty();
  auto host = isHere ? measureHost(options) : readMeasured(options, options.measured);
  if (!host) {
    return host.takeError();
  }
  if (llvm::Error error = isHere ? addKernels(options, occasion, *host) : llvm::Error::success()) {
    return error;
  }
  std::string text = machineText(*host, occasion);
  auto machine = readBack(text);
  if (!machine) {
    return machine.takeError();
  }
  if (llvm::Error error = file->write(text)) {
    return error;
  }
  if (llvm::Error error = file->commit()) {
    return error;
  }
  warnOfSpread(*host);
  std::string what = host->deviceName.empty()
                         ? "of " + std::to_string(machine->device.cores) + " cores"
                         : host->deviceName;
  llvm::outs() << options.output << ": " << machine->devicesPerNode << " devices " << what << ", "
               << llvm::formatv("{0:f1} Gflop/s and {1:f1} GB/s each\n",
                                machine->device.peakFlopsF32.value_or(0) / 1e9,
                                machine->device.memoryBandwidth / 1e9);
  return llvm::Error::success();
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
