//===- CudaAttention.h - attention that a device's library does -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which instructions of a rank's program the library does in place of the compiler's
// code is settled at the start, once for all that are alike.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_CUDA_CUDAATTENTION_H
#define WEFT_RT_BACKENDS_CUDA_CUDAATTENTION_H

#include "backends/cuda/DriverTable.h"
#include "weft-rt/Program.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace weft::rt::cuda {

class CudaAttention {
public:
  CudaAttention(const Program &program, const DriverTable &library)
      : program(program), library(library) {}

  /// Asks the library for each that a rank at `coordinates` does. It may refuse; gives a text if it
  /// fails.
  DriverTable::Result prepare(DriverTable::Handle device, std::span<const int64_t> coordinates,
                              bool isDeterministic);
  void free(DriverTable::Handle device);
  /// Runs each once, on the operands that `addressOf` gives for a buffer's number: a library
  /// loads some of its code at the first run. What is in them does not matter, and changes.
  template <typename AddressOf>
  DriverTable::Result runEach(DriverTable::Handle device, DriverTable::Handle stream,
                              const AddressOf &addressOf) const {
    std::set<DriverTable::Handle> seen = {0};
    for (const auto *section : {&program.init, &program.step, &program.evaluate}) {
      for (const Instruction &instruction : *section) {
        DriverTable::Handle prepared = instruction.opcode == Opcode::Kernel
                                           ? find(instruction.target, instruction.immediates.data())
                                           : 0;
        if (!seen.insert(prepared).second) {
          continue;
        }
        std::vector<void *> operands;
        for (const Operand &operand : instruction.operands) {
          operands.push_back(addressOf(operand.buffer));
        }
        if (auto failed = run(device, stream, prepared, instruction.target, operands.data())) {
          return failed;
        }
      }
    }
    return nullptr;
  }

  /// Of an instruction of that kernel with these immediates, which are the program's own; 0 where
  /// the compiler's code does it.
  DriverTable::Handle find(uint32_t kernel, const int64_t *immediates) const;
  /// `operands` are the instruction's.
  DriverTable::Result run(DriverTable::Handle device, DriverTable::Handle stream,
                          DriverTable::Handle prepared, uint32_t kernel,
                          void *const *operands) const;

  /// A line for each reason why the compiler's code does an attention of the step, and how many; ""
  /// if the library does all.
  std::string refusals() const;

private:
  /// What was made; 0 where it was not, and then why, where there is something to do.
  struct Made {
    DriverTable::Handle handle = 0;
    std::string refusal;
  };

  DriverTable::Result prepareOne(DriverTable::Handle device, const Instruction &instruction,
                                 std::span<const int64_t> coordinates, bool isDeterministic);
  DriverTable::Result make(DriverTable::Handle device, const Attention &attention,
                           const std::optional<AttentionPart> &part, bool isDeterministic,
                           Made &into);

  const Program &program;
  const DriverTable &library;
  /// By the kernel and the numbers of the part, none where there is no part: the turns of a ring
  /// are few parts.
  std::map<std::pair<uint32_t, std::vector<int64_t>>, Made> made;
  /// The same by the instructions' own immediates.
  std::map<std::pair<uint32_t, const int64_t *>, const Made *> known;
};

} // namespace weft::rt::cuda

#endif // WEFT_RT_BACKENDS_CUDA_CUDAATTENTION_H
