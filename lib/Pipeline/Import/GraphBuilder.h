//===- GraphBuilder.h - the nodes of an ONNX graph as ops -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Goes through the nodes that the logits depend on, once, in the order of the
// file. What is known at compile time is folded (weft/Onnx/Fold.h); for the rest
// each ONNX op has a function here, by families:
//
//   GraphElementwise.cpp  arithmetic and activations
//   GraphShapes.cpp       reshape, transpose, split, join
//   GraphMatmuls.cpp     matmuls, sums, norms, softmax, embeddings
//   GraphAttention.cpp    causal attention and rotary positions, found in what
//                         exporters make of them
//   GraphImages.cpp       convolution and pooling
//   GraphBatchNorm.cpp    batch norm
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_IMPORT_GRAPHBUILDER_H
#define WEFT_LIB_PIPELINE_IMPORT_GRAPHBUILDER_H

#include "GraphParameters.h"
#include "View.h"

#include "weft/Onnx/Fold.h"
#include "weft/Onnx/Graph.h"

#include "llvm/ADT/StringMap.h"

#include <map>

namespace weft {

/// A value together with a table of numbers, for which there is no op: it can only become a part of
/// something that we recognize.
struct WithTable {
  /// Product and Sum: of the view and the table. CausalWeights: the softmax of scores plus a causal
  /// mask.
  enum class Kind { Product, Sum, CausalWeights } kind = Kind::Product;
  /// The name of the view's value.
  std::string base;
  View view;
  std::shared_ptr<const onnx::Constant> table;
};

/// The matmul of two activations, times a number: scores of attention, perhaps, or the softmax of
/// these.
struct Scores {
  View query, key;
  double scale = 1;
  bool isSoftmax = false;
};

/// What is known of a value of the graph.
using Known = std::variant<std::monostate, std::shared_ptr<const onnx::Constant>, View,
                           std::vector<View>, WithTable>;

class GraphBuilder {
public:
  /// `isTraining`: batch norms take the statistics of the batch. Refers to all of these.
  GraphBuilder(ModelBuilder &ops, const GraphParameters &parameters, bool isTraining,
               desc::Diagnostics &problems)
      : ops(ops), views(ops), parameters(parameters), graph(parameters.graph),
        isTraining(isTraining), problems(problems) {}

  /// Builds the ops of the graph where the builder stands, whose input is `input`. Null where
  /// something is wrong, which `problems` then says.
  mlir::Value buildLogits(mlir::Value input);

private:
  using Handler = bool (GraphBuilder::*)(const onnx::Node &);
  using Scalar = mlir::Value (*)(mlir::ImplicitLocOpBuilder &, mlir::ValueRange);

  static const std::map<std::string, Handler> &handlers();

  bool checkOps(llvm::ArrayRef<const onnx::Node *> nodes);
  bool build(const onnx::Node &node);
  bool foldNode(const onnx::Node &node, bool &isFolded);
  /// Counts what folding has made, which must stay small enough to be held and made soon.
  bool hold(const onnx::Node &node, const onnx::Constant &constant);
  /// Lets go of large constants that no node after this one uses.
  void release(const onnx::Node &node);

  /// Says what is wrong with `node`; false.
  bool fail(const onnx::Node &node, std::string message);
  bool give(const onnx::Node &node, View view, size_t output = 0);
  bool give(const onnx::Node &node, onnx::Constant constant);
  bool give(const onnx::Node &node, std::optional<View> view, const char *otherwise);

  /// Reads a parameter or constant when it is first asked for.
  const Known &lookup(llvm::StringRef name);
  /// The view of input `number`, or null with an error. Of whole numbers are only the graph's
  /// input and its reshapes.
  const View *viewOf(const onnx::Node &node, size_t number, bool takesIntegers = false);
  /// The constant of input `number`; null where it is left out or none.
  const onnx::Constant *constantOf(const onnx::Node &node, size_t number);
  /// The shape that input 1 asks for; null after an error where it is not known at compile time.
  const onnx::Constant *wantedShape(const onnx::Node &node);
  /// The one integer of input `number`.
  std::optional<int64_t> integerOf(const onnx::Node &node, size_t number);
  /// The integers of input `number` or, before they became inputs, of the attribute.
  std::optional<std::vector<int64_t>> integersOf(const onnx::Node &node, size_t number,
                                                 const char *attribute);
  const onnx::Node *producer(llvm::StringRef name) const;
  /// What the ops of a node are called.
  std::string nameOf(const onnx::Node &node) const;

  /// Names dimension `dim` of `view` where it is one of a parameter that has no name yet.
  void nameDimension(const View &view, int64_t dim, llvm::StringRef name);
  /// Names those of a matmul's weight.
  void nameWeight(const onnx::Node &node, const View &input, const View &weight, int64_t inDim,
                  int64_t outDim, View &output);
  bool isParameter(const View &view) const;

  // GraphElementwise.cpp
  bool unary(const onnx::Node &node);
  bool binary(const onnx::Node &node);
  bool gelu(const onnx::Node &node);
  bool power(const onnx::Node &node);
  bool where(const onnx::Node &node);
  bool clip(const onnx::Node &node);
  bool leakyRelu(const onnx::Node &node);
  bool withNumber(const onnx::Node &node, const View &view, const onnx::Constant &number,
                  bool numberIsFirst);
  bool withTable(const onnx::Node &node, size_t viewInput);
  std::optional<View> mapViews(const onnx::Node &node, llvm::ArrayRef<View> inputs,
                               ScalarCode code);

  // GraphShapes.cpp
  bool identity(const onnx::Node &node);
  bool dropout(const onnx::Node &node);
  bool cast(const onnx::Node &node);
  bool shape(const onnx::Node &node);
  bool reshape(const onnx::Node &node);
  bool flatten(const onnx::Node &node);
  bool unsqueeze(const onnx::Node &node);
  bool squeeze(const onnx::Node &node);
  bool transpose(const onnx::Node &node);
  bool expand(const onnx::Node &node);
  bool slice(const onnx::Node &node);
  bool split(const onnx::Node &node);
  bool splitToSequence(const onnx::Node &node);
  bool sequenceAt(const onnx::Node &node);
  bool concat(const onnx::Node &node);
  std::optional<View> extract(const onnx::Node &node, View view, int64_t dim, int64_t offset,
                              int64_t length, int64_t stride = 1);

  // GraphMatmuls.cpp
  bool matMul(const onnx::Node &node);
  bool gemm(const onnx::Node &node);
  bool einsum(const onnx::Node &node);
  bool reduce(const onnx::Node &node);
  bool layerNorm(const onnx::Node &node);
  bool softmax(const onnx::Node &node);
  bool gather(const onnx::Node &node);
  bool gatherRows(const onnx::Node &node, const View &table, const onnx::Constant &indices);
  std::optional<View> mean(const onnx::Node &node, const View &view, llvm::ArrayRef<int64_t> dims,
                           bool keeps, bool isMean);

  // GraphAttention.cpp
  bool rotary(const onnx::Node &node, const WithTable &first, const WithTable &second);
  std::optional<std::pair<std::string, int>> halfOf(llvm::StringRef name);
  bool isRotatedHalf(llvm::StringRef name, llvm::StringRef of);
  bool causalAttention(const onnx::Node &node, const WithTable &weights);
  /// softmax(scale * query keyᵀ) values; none where these are not shaped so, which `why` then says.
  std::optional<View> attention(const onnx::Node &node, const Scores &matmul, const View &given,
                                bool isCausal, const char *&why);
  /// Names `node`'s output as input `number` is known as scores.
  void keepScores(const onnx::Node &node, size_t number);
  mlir::Value rotaryTable(const onnx::Node &node, llvm::ArrayRef<double> frequencies,
                          int64_t positions);

  // GraphImages.cpp
  bool convolution(const onnx::Node &node);
  bool pool(const onnx::Node &node);
  bool globalPool(const onnx::Node &node);

  // GraphBatchNorm.cpp
  bool batchNorm(const onnx::Node &node);
  bool isBatchNormOfChannels(const onnx::Node &node, const View &input, const View &scale,
                             const View &bias);

  ModelBuilder &ops;
  ViewBuilder views;
  const GraphParameters &parameters;
  const onnx::Graph &graph;
  bool isTraining;
  desc::Diagnostics &problems;
  std::map<std::string, Known, std::less<>> known;
  std::map<std::string, Scores, std::less<>> scores;
  llvm::StringMap<const onnx::Node *> producers;
  /// The last node that uses a value.
  llvm::StringMap<const onnx::Node *> lastUsers;
  /// Elements of all constants that have been folded, and of those that are held.
  int64_t folded = 0, held = 0;
  std::map<std::vector<double>, mlir::Value> rotaryTables;
};

} // namespace weft

#endif // WEFT_LIB_PIPELINE_IMPORT_GRAPHBUILDER_H
