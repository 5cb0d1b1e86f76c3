//===- Calibration.cpp - measures this machine ------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Driver/Calibration.h"

#include "weft/Driver/ChildProcess.h"
#include "weft/Driver/CommandLine.h"
#include "weft/Driver/KernelRates.h"
#include "weft/Driver/OutputFile.h"
#include "weft/Driver/ProfiledRun.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/TargetParser/Host.h"

using namespace weft;

namespace {

/// Approximate seconds of the host's measurements; those of kernels come on top.
constexpr double kSeconds = 60, kQuickSeconds = 8;

llvm::Expected<HostMeasurements> readMeasured(const CalibrateOptions &options,
                                              llvm::StringRef path) {
  auto text = llvm::MemoryBuffer::getFile(path);
  if (!text) {
    return makeError("cannot read '" + path + "': " + text.getError().message());
  }
  return readMeasurements((*text)->getBuffer(), options.name, llvm::sys::getHostCPUName());
}

/// Runs weft-rt-calibrate, which lies in the folder of this program.
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

/// Parses a machine's file that this command wrote. An error in it means that the measurements are
/// wrong.
llvm::Expected<desc::MachineSpec> readBack(const std::string &text) {
  auto machine = desc::parseMachine(text);
  if (!machine) {
    return makeError("the measurements make no machine: " + desc::str(machine.diagnostics()));
  }
  return *machine;
}

/// Adds the rates of kernels, which small programs measure on this machine.
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

/// Warns if other work disturbed the measurements.
void warnOfSpread(const HostMeasurements &host) {
  constexpr double kUsual = 0.3;
  double spread = std::max({host.spreadOfMatmuls, host.spreadOfMemory, host.spreadOfCollectives});
  if (spread > kUsual) {
    llvm::errs() << llvm::formatv(
        "warning: samples spread by {0:f0} %, as on a machine with other work; "
        "measure again when it has none\n",
        100 * spread);
  }
}

} // namespace

std::string weft::processorName() {
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

llvm::Error weft::calibrate(const CalibrateOptions &options, const Occasion &occasion) {
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
