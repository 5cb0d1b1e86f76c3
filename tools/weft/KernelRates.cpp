//===- KernelRates.cpp - how fast compiled kernels are here --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelRates.h"

#include "Compilation.h"
#include "KernelReport.h"
#include "ProfiledRun.h"

#include "weft/Description/Pins.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"

#include <map>

using namespace weft;

namespace {

/// So small that calls of their kernels are shorter than the time that a system gives a thread at
/// once: what else runs here then disturbs some samples and not all.
constexpr llvm::StringLiteral kModels[] = {
    R"(version: 1 name: "calibration-gpt" layers: 2 hidden: 256 heads: 4 ffn: 1024
norm: LAYER_NORM activation: GELU_TANH positions: LEARNED maximum_length: 128 vocabulary: 2048
dropout: 0.1 attention_dropout: 0.1)",
    R"(version: 1 name: "calibration-llama" layers: 2 hidden: 256 heads: 4 kv_heads: 2 ffn: 768
norm: RMS_NORM activation: SWIGLU positions: ROTARY vocabulary: 2048)"};

constexpr llvm::StringLiteral kRecipe =
    R"(version: 1 sequence_length: 128 global_batch_sequences: {0} adamw {{} clip_norm: 1
schedule {{ peak_learning_rate: 0.001 decay: CONSTANT } steps: {1})";

/// Operations and seconds of the kernels of one kind.
struct Work {
  double flops = 0, seconds = 0;
};
using WorkByKind = std::map<std::string, Work>;

llvm::Expected<Descriptions> describe(llvm::StringRef modelText, const desc::MachineSpec &machine,
                                      int64_t steps) {
  int64_t ranks = machine.devices();
  auto model = desc::parseModel(modelText.str());
  auto recipe = desc::parseRecipe(llvm::formatv(kRecipe.data(), 2 * ranks, steps).str());
  auto plan = desc::applyPins({"dp=" + std::to_string(ranks)});
  if (!model || !recipe || !plan) {
    return makeError("internal error: the models of the calibration cannot be read: " +
                     desc::str(model.diagnostics()) + desc::str(recipe.diagnostics()) +
                     desc::str(plan.diagnostics()));
  }
  return Descriptions{*model, std::nullopt, machine, *recipe, *plan};
}

llvm::Error addKernels(const Descriptions &descriptions, int64_t steps, WorkByKind &kinds) {
  TemporaryFile object, program, profile;
  for (auto [file, suffix] :
       {std::pair(&object, "o"), std::pair(&program, "program"), std::pair(&profile, "json")}) {
    if (llvm::Error error = file->create(suffix)) {
      return error;
    }
  }
  CompileOptions options;
  Compilation compilation(options, descriptions);
  if (failed(compilation.begin()) || failed(compilation.runPhases()) ||
      failed(compilation.emit(object.getPath().str(), program.getPath().str()))) {
    return makeSilentError();
  }
  if (llvm::Error error = profileProgram(program.getPath(), compilation.getProgram(), steps, "",
                                         profile.getPath())) {
    return error;
  }
  auto text = llvm::MemoryBuffer::getFile(profile.getPath());
  if (!text) {
    return makeError("cannot read '" + profile.getPath() + "': " + text.getError().message());
  }
  auto report = readProfile((*text)->getBuffer(), profile.getPath());
  if (!report) {
    return report.takeError();
  }
  for (const KernelRow &row : report->rows) {
    if (llvm::StringRef(row.name).starts_with("kernel_") && row.kind != "optimizer") {
      kinds[row.kind].flops += row.flops;
      kinds[row.kind].seconds += row.median * double(row.calls);
    }
  }
  return llvm::Error::success();
}

} // namespace

llvm::Expected<std::vector<desc::KernelRate>> weft::measureKernels(const desc::MachineSpec &machine,
                                                                   int64_t steps) {
  WorkByKind kinds;
  for (llvm::StringRef model : kModels) {
    auto descriptions = describe(model, machine, steps);
    if (!descriptions) {
      return descriptions.takeError();
    }
    if (llvm::Error error = addKernels(*descriptions, steps, kinds)) {
      return error;
    }
  }
  std::vector<desc::KernelRate> rates;
  for (const auto &[kind, work] : kinds) {
    if (work.flops > 0 && work.seconds > 0) {
      rates.push_back({kind, desc::Precision::F32, work.flops / work.seconds});
    }
  }
  return rates;
}
