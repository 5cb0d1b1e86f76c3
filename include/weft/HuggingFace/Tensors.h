//===- Tensors.h - where parameters lie in a checkpoint -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Names and layouts of the tensors of a Hugging Face checkpoint. A parameter of
// ours, seen as a matrix of outputs by inputs, is one of their tensors or a part
// of one: heads, which we keep as dimensions, are flat there. GPT-2 stores its
// projections transposed (Conv1D), and those of query, key and value as one; DeepSeek
// has other orders of rows. The
// experts of a layer are one parameter of ours, whose parts are a tensor each.
//
// The functions keep no state: any number of threads may call them.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_HUGGINGFACE_TENSORS_H
#define WEFT_HUGGINGFACE_TENSORS_H

#include "weft/HuggingFace/Config.h"

namespace weft::hf {

/// One parameter, or a part of one, and its place.
struct Slot {
  /// The parameter's name, and its shape with heads and experts as dimensions.
  std::string parameter;
  std::vector<int64_t> shape;
  /// What of the parameter is in the tensor, as a matrix. Biases and norm weights are vectors,
  /// which have one input.
  int64_t outputs = 0, inputs = 0;
  /// Outputs of the parameter before these.
  int64_t skippedOutputs = 0;
  bool isVector = false;
  /// The tensor that holds it.
  std::string tensor;
  std::vector<int64_t> tensorShape;
  /// The tensor is [inputs, outputs], not [outputs, inputs].
  bool isTransposed = false;
  /// Which output of the tensor is the first of these.
  int64_t firstOutput = 0;
  /// How many outputs of the tensor it is from one of these to the next.
  int64_t outputStep = 1;

  /// Elements of the tensor from one output to the next, from one input to the next, and before
  /// the parameter's first element.
  int64_t outputStride() const { return (isTransposed ? 1 : inputs) * outputStep; }
  int64_t inputStride() const { return isTransposed ? tensorShape[1] : 1; }
  int64_t offset() const { return firstOutput * (isTransposed ? 1 : inputs); }
};

/// The places of all parameters, in model order, those of parts of one in the order of its outputs.
/// With `hasPrefix`, names begin as the language
/// model saves them ("model.", "transformer."), else as the model without its head does; the name
/// of the head is the same in both.
std::vector<Slot> parameterSlots(const Config &config, bool hasPrefix);

/// The prefix that names may begin with: "model." or "transformer.".
const char *namePrefix(Kind kind);

/// Whether a checkpoint may have this tensor although it is no parameter: masks and frequencies
/// that older versions of transformers saved.
bool isBuffer(Kind kind, std::string_view tensor);

/// The name of the head's weight, which a checkpoint of tied embeddings may repeat.
inline constexpr const char *kHeadName = "lm_head.weight";

} // namespace weft::hf

#endif // WEFT_HUGGINGFACE_TENSORS_H
