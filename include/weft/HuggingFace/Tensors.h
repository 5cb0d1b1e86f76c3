//===- Tensors.h - the tensors of parameters in a checkpoint --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Names and layouts of the tensors of a Hugging Face checkpoint. A parameter of Weft, seen as a
// matrix of outputs by inputs, is a tensor of the checkpoint or a part of one: heads are dimensions
// of parameters, but not of tensors. GPT-2 stores its projections transposed (Conv1D), and those of
// query, key and value as one; DeepSeek has other orders of rows. The experts of a layer are one
// parameter, but a tensor each.
//
// The functions keep no state: any number of threads may call them.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_HUGGINGFACE_TENSORS_H
#define WEFT_HUGGINGFACE_TENSORS_H

#include "weft/HuggingFace/Config.h"

namespace weft::hf {

/// A parameter, or a part of one, and its place in the checkpoint.
struct Slot {
  /// The parameter's name, and its shape with heads and experts as dimensions.
  std::string parameter;
  std::vector<int64_t> shape;
  /// The part of the parameter that the tensor holds, as a matrix. Biases and norm weights are
  /// vectors, which have one input.
  int64_t outputs = 0, inputs = 0;
  /// Number of the parameter's outputs before this part.
  int64_t skippedOutputs = 0;
  bool isVector = false;
  /// The tensor that holds it.
  std::string tensor;
  std::vector<int64_t> tensorShape;
  /// The tensor is [inputs, outputs], not [outputs, inputs].
  bool isTransposed = false;
  /// The output of the tensor at which this part begins.
  int64_t firstOutput = 0;
  /// Outputs of the tensor from one output of this part to the next.
  int64_t outputStep = 1;

  /// Distances in elements of the tensor: from one output to the next, from one input to the next,
  /// and from the tensor's first element to this part's.
  int64_t outputStride() const { return (isTransposed ? 1 : inputs) * outputStep; }
  int64_t inputStride() const { return isTransposed ? tensorShape[1] : 1; }
  int64_t offset() const { return firstOutput * (isTransposed ? 1 : inputs); }
};

/// Returns the places of all parameters, in model order, and of the parts of a parameter in the
/// order of its outputs. With `hasPrefix`, tensors have the names of the language model ("model.",
/// "transformer."), else those of the model without its head; the head's name is the same in both.
std::vector<Slot> parameterSlots(const Config &config, bool hasPrefix);

/// Returns the prefix of a language model's names: "model." or "transformer.".
const char *namePrefix(Kind kind);

/// Returns true if `tensor` is not a parameter, but a mask or a table of frequencies that older
/// versions of transformers saved.
bool isBuffer(Kind kind, std::string_view tensor);

/// The name of the head's weight, which a checkpoint of tied embeddings may repeat.
inline constexpr const char *kHeadName = "lm_head.weight";

} // namespace weft::hf

#endif // WEFT_HUGGINGFACE_TENSORS_H
