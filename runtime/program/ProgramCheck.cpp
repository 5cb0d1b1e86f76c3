//===- ProgramCheck.cpp - checks that a program is well-formed ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "program/ProgramCheck.h"

#include "support/CheckedMath.h"
#include "support/Text.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

using namespace weft::rt;

namespace {

/// Far more ranks than any mesh has; keeps the arithmetic on ranks within 64 bits.
constexpr uint64_t kMaxRanks = 1 << 24;

/// Checks one program.
class Checker {
public:
  explicit Checker(const Program &program) : program(program) {}

  Status check() {
    for (auto checkTable : {&Checker::checkMesh, &Checker::checkBuffers, &Checker::checkTensors,
                            &Checker::checkInputs, &Checker::checkKernels, &Checker::checkMatmuls,
                            &Checker::checkCollectives, &Checker::checkObservations}) {
      if (Status status = (this->*checkTable)(); !status) {
        return status;
      }
    }
    return {};
  }

private:
  Status checkMesh();
  Status checkDeviceUses();
  Status checkBuffers();
  Status checkTensors();
  std::vector<int64_t> batchShape() const;
  Status checkDocuments();
  Status checkImages(const NamedTensor &input);
  Status checkInputs();
  Status checkKernels();
  Status checkMatmuls();
  Status checkFp8(const std::string &name, const Matmul &matmul);
  Status checkEpilogue(const std::string &name, const Matmul &matmul);
  Status checkObservations();

  Status checkLayout(const std::string &name, const TensorLayout &layout);
  Status checkAxes(const std::string &name, std::span<const uint32_t> axes) {
    return weft::rt::checkAxes(program, name, axes);
  }
  Status checkCollectives() { return weft::rt::checkCollectives(program); }

  const Program &program;
};

Status Checker::checkMesh() {
  std::set<std::string> names;
  uint64_t ranks = 1;
  if (program.mesh.size() > kMostAxes) {
    return makeError("the mesh has ", program.mesh.size(), " axes, expected at most ", kMostAxes);
  }
  for (const Axis &axis : program.mesh) {
    if (axis.size < 1) {
      return makeError("mesh axis '", axis.name, "' has size ", axis.size, ", expected at least 1");
    }
    if (!names.insert(axis.name).second) {
      return makeError("two mesh axes have the name '", axis.name, "'");
    }
    ranks = saturatingMul(ranks, uint64_t(axis.size));
  }
  if (ranks > kMaxRanks) {
    return makeError("the mesh has more than ", kMaxRanks, " ranks");
  }
  if (program.rankClass >= program.rankClasses) {
    return makeError("the program is for rank class ", program.rankClass, " of ",
                     program.rankClasses);
  }
  if (saturatingMul(ranks, program.rankClasses) > kMaxRanks) {
    return makeError(program.rankClasses, " rank classes have more than ", kMaxRanks, " ranks");
  }
  return {};
}

Status Checker::checkDeviceUses() {
  if (!program.deviceUses.empty() && program.deviceUses.size() != kDeviceParts) {
    return makeError("expected ", kDeviceParts, " parts of a device's memory, got ",
                     program.deviceUses.size());
  }
  for (size_t i = 0; i < program.deviceUses.size(); ++i) {
    const DeviceUse &use = program.deviceUses[i];
    if (size_t(use.part) != i) {
      return makeError("part ", i, " of a device's memory is '", nameOf(use.part), "', expected '",
                       nameOf(DevicePart(i)), "'");
    }
    if (use.bytes.value_or(0) > uint64_t(1) << 50) {
      return makeError("'", nameOf(use.part), "' takes ", *use.bytes,
                       " bytes of a device, expected at most 2^50");
    }
  }
  return {};
}

Status Checker::checkBuffers() {
  if (program.arenaBytes > uint64_t(std::numeric_limits<int64_t>::max()) - kAlignment) {
    return makeError("the arena is too large: ", program.arenaBytes, " bytes");
  }
  if (Status status = checkDeviceUses(); !status) {
    return status;
  }
  if (Status status = checkFrames(program); !status) {
    return status;
  }
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer &buffer = program.buffers[i];
    if (buffer.offset % buffer.alignment() != 0) {
      return makeError("buffer ", i, " lies at offset ", buffer.offset, ", expected a multiple of ",
                       buffer.alignment());
    }
    uint64_t end = saturatingAdd(buffer.offset, buffer.bytes);
    uint64_t room =
        buffer.frameSet ? program.frameSets[*buffer.frameSet].bytes : program.arenaBytes;
    if (end > room) {
      return makeError("buffer ", i, " ends at byte ", end, ", ",
                       buffer.frameSet ? "its frame" : "the arena", " has ", room, " bytes");
    }
    if (buffer.bytes % sizeOf(buffer.type) != 0) {
      return makeError("buffer ", i, " has ", buffer.bytes, " bytes, expected a multiple of ",
                       sizeOf(buffer.type), " for ", nameOf(buffer.type));
    }
  }
  return {};
}

/// Returns true if a tensor of shape `inner` fits into one of shape `outer` and differs from it.
static bool isPadding(const std::vector<int64_t> &outer, const std::vector<int64_t> &inner) {
  return outer.size() == inner.size() && outer != inner &&
         std::equal(inner.begin(), inner.end(), outer.begin(), std::less_equal<>());
}

Status Checker::checkLayout(const std::string &name, const TensorLayout &layout) {
  if (isFloat8(layout.type)) {
    return makeError(name, " is of type ", nameOf(layout.type), ", which only matmuls support");
  }
  if (layout.dimAxes.size() != layout.globalShape.size()) {
    return makeError(name, " has ", layout.globalShape.size(), " dimensions but axes for ",
                     layout.dimAxes.size());
  }
  if (!layout.paddedShape.empty() && !isPadding(layout.paddedShape, layout.globalShape)) {
    return makeError(name, " has the shape ", shapeText(layout.globalShape), " and the padded ",
                     "shape ", shapeText(layout.paddedShape), ", expected a larger one");
  }
  std::vector<uint32_t> used;
  for (const std::vector<uint32_t> &axes : layout.dimAxes) {
    used.insert(used.end(), axes.begin(), axes.end());
  }
  if (Status status = checkAxes(name, used); !status) {
    return status;
  }
  for (size_t dim = 0; dim < layout.globalShape.size(); ++dim) {
    int64_t size = layout.cutShape()[dim];
    uint64_t shards = program.groupSize(layout.dimAxes[dim]);
    if (size < 0 || uint64_t(size) % shards != 0) {
      return makeError(name, " has ", size, " in dimension ", dim, ", which does not divide into ",
                       shards, " shards");
    }
  }
  return {};
}

Status Checker::checkTensors() {
  std::set<std::string> names;
  for (auto *list : {&program.parameters, &program.optimizerState, &program.inputs}) {
    for (const NamedTensor &tensor : *list) {
      std::string name = "tensor '" + tensor.name + "'";
      if (!names.insert(tensor.name).second) {
        return makeError("two tensors have the name '", tensor.name, "'");
      }
      if (tensor.buffer >= program.buffers.size()) {
        return makeError(name, " lies in buffer ", tensor.buffer, ", the program has ",
                         program.buffers.size());
      }
      if (!program.buffers[tensor.buffer].persistent) {
        return makeError(name, " lies in buffer ", tensor.buffer, ", which is not persistent");
      }
      if (Status status = checkLayout(name, tensor.layout); !status) {
        return status;
      }
      if (Status status = checkRoom(program, name, tensor.buffer, tensor.layout.type,
                                    elementCount(localShape(tensor.layout, program.mesh)));
          !status) {
        return status;
      }
    }
  }
  return {};
}

/// Returns the number of batch dimensions of an input.
std::vector<int64_t> Checker::batchShape() const {
  if (program.microBatches == 1) {
    return {program.globalBatch};
  }
  return {program.microBatches, program.globalBatch / program.microBatches};
}

/// Each rank gets whole images.
Status Checker::checkImages(const NamedTensor &input) {
  const TensorLayout &layout = input.layout;
  bool isFloat = layout.type == ElementType::F32 || layout.type == ElementType::F64;
  std::vector<int64_t> batch = batchShape();
  bool isOfBatch = layout.globalShape.size() >= batch.size() &&
                   std::equal(batch.begin(), batch.end(), layout.globalShape.begin());
  if (!isFloat || !isOfBatch || elementCount(layout.globalShape) == 0) {
    return makeError(
        "input '", input.name, "' is ", nameOf(layout.type), " ", shapeText(layout.globalShape),
        ", expected floating-point numbers for ", program.globalBatch, " samples",
        program.microBatches > 1 ? concat(" in ", program.microBatches, " micro-batches") : "");
  }
  for (size_t dim = batch.size(); dim < layout.dimAxes.size(); ++dim) {
    if (!layout.dimAxes[dim].empty()) {
      return makeError("input '", input.name, "' is cut in dimension ", dim,
                       ", expected the batch only");
    }
  }
  return {};
}

static bool isOfDocuments(const NamedTensor &input) { return input.name == "document_starts"; }

Status Checker::checkInputs() {
  if (program.globalBatch < 0 || program.sequenceLength < 0 || program.vocabulary < 0 ||
      program.defaultSteps < 0) {
    return makeError("batch, sequence length, vocabulary and steps must not be negative");
  }
  if (program.microBatches < 1 || program.globalBatch % program.microBatches != 0) {
    return makeError("the batch of ", program.globalBatch, " does not divide into ",
                     program.microBatches, " micro-batches");
  }
  for (double rate : {program.stepFlops, program.peakFlopsPerRank, program.peakByteFlopsPerRank,
                      program.memoryBandwidthPerRank}) {
    if (!isAmount(rate)) {
      return makeError("operations and rates must be finite and not negative, got ", rate);
    }
  }
  for (const NamedTensor &input : program.inputs) {
    bool ofTokens = input.name == "tokens" || input.name == "targets" || isOfDocuments(input);
    bool ofImages = input.name == "images" || input.name == "labels";
    bool isScalar = input.name == "step_number" || input.name == "seed";
    if (!ofTokens && !ofImages && !isScalar) {
      return makeError(
          "input '", input.name,
          "' is not known, expected tokens, targets, document_starts, images, labels, step "
          "or seed");
    }
    if (input.name == "images") {
      if (Status status = checkImages(input); !status) {
        return status;
      }
      continue;
    }
    std::vector<int64_t> shape;
    if (!isScalar) {
      shape = batchShape();
    }
    if (ofTokens) {
      shape.push_back(program.sequenceLength);
    }
    ElementType type = isScalar ? ElementType::I64 : ElementType::I32;
    if (input.layout.globalShape != shape || input.layout.type != type) {
      return makeError("input '", input.name, "' is ", nameOf(input.layout.type), " ",
                       shapeText(input.layout.globalShape), ", expected ", nameOf(type), " ",
                       shapeText(shape));
    }
    if (!isScalar && (program.globalBatch < 1 || (ofTokens && program.sequenceLength < 1))) {
      return makeError("input '", input.name, "' is empty");
    }
  }
  return checkDocuments();
}

Status Checker::checkDocuments() {
  bool hasStarts = std::any_of(program.inputs.begin(), program.inputs.end(), isOfDocuments);
  if (hasStarts && !program.documentEnd) {
    return makeError("input 'document_starts' needs a token that ends documents");
  }
  if (program.documentEnd && !hasStarts) {
    return makeError("documents end with token ", *program.documentEnd,
                     ", but there is no input 'document_starts'");
  }
  if (program.documentEnd &&
      (*program.documentEnd < 0 || *program.documentEnd >= program.vocabulary)) {
    return makeError("documents end with token ", *program.documentEnd, ", the vocabulary is ",
                     program.vocabulary);
  }
  return {};
}

Status Checker::checkKernels() {
  for (const Kernel &kernel : program.kernels) {
    if (!kernel.attention) {
      continue;
    }
    if (Status status = checkAttention(program, "kernel @" + kernel.name, *kernel.attention);
        !status) {
      return status;
    }
  }
  return {};
}

Status Checker::checkMatmuls() {
  for (size_t i = 0; i < program.matmuls.size(); ++i) {
    const Matmul &matmul = program.matmuls[i];
    std::string name = concat("matmul ", i);
    if (!isFloat(matmul.type)) {
      return makeError(name, " is of type ", nameOf(matmul.type),
                       ", expected f64, f32, bf16, f16 or an FP8 type");
    }
    if (matmul.isResultF32 && !isNarrow(matmul.type) && !matmul.isFp8()) {
      return makeError(name, " widens the result of ", nameOf(matmul.type),
                       " operands, expected bf16, f16 or FP8 operands");
    }
    if (matmul.isTF32 && matmul.type != ElementType::F32) {
      return makeError(name, " rounds ", nameOf(matmul.type),
                       " operands to tf32, expected f32 operands");
    }
    for (int64_t size :
         {matmul.m, matmul.n, matmul.k, matmul.batch, matmul.lda, matmul.ldb, matmul.ldc}) {
      // The library counts in 32 bits.
      if (size < 0 || size > std::numeric_limits<int32_t>::max()) {
        return makeError(name, " has a size of ", size, ", expected 0 to 2147483647");
      }
    }
    if (matmul.isSum() && isNarrow(matmul.resultType())) {
      return makeError(name, " adds up matmuls in ", nameOf(matmul.type), ", expected f32");
    }
    if (matmul.strideA < 0 || matmul.strideB < 0 || matmul.strideC < 0) {
      return makeError(name, " has a negative stride");
    }
    int64_t columnsA = matmul.transposeA ? matmul.m : matmul.k;
    int64_t columnsB = matmul.transposeB ? matmul.k : matmul.n;
    if (matmul.lda < std::max<int64_t>(columnsA, 1) ||
        matmul.ldb < std::max<int64_t>(columnsB, 1) ||
        matmul.ldc < std::max<int64_t>(matmul.n, 1)) {
      return makeError(name,
                       " has rows that overlap: a row stride is less than the length of a row");
    }
    if (Status status = checkFp8(name, matmul); !status) {
      return status;
    }
    if (Status status = checkEpilogue(name, matmul); !status) {
      return status;
    }
  }
  return {};
}

/// Checks for the FP8 matmuls that devices support: see `Matmul`.
Status Checker::checkFp8(const std::string &name, const Matmul &matmul) {
  if (!matmul.isFp8()) {
    return {};
  }
  ElementType a = matmul.type, b = matmul.fp8B;
  if (!isFloat8(b) || (a == ElementType::F8E5M2 && b == a)) {
    return makeError(name, " is of ", nameOf(a), " and ", nameOf(b),
                     ", expected FP8, and one of them f8e4m3");
  }
  if (!fitsFp8(matmul)) {
    return makeError(
        name, " is in FP8 and of size ", matmul.m, "x", matmul.n, "x", matmul.k,
        ", expected a single matmul, only B transposed, sizes and strides multiples of 16");
  }
  const Epilogue &epilogue = matmul.epilogue;
  if (epilogue.hasAux || epilogue.activation != Epilogue::Activation::None ||
      epilogue.sums != Epilogue::Sums::None) {
    return makeError(name, " is in FP8 and has an epilogue of more than an addend and a bias");
  }
  if (epilogue.hasBias && matmul.isResultF32) {
    return makeError(name, " is in FP8 and adds a bias to an f32 result, expected bf16");
  }
  return {};
}

Status Checker::checkEpilogue(const std::string &name, const Matmul &matmul) {
  const Epilogue &epilogue = matmul.epilogue;
  if (matmul.isSum() && epilogue.hasAddend) {
    return makeError(name, " has an addend, but its result is already a sum of matmuls");
  }
  if (epilogue.isMore() && (matmul.batch != 1 || matmul.type == ElementType::F64)) {
    return makeError(
        name, " has an epilogue of more than an addend, expected a single matmul and not of f64");
  }
  // The library has one vector for both.
  if (epilogue.sums != Epilogue::Sums::None &&
      (epilogue.hasBias || epilogue.activation != Epilogue::Activation::None)) {
    return makeError(
        name, " sums an operand and has a bias or an activation, expected only one of these");
  }
  if (epilogue.isAny() && (matmul.m == 0 || matmul.n == 0 || matmul.k == 0)) {
    return makeError(name, " has an epilogue, but a size of 0");
  }
  bool isGradient = epilogue.activation == Epilogue::Activation::GeluGradient;
  if (isGradient ? !epilogue.hasAux
                 : epilogue.hasAux && epilogue.activation == Epilogue::Activation::None) {
    return makeError(name, " has ", epilogue.hasAux ? "an" : "no", " activation operand, expected ",
                     isGradient ? "one for the gradient of" : "none without", " an activation");
  }
  return {};
}

Status Checker::checkObservations() {
  for (const Observation &observation : program.observations) {
    std::string name = "observation '" + observation.name + "'";
    if (Status status = checkLayout(name, observation.layout); !status) {
      return status;
    }
    bool scalar = decidesRun(observation) || observation.name.starts_with("dropped/") ||
                  observation.name == "loss_scale";
    if (!isAmount(observation.limit) || !isAmount(observation.mean) ||
        (observation.limit > 0) != (observation.mean > 0)) {
      return makeError(name, " has the limit ", observation.limit, " and the mean ",
                       observation.mean, ", expected two finite numbers above 0, or both 0");
    }
    if (observation.limit > 0 && (scalar || observation.layout.globalShape.empty() ||
                                  (observation.layout.type != ElementType::F64 &&
                                   observation.layout.type != ElementType::F32))) {
      return makeError(name, " has a limit and is ", nameOf(observation.layout.type), " ",
                       shapeText(observation.layout.globalShape),
                       ", expected f64 or f32 with a dimension");
    }
    if (scalar && (!observation.layout.globalShape.empty() ||
                   (observation.layout.type != ElementType::F64 &&
                    observation.layout.type != ElementType::F32))) {
      return makeError(name, " is ", nameOf(observation.layout.type), " ",
                       shapeText(observation.layout.globalShape), ", expected f64 [] or f32 []");
    }
  }
  return {};
}

} // namespace

bool weft::rt::isAmount(double number) { return std::isfinite(number) && number >= 0; }

bool weft::rt::decidesRun(const Observation &observation) {
  return observation.name == "loss" || observation.name == "gradient_norm" ||
         observation.name == "validation_loss";
}

bool weft::rt::isSeen(const Observation &observation) {
  return decidesRun(observation) || observation.limit > 0 || observation.layout.globalShape.empty();
}

std::vector<std::vector<bool>> weft::rt::areSeenLater(const Program &program) {
  std::vector<std::vector<bool>> later;
  for (const Body &body : program.bodies) {
    later.emplace_back(body.instructions.size(), true);
  }
  for (const auto *section : {&program.init, &program.step, &program.evaluate}) {
    bool agreesLater = false;
    for (auto action = section->rbegin(); action != section->rend(); ++action) {
      const std::vector<Instruction> &body = program.bodies[action->body].instructions;
      for (size_t index = body.size(); index-- > 0;) {
        const Instruction &instruction = body[index];
        bool isSeenAtAll = instruction.opcode == Opcode::Observe &&
                           isSeen(program.observations[instruction.target]);
        later[action->body][index] = later[action->body][index] && isSeenAtAll && agreesLater;
        agreesLater = agreesLater || instruction.opcode == Opcode::Agree;
      }
    }
  }
  return later;
}

Status weft::rt::checkRoom(const Program &program, const std::string &where, uint32_t number,
                           ElementType type, uint64_t elements) {
  const Buffer &buffer = program.buffers[number];
  if (buffer.type != type) {
    return makeError(where, " needs ", nameOf(type), " in buffer ", number, ", which holds ",
                     nameOf(buffer.type));
  }
  uint64_t bytes = saturatingMul(elements, sizeOf(type));
  if (bytes > buffer.bytes) {
    return makeError(where, " needs ", bytes, " bytes in buffer ", number, ", which has ",
                     buffer.bytes);
  }
  return {};
}

Status weft::rt::checkWorkspace(const Program &program, const std::string &where, uint32_t number,
                                uint64_t bytes) {
  if (program.buffers[number].kind != BufferClass::Workspace) {
    return makeError(where, " has buffer ", number, " as workspace, which is of class ",
                     nameOf(program.buffers[number].kind));
  }
  return checkRoom(program, where, number, ElementType::I32, bytes / 4 + (bytes % 4 != 0));
}

Status weft::rt::checkWellFormed(const Program &program) {
  if (Status status = Checker(program).check(); !status) {
    return status;
  }
  return checkInstructions(program);
}
