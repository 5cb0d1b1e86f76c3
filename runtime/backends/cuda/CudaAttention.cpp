//===- CudaAttention.cpp - attention by a device's library ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/CudaAttention.h"

#include "support/Text.h"
#include "weft-rt/Expansion.h"

#include <algorithm>
#include <array>

using namespace weft::rt;
using namespace weft::rt::cuda;

/// Returns true for known errors of cuDNN on sm_90: with scores below -88 and no mask behind the
/// last key, its exponential overflows (cudnn-frontend#628; a fix is announced); with a single
/// query it gives NaN for other reasons (cudnn-frontend#1072; no fix is announced).
static bool isMiscomputed(const Attention &attention, const AttentionPart &part) {
  // With a mask of documents cuDNN may not recognize the band that hides later keys.
  bool hasBand = part.isCausal && !attention.starts;
  return attention.isBackward && (part.queries == 1 || (!hasBand && part.keys % 128 == 64));
}

DriverTable::Result CudaAttention::prepare(DriverTable::Handle device,
                                           std::span<const int64_t> coordinates,
                                           bool isDeterministic) {
  for (const Body &body : program.bodies) {
    for (const Instruction &instruction : body.instructions) {
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

DriverTable::Result CudaAttention::prepareOne(DriverTable::Handle device,
                                              const Instruction &instruction,
                                              std::span<const int64_t> coordinates,
                                              bool isDeterministic) {
  const Attention &attention = *program.kernels[instruction.target].attention;
  std::optional<AttentionPart> part =
      attentionPart(attention, coordinates, immediatesOf(instruction, {}));
  std::vector<int64_t> numbers;
  if (part) {
    numbers = {part->isCausal, part->window,   part->firstQuery,
               part->queries,  part->firstKey, part->keys};
    for (const KeyRun &run : part->runs) {
      numbers.insert(numbers.end(), {run.position, run.keys});
    }
  }
  auto [it, isNew] = made.try_emplace(std::pair(instruction.target, numbers));
  known[&instruction] = &it->second;
  return isNew ? make(device, attention, part, isDeterministic, it->second) : nullptr;
}

DriverTable::Result CudaAttention::make(DriverTable::Handle device, const Attention &attention,
                                        const std::optional<AttentionPart> &part,
                                        bool isDeterministic, Made &into) {
  const char *refusal = nullptr;
  if (!part) {
    refusal = "queries see other keys than a library's masks say";
  } else if (part->queries == 0) {
    return nullptr; // The compiler's code is done at once where none sees any.
  } else if (isMiscomputed(attention, *part)) {
    refusal = "cuDNN's gradients for this number of queries and keys are NaN if scores are low";
  } else if (auto failed = library.prepareAttention(device, &attention, &*part, isDeterministic,
                                                    &into.handle, &refusal)) {
    return failed;
  }
  into.refusal = refusal ? refusal : "";
  return nullptr;
}

void CudaAttention::free(DriverTable::Handle device) {
  for (auto &[key, one] : made) {
    if (one.handle) {
      library.freeAttention(device, one.handle);
    }
  }
  known.clear();
  made.clear();
}

DriverTable::Handle CudaAttention::find(const Instruction &instruction) const {
  auto it = known.find(&instruction);
  return it == known.end() ? 0 : it->second->handle;
}

DriverTable::Result CudaAttention::run(DriverTable::Handle device, DriverTable::Handle stream,
                                       DriverTable::Handle prepared, uint32_t kernel,
                                       void *const *operands) const {
  const Attention &attention = *program.kernels[kernel].attention;
  std::vector<uint32_t> numbers = attention.operands;
  if (attention.starts) {
    numbers.push_back(*attention.starts);
  }
  if (attention.workspaceBytes > 0) {
    numbers.push_back(uint32_t(attention.operandCount()));
  }
  std::array<DriverTable::Address, Attention::ValueGradient + 3> addresses = {};
  std::transform(numbers.begin(), numbers.end(), addresses.begin(), [&](uint32_t number) {
    return reinterpret_cast<DriverTable::Address>(operands[number]);
  });
  return library.runAttention(device, stream, prepared, addresses.data(), numbers.size());
}

std::string CudaAttention::refusals() const {
  // By reason: the number of instructions of a step, and the first of them.
  std::map<std::string, std::pair<size_t, const Instruction *>> counts;
  size_t all = 0;
  for (const Instruction &instruction : Expansion(program, program.step)) {
    bool isOne =
        instruction.opcode == Opcode::Kernel && program.kernels[instruction.target].attention;
    all += isOne;
    auto it = isOne ? known.find(&instruction) : known.end();
    if (it != known.end() && !it->second->refusal.empty()) {
      auto &[count, first] = counts.try_emplace(it->second->refusal, 0, &instruction).first->second;
      ++count;
    }
  }
  std::string text;
  for (const auto &[reason, found] : counts) {
    auto [count, first] = found;
    text += concat("the compiler's code runs ", count, " of ", all, " attentions of a step, ",
                   program.labels[first->label], count > 1 ? " the first" : "", ": ", reason, "\n");
  }
  return text;
}
