//===- OwnedTensors.cpp - the tensors of a run, over all rank classes ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "program/OwnedTensors.h"

#include <set>

using namespace weft::rt;

static void append(std::span<const Program> programs, std::vector<NamedTensor> Program::*list,
                   std::vector<OwnedTensor> &tensors) {
  std::set<std::string_view> names;
  for (const Program &program : programs) {
    for (const NamedTensor &tensor : program.*list) {
      if (names.insert(tensor.name).second) {
        tensors.push_back({&tensor, &program});
      }
    }
  }
}

std::vector<OwnedTensor> weft::rt::parametersOf(std::span<const Program> programs) {
  std::vector<OwnedTensor> tensors;
  append(programs, &Program::parameters, tensors);
  return tensors;
}

std::vector<OwnedTensor> weft::rt::optimizerStateOf(std::span<const Program> programs) {
  std::vector<OwnedTensor> tensors;
  append(programs, &Program::optimizerState, tensors);
  return tensors;
}

std::vector<OwnedTensor> weft::rt::savedTensorsOf(std::span<const Program> programs) {
  std::vector<OwnedTensor> tensors;
  append(programs, &Program::parameters, tensors);
  append(programs, &Program::optimizerState, tensors);
  return tensors;
}
