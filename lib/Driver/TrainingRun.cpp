//===- TrainingRun.cpp - runs a program and reads its results ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Driver/TrainingRun.h"

#include "weft/Driver/ChildProcess.h"
#include "weft/Driver/CommandLine.h"

#include "support/Safetensors.h"
#include "weft-rt/ExitCode.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cassert>
#include <cmath>
#include <cstring>

using namespace weft;

namespace {

/// Time limit of a run, after which it counts as stuck.
constexpr unsigned kSecondsToWait = 300;

llvm::Expected<Tensors> readTensors(const std::string &path) {
  rt::SafetensorsFile file;
  if (rt::Status status = file.open(path); !status) {
    return makeError(status.error().message);
  }
  Tensors tensors;
  for (const auto &[name, tensor] : file.tensors) {
    assert(tensor.dtype == "F64" && "an executable of float64 writes no others");
    Tensor &read = tensors[name];
    read.shape = tensor.shape;
    read.values.resize(tensor.data.size() / sizeof(double));
    std::memcpy(read.values.data(), tensor.data.data(), tensor.data.size());
  }
  return tensors;
}

/// Returns a number of a line of metrics; null stands for a number that is not finite.
double numberOf(const llvm::json::Object &line, llvm::StringRef key) {
  return line.getNumber(key).value_or(std::nan(""));
}

llvm::Error readMetrics(const std::string &path, TrainingRun &run) {
  auto file = llvm::MemoryBuffer::getFile(path);
  if (!file) {
    return makeError("cannot read '" + path + "': " + file.getError().message());
  }
  llvm::SmallVector<llvm::StringRef> lines;
  (*file)->getBuffer().split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef text : lines) {
    llvm::Expected<llvm::json::Value> value = llvm::json::parse(text);
    if (!value) {
      return value.takeError();
    }
    const llvm::json::Object *line = value->getAsObject();
    assert(line && "metrics are an object in each line");
    if (line->get("layer")) {
      run.dropped.push_back(numberOf(*line, "dropped"));
    } else if (line->get("validation_loss")) {
      run.validation.push_back(numberOf(*line, "validation_loss"));
    } else {
      run.losses.push_back(numberOf(*line, "loss"));
      run.norms.push_back(numberOf(*line, "gradient_norm"));
    }
  }
  return llvm::Error::success();
}

/// Returns the program's error message.
std::string tailOf(const std::string &path) {
  auto file = llvm::MemoryBuffer::getFile(path);
  return file ? (*file)->getBuffer().rtrim().take_back(1000).str() : "";
}

} // namespace

/// Returns the command line of the program, its name first.
static std::vector<std::string> wordsOf(const RunRequest &request, const std::string &metrics,
                                        const std::string &gradients) {
  std::vector<std::string> words = {request.program,
                                    "--backend",
                                    "local",
                                    "--quiet",
                                    "--data",
                                    request.data,
                                    "--seed",
                                    std::to_string(request.seed),
                                    "--steps",
                                    std::to_string(request.endStep),
                                    "--metrics",
                                    metrics,
                                    "--save-gradients",
                                    gradients,
                                    "--gradients-step",
                                    std::to_string(request.endStep - 1)};
  if (!request.save.empty()) {
    words.insert(words.end(), {"--save", request.save});
  }
  if (request.validates) {
    words.insert(words.end(), {"--validation-data", request.data, "--validation-steps", "1"});
  }
  if (request.readsTokens) {
    words.insert(words.end(), {"--data-format", "nanogpt"});
  }
  if (!request.load.empty()) {
    words.insert(words.end(), {"--load", request.load});
  }
  return words;
}

llvm::Expected<TrainingRun> weft::runTraining(const RunRequest &request) {
  auto in = [&](const char *name) { return request.folder + "/" + name; };
  std::string metrics = in("metrics"), gradients = in("gradients"), said = in("said");
  llvm::sys::fs::remove(gradients); // Of another run.
  ChildEnd end = runChild({wordsOf(request, metrics, gradients), said, said, kSecondsToWait});
  std::string tail = end.fault.empty() ? "" : tailOf(said);
  bool isFinite = end.status != int(rt::ExitCode::NotFinite);
  if (!end.fault.empty() && isFinite) {
    return makeError("the program did not run to its end: " + (tail.empty() ? end.fault : tail));
  }
  TrainingRun run;
  run.firstStep = request.firstStep;
  if (llvm::Error error = readMetrics(metrics, run)) {
    return error;
  }
  bool isSaved = isFinite && !request.save.empty();
  // The program writes them after its last step, before it saves.
  bool hasGradients = isFinite || llvm::sys::fs::exists(gradients);
  if (!isFinite) {
    run.notFinite = tail.empty() ? end.fault : tail;
  }
  for (auto [isThere, path, tensors] : {std::tuple(isSaved, &request.save, &run.weights),
                                        {hasGradients, &gradients, &run.gradients}}) {
    if (!isThere) {
      continue;
    }
    llvm::Expected<Tensors> read = readTensors(*path);
    if (!read) {
      return read.takeError();
    }
    *tensors = std::move(*read);
  }
  return run;
}
