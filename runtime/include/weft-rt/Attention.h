//===- Attention.h - attention that a library may compute -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel that computes only attention describes it here, so that a device's
// library may compute it instead of the kernel. Positions decide which keys a query
// sees. They differ between ranks and, in ring attention, between instructions;
// `attentionPart` evaluates them for one instruction of one rank when the run
// starts.
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

/// The first stored position of a shard: the sum of the rank's coordinates times `strides` (one for
/// each mesh axis, or none) and of the instruction's immediates with the numbers in `immediates`.
struct AttentionOffset {
  std::vector<int64_t> strides = {};
  std::vector<uint32_t> immediates = {};
};

/// The forward pass returns softmax(`scale` * query * key^T) * value over the keys that each query
/// sees; the backward pass returns its gradients. Tensors are dense and of bf16:
///   query   [batch, queries, keyHeads, group, features]
///   key     [batch, keys, keyHeads, features]
///   value   [batch, keys, keyHeads, valueFeatures]
///   output  [batch, queries, keyHeads, group, valueFeatures], which may be f32
///   lse     [batch, keyHeads, group, queries] of f32: the natural logarithm of the sum of
///           exponentials; -1e30 or less for a query that sees no key, whose output is meaningless
/// The backward pass reads all of these and the gradient of the output (bf16), and writes the
/// gradients of query, key and value (bf16 or f32). If the lse covers more keys than the key
/// operand, the results are these keys' share of the gradients.
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
  /// Whether the output, or all three gradients, are f32 and not bf16.
  bool areResultsWide = false;
  int64_t batch = 0, queries = 0, keys = 0, keyHeads = 0, group = 0, features = 0,
          valueFeatures = 0;
  double scale = 1;
  /// If true, a query sees no key at a later position, and only the last `window` keys up to its
  /// own; a window of 0 is unlimited.
  bool isCausal = false;
  int64_t window = 0;
  /// The order of stored positions. 0 chunks: ascending. Otherwise the sequence is stored in
  /// `chunks` chunks: the first, the last, the second, the last but one, and so on.
  int64_t chunks = 0, chunkLength = 0;
  AttentionOffset firstQuery = {}, firstKey = {};
  /// In ring attention over `turns` shards: the number of the immediate that says by how many
  /// shards the keys precede the rank's own.
  std::optional<uint32_t> turn = std::nullopt;
  int64_t turns = 1;
  /// The number of the instruction's operand for each role; `roles()` entries. The output may
  /// overwrite the query.
  std::vector<uint32_t> operands = {};
  /// For sequences of several documents: the number of the operand [batch, queries] of i32 that
  /// holds the position where each query's document begins; the query sees no earlier key. These
  /// positions count in the whole sequence and never decrease from one query to the next.
  std::optional<uint32_t> starts = std::nullopt;
  /// The bytes of the workspace, the instruction's last operand, which only a library uses; the
  /// kernel's own code does not get it. 0 if there is none, as on the host.
  uint64_t workspaceBytes = 0;

  /// Returns the number of operands without the workspace; this is also the number of the workspace
  /// operand.
  size_t operandCount() const;
  size_t roles() const { return isBackward ? 9 : 5; }
  /// Returns true if the attention writes the operand of `role`.
  bool isResult(size_t role) const { return isBackward ? role >= QueryGradient : role >= Output; }
  /// Return the shape of the operand of `role`, and whether it is f32.
  std::vector<int64_t> shapeOf(size_t role) const;
  bool isWide(size_t role) const;
  /// Returns true if a library must write the operand of `role` in bf16 to the workspace first:
  /// libraries cannot write f32, nor an output over a query.
  bool isStaged(size_t role) const;
};

/// Keys that are contiguous in memory and in position, and the position of the first.
struct KeyRun {
  int64_t position = 0, keys = 0;
};

/// The queries and keys of one shard of each that take part: queries from `firstQuery` on see some
/// of the keys from `firstKey` on; other queries and keys take no part.
struct AttentionPart {
  /// If false, each query sees all keys. If true, query i sees key j if j <= i + keys - queries
  /// and, with a window of w, j > i + keys - queries - w.
  bool isCausal = false;
  int64_t window = 0;
  int64_t firstQuery = 0, queries = 0, firstKey = 0, keys = 0;
  /// With documents: the keys in order of position. A query whose document begins at s does not see
  /// the keys at positions below s.
  std::array<KeyRun, 2> runs = {};
};

/// Returns the part that the rank at `coordinates` computes in an instruction with these
/// immediates; empty if a library cannot compute it, so that the kernel's own code must. REQUIRES:
/// the program is well-formed.
std::optional<AttentionPart> attentionPart(const Attention &attention,
                                           std::span<const int64_t> coordinates,
                                           std::span<const int64_t> immediates);

/// Returns the bytes of the largest workspace that a library may need.
uint64_t attentionWorkspace(const Attention &attention);

/// "attention bf16 16x128x128 heads 4/2 of 32 causal".
std::string textOf(const Attention &attention);

} // namespace weft::rt

#endif // WEFT_RT_ATTENTION_H
