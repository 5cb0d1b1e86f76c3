//===- ObservedTensors.cpp - stores one step's observations ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "checkpoint/ObservedTensors.h"

#include "checkpoint/Checkpoint.h"
#include "program/Shards.h"
#include "support/CheckedMath.h"

#include <algorithm>

using namespace weft::rt;

bool ObservedTensors::isMeant(const Observation &observation) const {
  return observation.name.starts_with(prefix);
}

bool ObservedTensors::isAny(std::span<const Program> programs) const {
  return std::ranges::any_of(programs, [&](const Program &program) {
    return std::ranges::any_of(
        program.observations, [&](const Observation &observation) { return isMeant(observation); });
  });
}

void ObservedTensors::take(const Program &program, uint32_t observation,
                           std::span<const int64_t> coordinates, const void *data) {
  const TensorLayout &layout = program.observations[observation].layout;
  if (!isMeant(program.observations[observation]) || !holdsFirstCopy(layout, coordinates)) {
    return;
  }
  values.resize(program.observations.size());
  uint64_t bytes = elementCount(localShape(layout, program.mesh)) * sizeOf(layout.type);
  const char *begin = static_cast<const char *>(data);
  values[observation].assign(begin, begin + bytes);
}

bool ObservedTensors::save(const std::string &path, std::span<const Program> programs,
                           const Executor &executor, int64_t step) const {
  std::vector<TensorInParts> tensors;
  std::vector<size_t> numbers;
  for (const Program &program : programs) {
    for (size_t i = 0; i < program.observations.size(); ++i) {
      const Observation &observation = program.observations[i];
      if (isMeant(observation)) {
        tensors.push_back({observation.name, &observation.layout, &program});
        numbers.push_back(i);
      }
    }
  }
  auto part = [&](size_t i, uint64_t begin, uint64_t count) {
    auto whole =
        values.empty() ? std::span<const char>() : std::span<const char>(values[numbers[i]]);
    return BufferView(whole.empty() ? whole : whole.subspan(begin, count));
  };
  return saveParts(path, executor, tensors, part, step);
}
