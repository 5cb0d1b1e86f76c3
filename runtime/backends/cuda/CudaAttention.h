//===- CudaAttention.h - attention by a device's library ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Before a run, decides which instructions of a rank's program the library runs in place of
// the compiler's code. Equal instructions share one prepared attention.
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

  /// Prepares each attention of a rank at `coordinates`. The library may refuse any of them, which
  /// is no error.
  DriverTable::Result prepare(DriverTable::Handle device, std::span<const int64_t> coordinates,
                              bool isDeterministic);
  void free(DriverTable::Handle device);
  /// Runs each prepared attention once, since a library loads some of its code at the first run.
  /// `addressOf` returns the address of a buffer by its number. Operands may hold any values, and
  /// are overwritten.
  template <typename AddressOf>
  DriverTable::Result runEach(DriverTable::Handle device, DriverTable::Handle stream,
                              const AddressOf &addressOf) const {
    std::set<DriverTable::Handle> seen = {0};
    for (const Body &body : program.bodies) {
      for (const Instruction &instruction : body.instructions) {
        DriverTable::Handle prepared = find(instruction);
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

  /// Returns the prepared attention of an instruction of the program, or 0 if the compiler's code
  /// runs it, or it is another instruction.
  DriverTable::Handle find(const Instruction &instruction) const;
  /// Enqueues `prepared` on the instruction's `operands`.
  DriverTable::Result run(DriverTable::Handle device, DriverTable::Handle stream,
                          DriverTable::Handle prepared, uint32_t kernel,
                          void *const *operands) const;

  /// Returns a line for each reason why the compiler's code runs attentions of the step, with their
  /// number; "" if the library runs all.
  std::string refusals() const;

private:
  /// A prepared attention, or 0 and the library's reason; the reason is empty for an empty part.
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
  /// By kernel and the numbers of the part, which are none for an empty part. The turns of a ring
  /// share a few parts.
  std::map<std::pair<uint32_t, std::vector<int64_t>>, Made> made;
  /// By instruction.
  std::map<const Instruction *, const Made *> known;
};

} // namespace weft::rt::cuda

#endif // WEFT_RT_BACKENDS_CUDA_CUDAATTENTION_H
