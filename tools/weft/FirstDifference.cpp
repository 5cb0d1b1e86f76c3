//===- FirstDifference.cpp - the op that two programs differ by ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FirstDifference.h"

#include "CommandLine.h"
#include "MadeUpData.h"
#include "RunDifferences.h"

#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/Format.h"

using namespace weft;

namespace {

/// What of a padded tensor is no padding: the elements that one of `shape` has too.
std::vector<double> withoutPadding(const Tensor &tensor, const std::vector<int64_t> &shape) {
  if (tensor.shape == shape || tensor.shape.size() != shape.size()) {
    return tensor.values;
  }
  std::vector<double> kept;
  for (size_t i = 0; i < tensor.values.size(); ++i) {
    bool isInside = true;
    int64_t rest = int64_t(i);
    for (size_t dim = shape.size(); dim-- > 0;) {
      isInside &= rest % tensor.shape[dim] < shape[dim];
      rest /= tensor.shape[dim];
    }
    if (isInside) {
      kept.push_back(tensor.values[i]);
    }
  }
  return kept;
}

llvm::Expected<Tensors> valuesOf(SmallProgramRequest request, const std::string &folder,
                                 const std::string &data, int64_t step,
                                 std::vector<verify::ObservedValue> &observed) {
  request.observes = true;
  llvm::Expected<SmallProgram> program = compileSmall(request, folder + "/observed");
  if (!program) {
    return program.takeError();
  }
  RunRequest run{program->path, data, readsTokens(program->program), step + 1, step, folder};
  llvm::Expected<TrainingRun> done = runTraining(run);
  if (!done) {
    return done.takeError();
  }
  observed = std::move(program->values);
  return std::move(done->gradients);
}

} // namespace

llvm::Expected<std::string> weft::firstDifference(SmallProgramRequest split,
                                                  SmallProgramRequest single, int64_t step,
                                                  const std::string &folder,
                                                  const std::string &data) {
  std::vector<verify::ObservedValue> values, ignored;
  llvm::Expected<Tensors> expected = valuesOf(single, folder, data, step, ignored);
  if (!expected) {
    return expected.takeError();
  }
  llvm::Expected<Tensors> got = valuesOf(split, folder, data, step, values);
  if (!got) {
    return got.takeError();
  }
  for (const verify::ObservedValue &value : values) {
    auto a = got->find(value.name), b = expected->find(value.original);
    if (a == got->end() || b == expected->end()) {
      return makeError("one of the programs does not show " + value.maker);
    }
    // Nothing but rounding is told by size: of a tensor by itself nothing else is known.
    const Tensor &right = b->second;
    double apart = distance(withoutPadding(a->second, right.shape), right.values, 1.0);
    if (apart > kTolerance) {
      std::string text;
      llvm::raw_string_ostream(text)
          << "the first value of step " << step << " that differs is made by " << value.maker
          << llvm::format(", relative difference %.1e", apart);
      return text;
    }
  }
  return "no value of step " + std::to_string(step) +
         " differs where all are looked at: the mistake is in the order that balance-sequences "
         "gives them, or in what Schedule and Lower make of them" +
         (single.accumulates ? ", or in adding up micro-batches, which one rank does there too"
                             : "");
}
