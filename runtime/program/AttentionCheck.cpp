//===- AttentionCheck.cpp - checks of attention kernels -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "program/ProgramCheck.h"
#include "support/CheckedMath.h"
#include "support/Text.h"

#include <algorithm>
#include <array>
#include <cmath>

using namespace weft::rt;

/// Keeps positions, which are sums of a few such numbers times coordinates, within 64 bits.
static constexpr int64_t kMost = std::numeric_limits<int32_t>::max();

static bool isSize(int64_t size) { return size >= 1 && size <= kMost; }

Status weft::rt::checkAttention(const Program &program, const std::string &name,
                                const Attention &attention) {
  for (int64_t size :
       {attention.batch, attention.queries, attention.keys, attention.keyHeads, attention.group,
        attention.features, attention.valueFeatures, attention.turns}) {
    if (!isSize(size)) {
      return makeError(name, " has a size of ", size, ", expected 1 to ", kMost);
    }
  }
  if (!std::isfinite(attention.scale)) {
    return makeError(name, " has the scale ", attention.scale, ", expected a finite one");
  }
  if (attention.window < 0 || (attention.window > 0 && !attention.isCausal)) {
    return makeError(name, " has a window of ", attention.window, ", expected none",
                     attention.isCausal ? " or a positive one" : " if queries see all keys");
  }
  if (attention.starts && !attention.isCausal) {
    return makeError(name, " has documents, expected none if queries see all keys");
  }
  bool isOrdered = attention.chunks != 0 || attention.chunkLength != 0;
  if (isOrdered &&
      (!isSize(attention.chunks) || !isSize(attention.chunkLength) || attention.chunks % 2 != 0)) {
    return makeError(name, " is stored in ", attention.chunks, " chunks of ", attention.chunkLength,
                     ", expected an even number of chunks of at least 1 position");
  }
  for (const AttentionOffset *offset : {&attention.firstQuery, &attention.firstKey}) {
    if (!offset->strides.empty() && offset->strides.size() != program.mesh.size()) {
      return makeError(name, " has offsets along ", offset->strides.size(),
                       " mesh axes, the mesh has ", program.mesh.size());
    }
    if (std::any_of(offset->strides.begin(), offset->strides.end(),
                    [](int64_t stride) { return stride < 0 || stride > kMost; })) {
      return makeError(name, " has the offsets ", shapeText(offset->strides), " along mesh axes",
                       ", expected 0 to ", kMost);
    }
  }
  if (attention.operands.size() != attention.roles()) {
    return makeError(name, " names ", attention.operands.size(), " operands, expected ",
                     attention.roles());
  }
  return {};
}

/// Returns true if the access of an operand suits its role.
static bool fits(const Attention &attention, size_t role, Access access) {
  bool isReplaced = !attention.isBackward &&
                    attention.operands[Attention::Output] == attention.operands[Attention::Query];
  if (isReplaced && (role == Attention::Query || role == Attention::Output)) {
    return access == Access::ReadWrite;
  }
  return access == (attention.isResult(role) ? Access::Write : Access::Read);
}

static Status checkImmediates(const std::string &where, const Attention &attention,
                              const Instruction &instruction) {
  std::vector<uint32_t> numbers = attention.firstQuery.immediates;
  numbers.insert(numbers.end(), attention.firstKey.immediates.begin(),
                 attention.firstKey.immediates.end());
  if (attention.turn) {
    numbers.push_back(*attention.turn);
  }
  for (uint32_t number : numbers) {
    if (number >= instruction.immediates.size()) {
      return makeError(where, " has ", instruction.immediates.size(),
                       " immediates, its attention names number ", number);
    }
    auto [value, addsMicroBatch] = instruction.immediates[number];
    if (addsMicroBatch) {
      return makeError(where, " has the number of a micro-batch as immediate ", number,
                       " of an attention, expected a number");
    }
    if (value < 0 || value > kMost) {
      return makeError(where, " has the immediate ", value, " of an attention, expected 0 to ",
                       kMost);
    }
  }
  return {};
}

Status weft::rt::checkAttentionOperands(const Program &program, const std::string &where,
                                        const Instruction &instruction) {
  const Attention &attention = *program.kernels[instruction.target].attention;
  const std::vector<Operand> &operands = instruction.operands;
  size_t workspaces = attention.workspaceBytes > 0;
  if (operands.size() != attention.operandCount() + workspaces) {
    return makeError(where, " has ", operands.size(), " operands, its attention has ",
                     attention.operandCount() + workspaces);
  }
  for (size_t role = 0; role < attention.roles(); ++role) {
    uint32_t number = attention.operands[role];
    if (!fits(attention, role, operands[number].access)) {
      return makeError(where, " and its attention differ in the access to operand ", number);
    }
    ElementType type = attention.isWide(role) ? ElementType::F32 : ElementType::BF16;
    if (Status status = checkRoom(program, where, operands[number].buffer, type,
                                  elementCount(attention.shapeOf(role)));
        !status) {
      return status;
    }
  }
  if (attention.starts) {
    const Operand &starts = operands[*attention.starts];
    if (starts.access != Access::Read) {
      return makeError(where, " writes operand ", *attention.starts,
                       ", the beginnings of documents, expected only reads");
    }
    if (Status status =
            checkRoom(program, where, starts.buffer, ElementType::I32,
                      saturatingMul(uint64_t(attention.batch), uint64_t(attention.queries)));
        !status) {
      return status;
    }
  }
  if (workspaces > 0 && operands.back().access != Access::Write) {
    return makeError(where, " reads its workspace");
  }
  if (workspaces > 0) {
    if (Status status =
            checkWorkspace(program, where, operands.back().buffer, attention.workspaceBytes);
        !status) {
      return status;
    }
  }
  return checkImmediates(where, attention, instruction);
}
