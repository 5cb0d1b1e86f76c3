//===- Program.h - the instruction table that an executable runs -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A Program is the result of compiling a model: buffers with their places in one
// arena, bodies, which are straight lists of instructions, and three sections, which
// are straight lists of actions. An action runs a body, for one micro-batch or for the
// whole batch. Where several micro-batches are in flight, what one action leaves to a
// later one of its micro-batch lies in a frame, and an action says in which. `init` runs once,
// `step` runs every step, and `evaluate` computes the loss of a batch and leaves persistent buffers
// unchanged. The compiler's Schedule phase writes a Program, the proof in `lib/Schedule` checks it,
// and the runtime runs it. It contains no control flow, allocation or name lookup: every operand is
// a buffer number, and a section means the list of instructions that `Expansion` shows.
//
// All ranks of one class run the same Program. They differ only in their
// coordinates on the mesh axes, which kernels receive as an argument. Ranks of a class
// are numbered row-major over its mesh: the last axis varies fastest. An executable has
// one Program for each rank class. Classes have equally many ranks, one class's after
// the other's, but may differ in all else.
//
// A Program owns everything it names. It is immutable once loaded, so any thread
// may read it.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_PROGRAM_H
#define WEFT_RT_PROGRAM_H

#include "weft-rt/Attention.h"
#include "weft-rt/Collective.h"
#include "weft-rt/ElementType.h"
#include "weft-rt/RankGroup.h"
#include "weft-rt/Status.h"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weft::rt {

/// The purpose of a buffer; reports group memory by it.
enum class BufferClass : uint8_t {
  Parameter,
  /// A parameter rounded, gathered from its shards, or both, and all else made of parameters alone.
  ParameterCopy,
  Optimizer,
  Input,
  Activation,
  Gradient,
  /// Scratch memory of a library while an instruction runs.
  Workspace,
};
const char *nameOf(BufferClass kind);

/// Every buffer starts at a multiple of this many bytes.
inline constexpr uint64_t kAlignment = 64;
/// The same for workspaces: cuBLASLt and cuDNN require it.
inline constexpr uint64_t kWorkspaceAlignment = 256;

/// A part of the arena, or of each frame of a set. Persistent buffers (parameters, optimizer state,
/// inputs) live for the whole run, other buffers from their first write to their last use in a
/// section.
struct Buffer {
  /// The size of the content, without padding.
  uint64_t bytes = 0;
  /// Byte offset in the arena or the frame, a multiple of `alignment()`.
  uint64_t offset = 0;
  BufferClass kind = BufferClass::Activation;
  bool persistent = false;
  /// The type of every element; the search for non-finite values needs it.
  ElementType type = ElementType::F32;
  /// The number of its frame set; empty if it has one place only, as persistent buffers.
  std::optional<uint32_t> frameSet = {};

  uint64_t alignment() const {
    return kind == BufferClass::Workspace ? kWorkspaceAlignment : kAlignment;
  }
};

/// Frames of equal size and content: each holds what actions of one micro-batch leave to later
/// actions of it, such as `forward` to `backward`; or what an action needs for itself; or what an
/// action of no micro-batch gathers for those of all, until it gathers it anew. Frames of several
/// sets may share bytes, which are then used one after another.
struct FrameSet {
  /// The size of a frame, a multiple of `kAlignment`.
  uint64_t bytes = 0;
  /// The byte offset of each frame in the arena: multiples of `kAlignment`, and of the alignment of
  /// all buffers in the frame.
  std::vector<uint64_t> offsets;
};

/// A frame of a set, by their numbers.
struct FrameUse {
  uint32_t set = 0, frame = 0;
  auto operator<=>(const FrameUse &) const = default;
};

/// The layout of a named tensor over the ranks' buffers: dimension d of the global tensor is cut
/// over the axes `dimAxes[d]` (axis numbers, major to minor) into equal shards. Ranks that differ
/// only on other axes hold the same values.
struct TensorLayout {
  ElementType type = ElementType::F32;
  /// The shape in files and in inputs, without padding.
  std::vector<int64_t> globalShape;
  std::vector<std::vector<uint32_t>> dimAxes;
  /// The padded shape that is cut into equal shards; empty if `globalShape` needs no padding.
  /// Elements beyond `globalShape` are zero in parameters and optimizer states.
  std::vector<int64_t> paddedShape = {};

  const std::vector<int64_t> &cutShape() const {
    return paddedShape.empty() ? globalShape : paddedShape;
  }
};

/// A named parameter, optimizer state or step input. The runtime fills these inputs, as far as the
/// program has them, before each step and each evaluation:
///   "tokens", "targets"  i32 [batch, sequence]
///   "document_starts"    i32 [batch, sequence]   for each token, where its document begins in
///                        the sequence
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

/// A kernel that the compiler generated. Its code is `weft_kernels[i]` in the executable, i being
/// its number in `Program::kernels`.
struct Kernel {
  std::string name;
  /// The op that it computes: "attention", "map".
  std::string kind = {};
  /// The scalar operations for each element, if `kind` does not imply them: "mulf addf tanh".
  std::string detail = {};
  /// Set if the kernel computes only attention. Hosts run the kernel's code nonetheless.
  std::optional<Attention> attention = {};

  /// Returns the number of `instruction`'s operands that the kernel's code gets.
  size_t operandCount(const Instruction &instruction) const;
};

/// Runs iterations `begin` to `end - 1` of one phase of a generated kernel. `buffers[i]` is the
/// address of operand i, `immediates` are the instruction's constants, and `coordinates[a]` is this
/// rank's coordinate on mesh axis a.
using KernelFunction = void (*)(void *const *buffers, const int64_t *immediates,
                                const int64_t *coordinates, int64_t phase, int64_t begin,
                                int64_t end);

/// The phases of a kernel on a device, which may differ from those on the host. Phase p has
/// `iterations[p]` iterations. A block of `threads[p]` threads runs each iteration, or a single
/// thread if `threads[p]` is 0.
struct DevicePhases {
  int64_t phaseCount = 0;
  const int64_t *iterations = nullptr, *threads = nullptr;
};

/// The code of a kernel: phases that run one after another, phase p with `iterations[p]`
/// iterations. The iterations of a phase are independent: any threads may run any ranges of them in
/// any order. The start of a range can change last bits, because vectorized code treats the rest of
/// a range differently; therefore the program chooses the ranges, never the machine.
struct KernelCode {
  KernelFunction function = nullptr;
  int64_t phaseCount = 0;
  const int64_t *iterations = nullptr;
  /// Null in programs for the host, and if the device uses the host's phases.
  const DevicePhases *device = nullptr;
};

/// The computation that a matmul applies to its result in float32, before the only rounding: it
/// adds the addend, then the bias, then applies the activation. The instruction has an operand for
/// each of these that is present.
struct Epilogue {
  enum class Activation : uint8_t {
    None,
    /// GELU by its tanh approximation.
    Gelu,
    /// Multiplies by the derivative of Gelu at the elements of `aux`.
    GeluGradient,
  };
  /// The operand that is also summed over k: A (one sum for each row) or B (one for each column).
  enum class Sums : uint8_t { None, OfA, OfB };

  /// The addend has C's layout and type.
  bool hasAddend = false;
  /// The bias has n elements of C's type, added to every row.
  bool hasBias = false;
  Activation activation = Activation::None;
  /// `aux` has C's layout and type. GeluGradient reads it; other activations write their input to
  /// it.
  bool hasAux = false;
  /// The sums have m or n elements of C's type; the matmul writes them.
  Sums sums = Sums::None;

  /// Returns true if the epilogue does more than add the addend.
  bool isMore() const {
    return hasBias || hasAux || activation != Activation::None || sums != Sums::None;
  }
  bool isAny() const { return hasAddend || isMore(); }
};

/// A matmul for a library: C = op(A) op(B) on row-major matrices; C is m x n, the sum runs over k.
/// There are `batch` matmuls, whose operands lie `stride*` elements apart. Operands of the
/// instruction: A, B, C, then those present of the epilogue's addend, bias, aux and sums, the
/// factors of A and of B (FP8), and the workspace.
///
/// In FP8, A and B are each multiplied by a factor, one f32 in memory. A is stored by rows and B by
/// columns, so that the terms of a sum are contiguous, and sizes and strides are multiples of 16:
/// all devices with FP8 matmuls support this form.
struct Matmul {
  /// The type of A and, except in FP8, of B.
  ElementType type = ElementType::F32;
  bool transposeA = false, transposeB = false;
  int64_t m = 0, n = 0, k = 0;
  /// Elements from one stored row to the next.
  int64_t lda = 0, ldb = 0, ldc = 0;
  int64_t batch = 1;
  /// A stride of 0 for A or B: all matmuls share the operand. A stride of 0 for C: C is the sum of
  /// all matmuls, in order.
  int64_t strideA = 0, strideB = 0, strideC = 0;
  /// C is unrounded f32. Only for 16-bit and FP8 types, which are summed in f32.
  bool isResultF32 = false;
  /// Only for f32: A and B are rounded to 10 fraction bits when multiplied, to nearest, ties away
  /// from zero; some devices truncate instead.
  bool isTF32 = false;
  /// Only in FP8: the type of B. C is then bf16 or f32.
  ElementType fp8B = ElementType::F8E4M3;
  Epilogue epilogue = {};
  /// The bytes of scratch memory that belong to the library while it runs; 0 for none.
  uint64_t workspaceBytes = 0;

  bool isFp8() const { return isFloat8(type); }
  ElementType typeOfB() const { return isFp8() ? fp8B : type; }
  ElementType resultType() const {
    return isResultF32 ? ElementType::F32 : isFp8() ? ElementType::BF16 : type;
  }
  /// Returns true if C is the sum of several matmuls.
  bool isSum() const { return batch > 1 && strideC == 0; }
  /// Returns the number of operands of the instruction. The workspace, if any, is the last.
  size_t operandCount() const {
    return 3 + size_t(epilogue.hasAddend) + size_t(epilogue.hasBias) + size_t(epilogue.hasAux) +
           size_t(epilogue.sums != Epilogue::Sums::None) + (isFp8() ? 2 : 0) +
           size_t(workspaceBytes > 0);
  }
};

/// Returns true if sizes and layouts fit the FP8 matmuls of all devices.
bool fitsFp8(const Matmul &matmul);

/// A value that an Observer may read while a section runs, at the position of the Observe
/// instruction. Names:
///   "loss", "gradient_norm"   scalars, printed each step; the run ends if one is not finite. A
///                             norm of -1: gradients were not finite, and the step was skipped
///   "loss_scale"              scalar, reported each step
///   "gradient/<parameter>"    before clipping; written only on request
///   "dropped/<layer>"         scalar: how often an expert of the layer dropped a token; reported
///                             each step
///   "load/<layer>"            [sample, expert]: how many tokens of a sequence an expert of the
///                             layer got; the run ends if one exceeds `limit`
///   "validation_loss"         scalar, only in `evaluate`, which otherwise has only the next two
///   "validation_load/<layer>" as "load/<layer>"
///   "logits"                  [batch, sequence, vocabulary], if the program was compiled to show
///                             them; written only on request
/// Every rank holds its shard by `layout`.
struct Observation {
  std::string name;
  TensorLayout layout;
  /// The greatest value allowed for an element, and the average of which the user gave the limit as
  /// a multiple; both are 0 without a limit. A greater value ends the run where ranks agree.
  double limit = 0, mean = 0;
};

enum class Opcode : uint8_t {
  Kernel,
  Matmul,
  Collective,
  Observe,
  /// Has no operands. All ranks of all classes come together, and the run ends if on any of them a
  /// loss or norm that was observed before is not finite, or a value is above its limit.
  Agree,
};

enum class Access : uint8_t { Read, Write, ReadWrite };

/// The stream of an instruction; of a host, what its communication thread runs.
enum class Stream : uint8_t { Compute, Communication };
inline constexpr size_t kStreams = 2;
const char *nameOf(Stream stream);

struct Operand {
  uint32_t buffer = 0;
  Access access = Access::Read;
};

/// The work of one rank in one instruction, as the IR's ops report it, and the predicted time on
/// the machine that the program was compiled for. All are 0 or more; 0 if unknown.
struct Cost {
  /// Floating-point operations; a multiply-add counts two.
  double flops = 0;
  /// Bytes read and written in memory; in a collective, bytes that this rank transfers.
  double bytes = 0;
  /// Seconds, predicted by `weft/Cost`.
  double seconds = 0;
  /// The share of the device's rate, at most 1, that a collective takes from computation beside it.
  double share = 0;
};

/// A number that a kernel gets: `value`, or if `addsMicroBatch` the sum of `value` and the number
/// of the action's micro-batch.
struct Immediate {
  Immediate(int64_t value = 0, bool addsMicroBatch = false)
      : value(value), addsMicroBatch(addsMicroBatch) {}
  bool operator==(const Immediate &) const = default;

  int64_t value;
  bool addsMicroBatch;
};

/// One instruction. `target` is the number of the kernel, matmul, collective or observation, by
/// opcode; 0 for Agree.
///
/// Instructions are issued in the order of their body; those of one stream run in that order. An
/// instruction begins when all in `waits` are done, too. Streams join at the beginning and end of
/// each action. Running all instructions one after another in the order of the list is always
/// correct.
struct Instruction {
  Opcode opcode = Opcode::Kernel;
  uint32_t target = 0;
  /// A number in `Program::labels`: the place in the model, for reports.
  uint32_t label = 0;
  std::vector<Operand> operands;
  std::vector<Immediate> immediates;
  Cost cost = {};
  Stream stream = Stream::Compute;
  /// Numbers of earlier instructions of the body, on other streams, ascending.
  std::vector<uint32_t> waits = {};
};

/// A straight list of instructions that actions run. Of a value that the body itself writes, only
/// what a later action reads outlives its run.
struct Body {
  /// "init", "step", "evaluate" where it is all of a section.
  std::string name;
  std::vector<Instruction> instructions;
};

/// One run of a body.
struct Action {
  /// A number in `Program::bodies`.
  uint32_t body = 0;
  /// The number of the micro-batch that the body works on; empty if it works on the whole batch.
  std::optional<int64_t> microBatch = {};
  /// The frames in which framed operands of the body lie: one of each of their sets, ascending by
  /// set.
  std::vector<FrameUse> frames = {};
  bool operator==(const Action &) const = default;
};

/// The uses of a device's memory besides the arena.
enum class DevicePart : uint8_t {
  /// The driver's context.
  Context,
  /// The code of libraries.
  Libraries,
  /// NCCL's communicators.
  Communicators,
  /// Inputs that are being copied to the device.
  Inputs,
  /// The program's own code.
  Code,
  /// The stacks of all threads that can run at a time, each of the largest size.
  Stacks,
};
inline constexpr size_t kDeviceParts = size_t(DevicePart::Stacks) + 1;
const char *nameOf(DevicePart part);

/// The predicted bytes of one use; empty if unknown.
struct DeviceUse {
  DevicePart part = DevicePart::Context;
  std::optional<uint64_t> bytes = {};
};

struct Program {
  /// The format's version: written first, checked by the loader.
  static constexpr uint32_t kVersion = 16;

  std::string modelName;
  /// The plan as text, and its hash; equal on all ranks.
  std::string planText;
  std::string planHash;
  /// The `certificateOf` the executable's programs when the compiler proved them; equal on all
  /// ranks. Empty if they were not proven: such programs do not run.
  std::string certificate;

  /// The class of the ranks that run this program, and the number of classes.
  uint32_t rankClass = 0, rankClasses = 1;
  /// Of the ranks of this class.
  std::vector<Axis> mesh;
  std::vector<Buffer> buffers;
  std::vector<FrameSet> frameSets;
  uint64_t arenaBytes = 0;
  /// One entry for each DevicePart, in order, in programs for CUDA devices; else empty.
  std::vector<DeviceUse> deviceUses;

  std::vector<NamedTensor> parameters;
  std::vector<NamedTensor> optimizerState;
  std::vector<NamedTensor> inputs;

  /// The same in all programs of an executable.
  std::vector<Kernel> kernels;
  std::vector<Matmul> matmuls;
  std::vector<Collective> collectives;
  std::vector<Observation> observations;
  std::vector<std::string> labels;

  std::vector<Body> bodies;
  std::vector<Action> init;
  std::vector<Action> step;
  /// Writes to no persistent buffer. Empty if the program cannot evaluate.
  std::vector<Action> evaluate;

  /// Samples in the global batch, tokens in a sequence (0 for images), number of token values or
  /// classes.
  int64_t globalBatch = 0, sequenceLength = 0, vocabulary = 0;
  /// The token that ends documents, in programs with "document_starts".
  std::optional<int64_t> documentEnd = {};
  /// The number of micro-batches. If there are several, inputs of samples have two dimensions for
  /// the batch: the micro-batch, and the sample in it.
  int64_t microBatches = 1;
  /// The recipe's values, which the command line can override.
  int64_t defaultSteps = 0;
  uint64_t defaultSeed = 0;
  /// Floating-point operations of one step, all ranks together, counted by the model's ops without
  /// recomputation; and the peak of one rank's device per second, in the recipe's precision.
  double stepFlops = 0, peakFlopsPerRank = 0;
  /// The same peak for FP8 matmuls, in programs that have these; else 0.
  double peakByteFlopsPerRank = 0;
  /// Bytes per second that one rank's device reads or writes in its memory; 0 if unknown.
  double memoryBandwidthPerRank = 0;
  /// The processor cores of a rank's device: kernels and matmuls are cut for this number, and a
  /// rank uses at most this many threads.
  int64_t threadsPerRank = 1;

  /// Return the instructions of a section's only body, which they add with the section's name if
  /// there is no action yet. REQUIRES: the section has at most one action.
  std::vector<Instruction> &initBody() { return onlyBody(init, "init"); }
  std::vector<Instruction> &stepBody() { return onlyBody(step, "step"); }
  std::vector<Instruction> &evaluateBody() { return onlyBody(evaluate, "evaluate"); }
  /// REQUIRES: there is one action.
  const std::vector<Instruction> &stepBody() const {
    return bodies[step.front().body].instructions;
  }

  /// Returns the number of ranks of all classes.
  int64_t rankCount() const;
  /// Returns the ranks that run this program.
  RankRange ranks() const;
  /// Returns the peak for the type that `instruction` multiplies; 0 if unknown.
  double peakFlopsOf(const Instruction &instruction) const;
  /// Returns the peak of a rank's whole step, whose operations may have different peaks: all
  /// operations divided by the seconds that they take at their own peaks. Reports print the share
  /// of it that a run reaches.
  double stepPeakFlopsPerRank() const;
  /// Returns the arena's byte at which a buffer begins, in frame `frame` if it is framed.
  uint64_t offsetOf(uint32_t buffer, uint32_t frame) const;
  /// Returns the frame in which a buffer lies for an action with these frames; 0 if it is not
  /// framed or its set is not among them.
  uint32_t frameOf(uint32_t buffer, std::span<const FrameUse> frames) const;
  /// Returns the predicted bytes of a rank's device memory, arena included.
  uint64_t deviceBytes() const;
  /// Returns the bytes that inputs take besides the arena while they are copied to a device.
  uint64_t stagedBytes() const;
  /// Returns true if any collective connects several ranks.
  bool communicates() const;
  /// Returns the coordinates of `rank`, one for each mesh axis. REQUIRES: it runs this program.
  std::vector<int64_t> coordinatesOf(int64_t rank) const;
  /// Returns all ranks of the class, as a group.
  RankGroup classGroup() const;
  /// Returns the number of ranks in each group over `axes`, or that run the collective together.
  /// REQUIRES: the mesh has these axes.
  uint64_t groupSize(std::span<const uint32_t> axes) const;
  uint64_t groupSize(const Collective &collective) const;
  /// Returns the ranks with which `rank` runs the collective. REQUIRES: it runs this program.
  RankGroup groupOf(int64_t rank, const Collective &collective) const;

private:
  std::vector<Instruction> &onlyBody(std::vector<Action> &section, const char *name);
};

/// The programs of an executable: number c is that of rank class c.
using Programs = std::vector<Program>;

/// Returns the program that `rank` runs.
const Program &programOf(std::span<const Program> programs, int64_t rank);

/// Returns the bytes that one input takes besides the arena; 0 for small inputs, which go directly
/// to the arena.
uint64_t stagedBytes(const Buffer &input);

/// Returns the class of an instruction for reports: "matmul", the kind of a collective, "observe",
/// "optimizer" if it writes a parameter or an optimizer state, else the kernel's kind.
std::string classOf(const Program &program, const Instruction &instruction);

/// Returns "buffer 5"; "buffer 5 of frame 1" for a framed one.
std::string nameOf(const Program &program, uint32_t buffer, uint32_t frame);

/// Returns the shape of a rank's shard.
std::vector<int64_t> localShape(const TensorLayout &layout, std::span<const Axis> mesh);
/// Returns the first global index, in each dimension, of the shard of the rank at `coordinates`.
std::vector<int64_t> localOffset(const TensorLayout &layout, std::span<const Axis> mesh,
                                 std::span<const int64_t> coordinates);

/// Checks that every buffer, kernel, label, axis and dimension that the program refers to exists,
/// operands have the type and size that their instructions need, layouts divide evenly, and
/// `evaluate` leaves persistent buffers unchanged. Together these keep the runtime inside its
/// arena, except for the code of kernels. Fails with the first fault. Lifetimes of buffers and the
/// order of communication are not checked here; the compiler's proof covers them.
Status checkWellFormed(const Program &program);
/// Checks each program and that all belong together.
Status checkWellFormed(std::span<const Program> programs);
/// Checks that well-formed programs belong together: classes are numbered in order and have equally
/// many ranks; what describes the run is the same for all; a collective across classes is the same
/// in each of its classes; all classes agree equally often to go on; and the first class, which
/// reports, observes all scalars that any class does.
Status checkTogether(std::span<const Program> programs);

/// Returns the SHA-256 of all that is proven of programs, 64 hexadecimal digits: of everything but
/// the certificate itself and `deviceUses`, which are known last and which no rank acts on.
std::string certificateOf(std::span<const Program> programs);
/// Checks that programs are those that were proven: fails if their certificates are missing, or are
/// not what `certificateOf` returns.
Status checkCertificate(std::span<const Program> programs);

/// Returns the bytes that an executable contains: little-endian, with a version, a length and a
/// checksum that `deserialize` checks.
std::vector<char> serialize(std::span<const Program> programs);
/// The same for a single rank class.
inline std::vector<char> serialize(const Program &program) {
  return serialize(std::span(&program, 1));
}

/// Reads the bytes that `serialize` wrote. Safe on any bytes: fails for damaged bytes, another
/// version or programs that are not well-formed.
Result<Programs> deserialize(std::span<const char> bytes);

/// Returns the numbers that a kernel gets when `action` runs the instruction.
std::vector<int64_t> immediatesOf(const Instruction &instruction, const Action &action);

/// Returns the target of an instruction, without operands: "all-reduce sum f32 [8, 64] over
/// {data}".
std::string targetText(const Program &program, const Instruction &instruction);

/// Returns the whole program as text for people and tests: bodies with one instruction per line,
/// and the actions of each section that has several.
std::string toText(const Program &program);

/// Returns a line for each instruction of each body: its predicted time in microseconds, what it
/// runs, and its label.
std::string timesText(const Program &program);

} // namespace weft::rt

#endif // WEFT_RT_PROGRAM_H
