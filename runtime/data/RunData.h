//===- RunData.h - what a run trains and validates on ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_DATA_RUNDATA_H
#define WEFT_RT_DATA_RUNDATA_H

#include "data/DataOptions.h"
#include "data/Dataset.h"

namespace weft::rt {

/// One batch of a run.
struct BatchChoice {
  const Sampler *sampler = nullptr;
  int64_t number = 0;
};

/// The samples that a run takes, and the order of its batches. Immutable after `open`; any thread
/// may read.
class RunData {
public:
  /// Batches of a validation if the user does not say how many, and there are as many.
  static constexpr int64_t kDefaultValidationBatches = 100;

  /// For a run of the steps from `firstStep` to before `endStep`. Fails if the options ask for
  /// data that is not there, is not good, or is too little.
  bool open(const Program &program, const DataOptions &options, int64_t firstStep, int64_t endStep,
            std::string &error);

  /// Whether a validation comes when `step` steps are done: at the end, and as often as asked.
  bool validatesAt(int64_t step) const {
    return batches > 0 && (step == end || (every > 0 && step > 0 && step % every == 0));
  }
  int64_t validationBatches() const { return batches; }
  int64_t firstStep() const { return first; }
  int64_t endStep() const { return end; }

  BatchChoice trainingBatch(int64_t step) const { return {&training, step}; }
  /// How the samples to train on are stored, and how many of them there are; null if the run reads
  /// none.
  const char *trainingFormat() const { return data ? data->formatName() : nullptr; }
  uint64_t trainingSamples() const { return training.sampleCount(); }
  /// The same samples in the order of their file, at every validation.
  BatchChoice validationBatch(int64_t number) const { return {&validation, number}; }

  /// A line for each file, for the user.
  const std::string &note() const { return remark; }

private:
  std::unique_ptr<SampleSource> openFile(const std::string &path, const DataOptions &options,
                                         std::string &error) const;
  bool openTraining(const DataOptions &options, std::string &error);
  bool openValidation(const DataOptions &options, std::string &error);
  bool splitOff(const DataOptions &options, std::string &error);
  bool countBatches(const DataOptions &options, const std::string &source, std::string &error);

  const Program *program = nullptr;
  std::unique_ptr<SampleSource> data, validationData;
  Sampler training, validation;
  int64_t first = 0, end = 0, every = 0, batches = 0;
  std::string remark;
};

/// All batches of a run, one after another: those of the steps, and between them those of
/// validations. A small value; `data` must outlive it.
class BatchOrder {
public:
  explicit BatchOrder(const RunData &data)
      : data(&data), step(data.firstStep()), validates(data.validatesAt(step)) {}

  /// Nothing after the last one.
  std::optional<BatchChoice> next();

private:
  const RunData *data;
  /// Steps whose batches have been given, and batches of the validation that comes now.
  int64_t step, number = 0;
  bool validates;
};

} // namespace weft::rt

#endif // WEFT_RT_DATA_RUNDATA_H
