//===- ProofNames.cpp - persistent buffers have one name each -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProofParts.h"

using namespace weft;
using namespace weft::schedule;

namespace {

class NameCheck {
public:
  NameCheck(const rt::Program &program, Diagnostics &diagnostics)
      : program(program), diagnostics(diagnostics), isNamed(program.buffers.size(), false) {}

  void run() {
    check(program.parameters, rt::BufferClass::Parameter);
    check(program.optimizerState, rt::BufferClass::Optimizer);
    check(program.inputs, rt::BufferClass::Input);
    for (size_t i = 0; i < program.buffers.size(); ++i) {
      if (program.buffers[i].bytes == 0) {
        diagnostics.add("buffer " + std::to_string(i) + " has no bytes");
      }
      if (program.buffers[i].persistent && !isNamed[i]) {
        diagnostics.add("buffer " + std::to_string(i) + " is persistent and has no name");
      }
    }
  }

private:
  void check(const std::vector<rt::NamedTensor> &tensors, rt::BufferClass kind) {
    for (const rt::NamedTensor &tensor : tensors) {
      const rt::Buffer &buffer = program.buffers[tensor.buffer];
      std::string what = std::string(rt::nameOf(kind)) + " '" + tensor.name + "' lies in buffer " +
                         std::to_string(tensor.buffer);
      if (!buffer.persistent || buffer.kind != kind) {
        diagnostics.add(what + ", expected a persistent buffer of its class");
      }
      if (isNamed[tensor.buffer]) {
        diagnostics.add(what + ", which already holds another tensor");
      }
      isNamed[tensor.buffer] = true;
    }
  }

  const rt::Program &program;
  Diagnostics &diagnostics;
  std::vector<bool> isNamed;
};

} // namespace

bool weft::schedule::checkWellFormed(const rt::Program &program, Diagnostics &diagnostics) {
  if (rt::Status status = rt::checkWellFormed(program); !status) {
    diagnostics.add(status.error().message);
    return false;
  }
  for (size_t i = 0; i < program.collectives.size(); ++i) {
    if (program.collectives[i].axes.empty() && !program.collectives[i].isAcrossClasses()) {
      diagnostics.add("collective " + std::to_string(i) + " has no mesh axis");
      return false;
    }
  }
  return true;
}

void weft::schedule::checkNames(const rt::Program &program, Diagnostics &diagnostics) {
  NameCheck(program, diagnostics).run();
}
