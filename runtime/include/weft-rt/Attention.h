//===- Attention.h - attention that a library may do ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel that is nothing but attention says so: a device's library may then do it in
// its place. Which keys a query sees is said by positions, which differ between ranks
// and, where keys go round, between instructions; what that is for one of them,
// `attentionPart` finds out at the start.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_ATTENTION_H
#define WEFT_RT_ATTENTION_H

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weft::rt {

/// The first of a shard's stored positions: the sum of the rank's coordinates times `strides`, one
/// for each mesh axis or none at all, and of the instruction's immediates with these numbers.
struct AttentionOffset {
  std::vector<int64_t> strides = {};
  std::vector<uint32_t> immediates = {};
};

/// Softmax of `scale` times the products of queries and keys, over the keys that a query sees,
/// weighs values; or the gradients of that. Tensors are dense and of bf16:
///   query   [batch, queries, keyHeads, group, features]
///   key     [batch, keys, keyHeads, features]
///   value   [batch, keys, keyHeads, valueFeatures]
///   output  [batch, queries, keyHeads, group, valueFeatures], which may be f32
///   lse     [batch, keyHeads, group, queries] of f32: the natural logarithm of the sum of
///           exponentials; -1e30 or less, and an output that counts nothing, where no key is seen
/// The gradients are of query, key and value by what the output is and by its gradient, which is of
/// bf16; they are f32. With the lse of more keys than are given, so are they those of a part of it.
struct Attention {
  enum Role : uint8_t {
    Query,
    Key,
    Value,
    Output,
    Lse,
    Gradient,
    QueryGradient,
    KeyGradient,
    ValueGradient
  };

  bool isBackward = false;
  /// Forward only.
  bool isOutputWide = false;
  int64_t batch = 0, queries = 0, keys = 0, keyHeads = 0, group = 0, features = 0,
          valueFeatures = 0;
  double scale = 1;
  /// Whether a query sees no key at a later position, and only the `window` keys up to its own; 0
  /// is all.
  bool isCausal = false;
  int64_t window = 0;
  /// Positions are stored as they are, or, where `chunks` is not 0, in so many chunks: the first,
  /// the last, the second, the last but one, and so on.
  int64_t chunks = 0, chunkLength = 0;
  AttentionOffset firstQuery = {}, firstKey = {};
  /// The number of the immediate that says how many shards before the own the keys are, which go
  /// round `turns` shards.
  std::optional<uint32_t> turn = std::nullopt;
  int64_t turns = 1;
  /// For each role, as many as the direction has, the number of the instruction's operand. An
  /// output may take the place of the query.
  std::vector<uint32_t> operands = {};
  /// Of sequences of documents, the number of the operand [batch, queries] of i32 with the position
  /// where each query's document begins: it sees no key before. Positions are those of the whole
  /// sequence, and do not fall from a query to the next.
  std::optional<uint32_t> starts = std::nullopt;
  /// Of the instruction's last operand, which the kernel's code does not get: what a library may
  /// use beside the others. 0 where there is none, as on the host.
  uint64_t workspaceBytes = 0;

  /// Operands of the instruction without the workspace, which has this number.
  size_t operandCount() const;
  size_t roles() const { return isBackward ? 9 : 5; }
  /// Whether a role is written.
  bool isResult(size_t role) const { return isBackward ? role >= QueryGradient : role >= Output; }
  /// Elements of a role, and whether they are f32.
  std::vector<int64_t> shapeOf(size_t role) const;
  bool isWide(size_t role) const;
  /// Of bf16, which a library writes before it goes where it belongs: it does not write f32, and
  /// may not write an output over a query.
  bool isStaged(size_t role) const;
};

/// Keys that follow each other in position too, and the first's.
struct KeyRun {
  int64_t position = 0, keys = 0;
};

/// Which queries see which keys, of one shard of each: those from `firstQuery` on see some of the
/// keys from `firstKey` on, others see none.
struct AttentionPart {
  /// All of the keys; or key j is seen by query i if j <= i + keys - queries, and with a window of
  /// w if j > i + keys - queries - w.
  bool isCausal = false;
  int64_t window = 0;
  int64_t firstQuery = 0, queries = 0, firstKey = 0, keys = 0;
  /// Of documents: the keys, in the order of positions. A query whose document begins at s does not
  /// see as many of the first as have positions below s.
  std::array<KeyRun, 2> runs = {};
};

/// The part of a rank at `coordinates` in an instruction with these immediates. Nothing if it is
/// not one: then only the kernel's own code does it. REQUIRES: the program is well-formed.
std::optional<AttentionPart> attentionPart(const Attention &attention,
                                           std::span<const int64_t> coordinates,
                                           std::span<const int64_t> immediates);

/// What a library is given beside the operands, at most.
uint64_t attentionWorkspace(const Attention &attention);

/// "attention bf16 16x128x128 heads 4/2 of 32 causal".
std::string textOf(const Attention &attention);

} // namespace weft::rt

#endif // WEFT_RT_ATTENTION_H
