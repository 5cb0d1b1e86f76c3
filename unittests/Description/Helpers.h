//===- Helpers.h - texts and checks that the tests of descriptions share --===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_UNITTESTS_DESCRIPTION_HELPERS_H
#define WEFT_UNITTESTS_DESCRIPTION_HELPERS_H

#include "weft/Description/Diagnostic.h"

#include <gtest/gtest.h>

#include <string>

namespace weft::desc::test {

/// Valid descriptions, one field per line, for tests to change.
inline const std::string modelText = R"(version: 1
name: "m"
layers: 2
hidden: 32
heads: 8
kv_heads: 4
ffn: 64
norm: LAYER_NORM
activation: GELU
positions: LEARNED
maximum_length: 128
vocabulary: 256
)";

inline const std::string rotaryModelText = R"(version: 1
name: "m"
layers: 2
hidden: 32
heads: 4
ffn: 64
norm: RMS_NORM
activation: SWIGLU
positions: ROTARY
vocabulary: 256
)";

inline const std::string recipeText = R"(version: 1
sequence_length: 128
global_batch_sequences: 12
adamw {}
schedule { peak_learning_rate: 1e-3 }
steps: 100
)";

inline const std::string machineText = R"(version: 1
name: "host"
devices_per_node: 8
device {
  name: "core"
  peak_flops { precision: F32 flops: 1e9 }
  memory_bytes: 1073741824
  memory_bandwidth_bytes_per_second: 1e9
}
links { name: "bus" scope: NODE latency_seconds: 1e-6 bandwidth_bytes_per_second: 1e9 }
)";

inline const std::string planText = R"(version: 1
mesh {
  axis { name: "dp" size: 2 }
  axis { name: "tp" size: 4 }
}
sharding { value: "*" dimension: "batch" axes: ["dp"] }
sharding { value: "*" dimension: "kv_heads" axes: ["tp"] }
sharding { value: "layers.*.mlp.*" dimension: "ffn" axes: ["dp", "tp"] }
)";

/// Returns `text` with the first `from` replaced by `to`; fails the test if there is none.
inline std::string with(std::string text, const std::string &from, const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return at == text.npos ? text : text.replace(at, from.size(), to);
}

/// Returns a line "rule: file:line:column: field: message" for each diagnostic; a syntax error has
/// no rule and starts with the file.
template <typename Spec> std::string errors(const Result<Spec> &result) {
  std::string all;
  for (const Diagnostic &diagnostic : result.diagnostics()) {
    all += (diagnostic.rule.empty() ? "" : diagnostic.rule + ": ") + diagnostic.str() + "\n";
  }
  return all;
}

} // namespace weft::desc::test

#endif // WEFT_UNITTESTS_DESCRIPTION_HELPERS_H
