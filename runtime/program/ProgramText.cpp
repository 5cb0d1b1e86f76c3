//===- ProgramText.cpp - programs as text -----------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "support/Text.h"
#include "weft-rt/Expansion.h"

using namespace weft::rt;

namespace {

std::string axesText(const Program &program, std::span<const uint32_t> axes) {
  std::string text = "{";
  for (size_t i = 0; i < axes.size(); ++i) {
    text += (i ? ", " : "") + program.mesh[axes[i]].name;
  }
  return text + "}";
}

/// Returns "f32 [8{data}, 64]"; "f32 [7 of 8{data}, 64]" for a padded tensor.
std::string layoutText(const Program &program, const TensorLayout &layout) {
  std::string text = std::string(nameOf(layout.type)) + " [";
  for (size_t dim = 0; dim < layout.globalShape.size(); ++dim) {
    text += (dim ? ", " : "") + std::to_string(layout.globalShape[dim]);
    if (layout.cutShape()[dim] != layout.globalShape[dim]) {
      text += " of " + std::to_string(layout.cutShape()[dim]);
    }
    if (!layout.dimAxes[dim].empty()) {
      text += axesText(program, layout.dimAxes[dim]);
    }
  }
  return text + "]";
}

/// Returns "%3 %4 -> %5": buffers read, then buffers written; a buffer with both accesses stands on
/// both sides.
std::string operandsText(const Instruction &instruction) {
  std::string read, written;
  for (const Operand &operand : instruction.operands) {
    std::string name = " %" + std::to_string(operand.buffer);
    read += operand.access != Access::Write ? name : "";
    written += operand.access != Access::Read ? name : "";
  }
  return read + (written.empty() ? "" : " ->" + written);
}

/// Returns " on communication after 3"; "" on the compute stream without waits.
std::string orderText(const Instruction &instruction) {
  std::string text;
  if (instruction.stream != Stream::Compute) {
    text += concat(" on ", nameOf(instruction.stream));
  }
  for (size_t i = 0; i < instruction.waits.size(); ++i) {
    text += concat(i == 0 ? " after " : ", ", instruction.waits[i]);
  }
  return text;
}

/// Returns "kernel @kernel_map_0"; for an attention kernel also its attention.
std::string kernelText(const Kernel &kernel) {
  return "kernel @" + kernel.name + (kernel.attention ? " " + textOf(*kernel.attention) : "");
}

/// Returns " plus bias gelu keeping" or " sums-A"; "" without an epilogue.
std::string epilogueText(const Epilogue &epilogue) {
  using Activation = Epilogue::Activation;
  std::string text = epilogue.hasAddend ? " plus" : "";
  text += epilogue.hasBias ? " bias" : "";
  text += epilogue.activation == Activation::Gelu           ? " gelu"
          : epilogue.activation == Activation::GeluGradient ? " gelu-gradient"
                                                            : "";
  text += epilogue.activation == Activation::Gelu && epilogue.hasAux ? " keeping" : "";
  text += epilogue.sums == Epilogue::Sums::OfA   ? " sums-A"
          : epilogue.sums == Epilogue::Sums::OfB ? " sums-B"
                                                 : "";
  return text;
}

std::string matmulText(const Matmul &matmul) {
  std::string text =
      concat(nameOf(matmul.type), matmul.isFp8() ? concat(" by ", nameOf(matmul.fp8B)) : "",
             matmul.isTF32 ? " as tf32" : "", matmul.isResultF32 ? " to f32" : "", " ", matmul.m,
             "x", matmul.n, "x", matmul.k, matmul.transposeA ? " A^T" : "",
             matmul.transposeB ? " B^T" : "", " ld ", matmul.lda, "/", matmul.ldb, "/", matmul.ldc);
  if (matmul.batch != 1) {
    text += concat(" batch ", matmul.batch, " strides ", matmul.strideA, "/", matmul.strideB, "/",
                   matmul.strideC);
  }
  text += epilogueText(matmul.epilogue);
  text += matmul.workspaceBytes > 0 ? concat(" workspace ", matmul.workspaceBytes) : "";
  return text;
}

/// Returns " number 3 across classes [0, 1]", or for a transfer " number 3 from class 0 to 1".
std::string classesText(const Collective &collective) {
  if (collective.kind == CollectiveKind::Transfer) {
    return concat(" number ", collective.number, " from class ", collective.classes.front(), " to ",
                  collective.classes.back());
  }
  std::vector<int64_t> classes(collective.classes.begin(), collective.classes.end());
  return concat(" number ", collective.number, " across classes ", shapeText(classes));
}

std::string collectiveText(const Program &program, const Collective &collective) {
  std::string text = nameOf(collective.kind);
  text += isReduction(collective.kind) ? concat(" ", nameOf(collective.reduction)) : "";
  text += concat(" ", nameOf(collective.type), " ", shapeText(collective.shape));
  text += collective.isAcrossClasses() ? classesText(collective)
                                       : " over " + axesText(program, collective.axes);
  text += changesShape(collective.kind) ? concat(" dim ", collective.dim) : "";
  text += collective.kind == CollectiveKind::AllToAll ? concat(" to ", collective.dim2) : "";
  if (collective.kind == CollectiveKind::Permute) {
    std::vector<int64_t> sources(collective.sources.begin(), collective.sources.end());
    text += concat(" from ", shapeText(sources));
  }
  return text;
}

/// Returns " [3, micro-batch, micro-batch + 2]"; "" without immediates.
std::string immediatesText(const Instruction &instruction) {
  std::string text;
  for (const Immediate &immediate : instruction.immediates) {
    text += text.empty() ? " [" : ", ";
    text += immediate.addsMicroBatch ? "micro-batch" : "";
    text += immediate.addsMicroBatch && immediate.value != 0 ? " + " : "";
    text += immediate.addsMicroBatch && immediate.value == 0 ? "" : concat(immediate.value);
  }
  return text + (text.empty() ? "" : "]");
}

void writeBody(std::ostream &out, const Program &program, const Body &body) {
  out << body.name << ":\n";
  for (size_t i = 0; i < body.instructions.size(); ++i) {
    const Instruction &instruction = body.instructions[i];
    out << "  " << i << ": " << targetText(program, instruction) << operandsText(instruction)
        << immediatesText(instruction) << orderText(instruction) << "  \""
        << program.labels[instruction.label] << "\"\n";
  }
}

/// Writes nothing for a section that is one body of its own name.
void writeActions(std::ostream &out, const Program &program, const char *name,
                  const std::vector<Action> &actions) {
  bool isBody = actions.size() == 1 && program.bodies[actions[0].body].name == name;
  if (actions.empty() || isBody) {
    return;
  }
  out << "actions of " << name << ":\n";
  Expansion expansion(program, actions);
  for (size_t i = 0; i < actions.size(); ++i) {
    out << "  " << i << ": " << actionText(program, actions[i]);
    for (const FrameUse &use : actions[i].frames) {
      out << (&use == actions[i].frames.data() ? " in " : ", ") << "frame " << use.frame
          << " of set " << use.set;
    }
    out << ", from instruction " << expansion.beginOf(i) << "\n";
  }
}

void writeAllActions(std::ostream &out, const Program &program) {
  writeActions(out, program, "init", program.init);
  writeActions(out, program, "step", program.step);
  writeActions(out, program, "evaluate", program.evaluate);
}

void writeBuffer(std::ostream &out, size_t number, const Buffer &buffer) {
  out << "buffer %" << number << " " << nameOf(buffer.type) << " " << buffer.bytes << " at "
      << buffer.offset;
  if (buffer.frameSet) {
    out << " in frame set " << *buffer.frameSet;
  }
  out << " " << nameOf(buffer.kind) << (buffer.persistent ? " persistent" : "") << "\n";
}

void writeTensors(std::ostream &out, const Program &program, const char *kind,
                  const std::vector<NamedTensor> &tensors) {
  for (const NamedTensor &tensor : tensors) {
    out << kind << " '" << tensor.name << "' " << layoutText(program, tensor.layout) << " in %"
        << tensor.buffer << "\n";
  }
}

std::string limitText(const Observation &observation) {
  return observation.limit > 0 ? concat(" at most ", observation.limit, ", mean ", observation.mean)
                               : "";
}

} // namespace

std::string weft::rt::timesText(const Program &program) {
  std::ostringstream out;
  for (const Body &body : program.bodies) {
    out << body.name << ":\n";
    for (size_t i = 0; i < body.instructions.size(); ++i) {
      const Instruction &one = body.instructions[i];
      out << "  " << i << ": " << one.cost.seconds * 1e6 << " us  " << targetText(program, one)
          << "  \"" << program.labels[one.label] << "\"\n";
    }
  }
  writeAllActions(out, program);
  return out.str();
}

std::string weft::rt::targetText(const Program &program, const Instruction &instruction) {
  switch (instruction.opcode) {
  case Opcode::Kernel:
    return kernelText(program.kernels[instruction.target]);
  case Opcode::Matmul:
    return "matmul " + matmulText(program.matmuls[instruction.target]);
  case Opcode::Collective:
    return collectiveText(program, program.collectives[instruction.target]);
  case Opcode::Observe:
    return "observe '" + program.observations[instruction.target].name + "' " +
           layoutText(program, program.observations[instruction.target].layout) +
           limitText(program.observations[instruction.target]);
  case Opcode::Agree:
    return "agree";
  }
  return "";
}

std::string weft::rt::toText(const Program &program) {
  std::ostringstream out;
  out << "program '" << program.modelName << "' plan " << program.planHash << "\nmesh";
  for (const Axis &axis : program.mesh) {
    out << " " << axis.name << "=" << axis.size;
  }
  out << "\nbatch " << program.globalBatch;
  if (program.microBatches > 1) {
    out << " in " << program.microBatches << " micro-batches";
  }
  out << " sequence " << program.sequenceLength << " vocabulary " << program.vocabulary;
  if (program.documentEnd) {
    out << " documents end with " << *program.documentEnd;
  }
  out << "\nsteps " << program.defaultSteps << " seed " << program.defaultSeed << " flops "
      << program.stepFlops << " peak " << program.peakFlopsPerRank;
  if (program.peakByteFlopsPerRank > 0) {
    out << " of bytes " << program.peakByteFlopsPerRank;
  }
  out << "\narena " << program.arenaBytes << "\n";
  for (const DeviceUse &use : program.deviceUses) {
    out << "beside it " << nameOf(use.part) << " "
        << (use.bytes ? std::to_string(*use.bytes) : "unknown") << "\n";
  }
  for (size_t i = 0; i < program.frameSets.size(); ++i) {
    const FrameSet &set = program.frameSets[i];
    out << "frame set " << i << ": " << set.offsets.size() << " frames of " << set.bytes << " at";
    for (uint64_t offset : set.offsets) {
      out << " " << offset;
    }
    out << "\n";
  }
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    writeBuffer(out, i, program.buffers[i]);
  }
  writeTensors(out, program, "parameter", program.parameters);
  writeTensors(out, program, "state", program.optimizerState);
  writeTensors(out, program, "input", program.inputs);
  for (const Body &body : program.bodies) {
    writeBody(out, program, body);
  }
  writeAllActions(out, program);
  return out.str();
}
