//===- ObservedTensors.cpp - keeps what is observed in one step -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/ObservedTensors.h"

#include "core/Checkpoint.h"
#include "core/Pieces.h"

#include <algorithm>

using namespace weft::rt;

bool ObservedTensors::isMeant(const Observation &observation) const {
  return observation.name.starts_with(prefix);
}

bool ObservedTensors::allocate(const Program &program) {
  values.resize(program.observations.size());
  bool isAny = false;
  for (size_t i = 0; i < values.size(); ++i) {
    if (isMeant(program.observations[i])) {
      values[i].resize(globalBytes(program.observations[i].layout));
      isAny = true;
    }
  }
  return isAny;
}

void ObservedTensors::take(const Program &program, uint32_t observation,
                           std::span<const int64_t> coordinates, const void *data) {
  const TensorLayout &layout = program.observations[observation].layout;
  if (isMeant(program.observations[observation]) && holdsFirstCopy(layout, coordinates)) {
    gatherPiece(layout, program.mesh, coordinates, data, values[observation].data());
  }
}

bool ObservedTensors::save(const std::string &path, const Program &program, int64_t step,
                           std::string &error) const {
  std::vector<TensorHeader> headers;
  std::vector<const std::vector<char> *> contents;
  for (size_t i = 0; i < values.size(); ++i) {
    const Observation &observation = program.observations[i];
    if (isMeant(observation)) {
      headers.push_back(
          {observation.name, observation.layout.type, observation.layout.globalShape});
      contents.push_back(&values[i]);
    }
  }
  std::map<std::string, std::string> metadata = {
      {"format", "weft"}, {"step", std::to_string(step)}, {"plan", program.planHash}};
  auto read = [&](size_t i, std::span<char> bytes) {
    std::copy(contents[i]->begin(), contents[i]->end(), bytes.begin());
  };
  return saveTensors(path, headers, metadata, read, error);
}
