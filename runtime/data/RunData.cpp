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

bool RunData::open(const Program &program, const DataOptions &options, int64_t firstStep,
                   int64_t endStep, std::string &error) {
  this->program = &program;
  first = firstStep;
  end = endStep;
  every = options.validationEvery.value_or(0);
  bool splits = options.validationSplit > 0, validates = splits || !options.validationData.empty();
  if (validates && program.evaluate.empty()) {
    return fail(error, "this program cannot validate: it was compiled without @evaluate");
  }
  bool readsData =
      std::any_of(program.inputs.begin(), program.inputs.end(),
                  [](const NamedTensor &input) { return dataField(input.name).has_value(); });
  if (!readsData) {
    return true;
  }
  if ((first < end || splits) && !openTraining(options, error)) {
    return false;
  }
  return !validates || (splits ? splitOff(options, error) : openValidation(options, error));
}

std::unique_ptr<SampleSource> RunData::openFile(const std::string &path, const DataOptions &options,
                                                std::string &error) const {
  for (const NamedTensor &input : program->inputs) {
    if (dataField(input.name) != DataField::Images) {
      continue;
    }
    if (options.dataFormat) {
      fail(error, "--data-format has no effect: the program reads images, which are in a "
                  "safetensors file");
      return nullptr;
    }
    auto images = std::make_unique<ImageFile>();
    std::span<const int64_t> shape = input.layout.globalShape;
    size_t batchDims = program->microBatches > 1 ? 2 : 1;
    return images->open(path, shape.subspan(batchDims), program->vocabulary, error)
               ? std::move(images)
               : nullptr;
  }
  auto tokens = std::make_unique<Dataset>();
  return tokens->open(path, options.dataFormat, program->sequenceLength, program->vocabulary, error,
                      program->documentEnd)
             ? std::move(tokens)
             : nullptr;
}

bool RunData::openTraining(const DataOptions &options, std::string &error) {
  if (options.data.empty()) {
    bool readsTokens = program->sequenceLength > 0;
    return fail(error, "--data is missing: the program reads ", readsTokens ? "tokens" : "images",
                " from a file");
  }
  data = openFile(options.data, options, error);
  if (!data) {
    return false;
  }
  training = Sampler(*data, 0, data->sampleCount(), options.seed);
  remark = concat("data ", data->describe(), "\n");
  return true;
}

bool RunData::splitOff(const DataOptions &options, std::string &error) {
  uint64_t samples = data->sampleCount();
  uint64_t last = std::min(samples, uint64_t(double(samples) * options.validationSplit));
  if (last == samples) {
    return fail(error, "--validation-split is ", options.validationSplit, ", which leaves none of ",
                samples, " samples to train on");
  }
  training = Sampler(*data, 0, samples - last, options.seed);
  validation = Sampler(*data, samples - last, last, std::nullopt);
  return countBatches(options, concat("the last ", last, " of these samples"), error);
}

bool RunData::openValidation(const DataOptions &options, std::string &error) {
  validationData = openFile(options.validationData, options, error);
  if (!validationData) {
    return false;
  }
  validation = Sampler(*validationData, 0, validationData->sampleCount(), std::nullopt);
  return countBatches(options, validationData->describe(), error);
}

bool RunData::countBatches(const DataOptions &options, const std::string &source,
                           std::string &error) {
  int64_t batch = program->globalBatch, whole = int64_t(validation.sampleCount()) / batch;
  if (whole == 0) {
    return fail(error, "one batch takes ", batch, " samples, there are ", validation.sampleCount(),
                " to validate on");
  }
  batches = options.validationSteps.value_or(std::min(whole, kDefaultValidationBatches));
  if (batches > whole) {
    return fail(error, "--validation-steps is ", batches, ", expected at most ", whole,
                ": there are ", validation.sampleCount(),
                " samples to validate on, one batch takes ", batch);
  }
  remark += concat("validation on ", batches, batches == 1 ? " batch" : " batches", " from ",
                   source, "\n");
  return true;
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
