//===- RunData.h - the training and validation data of a run --------------===//
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

/// The samples of a run and the order of its batches. Immutable after `open`; any thread may read.
class RunData {
public:
  /// The batches of a validation if the user gives no number, as far as the data suffices.
  static constexpr int64_t kDefaultValidationBatches = 100;

  /// Opens the data for the steps `firstStep` to `endStep - 1`. Fails if the data that `options`
  /// name is missing, invalid or too short.
  Status open(std::span<const Program> programs, const DataOptions &options, int64_t firstStep,
              int64_t endStep);

  /// Returns true if a validation follows once `step` steps are done: at the end, and as often as
  /// the options say.
  bool validatesAt(int64_t step) const {
    return batches > 0 && (step == end || (every > 0 && step > 0 && step % every == 0));
  }
  int64_t validationBatches() const { return batches; }
  int64_t firstStep() const { return first; }
  int64_t endStep() const { return end; }

  BatchChoice trainingBatch(int64_t step) const { return {&training, step}; }
  /// Return the format and the number of the training samples; the format is null if the run reads
  /// none.
  const char *trainingFormat() const { return data ? data->formatName() : nullptr; }
  uint64_t trainingSamples() const { return training.sampleCount(); }
  /// Returns a batch of the validation. Every validation takes the same samples, in the order of
  /// the file.
  BatchChoice validationBatch(int64_t number) const { return {&validation, number}; }

  /// Returns a line for each file, for the user.
  const std::string &note() const { return remark; }

private:
  const TensorLayout *findImages() const;
  Result<std::unique_ptr<SampleSource>> openFile(const std::string &path,
                                                 const DataOptions &options) const;
  Status openTraining(const DataOptions &options);
  Status openValidation(const DataOptions &options);
  Status splitOff(const DataOptions &options);
  Status countBatches(const DataOptions &options, const std::string &source);

  std::span<const Program> programs;
  std::unique_ptr<SampleSource> data, validationData;
  Sampler training, validation;
  int64_t first = 0, end = 0, every = 0, batches = 0;
  std::string remark;
};

/// Enumerates all batches of a run: those of the steps, and between them those of validations. A
/// small value; `data` must outlive it.
class BatchOrder {
public:
  explicit BatchOrder(const RunData &data)
      : data(&data), step(data.firstStep()), validates(data.validatesAt(step)) {}

  /// Returns the next batch; nothing after the last.
  std::optional<BatchChoice> next();

private:
  const RunData *data;
  /// The number of steps whose batches were returned, and of batches of the present validation.
  int64_t step, number = 0;
  bool validates;
};

} // namespace weft::rt

#endif // WEFT_RT_DATA_RUNDATA_H
