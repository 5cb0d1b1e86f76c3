//===- CudaAttention.cpp - attention that a device's library does ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/CudaAttention.h"

#include "core/Text.h"

#include <array>

using namespace weft::rt;
using namespace weft::rt::cuda;

Library::Result CudaAttention::prepare(Library::Handle device, std::span<const int64_t> coordinates,
                                       bool isDeterministic) {
  for (const auto *section : {&program.init, &program.step, &program.evaluate}) {
    for (const Instruction &instruction : *section) {
      if (instruction.opcode != Opcode::Kernel || !program.kernels[instruction.target].attention) {
        continue;
      }
      if (auto failed = prepareOne(device, instruction, coordinates, isDeterministic)) {
        return failed;
      }
    }
  }
  return nullptr;
}

Library::Result CudaAttention::prepareOne(Library::Handle device, const Instruction &instruction,
                                          std::span<const int64_t> coordinates,
                                          bool isDeterministic) {
  const Attention &attention = *program.kernels[instruction.target].attention;
  std::pair key(instruction.target, instruction.immediates);
  auto [it, isNew] = made.try_emplace(key, 0);
  if (isNew) {
    std::optional<AttentionPart> part =
        attentionPart(attention, coordinates, instruction.immediates);
    const char *refusal = nullptr;
    if (!part) {
      refusal = "queries see other keys than a library's masks say";
    } else if (part->queries > 0) { // The compiler's code is done at once where none sees any.
      if (auto failed = library.prepareAttention(device, &attention, &*part, isDeterministic,
                                                 &it->second, &refusal)) {
        return failed;
      }
    }
    if (refusal) {
      reasons[key] = refusal;
    }
  }
  known[{instruction.target, instruction.immediates.data()}] = it->second;
  return nullptr;
}

void CudaAttention::free(Library::Handle device) {
  for (auto &[key, handle] : made) {
    if (handle) {
      library.freeAttention(device, handle);
    }
  }
  made.clear();
}

Library::Handle CudaAttention::find(uint32_t kernel, const int64_t *immediates) const {
  auto it = known.find({kernel, immediates});
  return it == known.end() ? 0 : it->second;
}

Library::Result CudaAttention::run(Library::Handle device, Library::Handle stream,
                                   Library::Handle prepared, uint32_t kernel,
                                   void *const *operands) const {
  const Attention &attention = *program.kernels[kernel].attention;
  std::array<Library::Address, Attention::ValueGradient + 2> addresses = {};
  size_t count = 0;
  for (; count < attention.roles(); ++count) {
    addresses[count] = reinterpret_cast<Library::Address>(operands[attention.operands[count]]);
  }
  if (attention.workspaceBytes > 0) {
    addresses[count++] = reinterpret_cast<Library::Address>(operands[attention.operandCount()]);
  }
  return library.runAttention(device, stream, prepared, addresses.data(), count);
}

std::string CudaAttention::refusals() const {
  // By reason: of how many instructions of a step, and the first.
  std::map<std::string, std::pair<size_t, const Instruction *>> counts;
  size_t all = 0;
  for (const Instruction &instruction : program.step) {
    bool isOne =
        instruction.opcode == Opcode::Kernel && program.kernels[instruction.target].attention;
    all += isOne;
    auto it = isOne ? reasons.find({instruction.target, instruction.immediates}) : reasons.end();
    if (it != reasons.end()) {
      auto &[count, first] = counts.try_emplace(it->second, 0, &instruction).first->second;
      ++count;
    }
  }
  std::string text;
  for (const auto &[reason, found] : counts) {
    auto [count, first] = found;
    text += concat("the compiler's code does ", count, " of ", all, " attentions of a step, ",
                   program.labels[first->label], count > 1 ? " the first" : "", ": ", reason, "\n");
  }
  return text;
}
