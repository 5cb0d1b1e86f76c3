//===- KernelRates.cpp - measures rates of compiled kernels --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Driver/KernelRates.h"

#include "weft/Driver/Compilation.h"
#include "weft/Driver/KernelReport.h"
#include "weft/Driver/ProfiledRun.h"

#include "weft/Description/Pins.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"

#include <map>

using namespace weft;

namespace {

/// Models for the host are so small that calls of their kernels are shorter than a scheduler's time
/// slice: other work then disturbs some samples and not all. Models for devices are so large that
/// kernels last many times as long as their launch.
struct Sizes {
  int64_t width, length, vocabulary;
};
constexpr Sizes kHostSizes = {256, 128, 2048}, kDeviceSizes = {2048, 2048, 32768};

constexpr llvm::StringLiteral kModels[] = {
    R"(version: 1 name: "calibration-gpt" layers: 2 hidden: {0} heads: {1} ffn: {2}
norm: LAYER_NORM activation: GELU_TANH positions: LEARNED maximum_length: {3} vocabulary: {4}
dropout: 0.1 attention_dropout: {5})",
    R"(version: 1 name: "calibration-llama" layers: 2 hidden: {0} heads: {1} kv_heads: 2 ffn: {6}
norm: RMS_NORM activation: SWIGLU positions: ROTARY vocabulary: {4})"};

constexpr llvm::StringLiteral kRecipe =
    R"(version: 1 sequence_length: {0} global_batch_sequences: {1} adamw {{} clip_norm: 1
schedule {{ peak_learning_rate: 0.001 decay: CONSTANT } steps: {2} precision: {3})";

/// Operations and seconds of the kernels of one kind.
struct Work {
  double flops = 0, seconds = 0;
};
using WorkByKind = std::map<std::string, Work>;

llvm::Expected<Descriptions> describe(llvm::StringRef modelText, const desc::MachineSpec &machine,
                                      const KernelRequest &request, desc::Precision precision) {
  int64_t ranks = machine.devices();
  bool isOnDevices = request.target == TargetKind::Cuda;
  const Sizes &sizes = isOnDevices && !request.isSmall ? kDeviceSizes : kHostSizes;
  // No library computes attention with dropout on its weights.
  auto model = desc::parseModel(llvm::formatv(modelText.data(), sizes.width, sizes.width / 64,
                                              4 * sizes.width, sizes.length, sizes.vocabulary,
                                              isOnDevices ? "0" : "0.1", 3 * sizes.width)
                                    .str());
  auto recipe =
      desc::parseRecipe(llvm::formatv(kRecipe.data(), sizes.length, (isOnDevices ? 1 : 2) * ranks,
                                      request.steps, desc::nameOf(precision))
                            .str());
  auto plan = desc::applyPins({"dp=" + std::to_string(ranks)});
  if (!model || !recipe || !plan) {
    return makeError("internal error: the models of the calibration cannot be read: " +
                     desc::str(model.diagnostics()) + desc::str(recipe.diagnostics()) +
                     desc::str(plan.diagnostics()));
  }
  return Descriptions{*model, std::nullopt, machine, *recipe, *plan};
}

llvm::Error addKernels(const Descriptions &descriptions, const KernelRequest &request,
                       WorkByKind &kinds) {
  TemporaryFile archive, program, profile;
  for (auto [file, suffix] :
       {std::pair(&archive, "a"), std::pair(&program, "program"), std::pair(&profile, "json")}) {
    if (llvm::Error error = file->create(suffix)) {
      return error;
    }
  }
  CompileOptions options;
  options.target = request.target;
  Compilation compilation(options, descriptions);
  if (failed(compilation.begin()) || failed(compilation.runPhases()) ||
      failed(compilation.emit(archive.getPath().str(), program.getPath().str()))) {
    return makeSilentError();
  }
  if (llvm::Error error = profileProgram(program.getPath(), compilation.getPrograms().front(),
                                         request.steps, "", profile.getPath())) {
    return error;
  }
  auto text = llvm::MemoryBuffer::getFile(profile.getPath());
  if (!text) {
    return makeError("cannot read '" + profile.getPath() + "': " + text.getError().message());
  }
  auto reports = readProfile((*text)->getBuffer(), profile.getPath());
  if (!reports) {
    return reports.takeError();
  }
  for (const KernelRow &row : reports->front().rows) { // The models have no stages.
    if (llvm::StringRef(row.name).starts_with("kernel_") && row.kind != "optimizer") {
      kinds[row.kind].flops += row.flops;
      kinds[row.kind].seconds += row.median * double(row.calls);
    }
  }
  return llvm::Error::success();
}

/// The rates of all models' kernels in one precision.
llvm::Error addRates(const desc::MachineSpec &machine, const KernelRequest &request,
                     desc::Precision precision, std::vector<desc::KernelRate> &rates) {
  WorkByKind kinds;
  for (llvm::StringRef model : kModels) {
    auto descriptions = describe(model, machine, request, precision);
    if (!descriptions) {
      return descriptions.takeError();
    }
    if (llvm::Error error = addKernels(*descriptions, request, kinds)) {
      return error;
    }
  }
  for (const auto &[kind, work] : kinds) {
    if (work.flops > 0 && work.seconds > 0) {
      rates.push_back({kind, precision, work.flops / work.seconds});
    }
  }
  return llvm::Error::success();
}

} // namespace

llvm::Expected<std::vector<desc::KernelRate>> weft::measureKernels(const desc::MachineSpec &machine,
                                                                   const KernelRequest &request) {
  std::vector<desc::KernelRate> rates;
  if (request.target == TargetKind::Host) {
    if (llvm::Error error = addRates(machine, request, desc::Precision::F32, rates)) {
      return error;
    }
    return rates;
  }
  llvm::Error all = llvm::Error::success();
  for (desc::Precision precision : {desc::Precision::F32, desc::Precision::BF16}) {
    // No library computes attention in float32, whose threads' stacks may exceed a device's memory.
    if (llvm::Error error = addRates(machine, request, precision, rates)) {
      llvm::errs() << "warning: kernels of programs in " << desc::nameOf(precision)
                   << " are not measured\n";
      all = llvm::joinErrors(std::move(all), std::move(error));
    }
  }
  if (all && rates.empty()) {
    return std::move(all);
  }
  llvm::consumeError(std::move(all));
  return rates;
}
