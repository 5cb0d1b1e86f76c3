//===- RunData.cpp - the training and validation data of a run ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "data/RunData.h"

#include "data/ImageFile.h"
#include "support/Text.h"

#include <algorithm>

using namespace weft::rt;

Status RunData::open(std::span<const Program> programs, const DataOptions &options,
                     int64_t firstStep, int64_t endStep) {
  this->programs = programs;
  first = firstStep;
  end = endStep;
  every = options.validationEvery.value_or(0);
  bool splits = options.validationSplit > 0, validates = splits || !options.validationData.empty();
  if (validates && programs.front().evaluate.empty()) {
    return makeError("this program cannot validate: it was compiled without @evaluate");
  }
  bool readsData = std::ranges::any_of(programs, [](const Program &program) {
    return std::ranges::any_of(
        program.inputs, [](const NamedTensor &input) { return dataField(input.name).has_value(); });
  });
  if (!readsData) {
    return {};
  }
  if (first < end || splits) {
    if (Status status = openTraining(options); !status) {
      return status;
    }
  }
  if (!validates) {
    return {};
  }
  return splits ? splitOff(options) : openValidation(options);
}

/// Returns the layout of the input of images; null if the run reads tokens.
const TensorLayout *RunData::findImages() const {
  for (const Program &program : programs) {
    for (const NamedTensor &input : program.inputs) {
      if (dataField(input.name) == DataField::Images) {
        return &input.layout;
      }
    }
  }
  return nullptr;
}

Result<std::unique_ptr<SampleSource>> RunData::openFile(const std::string &path,
                                                        const DataOptions &options) const {
  const Program &program = programs.front();
  if (const TensorLayout *layout = findImages()) {
    if (options.dataFormat) {
      return makeError("--data-format has no effect: the program reads images, which are in a "
                       "safetensors file");
    }
    auto images = std::make_unique<ImageFile>();
    std::span<const int64_t> shape = layout->globalShape;
    size_t batchDims = program.microBatches > 1 ? 2 : 1;
    if (Status status = images->open(path, shape.subspan(batchDims), program.vocabulary); !status) {
      return status.error();
    }
    return std::unique_ptr<SampleSource>(std::move(images));
  }
  auto tokens = std::make_unique<Dataset>();
  if (Status status = tokens->open(path, options.dataFormat, program.sequenceLength,
                                   program.vocabulary, program.documentEnd);
      !status) {
    return status.error();
  }
  return std::unique_ptr<SampleSource>(std::move(tokens));
}

Status RunData::openTraining(const DataOptions &options) {
  if (options.data.empty()) {
    bool readsTokens = programs.front().sequenceLength > 0;
    return makeError("--data is missing: the program reads ", readsTokens ? "tokens" : "images",
                     " from a file");
  }
  Result<std::unique_ptr<SampleSource>> opened = openFile(options.data, options);
  if (!opened) {
    return opened.error();
  }
  data = std::move(*opened);
  training = Sampler(*data, 0, data->sampleCount(), options.seed);
  remark = concat("data ", data->describe(), "\n");
  return {};
}

Status RunData::splitOff(const DataOptions &options) {
  uint64_t samples = data->sampleCount();
  uint64_t last = std::min(samples, uint64_t(double(samples) * options.validationSplit));
  if (last == samples) {
    return makeError("--validation-split is ", options.validationSplit, ", which leaves none of ",
                     samples, " samples to train on");
  }
  training = Sampler(*data, 0, samples - last, options.seed);
  validation = Sampler(*data, samples - last, last, std::nullopt);
  return countBatches(options, concat("the last ", last, " of these samples"));
}

Status RunData::openValidation(const DataOptions &options) {
  Result<std::unique_ptr<SampleSource>> opened = openFile(options.validationData, options);
  if (!opened) {
    return opened.error();
  }
  validationData = std::move(*opened);
  validation = Sampler(*validationData, 0, validationData->sampleCount(), std::nullopt);
  return countBatches(options, validationData->describe());
}

Status RunData::countBatches(const DataOptions &options, const std::string &source) {
  int64_t batch = programs.front().globalBatch, whole = int64_t(validation.sampleCount()) / batch;
  if (whole == 0) {
    return makeError("one batch takes ", batch, " samples, there are ", validation.sampleCount(),
                     " to validate on");
  }
  batches = options.validationSteps.value_or(std::min(whole, kDefaultValidationBatches));
  if (batches > whole) {
    return makeError("--validation-steps is ", batches, ", expected at most ", whole,
                     ": there are ", validation.sampleCount(),
                     " samples to validate on, one batch takes ", batch);
  }
  remark += concat("validation on ", batches, batches == 1 ? " batch" : " batches", " from ",
                   source, "\n");
  return {};
}

std::optional<BatchChoice> BatchOrder::next() {
  if (validates && number < data->validationBatches()) {
    return data->validationBatch(number++);
  }
  if (step >= data->endStep()) {
    return std::nullopt;
  }
  BatchChoice batch = data->trainingBatch(step++);
  validates = data->validatesAt(step);
  number = 0;
  return batch;
}
