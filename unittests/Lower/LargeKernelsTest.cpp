//===- LargeKernelsTest.cpp - kernels of the sizes that training has ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Too large to run here: that they compile is tested, and a device is given them to be timed
// (KernelCases.h). Activations are bf16 and the rest float32, as in most training; each has some
// 64 MB to read or to write, but for attention, which the host takes seconds for as it is.
//
//===----------------------------------------------------------------------===//

#include "KernelCases.h"

namespace weft::test {
namespace {

MadeOperand activations(std::vector<int64_t> shape) { return {std::move(shape), Kind::BFloat16}; }
MadeOperand numbers(std::vector<int64_t> shape, double least = -1, double most = 1) {
  return {std::move(shape), Kind::Float, least, most};
}
MadeOperand ids(std::vector<int64_t> shape, double most) {
  return {std::move(shape), Kind::Int32, 0, most};
}
MadeOperand counters() { return {{}, Kind::Int64, 7, 7}; }

std::string typeOf(const MadeOperand &operand) {
  std::string text = "tensor<";
  for (int64_t size : operand.shape) {
    text += std::to_string(size) + "x";
  }
  switch (operand.kind) {
  case Kind::Float:
    return text + "$f>";
  case Kind::BFloat16:
    return text + "$a>";
  case Kind::Float16:
    return text + "f16>";
  case Kind::E4M3:
    return text + "f8E4M3FN>";
  case Kind::E5M2:
    return text + "f8E5M2>";
  case Kind::Int32:
    return text + "i32>";
  case Kind::Int64:
    break;
  }
  return text + "i64>";
}

/// The kernel whose operands are %0, %1 and so on, of types that `body` calls T0, T1, and whose
/// results, R0, R1, are %r#0, %r#1. `tied` says of each result which operand it takes over; those
/// that take over none are in `results`, in order.
LargeKernel kernelOf(const std::string &name, std::vector<MadeOperand> operands,
                     std::vector<MadeOperand> results, std::string body,
                     const std::vector<int> &tied = {-1}) {
  std::string arguments, types, values, places;
  size_t next = 0;
  for (size_t i = 0; i < tied.size(); ++i) {
    std::string type = typeOf(tied[i] < 0 ? results[next++] : operands[size_t(tied[i])]);
    std::string comma = i ? ", " : "", number = std::to_string(i);
    types += comma + type;
    values += comma + "%r#" + number;
    places += comma + std::to_string(tied[i]);
    for (size_t at = 0; (at = body.find("R" + number, at)) != std::string::npos;) {
      body.replace(at, 1 + number.size(), type);
    }
  }
  for (size_t i = 0; i < operands.size(); ++i) {
    std::string number = std::to_string(i), type = typeOf(operands[i]);
    arguments += (i ? ", %" : "%") + number + ": " + type;
    for (size_t at = 0; (at = body.find("T" + number, at)) != std::string::npos;) {
      body.replace(at, 1 + number.size(), type);
    }
  }
  std::string count = std::to_string(tied.size());
  return {name,
          "func.func private @kernel(" + arguments + ") -> (" + types +
              ") attributes {weft.tied = array<i64: " + places + ">} {\n%r:" + count + " = " +
              body + "\nreturn " + values + " : " + types + "\n}",
          std::move(operands), std::move(results)};
}

/// A map of one dimension, whose block has %a, %b and so on of the operands' types.
std::string mapText(int operands, const std::string &resultTypes, const std::string &arguments,
                    const std::string &body) {
  std::string inputs, types, maps;
  for (int i = 0; i < operands; ++i) {
    std::string comma = i ? ", " : "", number = std::to_string(i);
    inputs += comma + "%" + number;
    types += comma + "T" + number;
    maps += comma + "affine_map<(i) -> (i)>";
  }
  return "weft.map ins(" + inputs + " : " + types + ") maps [" + maps + "] -> " + resultTypes +
         " {\n^bb0(" + arguments + "):\n" + body + "\n}";
}

constexpr int64_t kMany = int64_t(1) << 24;

/// The same with bf16 in memory and float32 inside.
LargeKernel narrowMap(const std::string &name, int64_t count, int operands,
                      const std::string &body) {
  std::string arguments, wide;
  for (int i = 0; i < operands; ++i) {
    std::string letter(1, char('a' + i));
    arguments += (i ? ", %n" : "%n") + letter + ": $a";
    wide += "%" + letter + " = arith.extf %n" + letter + " : $a to $f\n";
  }
  LargeKernel kernel =
      kernelOf(name, std::vector<MadeOperand>(size_t(operands), activations({count})),
               {activations({count})},
               mapText(operands, "R0", arguments,
                       wide + body + "%t = arith.truncf %y : $f to $a\nweft.yield %t : $a"));
  kernel.referenceActivation = "f32";
  return kernel;
}

std::vector<LargeKernel> activationFunctions() {
  std::vector<LargeKernel> kernels;
  kernels.push_back(narrowMap("SwiGlu", 2 * kMany, 2,
                              "%n = arith.negf %a : $f\n%e = math.exp %n : $f\n"
                              "%one = arith.constant 1.0 : $f\n%d = arith.addf %one, %e : $f\n"
                              "%s = arith.divf %a, %d : $f\n%y = arith.mulf %s, %b : $f\n"));
  kernels.push_back(narrowMap("SwiGluGrad", kMany, 3,
                              "%n = arith.negf %a : $f\n%e = math.exp %n : $f\n"
                              "%one = arith.constant 1.0 : $f\n%d = arith.addf %one, %e : $f\n"
                              "%s = arith.divf %one, %d : $f\n%r = arith.subf %one, %s : $f\n"
                              "%x = arith.mulf %a, %r : $f\n%p = arith.addf %one, %x : $f\n"
                              "%q = arith.mulf %s, %p : $f\n%t0 = arith.mulf %q, %b : $f\n"
                              "%y = arith.mulf %t0, %c : $f\n"));
  const std::string tanh =
      "%k = arith.constant 0.044715 : $f\n%w = arith.constant 0.7978845608 : $f\n"
      "%one = arith.constant 1.0 : $f\n%half = arith.constant 0.5 : $f\n"
      "%sq = arith.mulf %a, %a : $f\n%cu = arith.mulf %sq, %k : $f\n"
      "%in = arith.addf %one, %cu : $f\n%aw = arith.mulf %a, %w : $f\n"
      "%arg = arith.mulf %aw, %in : $f\n%th = math.tanh %arg : $f\n"
      "%up = arith.addf %one, %th : $f\n%h = arith.mulf %half, %a : $f\n";
  kernels.push_back(narrowMap("Gelu", 2 * kMany, 1, tanh + "%y = arith.mulf %h, %up : $f\n"));
  kernels.push_back(
      narrowMap("GeluGrad", 2 * kMany, 2,
                tanh + "%tt = arith.mulf %th, %th : $f\n%re = arith.subf %one, %tt : $f\n"
                       "%three = arith.constant 3.0 : $f\n%c3 = arith.mulf %three, %cu : $f\n"
                       "%di = arith.addf %one, %c3 : $f\n%dw = arith.mulf %w, %di : $f\n"
                       "%hr = arith.mulf %h, %re : $f\n%g0 = arith.mulf %hr, %dw : $f\n"
                       "%g1 = arith.mulf %half, %up : $f\n%g2 = arith.addf %g0, %g1 : $f\n"
                       "%y = arith.mulf %g2, %b : $f\n"));
  return kernels;
}

std::vector<LargeKernel> elementwise() {
  std::vector<LargeKernel> kernels;
  kernels.push_back(narrowMap("Residual", 2 * kMany, 2, "%y = arith.addf %a, %b : $f\n"));
  kernels.push_back(
      kernelOf("Cast", {numbers({kMany})}, {activations({kMany})},
               mapText(1, "R0", "%a: $f", "%t = arith.truncf %a : $f to $a\nweft.yield %t : $a")));
  kernels.back().referenceActivation = "f32";
  kernels.push_back(kernelOf(
      "AdamW", {numbers({kMany}), numbers({kMany}), numbers({kMany}), numbers({kMany}, 0, 1)}, {},
      mapText(4, "R0, R1, R2", "%p: $f, %g: $f, %m: $f, %v: $f",
              "%b1 = arith.constant 0.9 : $f\n%c1 = arith.constant 0.1 : $f\n"
              "%b2 = arith.constant 0.95 : $f\n%c2 = arith.constant 0.05 : $f\n"
              "%eps = arith.constant 1.0e-8 : $f\n%lr = arith.constant 1.0e-3 : $f\n"
              "%m0 = arith.mulf %b1, %m : $f\n%m1 = arith.mulf %c1, %g : $f\n"
              "%m2 = arith.addf %m0, %m1 : $f\n%gg = arith.mulf %g, %g : $f\n"
              "%v0 = arith.mulf %b2, %v : $f\n%v1 = arith.mulf %c2, %gg : $f\n"
              "%v2 = arith.addf %v0, %v1 : $f\n%root = math.sqrt %v2 : $f\n"
              "%d = arith.addf %root, %eps : $f\n%q = arith.divf %m2, %d : $f\n"
              "%s = arith.mulf %lr, %q : $f\n%p2 = arith.subf %p, %s : $f\n"
              "weft.yield %p2, %m2, %v2 : $f, $f, $f"),
      {0, 2, 3}));
  kernels.push_back(kernelOf(
      "Dropout", {activations({2 * kMany}), counters(), counters()}, {activations({2 * kMany})},
      "weft.dropout %0 rate = 0.1 site = 1 key(%1, %2, %zero : T1, T2) : T0 -> R0"));
  std::string &dropout = kernels.back().text;
  dropout.insert(dropout.find("%r:"), "%zero = arith.constant 0 : index\n");
  return kernels;
}

std::vector<LargeKernel> movements() {
  std::vector<LargeKernel> kernels;
  kernels.push_back(kernelOf("Transpose", {activations({8192, 4096})}, {activations({4096, 8192})},
                             "weft.contract \"ij->ji\"(%0) : (T0) -> R0"));
  kernels.push_back(kernelOf("Heads", {activations({8, 2048, 16, 128})},
                             {activations({8, 16, 2048, 128})},
                             "weft.contract \"bshd->bhsd\"(%0) : (T0) -> R0"));
  kernels.push_back(kernelOf("Concat", {activations({8192, 2048}), activations({8192, 2048})},
                             {activations({8192, 4096})},
                             "weft.concat %0, %1 dim 1 : T0, T1 -> R0"));
  kernels.push_back(kernelOf("Rotary", {activations({4, 2048, 32, 128}), numbers({2, 2048, 64})},
                             {activations({4, 2048, 32, 128})},
                             "weft.rotary %0 table(%1 : T1) : T0 -> R0"));
  return kernels;
}

std::vector<LargeKernel> sumsOfRows() {
  std::vector<LargeKernel> kernels;
  for (const char *kind : {"rms", "layer"}) {
    bool isLayer = kind == std::string("layer");
    int64_t rows = isLayer ? 49152 : 16384, columns = isLayer ? 768 : 2048;
    MadeOperand x = activations({rows, columns}), v = numbers({columns});
    std::string bias = isLayer ? " bias(%2 : T2)" : "";
    kernels.push_back(kernelOf(std::string("Norm.") + kind, {x, v, v}, {x},
                               std::string("weft.norm ") + kind + " %0 scale(%1 : T1)" + bias +
                                   " epsilon = 1.0e-5 : T0 -> R0"));
    std::vector<MadeOperand> results = {x, v};
    std::vector<int> tied = {-1, -1};
    if (isLayer) {
      results.push_back(v);
      tied.push_back(-1);
    }
    kernels.push_back(kernelOf(std::string("NormGrad.") + kind, {x, v, x}, results,
                               std::string("weft.norm_grad ") + kind +
                                   " %0 scale(%1 : T1) gradient(%2 : T2) epsilon = 1.0e-5 : T0 "
                                   "-> R0, R1" +
                                   (isLayer ? ", R2" : ""),
                               tied));
  }
  for (int64_t vocabulary : {32000, 50257}) {
    int64_t rows = 32768000 / vocabulary;
    MadeOperand x = activations({rows, vocabulary}), v = numbers({rows});
    MadeOperand targets = ids({rows}, double(vocabulary - 1));
    std::string of = std::to_string(vocabulary);
    kernels.push_back(kernelOf("CrossEntropy." + of, {x, targets}, {v, v},
                               "weft.cross_entropy %0[%1] : T0[T1] -> R0, R1", {-1, -1}));
    kernels.push_back(kernelOf(
        "CrossEntropyGrad." + of, {x, targets, numbers({rows}, 10, 11), v, v}, {x},
        "weft.cross_entropy_grad %0[%1] lse(%2) gradient(%3, %4) : T0[T1], T2, T3, T4 -> R0"));
  }
  return kernels;
}

std::vector<LargeKernel> sumsOfMore() {
  std::vector<LargeKernel> kernels;
  kernels.push_back(kernelOf("GlobalNorm", {numbers({kMany})}, {numbers({})},
                             "weft.map_sum ins(%0 : T0) maps [affine_map<(i) -> (i)>] over "
                             "[16777216] to [] -> R0 {\n^bb0(%a: $f):\n"
                             "%s = arith.mulf %a, %a : $f\nweft.yield %s : $f\n}"));
  kernels.push_back(kernelOf("ColumnSums", {activations({16384, 2048})}, {numbers({2048})},
                             "weft.contract \"ij->j\"(%0) : (T0) -> R0"));
  kernels.push_back(kernelOf("Embedding", {numbers({50257, 768}), ids({32, 1024}, 50256)},
                             {numbers({32, 1024, 768})}, "weft.embedding %0[%1] : T0[T1] -> R0"));
  kernels.push_back(kernelOf("EmbeddingGrad",
                             {activations({32, 1024, 768}), ids({32, 1024}, 50256)},
                             {numbers({50257, 768})}, "weft.embedding_grad %0[%1] : T0[T1] -> R0"));
  kernels.push_back(kernelOf("TopK", {numbers({32, 4096, 128})}, {numbers({32, 4096, 128})},
                             "weft.top_k 2 of %0 : T0 -> R0"));
  kernels.push_back(kernelOf("CumulativeSum", {numbers({32, 4096, 128})},
                             {numbers({32, 4096, 128})},
                             "weft.cumulative_sum %0 along 1 : T0 -> R0"));
  return kernels;
}

std::vector<LargeKernel> routing() {
  // An eighth of all tokens goes to each expert; some find no slot.
  MadeOperand tokens = activations({4, 4096, 512}), slots = activations({32, 4, 512, 512});
  MadeOperand weights = numbers({4, 4096, 32}), mask = numbers({4, 4096, 32}, -7, 1);
  std::vector<LargeKernel> kernels;
  kernels.push_back(kernelOf("Dispatch", {tokens, weights, mask}, {slots},
                             "weft.dispatch %0 by %1 at %2 : T0, T1, T2 -> R0"));
  kernels.push_back(kernelOf("Combine", {slots, weights, mask}, {numbers({4, 4096, 512})},
                             "weft.combine %0 by %1 at %2 : T0, T1, T2 -> R0"));
  kernels.push_back(kernelOf("SlotProducts", {tokens, slots, mask}, {weights},
                             "weft.slot_products %0, %1 at %2 : T0, T1, T2 -> R0"));
  return kernels;
}

std::vector<LargeKernel> attention() {
  MadeOperand q = activations({1, 2048, 4, 2, 64}), k = activations({1, 2048, 4, 64});
  MadeOperand lse = numbers({1, 4, 2, 2048}, 7, 8);
  std::vector<LargeKernel> kernels;
  kernels.push_back(kernelOf(
      "Attention", {q, k, k}, {q, numbers({1, 4, 2, 2048})},
      "weft.attention(%0, %1, %2) scale = 0.125 dropout = 0.0 : T0, T1, T2 -> R0, R1", {-1, -1}));
  kernels.push_back(kernelOf(
      "AttentionGrad", {q, k, k, q, lse, q},
      {numbers({1, 2048, 4, 2, 64}), numbers({1, 2048, 4, 64}), numbers({1, 2048, 4, 64})},
      "weft.attention_grad(%0, %1, %2) output(%3, %4) gradient(%5) scale = 0.125 dropout = 0.0 : "
      "T0, T1, T2, T3, T4, T5 -> R0, R1, R2",
      {-1, -1, -1}));
  return kernels;
}

void check(const std::vector<LargeKernel> &kernels) {
  for (const LargeKernel &kernel : kernels) {
    if (recordsKernels()) {
      recordLargeKernel(kernel);
      continue;
    }
    std::unique_ptr<mlir::MLIRContext> context = makeContext();
    EXPECT_TRUE(lower(*context, withTypes(kernel.text, "bf16", "f32"), /*devices=*/true))
        << kernel.text;
    std::string reference = withTypes(kernel.text, kernel.referenceActivation, "f64");
    EXPECT_TRUE(lower(*context, reference, /*devices=*/true)) << reference;
  }
}

TEST(LargeKernels, Elementwise) { check(elementwise()); }
TEST(LargeKernels, ActivationFunctions) { check(activationFunctions()); }
TEST(LargeKernels, Movements) { check(movements()); }
TEST(LargeKernels, SumsOfRows) { check(sumsOfRows()); }
TEST(LargeKernels, SumsOfMore) { check(sumsOfMore()); }
TEST(LargeKernels, Routing) { check(routing()); }
TEST(LargeKernels, Attention) { check(attention()); }

} // namespace
} // namespace weft::test
