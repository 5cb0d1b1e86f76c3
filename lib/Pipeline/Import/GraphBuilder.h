//===- GraphBuilder.h - the nodes of an ONNX graph as ops -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Visits the nodes that the logits depend on, once, in the order of the file.
// Values that are known at compile time are folded (weft/Onnx/Fold.h); otherwise
// each ONNX op has a function here, by families:
//
//   GraphElementwise.cpp  arithmetic and activations
//   GraphShapes.cpp       reshape, transpose, split, join
//   GraphMatmuls.cpp     matmuls, sums, norms, softmax, embeddings
//   GraphAttention.cpp    causal attention and rotary positions, recognized in
//                         the nodes that exporters write for them
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

#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/StringMap.h"

#include <map>

namespace weft {

/// A value combined with a table of numbers. There is no op for it: it must become a part of a
/// pattern that the builder recognizes.
struct WithTable {
  /// Product and Sum: of the view and the table. CausalWeights: the softmax of scores plus a causal
  /// mask.
  enum class Kind { Product, Sum, CausalWeights } kind = Kind::Product;
  /// The name of the view's value.
  std::string base;
  View view;
  std::shared_ptr<const onnx::Constant> table;
};

/// The matmul of two activations times a number, or the softmax of that: perhaps scores of
/// attention.
struct Scores {
  View query, key;
  double scale = 1;
  bool isSoftmax = false;
};

/// The state of a value of the graph during the import; monostate while it is unknown.
using Known = std::variant<std::monostate, std::shared_ptr<const onnx::Constant>, View,
                           std::vector<View>, WithTable>;

class GraphBuilder {
public:
  /// If `isTraining` is true, batch norms use the statistics of the batch. All arguments must
  /// outlive the builder.
  GraphBuilder(ModelBuilder &ops, const GraphParameters &parameters, bool isTraining,
               desc::Diagnostics &problems)
      : ops(ops), views(ops), parameters(parameters), graph(parameters.graph),
        isTraining(isTraining), problems(problems) {}

  /// Builds the ops of the graph with this input at the builder's insertion point, and returns the
  /// logits. Returns null, with an error in `problems`, if it fails.
  mlir::Value buildLogits(mlir::Value input);

private:
  using Handler = bool (GraphBuilder::*)(const onnx::Node &);
  using Scalar = mlir::Value (*)(mlir::ImplicitLocOpBuilder &, mlir::ValueRange);

  static const std::map<std::string, Handler> &handlers();

  bool checkOps(llvm::ArrayRef<const onnx::Node *> nodes);
  bool build(const onnx::Node &node);
  bool foldNode(const onnx::Node &node, bool &isFolded);
  /// Counts the elements of folded constants. Fails if they would take too much memory or time.
  bool hold(const onnx::Node &node, const onnx::Constant &constant);
  /// Frees large constants that no node after this one uses.
  void release(const onnx::Node &node);

  /// Adds an error about `node` to `problems`; returns false.
  bool fail(const onnx::Node &node, std::string message);
  bool give(const onnx::Node &node, View view, size_t output = 0);
  bool give(const onnx::Node &node, onnx::Constant constant);
  bool give(const onnx::Node &node, std::optional<View> view, const char *otherwise);

  /// Returns the state of a value. Reads a parameter or constant at the first call.
  const Known &lookup(llvm::StringRef name);
  /// Returns the view of input `number`, or null after an error. Only the graph's input and its
  /// reshapes are views of integers.
  const View *viewOf(const onnx::Node &node, size_t number, bool takesIntegers = false);
  /// Returns the constant of input `number`; null if the input is missing or no constant.
  const onnx::Constant *constantOf(const onnx::Node &node, size_t number);
  /// Returns input 1, a shape; null after an error if it is not known at compile time.
  const onnx::Constant *wantedShape(const onnx::Node &node);
  /// Returns the only integer of input `number`.
  std::optional<int64_t> integerOf(const onnx::Node &node, size_t number);
  /// Returns the integers of input `number` or, in older versions of the op, of the attribute.
  std::optional<std::vector<int64_t>> integersOf(const onnx::Node &node, size_t number,
                                                 const char *attribute);
  const onnx::Node *producer(llvm::StringRef name) const;
  /// Returns the name for the locations of a node's ops.
  std::string nameOf(const onnx::Node &node) const;

  /// Names dimension `dim` of `view` if it is an unnamed dimension of a parameter.
  void nameDimension(const View &view, int64_t dim, llvm::StringRef name);
  /// Names the dimensions of a matmul's weight.
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
  /// Builds softmax(scale * query keyᵀ) values. If the shapes do not fit, returns nothing and sets
  /// `why` to the reason.
  std::optional<View> attention(const onnx::Node &node, const Scores &matmul, const View &given,
                                bool isCausal, const char *&why);
  /// If input `number` is known as scores, makes `node`'s output known as the same scores.
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
  /// Of the module's variables, which are declared before the nodes are visited.
  mlir::SymbolTableCollection variables;
  ViewBuilder views;
  const GraphParameters &parameters;
  const onnx::Graph &graph;
  bool isTraining;
  desc::Diagnostics &problems;
  std::map<std::string, Known, std::less<>> known;
  std::map<std::string, Scores, std::less<>> scores;
  llvm::StringMap<const onnx::Node *> producers;
  /// The last node that uses each value.
  llvm::StringMap<const onnx::Node *> lastUsers;
  /// Elements of all constants that have been folded, and of those that are held.
  int64_t folded = 0, held = 0;
  std::map<std::vector<double>, mlir::Value> rotaryTables;
};

} // namespace weft

#endif // WEFT_LIB_PIPELINE_IMPORT_GRAPHBUILDER_H
