//===- MakePrograms.cpp - programs for their reader to begin with ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Writes the first inputs of the target Programs into the folder that is its argument. Every build
// does so, since stored files would be invalid after the next change of the format.
//
//===----------------------------------------------------------------------===//

#include "tests/Toy.h"

#include <cstdio>
#include <fstream>
#include <string>

using namespace weft::rt;

namespace {

/// A program for four ranks that has all opcodes.
Program makeWhole() {
  Program program = makeToy(2, 2);
  program.matmuls = {{ElementType::F32, true, false, 2, 3, 4, 2, 3, 3, 5, 8, 12, 6}};
  program.buffers.push_back({1024, 0, BufferClass::Activation, false, ElementType::F32});
  auto last = uint32_t(program.buffers.size() - 1);
  program.stepBody().push_back({Opcode::Matmul, 0, 0, {{last}, {last}, {last, Access::Write}}, {}});
  program.collectives.push_back(
      {CollectiveKind::Permute, ReductionKind::Sum, ElementType::F64, {0}, {4, 2}, 0, 0, {1, 0}});
  program.stepBody().push_back({Opcode::Collective,
                                uint32_t(program.collectives.size() - 1),
                                0,
                                {{6}, {0, Access::Write}},
                                {}});
  return program;
}

Program makeFarOffset() {
  Program program = makeToy(2, 2);
  program.buffers[1].offset = program.arenaBytes;
  return program;
}

/// Returns the bytes after the header.
std::string payloadOf(const Program &program) {
  constexpr size_t kHeaderBytes = 28;
  std::vector<char> bytes = serialize(program);
  return {bytes.begin() + kHeaderBytes, bytes.end()};
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make-programs FOLDER\n");
    return 1;
  }
  std::string toy = payloadOf(makeToy(2, 2));
  const std::pair<const char *, std::string> inputs[] = {
      {"cut", toy.substr(0, toy.size() / 3)},     {"empty", payloadOf({})},
      {"far-offset", payloadOf(makeFarOffset())}, {"toy", toy},
      {"whole", payloadOf(makeWhole())},
  };
  for (const auto &[name, bytes] : inputs) {
    if (!(std::ofstream(std::string(argv[1]) + "/" + name, std::ios::binary) << bytes).flush()) {
      std::fprintf(stderr, "make-programs: cannot write '%s/%s'\n", argv[1], name);
      return 1;
    }
  }
}
