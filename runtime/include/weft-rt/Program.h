//===- Program.h - the flat instruction table that an executable runs ------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A Program is what is left of a model after compilation: buffers with their
// places in one arena, and three straight lists of instructions, one that runs
// once (`init`), one that runs every step (`step`), and one that computes the loss
// of a batch and changes nothing that outlives it (`evaluate`). The compiler's
// Schedule phase writes it, the proof in `lib/Schedule` checks it, and the runtime
// runs it. There is no control flow, no allocation and no name lookup in it: every
// operand is a buffer number.
//
// All ranks of one class run the same Program; what differs between them is the
// rank's coordinate on each mesh axis, which kernels receive as an argument.
// Ranks are numbered row-major over the mesh: the last axis varies fastest.
//
// A Program owns everything it names. It is immutable once loaded, so any number
// of threads may read it.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_PROGRAM_H
#define WEFT_RT_PROGRAM_H

#include "weft-rt/Attention.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weft::rt {

/// Type of one element of a buffer.
enum class ElementType : uint8_t { F64, F32, I64, I32, BF16, F16, F8E4M3, F8E5M2 };

/// Bytes that one element takes.
size_t sizeOf(ElementType type);
/// "f64", "f32", "i64", "i32", "bf16", "f16", "f8e4m3" or "f8e5m2".
const char *nameOf(ElementType type);
/// Whether values are held so, but computed in f32: bf16 and f16.
constexpr bool isNarrow(ElementType type) {
  return type == ElementType::BF16 || type == ElementType::F16;
}
/// Whether only kernels that round to it and matmuls know it.
constexpr bool isFloat8(ElementType type) {
  return type == ElementType::F8E4M3 || type == ElementType::F8E5M2;
}

/// What a buffer is for; memory is reported by this class.
enum class BufferClass : uint8_t {
  Parameter,
  Optimizer,
  Input,
  Activation,
  Gradient,
  /// What a library's code takes for itself while an instruction runs.
  Workspace,
};
const char *nameOf(BufferClass kind);

/// One mesh axis.
struct Axis {
  std::string name;
  int64_t size = 1;
};

/// Every buffer starts at a multiple of this many bytes.
inline constexpr uint64_t kAlignment = 64;
/// A workspace at one of this many: cuBLASLt and cuDNN ask for it.
inline constexpr uint64_t kWorkspaceAlignment = 256;

/// A shard of the arena. Persistent buffers (parameters, optimizer state,
/// inputs) live for the whole run; the others from their first write to their
/// last use in the section that uses them.
struct Buffer {
  /// Exactly what the content takes, without padding: everything in it is data.
  uint64_t bytes = 0;
  /// Byte offset in the arena, a multiple of `alignment()`.
  uint64_t offset = 0;
  BufferClass kind = BufferClass::Activation;
  bool persistent = false;
  /// Type of every element; says how to look for values that are not finite.
  ElementType type = ElementType::F32;

  uint64_t alignment() const {
    return kind == BufferClass::Workspace ? kWorkspaceAlignment : kAlignment;
  }
};

/// How a tensor that the outside knows by name lies in a rank's buffer: dimension
/// d of the global tensor is cut over `dimAxes[d]` (axis numbers, major to
/// minor) into equal shards. On an axis that no dimension uses, all ranks hold
/// the same values.
struct TensorLayout {
  ElementType type = ElementType::F32;
  /// What the outside knows: of this shape it is saved, loaded and filled.
  std::vector<int64_t> globalShape;
  std::vector<std::vector<uint32_t>> dimAxes;
  /// What is cut, where that is larger, so that shards are equal; else empty. Elements beyond
  /// `globalShape` are zero in parameters and optimizer states.
  std::vector<int64_t> paddedShape = {};

  const std::vector<int64_t> &cutShape() const {
    return paddedShape.empty() ? globalShape : paddedShape;
  }
};

/// A parameter, an optimizer state or a step input, by name.
/// Inputs that the runtime fills before each step and each evaluation, where the program has them:
///   "tokens", "targets"  i32 [batch, sequence]
///   "document_starts"    i32 [batch, sequence]   of the document that each token is of, the place
///                        in the sequence of its first token
///   "images"             f32 or f64 [batch, ...], cut by the batch only
///   "labels"             i32 [batch]
///   "step_number"        i64 []   0 for the first step
///   "seed"               i64 []
struct NamedTensor {
  std::string name;
  TensorLayout layout;
  uint32_t buffer = 0;
};

struct Instruction;

/// A kernel that the compiler generated. `weft_kernels[i]` in the executable is
/// the code of `kernels[i]`.
struct Kernel {
  std::string name;
  /// The op that it does: "attention", "map".
  std::string kind = {};
  /// What is computed for each element, where the op does not say it: "mulf addf tanh".
  std::string detail = {};
  /// Where it is nothing but attention; hosts run its code all the same.
  std::optional<Attention> attention = {};

  /// How many of an instruction's operands its code gets.
  size_t operandCount(const Instruction &instruction) const;
};

/// Runs iterations `begin` to before `end` of one phase of a generated kernel.
/// `buffers[i]` is the address of operand i, `immediates` the instruction's
/// constants, `coordinates[a]` this rank's coordinate on mesh axis a.
using KernelFunction = void (*)(void *const *buffers, const int64_t *immediates,
                                const int64_t *coordinates, int64_t phase, int64_t begin,
                                int64_t end);

/// How a kernel runs on a device, where it may have phases of its own: entry p has `iterations[p]`
/// iterations. A block of `threads[p]` threads takes one, or a thread alone if that is 0.
struct DevicePhases {
  int64_t phaseCount = 0;
  const int64_t *iterations = nullptr, *threads = nullptr;
};

/// The code of a kernel: phases that run one after another, phase p of
/// `iterations[p]` iterations. The iterations of a phase are independent: any
/// threads may run any ranges of them in any order. Where ranges begin may decide last bits, as
/// vectorized code takes the rest of a range otherwise: so a program cuts them, never the machine.
struct KernelCode {
  KernelFunction function = nullptr;
  int64_t phaseCount = 0;
  const int64_t *iterations = nullptr;
  /// Null in programs for the host, and where a device's phases are the host's.
  const DevicePhases *device = nullptr;
};

/// What becomes of the elements of a matmul before they are rounded, once: the addend is added,
/// then the bias, then comes the activation, all in float32. What there is, the instruction has
/// operands for.
struct Epilogue {
  enum class Activation : uint8_t {
    None,
    /// GELU by tanh.
    Gelu,
    /// Times the derivative of that, at the elements of `aux`.
    GeluGradient,
  };
  /// Which operand is also summed over k, one sum for each of its rows, or of B's columns.
  enum class Sums : uint8_t { None, OfA, OfB };

  /// Lies as C does, of its type.
  bool hasAddend = false;
  /// n elements of C's type, for each row the same.
  bool hasBias = false;
  Activation activation = Activation::None;
  /// Lies as C does, of its type: read for a gradient, else what the activation is taken of is
  /// written there.
  bool hasAux = false;
  /// m or n elements of C's type, written.
  Sums sums = Sums::None;

  /// Whether there is more to do than to add.
  bool isMore() const {
    return hasBias || hasAux || activation != Activation::None || sums != Sums::None;
  }
  bool isAny() const { return hasAddend || isMore(); }
};

/// A matmul for a library: C = op(A) op(B) on row-major matrices, C is
/// m x n, the sum runs over k; `batch` matmuls whose operands lie `stride*`
/// elements apart. Operands of the instruction: A, B, C, then, of those that there are, the
/// epilogue's addend, bias, aux and sums, the factors of A and of B, and the workspace.
///
/// In FP8 what is multiplied are A and B times a factor each, one f32 in memory. In all
/// of these A lies by rows and B by columns, so that what is summed lies together, and sizes and
/// distances are multiples of 16: it is what all devices that have such matmuls do.
struct Matmul {
  /// A's type, and B's, unless these are in FP8.
  ElementType type = ElementType::F32;
  bool transposeA = false, transposeB = false;
  int64_t m = 0, n = 0, k = 0;
  /// Elements from one row to the next as stored.
  int64_t lda = 0, ldb = 0, ldc = 0;
  int64_t batch = 1;
  /// A stride of 0 in A or B: all matmuls share it; in C: it is the sum of the matmuls, in order.
  int64_t strideA = 0, strideB = 0, strideC = 0;
  /// Of 16-bit and FP8 types only, which are summed in f32: C is f32, not rounded.
  bool isResultF32 = false;
  /// Of f32 only: A and B are rounded to 10 bits of fraction as they are multiplied, to the
  /// nearest, at a tie away from zero; some devices cut the other bits off.
  bool isTF32 = false;
  /// In FP8 only: the type of B. That of C is bf16 or f32.
  ElementType fp8B = ElementType::F8E4M3;
  Epilogue epilogue = {};
  /// Memory that the library's code may use while it runs, nobody else then; 0 for none.
  uint64_t workspaceBytes = 0;

  bool isFp8() const { return isFloat8(type); }
  ElementType typeOfB() const { return isFp8() ? fp8B : type; }
  ElementType resultType() const {
    return isResultF32 ? ElementType::F32 : isFp8() ? ElementType::BF16 : type;
  }
  /// Whether C is the sum of several matmuls.
  bool isSum() const { return batch > 1 && strideC == 0; }
  /// How many operands an instruction has, and which of them is the workspace, which is last.
  size_t operandCount() const {
    return 3 + size_t(epilogue.hasAddend) + size_t(epilogue.hasBias) + size_t(epilogue.hasAux) +
           size_t(epilogue.sums != Epilogue::Sums::None) + (isFp8() ? 2 : 0) +
           size_t(workspaceBytes > 0);
  }
};

/// Whether matrices lie so that all devices with FP8 matmuls take them.
bool fitsFp8(const Matmul &matmul);

enum class CollectiveKind : uint8_t { AllReduce, AllGather, ReduceScatter, AllToAll, Permute };
enum class ReductionKind : uint8_t { Sum, Max };
const char *nameOf(CollectiveKind kind);
const char *nameOf(ReductionKind kind);
/// Whether its operands are added up, or the largest taken.
bool isReduction(CollectiveKind kind);
/// Whether it cuts or joins along `dim`: the others leave shards as they are.
bool changesShape(CollectiveKind kind);

/// A collective over the ranks that differ only in their coordinates on `axes`;
/// a rank's index in its group counts those coordinates, first axis major.
/// `shape` is the local shape of the operand; n is the group's size.
///   all-reduce      result[..] = reduction over the group, in group order; that of bf16 and
///                   f16 is taken in f32 and rounded once
///   all-gather      result is n times as long in `dim`, shard i from rank i
///   reduce-scatter  result is 1/n as long in `dim`: rank i's shard i, reduced
///   all-to-all      operand is cut in n along `dim`, shard i goes to rank i;
///                   what arrives is joined along `dim2` in group order
///   permute         rank i's result is the operand of rank `sources[i]`; each rank is the
///                   source of one
/// Operands of the instruction: operand, result (never the same buffer, except
/// for all-reduce, where they may be one).
struct Collective {
  CollectiveKind kind = CollectiveKind::AllReduce;
  ReductionKind reduction = ReductionKind::Sum;
  ElementType type = ElementType::F32;
  std::vector<uint32_t> axes;
  std::vector<int64_t> shape;
  uint32_t dim = 0, dim2 = 0;
  /// Of a permute one for each rank of the group, by their numbers in it; else empty.
  std::vector<uint32_t> sources = {};
};

/// A value that the outside may look at while the step runs, at the place in the
/// step where the Observe instruction stands. Names:
///   "loss", "gradient_norm"   scalars, printed each step; a value that is not
///                             finite stops the run. A norm of -1: gradients were not finite, and
///                             the step was skipped
///   "loss_scale"              scalar, told each step
///   "gradient/<parameter>"    before clipping; written out only on request
///   "dropped/<layer>"         scalar: how often a token was dropped at an expert of the layer;
///                             told each step
///   "load/<layer>"            [sample, expert]: how many tokens of a sequence an expert of the
///                             layer got; more than `limit` stop the run
///   "validation_loss"         scalar, in `evaluate`, which has no others but
///   "validation_load/<layer>" as load, and
///   "logits"                  [batch, sequence, vocabulary], in `evaluate` if the program was
///                             compiled to show them; written out only on request
/// Every rank holds its shard by `layout`.
struct Observation {
  std::string name;
  TensorLayout layout;
  /// The greatest that an element may be, and what that was said to be a multiple of; both are 0
  /// where there is no limit. What is beyond it stops the run at the next scalar that must be
  /// finite, one of which follows in the section.
  double limit = 0, mean = 0;
};

enum class Opcode : uint8_t { Kernel, Matmul, Collective, Observe };

enum class Access : uint8_t { Read, Write, ReadWrite };

/// Where a device has several streams of work, on which of them an instruction is done.
enum class Stream : uint8_t { Compute, Communication };
inline constexpr size_t kStreams = 2;
const char *nameOf(Stream stream);

struct Operand {
  uint32_t buffer = 0;
  Access access = Access::Read;
};

/// What one rank does in one instruction, as the ops of the IR say of themselves, and how long that
/// takes on the machine that the program was compiled for. All are 0 or more, and 0 where nobody
/// has said.
struct Cost {
  /// Floating-point operations; a multiply-add counts two.
  double flops = 0;
  /// Bytes read and written in memory; of a collective, those that this rank moves.
  double bytes = 0;
  /// Seconds, as `weft/Cost` predicts them.
  double seconds = 0;
};

/// One step of the table. `target` numbers the kernel, matmul, collective or
/// observation, by opcode.
///
/// Instructions are issued in the order of their list, and those of one stream are done in it. One
/// begins when what it waits for is done too. Sections begin and end with all streams together. To
/// do one after the other in the order of the list, whatever their streams, is always right.
struct Instruction {
  Opcode opcode = Opcode::Kernel;
  uint32_t target = 0;
  /// Number in `Program::labels`: where in the model this stands, for reports.
  uint32_t label = 0;
  std::vector<Operand> operands;
  std::vector<int64_t> immediates;
  Cost cost = {};
  Stream stream = Stream::Compute;
  /// Numbers of earlier instructions of the section, on other streams, ascending.
  std::vector<uint32_t> waits = {};
};

/// What takes a device's memory beside the arena.
enum class DevicePart : uint8_t {
  /// What the driver has for a context.
  Context,
  /// The code of libraries.
  Libraries,
  /// What NCCL has for communicators.
  Communicators,
  /// Inputs on their way.
  Inputs,
  /// The program's own code.
  Code,
  /// The stacks of all threads that may run at a time, each as large as the largest.
  Stacks,
};
inline constexpr size_t kDeviceParts = size_t(DevicePart::Stacks) + 1;
const char *nameOf(DevicePart part);

/// What one of these is predicted to take; none where nobody has said.
struct DeviceUse {
  DevicePart part = DevicePart::Context;
  std::optional<uint64_t> bytes = {};
};

struct Program {
  /// Written first, compared by the loader.
  static constexpr uint32_t kVersion = 10;

  std::string modelName;
  /// The plan, as text, and its hash; equal on all ranks.
  std::string planText;
  std::string planHash;

  std::vector<Axis> mesh;
  std::vector<Buffer> buffers;
  uint64_t arenaBytes = 0;
  /// In a program for CUDA devices each part, in order; else empty.
  std::vector<DeviceUse> deviceUses;

  std::vector<NamedTensor> parameters;
  std::vector<NamedTensor> optimizerState;
  std::vector<NamedTensor> inputs;

  std::vector<Kernel> kernels;
  std::vector<Matmul> matmuls;
  std::vector<Collective> collectives;
  std::vector<Observation> observations;
  std::vector<std::string> labels;

  std::vector<Instruction> init;
  std::vector<Instruction> step;
  /// Writes to no persistent buffer. Empty in a program that cannot evaluate.
  std::vector<Instruction> evaluate;

  /// Samples in the global batch, tokens in a sequence (0 for images), number of token values or
  /// classes.
  int64_t globalBatch = 0, sequenceLength = 0, vocabulary = 0;
  /// The token that ends documents, where there is "document_starts".
  std::optional<int64_t> documentEnd = {};
  /// Parts of the batch that a step takes one after the other. Where there are several, inputs of
  /// samples have two dimensions for the batch: the part and the sample in it.
  int64_t microBatches = 1;
  /// What the recipe says, each replaceable on the command line.
  int64_t defaultSteps = 0;
  uint64_t defaultSeed = 0;
  /// Floating-point operations of one step, all ranks together, by the model's
  /// ops (recomputation not counted), and the peak of one rank's device per
  /// second, in the recipe's precision.
  double stepFlops = 0, peakFlopsPerRank = 0;
  /// The same peak of FP8 matmuls, in programs with such; else 0.
  double peakByteFlopsPerRank = 0;
  /// Bytes per second that one rank's device reads or writes in its memory; 0 if nobody has said.
  double memoryBandwidthPerRank = 0;
  /// Processor cores that a rank's device has: what kernels and matmuls are cut for, and the
  /// most threads that a rank can use.
  int64_t threadsPerRank = 1;

  int64_t rankCount() const;
  /// The peak in what `instruction` multiplies; 0 if it is not known.
  double peakFlopsOf(const Instruction &instruction) const;
  /// That of a rank's step, whose operations may have several: all of them over the seconds that
  /// they take at the peak, each at its own. Of it a share is printed.
  double stepPeakFlopsPerRank() const;
  /// All of a rank's memory, as far as it is predicted.
  uint64_t deviceBytes() const;
  /// Of that what inputs take beside the arena, on their way to a device.
  uint64_t stagedBytes() const;
  /// Whether any of its collectives is between several ranks.
  bool communicates() const;
  /// Coordinates of `rank`, one for each mesh axis.
  std::vector<int64_t> coordinatesOf(int64_t rank) const;
  /// Ranks of the group of `rank` over `axes`, in group order.
  std::vector<int64_t> groupOf(int64_t rank, std::span<const uint32_t> axes) const;
};

/// What one input takes so: small ones go to the arena right away, and take nothing.
uint64_t stagedBytes(const Buffer &input);

/// The same for a mesh alone: ranks that differ from `rank` only on `axes`, in group order.
std::vector<int64_t> groupOf(int64_t rank, std::span<const uint32_t> axes,
                             std::span<const Axis> mesh);

/// What an instruction does, in a word, for reports: "matmul", the kind of a collective,
/// "observe", "optimizer" where a parameter or a state of the optimizer is written, else the
/// kernel's kind.
std::string classOf(const Program &program, const Instruction &instruction);

/// Local shape of a rank's shard.
std::vector<int64_t> localShape(const TensorLayout &layout, std::span<const Axis> mesh);
/// First global index of that shard in each dimension, for a rank at `coordinates`.
std::vector<int64_t> localOffset(const TensorLayout &layout, std::span<const Axis> mesh,
                                 std::span<const int64_t> coordinates);

/// Whether every number in the program that names a buffer, kernel, label, axis or
/// dimension exists, operands have the type and room that their instruction needs,
/// layouts divide evenly, and `evaluate` changes nothing that lasts: all that keeps the
/// runtime inside its arena, apart from the code of kernels. If not, says the first fault in
/// `error`. Lifetimes and the order of communication are not looked at; that is the compiler's
/// proof.
bool isWellFormed(const Program &program, std::string &error);

/// The bytes that an executable carries: little-endian, versioned, checked by
/// length and checksum on the way back.
std::vector<char> serialize(const Program &program);

/// Reads what `serialize` wrote. On damage, on another version and on a program that
/// is not well-formed returns false and says why in `error`; `program` is then
/// unspecified. Safe on any bytes.
bool deserialize(std::span<const char> bytes, Program &program, std::string &error);

/// What an instruction runs, without its operands: "all-reduce sum f32 [8, 64] over {data}".
std::string targetText(const Program &program, const Instruction &instruction);

/// The whole table as text, one instruction a line, for people and for tests.
std::string toText(const Program &program);

} // namespace weft::rt

#endif // WEFT_RT_PROGRAM_H
