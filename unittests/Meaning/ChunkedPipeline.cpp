//===- ChunkedPipeline.cpp - a step of any stages and chunks ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChunkedPipeline.h"

#include <utility>
#include <vector>

namespace weft::test {

namespace {

constexpr const char *kBegin = R"(
#mesh = #weft.mesh<$A>
#samples = #weft.sharding<#mesh, [{}, {"dp"}, {}]>
#vector = #weft.sharding<#mesh, [{}]>
#shard = #weft.sharding<#mesh, [{"dp"}]>
#scalar = #weft.sharding<#mesh, []>
#k = affine_map<(d) -> (d)>
#none = affine_map<() -> ()>
#all = affine_map<(d) -> ()>
module attributes {weft.mesh = #mesh} {
  weft.variable input @images ["micro_batch", "batch", "k"] : tensor<$Mx2x4xf64, #samples>
)";

constexpr const char *kVariable = R"(
  weft.variable parameter @w$C ["k"] decay {$S} : tensor<4xf64, #$U>
)";

constexpr const char *kFirst = R"(
  func.func private @forward_0(%m: index$W) -> tensor<4xf64> attributes {weft.micro_batch, $S} {
    $R
    %1 = weft.read @images : tensor<$Mx1x4xf64>
    %2 = weft.select %1[%m] : tensor<$Mx1x4xf64> -> tensor<1x4xf64>
    %3 = weft.contract "bk,k->k"(%2, %0) : (tensor<1x4xf64>, tensor<4xf64>) -> tensor<4xf64>
    return %3 : tensor<4xf64>
  }
  func.func private @backward_0(%m: index, %sum: tensor<4xf64>, %d: tensor<4xf64>)
      -> tensor<4xf64> attributes {weft.micro_batch, $S} {
    %0 = weft.read @images : tensor<$Mx1x4xf64>
    %1 = weft.select %0[%m] : tensor<$Mx1x4xf64> -> tensor<1x4xf64>
    %2 = weft.contract "bk,k->k"(%1, %d) : (tensor<1x4xf64>, tensor<4xf64>) -> tensor<4xf64>
    %3 = weft.map ins(%sum, %2 : tensor<4xf64>, tensor<4xf64>) maps [#k, #k] -> tensor<4xf64> {
    ^bb0(%a: f64, %b: f64):
      %c = arith.addf %a, %b : f64
      weft.yield %c : f64
    }
    return %3 : tensor<4xf64>
  }
)";

constexpr const char *kMiddle = R"(
  func.func private @forward_$C(%m: index$W, %x: tensor<4xf64>) -> tensor<4xf64>
      attributes {weft.micro_batch, $S} {
    $R
    %1 = weft.contract "k,k->k"(%0, %x) : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
    %2 = weft.all_reduce sum %1 over ["dp"] of #mesh : tensor<4xf64> -> tensor<4xf64>
    %3 = weft.contract "k,k->"(%x, %x) : (tensor<4xf64>, tensor<4xf64>) -> tensor<f64>
    %4 = weft.map ins(%2, %3 : tensor<4xf64>, tensor<f64>) maps [#k, #all] -> tensor<4xf64> {
    ^bb0(%a: f64, %b: f64):
      %c = arith.addf %a, %b : f64
      weft.yield %c : f64
    }
    return %4 : tensor<4xf64>
  }
)";

constexpr const char *kBackward = R"(
  func.func private @backward_$C(%m: index$W, %sum: tensor<4xf64>, %x: tensor<4xf64>,
      %d: tensor<4xf64>) -> (tensor<4xf64>, tensor<4xf64>) attributes {weft.micro_batch, $S} {
    $R
    %1 = weft.contract "k,k->k"(%0, %d) : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
    %2 = weft.map ins(%sum, %x, %d : tensor<4xf64>, tensor<4xf64>, tensor<4xf64>)
        maps [#k, #k, #k] -> tensor<4xf64> {
    ^bb0(%a: f64, %b: f64, %c: f64):
      %e = arith.mulf %b, %c : f64
      %f = arith.addf %a, %e : f64
      weft.yield %f : f64
    }
    return %1, %2 : tensor<4xf64>, tensor<4xf64>
  }
)";

/// The first function keeps what it got, and a square of it that it computes, for the second.
constexpr const char *kParts = R"(
  func.func private @backward_$C_inputs(%m: index$W, %d: tensor<4xf64>)
      -> (tensor<4xf64>, tensor<4xf64>) attributes {weft.micro_batch, $S} {
    $R
    %1 = weft.contract "k,k->k"(%d, %d) : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
    %2 = weft.contract "k,k->k"(%0, %1) : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
    return %2, %1 : tensor<4xf64>, tensor<4xf64>
  }
  func.func private @backward_$C_weights(%m: index, %sum: tensor<4xf64>, %x: tensor<4xf64>,
      %d: tensor<4xf64>, %e: tensor<4xf64>) -> tensor<4xf64>
      attributes {weft.micro_batch, weft.weight_gradients, $S} {
    %0 = weft.map ins(%sum, %x, %d, %e
        : tensor<4xf64>, tensor<4xf64>, tensor<4xf64>, tensor<4xf64>)
        maps [#k, #k, #k, #k] -> tensor<4xf64> {
    ^bb0(%a: f64, %b: f64, %c: f64, %f: f64):
      %g = arith.mulf %b, %c : f64
      %h = arith.addf %g, %f : f64
      %i = arith.addf %a, %h : f64
      weft.yield %i : f64
    }
    return %0 : tensor<4xf64>
  }
)";

constexpr const char *kLast = R"(
  func.func private @forward_$C(%m: index$W, %sum: tensor<f64>, %x: tensor<4xf64>) -> tensor<f64>
      attributes {weft.micro_batch, $S} {
    $R
    %1 = weft.contract "k,k->"(%0, %x) : (tensor<4xf64>, tensor<4xf64>) -> tensor<f64>
    %2 = weft.map ins(%sum, %1 : tensor<f64>, tensor<f64>) maps [#none, #none] -> tensor<f64> {
    ^bb0(%a: f64, %b: f64):
      %c = arith.addf %a, %b : f64
      weft.yield %c : f64
    }
    return %2 : tensor<f64>
  }
  func.func private @backward_$C(%m: index$W, %sum: tensor<4xf64>, %x: tensor<4xf64>)
      -> (tensor<4xf64>, tensor<4xf64>) attributes {weft.micro_batch, $S} {
    $R
    %1 = weft.contract "k,k->k"(%0, %x) : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
    %2 = weft.map ins(%sum, %x : tensor<4xf64>, tensor<4xf64>) maps [#k, #k] -> tensor<4xf64> {
    ^bb0(%a: f64, %b: f64):
      %c = arith.addf %a, %b : f64
      weft.yield %c : f64
    }
    return %1, %2 : tensor<4xf64>, tensor<4xf64>
  }
)";

/// A transfer between chunk C and chunk P before it, of stages D and E.
constexpr const char *kForth = R"(
    %t$C_$M = weft.transfer %x$P_$M from $E to $D : tensor<4xf64>
)";
constexpr const char *kBack = R"(
    %u$P_$M = weft.transfer %d$C_$M from $D to $E : tensor<4xf64>
)";

/// Calls for micro-batch M, which get sums M and make sums N.
constexpr const char *kForwardFirst = R"(
    %m$M = arith.constant $M : index
    %x0_$M = weft.call @forward_0(%m$M$V) label "$M" {$S} : (index$T) -> tensor<4xf64>
)";
constexpr const char *kForwardMiddle = R"(
    %x$C_$M = weft.call @forward_$C(%m$M$V, %t$C_$M) label "$M" {$S}
        : (index$T, tensor<4xf64>) -> tensor<4xf64>
)";
constexpr const char *kForwardLast = R"(
    %s$N = weft.call @forward_$C(%m$M$V, %s$M, %t$C_$M) label "$M" {$S}
        : (index$T, tensor<f64>, tensor<4xf64>) -> tensor<f64>
)";
constexpr const char *kBackwardLast = R"(
    %d$C_$M, %g$C_$N = weft.call @backward_$C(%m$M$V, %g$C_$M, %t$C_$M) label "$M" {$S}
        : (index$T, tensor<4xf64>, tensor<4xf64>) -> (tensor<4xf64>, tensor<4xf64>)
)";
constexpr const char *kBackwardMiddle = R"(
    %d$C_$M, %g$C_$N = weft.call @backward_$C(%m$M$V, %g$C_$M, %t$C_$M, %u$C_$M) label "$M" {$S}
        : (index$T, tensor<4xf64>, tensor<4xf64>, tensor<4xf64>) -> (tensor<4xf64>, tensor<4xf64>)
)";
constexpr const char *kBackwardParts = R"(
    %d$C_$M, %e$C_$M = weft.call @backward_$C_inputs(%m$M$V, %u$C_$M) label "$M" {$S}
        : (index$T, tensor<4xf64>) -> (tensor<4xf64>, tensor<4xf64>)
    %g$C_$N = weft.call @backward_$C_weights(%m$M, %g$C_$M, %t$C_$M, %u$C_$M, %e$C_$M) label "$M"
        {$S} : (index, tensor<4xf64>, tensor<4xf64>, tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
)";
constexpr const char *kBackwardFirst = R"(
    %g0_$N = weft.call @backward_0(%m$M, %g0_$M, %u0_$M) label "$M" {$S}
        : (index, tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
)";

constexpr const char *kSum = R"(
    %r$C = weft.all_reduce sum %g$C_$M over ["dp"] of #mesh {$S} : tensor<4xf64> -> tensor<4xf64>
)";
constexpr const char *kObserve = R"(
    %l = weft.all_reduce sum %s$M over ["dp"] of #mesh {$S} : tensor<f64> -> tensor<f64>
    weft.observe "loss", %l layout tensor<f64, #scalar> {$S} : tensor<f64>
    %top = weft.amax %r$C {$S} : tensor<4xf64> -> tensor<f64>
    weft.observe "dropped/1", %top layout tensor<f64, #scalar> {$S} : tensor<f64>
)";
constexpr const char *kAssign = R"(
    weft.assign @w$C, %r$C {$S} : tensor<4xf64>
)";
constexpr const char *kAssignShard = R"(
    %i$C = weft.axis_index "dp" of #mesh
    %q$C = weft.slice %r$C dim 0 over ["dp"] of #mesh index %i$C {$S}
        : tensor<4xf64> -> tensor<2xf64>
    weft.assign @w$C, %q$C {$S} : tensor<2xf64>
)";
constexpr const char *kGather = R"(
    %v$C = weft.read @w$C {$S} : tensor<2xf64>
    %w$C = weft.all_gather %v$C dim 0 over ["dp"] of #mesh : tensor<2xf64> -> tensor<4xf64>
)";
constexpr const char *kValidate = R"(
    %l = weft.all_reduce sum %s1 over ["dp"] of #mesh {$S} : tensor<f64> -> tensor<f64>
    weft.observe "validation_loss", %l layout tensor<f64, #scalar> {$S} : tensor<f64>
)";

class Writer {
public:
  explicit Writer(const ChunkedShape &shape) : shape(shape) {}

  std::string write() {
    add(kBegin, 0, shape.microBatches);
    for (int64_t c = 0; c < shape.chunks; ++c) {
      add(kVariable, c);
    }
    for (int64_t c = 0; c < shape.chunks; ++c) {
      add(c == 0 ? kFirst : c == last() ? kLast : kMiddle, c, shape.microBatches);
      if (isMiddle(c)) {
        add(shape.hasParts ? kParts : kBackward, c);
      }
    }
    add("  func.func @init() {\n    %0 = weft.fill constant 1.0 : tensor<$Lxf64>\n", 0);
    for (int64_t c = 0; c < shape.chunks; ++c) {
      add("    weft.assign @w$C, %0 {$S} : tensor<$Lxf64>\n", c);
    }
    text += "    return\n  }\n";
    writeStep();
    text += "  func.func @evaluate() {\n    %s0 = weft.fill constant 0.0 : tensor<f64>\n";
    gather();
    forward(0);
    add(kValidate, last());
    text += "    return\n  }\n}\n";
    return text;
  }

private:
  int64_t last() const { return shape.chunks - 1; }
  bool isMiddle(int64_t chunk) const { return chunk > 0 && chunk < last(); }

  /// Appends the text with `$` and a letter replaced by what it stands for.
  void add(std::string part, int64_t chunk, int64_t microBatch = 0) {
    const int64_t stage = chunk % shape.stages;
    std::string marks = "weft.stage = " + std::to_string(stage) + " : i64";
    if (chunk != stage) {
      marks += ", weft.chunk = " + std::to_string(chunk) + " : i64";
    }
    const bool cut = shape.hasShards;
    // The first ones have others in them.
    const std::pair<const char *, std::string> letters[] = {
        {"$U", cut ? "shard" : "vector"},
        {"$L", cut ? "2" : "4"},
        {"$W", cut ? ", %0: tensor<4xf64>" : ""},
        {"$R", cut ? "" : "%0 = weft.read @w$C : tensor<4xf64>"},
        {"$V", cut ? ", %w$C" : ""},
        {"$T", cut ? ", tensor<4xf64>" : ""},
        {"$A", shape.hasTensorRanks ? "\"dp\" = 2, \"tp\" = 2" : "\"dp\" = 2"},
        {"$C", std::to_string(chunk)},
        {"$P", std::to_string(chunk - 1)},
        {"$D", std::to_string(stage)},
        {"$E", std::to_string((chunk + shape.stages - 1) % shape.stages)},
        {"$M", std::to_string(microBatch)},
        {"$N", std::to_string(microBatch + 1)},
        {"$S", marks}};
    for (const auto &[letter, value] : letters) {
      for (size_t at = part.find(letter); at != std::string::npos; at = part.find(letter, at)) {
        part.replace(at, 2, value);
      }
    }
    text += part;
  }

  void gather() {
    for (int64_t c = 0; c < shape.chunks && shape.hasShards; ++c) {
      add(kGather, c);
    }
  }

  void forward(int64_t microBatch) {
    add(kForwardFirst, 0, microBatch);
    for (int64_t c = 1; c < shape.chunks; ++c) {
      add(kForth, c, microBatch);
      add(c == last() ? kForwardLast : kForwardMiddle, c, microBatch);
    }
  }

  void writeStep() {
    text += "  func.func @step() {\n    %s0 = weft.fill constant 0.0 : tensor<f64>\n";
    for (int64_t c = 0; c < shape.chunks; ++c) {
      add("    %g$C_0 = weft.fill constant 0.0 : tensor<4xf64>\n", c);
    }
    gather();
    for (int64_t m = 0; m < shape.microBatches; ++m) {
      forward(m);
      for (int64_t c = last(); c > 0; --c) {
        add(c == last() ? kBackwardLast : shape.hasParts ? kBackwardParts : kBackwardMiddle, c, m);
        add(kBack, c, m);
      }
      add(kBackwardFirst, 0, m);
    }
    for (int64_t c = 0; c < shape.chunks; ++c) {
      add(kSum, c, shape.microBatches);
    }
    add(kObserve, last(), shape.microBatches);
    for (int64_t c = 0; c < shape.chunks; ++c) {
      add(shape.hasShards ? kAssignShard : kAssign, c);
    }
    text += "    return\n  }\n";
  }

  const ChunkedShape shape;
  std::string text;
};

} // namespace

std::string chunkedPipeline(const ChunkedShape &shape) { return Writer(shape).write(); }

} // namespace weft::test
