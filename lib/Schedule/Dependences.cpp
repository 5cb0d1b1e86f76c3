//===- Dependences.cpp - dependences between instructions of a body -------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Dependences.h"

#include <algorithm>

using namespace weft;
using namespace weft::schedule;

namespace {

constexpr uint32_t kNobody = ~uint32_t(0);

class Finder {
public:
  Finder(const rt::Program &program, const std::vector<rt::Instruction> &body)
      : program(program), body(body), writer(program.buffers.size(), kNobody),
        readers(program.buffers.size()) {
    found.before.resize(body.size());
    found.after.resize(body.size());
  }

  Dependences run() {
    for (uint32_t i = 0; i < body.size(); ++i) {
      for (const rt::Operand &operand : body[i].operands) {
        visit(i, operand);
      }
      if (body[i].opcode == rt::Opcode::Observe || body[i].opcode == rt::Opcode::Agree) {
        add(observed, i);
        for (uint32_t lasting : lastingWrites) {
          add(lasting, i);
        }
        lastingWrites.clear();
        observed = i;
      }
      noteWrites(i);
    }
    return std::move(found);
  }

private:
  void add(uint32_t before, uint32_t after) {
    if (before != kNobody && before != after &&
        (found.before[after].empty() || found.before[after].back() != before)) {
      found.before[after].push_back(before);
      found.after[before].push_back(after);
    }
  }

  void visit(uint32_t number, const rt::Operand &operand) {
    add(writer[operand.buffer], number);
    if (operand.access == rt::Access::Read) {
      readers[operand.buffer].push_back(number);
      return;
    }
    for (uint32_t reader : readers[operand.buffer]) {
      add(reader, number);
    }
  }

  void noteWrites(uint32_t number) {
    bool lasts = false;
    for (const rt::Operand &operand : body[number].operands) {
      if (operand.access != rt::Access::Read) {
        writer[operand.buffer] = number;
        readers[operand.buffer].clear();
        lasts = lasts || program.buffers[operand.buffer].persistent;
      }
    }
    if (lasts) {
      add(observed, number);
      lastingWrites.push_back(number);
    }
  }

  const rt::Program &program;
  const std::vector<rt::Instruction> &body;
  Dependences found;
  std::vector<uint32_t> writer;
  /// For each buffer, its readers since the last write.
  std::vector<std::vector<uint32_t>> readers;
  /// The last observation or agreement, and the writers of persistent buffers since then.
  uint32_t observed = kNobody;
  std::vector<uint32_t> lastingWrites;
};

} // namespace

Dependences weft::schedule::findDependences(const rt::Program &program,
                                            const std::vector<rt::Instruction> &body) {
  return Finder(program, body).run();
}
