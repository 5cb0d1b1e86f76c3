//===- Attention.cpp - attention by cuDNN ---------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// cuDNN's attention takes and gives bf16, and contiguous rows of log-sum-exp. Other results
// (f32, or rows with gaps) are written to the workspace and then copied to their places.
// Rows that cuDNN does not compute are filled here.
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/AttentionGraph.h"
#include "backends/cuda/Parts.h"
#include "backends/cuda/Widen.h"
#include "support/CheckedMath.h"
#include "weft-rt/Program.h"

#include <array>
#include <memory>
#include <utility>

using namespace weft::rt;
using namespace weft::rt::cuda;

namespace weft::rt::cuda {

/// A device's objects of cuDNN.
struct AttentionLibrary {
  cudnnHandle_t handle = nullptr;
  CUmodule module = nullptr;
  CUfunction widen = nullptr;

  ~AttentionLibrary() {
    if (module) {
      driver().unload(module);
    }
  }
};

} // namespace weft::rt::cuda

namespace {

struct Prepared {
  Attention attention;
  AttentionPart part;
  std::unique_ptr<AttentionGraph> graph;

  AttentionRows rowsOf(size_t role) const { return cuda::rowsOf(attention, part, role); }
};

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

/// One run: the operands' places, and the copies after it.
struct Run {
  const AttentionLibrary &library;
  Prepared &p;
  CUstream stream;
  const Address *operands;
  /// By role, the address at which cuDNN reads or writes the operand.
  std::array<Address, Attention::ValueGradient + 1> places = {};
  Address lse = 0, rest = 0;

  Run(const AttentionLibrary &library, Prepared &p, CUstream stream, const Address *operands)
      : library(library), p(p), stream(stream), operands(operands) {
    const Attention &a = p.attention;
    rest = operands[a.roles() + size_t(a.starts.has_value())];
    auto take = [&](uint64_t bytes) {
      return std::exchange(rest, rest + (bytes + kStagedPart - 1) / kStagedPart * kStagedPart);
    };
    lse = take(elementCount(a.shapeOf(Attention::Lse)) * 4);
    for (size_t role = 0; role < a.roles(); ++role) {
      places[role] = a.isResult(role) && a.isStaged(role) ? take(elementCount(a.shapeOf(role)) * 2)
                                                          : operands[role];
    }
  }

  /// Copies the computed rows of the lse between the operand and the contiguous workspace.
  CallResult moveLse(bool isOut) const {
    const Attention &a = p.attention;
    CUDA_MEMCPY2D copy = {};
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = operands[Attention::Lse] + uint64_t(p.part.firstQuery) * 4;
    copy.srcPitch = uint64_t(a.queries) * 4;
    copy.dstDevice = lse;
    copy.dstPitch = copy.WidthInBytes = uint64_t(p.part.queries) * 4;
    copy.Height = uint64_t(a.batch * a.keyHeads * a.group);
    if (isOut) {
      std::swap(copy.srcDevice, copy.dstDevice);
      std::swap(copy.srcPitch, copy.dstPitch);
    }
    return resultOf(driver().copyRows(&copy, stream), "cuMemcpy2DAsync of an lse");
  }

  /// Sets `count` rows from `first` on, which are not computed, to zero.
  CallResult clear(size_t role, int64_t first, int64_t count) const {
    AttentionRows rows = p.rowsOf(role);
    uint64_t position = uint64_t(rows.heads * rows.features) * 2;
    return count == 0 ? nullptr
                      : resultOf(driver().fillRows(places[role] + uint64_t(first) * position,
                                                   uint64_t(rows.length) * position, 0,
                                                   uint64_t(count) * position,
                                                   uint64_t(p.attention.batch), stream),
                                 "cuMemsetD2D8Async of what attention does not see");
  }

  CallResult prepareLse() const {
    const Attention &a = p.attention;
    if (a.isBackward) {
      return moveLse(/*isOut=*/false);
    }
    // The bits of -1e30f.
    constexpr uint32_t kUnseen = 0xF149F2CA;
    return p.part.firstQuery == 0
               ? nullptr
               : resultOf(driver().fillWords(operands[Attention::Lse], uint64_t(a.queries) * 4,
                                             kUnseen, uint64_t(p.part.firstQuery),
                                             uint64_t(a.batch * a.keyHeads * a.group), stream),
                          "cuMemsetD2D32Async of an lse");
  }

  CallResult compute() const {
    const Attention &a = p.attention;
    AttentionGraph::Places at = {};
    for (size_t role = 0; role < a.roles(); ++role) {
      at[role] =
          role == Attention::Lse ? lse : places[role] + uint64_t(p.rowsOf(role).offset()) * 2;
    }
    if (a.starts) {
      at[AttentionGraph::kStarts] = operands[a.roles()] + uint64_t(p.part.firstQuery) * 4;
    }
    return resultOf(p.graph->run(library.handle, stream, at, rest));
  }

  CallResult move(size_t role) const {
    uint64_t count = elementCount(p.attention.shapeOf(role));
    if (!p.attention.isWide(role)) {
      return resultOf(driver().copy(operands[role], places[role], count * 2, stream),
                      "cuMemcpyDtoDAsync of an attention");
    }
    Address to = operands[role], from = places[role];
    void *arguments[] = {&to, &from, &count};
    auto blocks =
        uint32_t(std::min<uint64_t>((count + kWidenThreads - 1) / kWidenThreads, 1 << 14));
    return resultOf(driver().launch(library.widen, blocks, 1, 1, kWidenThreads, 1, 1, 0, stream,
                                    arguments, nullptr),
                    "cuLaunchKernel of an attention");
  }

  CallResult finish() const {
    CallResult failed = p.attention.isBackward ? nullptr : moveLse(/*isOut=*/true);
    for (size_t role = 0; !failed && role < p.attention.roles(); ++role) {
      if (!p.attention.isResult(role) || role == Attention::Lse) {
        continue;
      }
      AttentionRows rows = p.rowsOf(role);
      failed = clear(role, 0, rows.first);
      failed = failed ? failed
                      : clear(role, rows.first + rows.count, rows.length - rows.first - rows.count);
      failed = failed || !p.attention.isStaged(role) ? failed : move(role);
    }
    return failed;
  }
};

//===----------------------------------------------------------------------===//
// The table's functions
//===----------------------------------------------------------------------===//

CallResult openAttention(Device &device) {
  if (device.attention) {
    return nullptr;
  }
  auto made = std::make_unique<AttentionLibrary>();
  CallResult failed =
      resultOf(driver().load(&made->module, kWidenPtx, 0, nullptr, nullptr), "cuModuleLoadDataEx");
  failed = failed ? failed
                  : resultOf(driver().entry(&made->widen, made->module, "weft_widen"),
                             "cuModuleGetFunction");
  if (failed) {
    return failed;
  }
  Result<cudnnHandle_t> opened = openCudnn();
  if (!opened) {
    return say(concat("device ", device.number, ": ", opened.error().message));
  }
  made->handle = *opened;
  device.attention = made.release(); // Whole, or the next attention begins anew.
  return nullptr;
}

CallResult prepareAttention(Handle handle, const Attention *attention, const AttentionPart *part,
                            bool isDeterministic, Handle *prepared, const char **refusal) {
  *prepared = 0;
  *refusal = nullptr;
  Device *device = nullptr;
  if (CallResult failed = enter(handle, device)) {
    return failed;
  }
  *refusal = resultOf(findCudnn());
  *refusal = *refusal ? *refusal : openAttention(*device);
  if (*refusal) {
    return nullptr;
  }
  uint64_t staged = stagedBytes(*attention);
  if (staged > attention->workspaceBytes) {
    *refusal = say(concat("needs a workspace of more than ", bytesText(attention->workspaceBytes)));
    return nullptr;
  }
  AttentionTarget target;
  target.handle = device->attention->handle;
  Result<std::unique_ptr<AttentionGraph>> graph = AttentionGraph::make(
      *attention, *part, target, isDeterministic, attention->workspaceBytes - staged);
  *refusal = graph ? nullptr : say(graph.error().message);
  *prepared = graph ? toHandle(new Prepared{*attention, *part, std::move(*graph)}) : 0;
  return nullptr;
}

CallResult freeAttention(Handle, Handle prepared) {
  delete fromHandle<Prepared>(prepared);
  return nullptr;
}

CallResult runAttention(Handle handle, Handle stream, Handle prepared, const Address *operands,
                        size_t) {
  Device *device = nullptr;
  if (CallResult failed = enter(handle, device)) {
    return failed;
  }
  Run run(*device->attention, *fromHandle<Prepared>(prepared), fromHandle<CUstream_st>(stream),
          operands);
  CallResult failed = run.prepareLse();
  failed = failed ? failed : run.compute();
  return failed ? failed : run.finish();
}

} // namespace

CallResult cuda::closeAttention(Device &device) {
  AttentionLibrary *library = std::exchange(device.attention, nullptr);
  if (!library) {
    return nullptr;
  }
  std::unique_ptr<AttentionLibrary> owned(library);
  return resultOf(closeCudnn(owned->handle));
}

void cuda::addAttention(DriverTable &library) {
  library.prepareAttention = prepareAttention;
  library.freeAttention = freeAttention;
  library.runAttention = runAttention;
}
