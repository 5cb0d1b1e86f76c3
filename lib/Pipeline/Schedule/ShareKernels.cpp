//===- ShareKernels.cpp - one table of kernels for all stages --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Pipeline/Schedule/ShareKernels.h"

using namespace weft;

void weft::shareKernels(rt::Programs &programs) {
  if (programs.size() < 2) {
    return;
  }
  std::vector<rt::Kernel> all;
  for (rt::Program &program : programs) {
    const auto before = static_cast<uint32_t>(all.size());
    for (rt::Kernel &kernel : program.kernels) {
      all.push_back(std::move(kernel));
    }
    for (rt::Body &body : program.bodies) {
      for (rt::Instruction &instruction : body.instructions) {
        instruction.target += instruction.opcode == rt::Opcode::Kernel ? before : 0;
      }
    }
  }
  for (rt::Program &program : programs) {
    program.kernels = all;
  }
}
