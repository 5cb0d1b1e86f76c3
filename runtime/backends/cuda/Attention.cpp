//===- Attention.cpp - attention by cuDNN ---------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// cuDNN's attention takes and gives bf16, and rows of log-sum-exp that follow each other.
// What belongs elsewhere or is f32 it writes into the workspace, from where it is moved;
// rows that it does not compute are filled here.
//
// cuDNN is asked by cudnn_frontend, whose code is in this file alone, as it takes half a
// minute to compile. It throws where a library lacks a function: no exception leaves.
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/Parts.h"
#include "backends/cuda/Widen.h"
#include "core/CheckedMath.h"
#include "weft-rt/Program.h"

#define NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#include <cudnn_frontend.h>

#include <array>
#include <dlfcn.h>
#include <memory>
#include <mutex>
#include <utility>

namespace fe = cudnn_frontend;
using namespace weft::rt;
using namespace weft::rt::cuda;

// Where cudnn_frontend finds the functions of cuDNN.
void *cudnn_frontend::cudnn_dlhandle = nullptr;

namespace weft::rt::cuda {

/// What a device has of cuDNN.
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

/// The first without what others leave cuDNN out for: gradients that are not numbers, and reads
/// beyond the keys (TransformerEngine#2344), and padding that has to be masked
/// (cudnn-frontend#178).
constexpr size_t kOldest = 91501;
/// Parts of the workspace begin at multiples of this.
constexpr uint64_t kPart = 256;

struct Prepared {
  Attention attention;
  AttentionPart part;
  fe::graph::Graph graph;
  std::unordered_map<int64_t, void *> places;
};

/// An operand: where in memory it begins and how far positions are apart, in elements.
struct Rows {
  int64_t heads, features, length, first, count;
  int64_t offset() const { return first * heads * features; }
};

Rows rowsOf(const Prepared &p, size_t role) {
  const Attention &a = p.attention;
  bool isOfKeys = role == Attention::Key || role == Attention::Value ||
                  role == Attention::KeyGradient || role == Attention::ValueGradient;
  bool isOfValues = role == Attention::Value || role == Attention::ValueGradient ||
                    role == Attention::Output || role == Attention::Gradient;
  Rows rows = {a.keyHeads * a.group, isOfValues ? a.valueFeatures : a.features, a.queries,
               p.part.firstQuery, p.part.queries};
  if (isOfKeys) {
    rows = {a.keyHeads, rows.features, a.keys, p.part.firstKey, p.part.keys};
  }
  return rows;
}

//===----------------------------------------------------------------------===//
// What cuDNN is told
//===----------------------------------------------------------------------===//

void setShape(fe::graph::Tensor_attributes &tensor, const Prepared &p, size_t role) {
  int64_t batch = p.attention.batch;
  Rows rows = rowsOf(p, role);
  tensor.set_uid(int64_t(role) + 1);
  if (role == Attention::Lse) {
    tensor.set_dim({batch, rows.heads, rows.count, 1})
        .set_stride({rows.heads * rows.count, rows.count, 1, 1})
        .set_data_type(fe::DataType_t::FLOAT);
    return;
  }
  int64_t position = rows.heads * rows.features;
  tensor.set_dim({batch, rows.heads, rows.count, rows.features})
      .set_stride({rows.length * position, rows.features, position, 1})
      .set_data_type(fe::DataType_t::BFLOAT16);
}

std::shared_ptr<fe::graph::Tensor_attributes> input(Prepared &p, size_t role) {
  fe::graph::Tensor_attributes tensor;
  setShape(tensor, p, role);
  return p.graph.tensor(tensor);
}

/// `Options` are the two directions' attributes, which have no class in common.
template <typename Options> void setMask(Options &options, const AttentionPart &part) {
  if (!part.isCausal) {
    return;
  }
  options.set_diagonal_alignment(part.keys == part.queries ? fe::DiagonalAlignment_t::TOP_LEFT
                                                           : fe::DiagonalAlignment_t::BOTTOM_RIGHT);
  options.set_diagonal_band_right_bound(0);
  if (part.window > 0) {
    options.set_diagonal_band_left_bound(int(part.window));
  }
}

void describeForward(Prepared &p, fe::AttentionImplementation_t implementation) {
  auto options = fe::graph::SDPA_attributes().set_name("attention").set_generate_stats(true);
  options.set_implementation(implementation);
  options.set_attn_scale(float(p.attention.scale));
  setMask(options, p.part);
  auto [output, lse] = p.graph.sdpa(input(p, Attention::Query), input(p, Attention::Key),
                                    input(p, Attention::Value), options);
  setShape(output->set_output(true), p, Attention::Output);
  setShape(lse->set_output(true), p, Attention::Lse);
}

void describeBackward(Prepared &p, bool isDeterministic) {
  auto options = fe::graph::SDPA_backward_attributes().set_name("attention_gradient");
  options.set_attn_scale(float(p.attention.scale));
  options.set_deterministic_algorithm(isDeterministic);
  setMask(options, p.part);
  auto [query, key, value] =
      p.graph.sdpa_backward(input(p, Attention::Query), input(p, Attention::Key),
                            input(p, Attention::Value), input(p, Attention::Output),
                            input(p, Attention::Gradient), input(p, Attention::Lse), options);
  setShape(query->set_output(true), p, Attention::QueryGradient);
  setShape(key->set_output(true), p, Attention::KeyGradient);
  setShape(value->set_output(true), p, Attention::ValueGradient);
}

/// What is in the workspace before cuDNN's own.
uint64_t stagedBytes(const Attention &a) {
  auto rounded = [](uint64_t bytes) { return (bytes + kPart - 1) / kPart * kPart; };
  uint64_t bytes = rounded(elementCount(a.shapeOf(Attention::Lse)) * 4);
  for (size_t role = 0; role < a.roles(); ++role) {
    bytes += a.isResult(role) && a.isStaged(role) ? rounded(elementCount(a.shapeOf(role)) * 2) : 0;
  }
  return bytes;
}

/// Builds the plan; why not, else "". `implementation` is for the direction that has several.
std::string build(Prepared &p, cudnnHandle_t handle, bool isDeterministic,
                  fe::AttentionImplementation_t implementation) {
  uint64_t staged = stagedBytes(p.attention);
  if (staged > p.attention.workspaceBytes) {
    return concat("needs a workspace of more than ", bytesText(p.attention.workspaceBytes));
  }
  auto left = int64_t(p.attention.workspaceBytes - staged);
  p.graph.set_io_data_type(fe::DataType_t::BFLOAT16)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  p.attention.isBackward ? describeBackward(p, isDeterministic)
                         : describeForward(p, implementation);
  int64_t needed = 0;
  fe::error_t error = p.graph.validate();
  error = error.is_good() ? p.graph.build_operation_graph(handle) : error;
  error = error.is_good() ? p.graph.create_execution_plans({fe::HeurMode_t::A}) : error;
  if (error.is_good()) {
    p.graph.deselect_workspace_greater_than(left);
    error = p.graph.check_support();
  }
  error = error.is_good() ? p.graph.build_plans() : error;
  error = error.is_good() ? p.graph.get_workspace_size(needed) : error;
  if (error.is_bad()) {
    return concat("cuDNN refuses: ", error.get_message());
  }
  return needed <= left ? ""
                        : concat("cuDNN needs a workspace of ", bytesText(uint64_t(needed)),
                                 ", the program has ", bytesText(uint64_t(left)));
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

/// One run: where all is, and what is to be moved after it.
struct Run {
  const AttentionLibrary &library;
  Prepared &p;
  CUstream stream;
  const Address *operands;
  /// By roles: where cuDNN reads or writes all of an operand.
  std::array<Address, Attention::ValueGradient + 1> places = {};
  Address lse = 0, rest = 0;

  Run(const AttentionLibrary &library, Prepared &p, CUstream stream, const Address *operands)
      : library(library), p(p), stream(stream), operands(operands) {
    const Attention &a = p.attention;
    rest = operands[a.roles()];
    auto take = [&](uint64_t bytes) {
      return std::exchange(rest, rest + (bytes + kPart - 1) / kPart * kPart);
    };
    lse = take(elementCount(a.shapeOf(Attention::Lse)) * 4);
    for (size_t role = 0; role < a.roles(); ++role) {
      places[role] = a.isResult(role) && a.isStaged(role) ? take(elementCount(a.shapeOf(role)) * 2)
                                                          : operands[role];
    }
  }

  /// Rows of the lse that are computed, between the operand and where they follow each other.
  Result moveLse(bool isOut) const {
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

  /// Rows from `first` on that are not computed become zero.
  Result clear(size_t role, int64_t first, int64_t count) const {
    Rows rows = rowsOf(p, role);
    uint64_t position = uint64_t(rows.heads * rows.features) * 2;
    return count == 0 ? nullptr
                      : resultOf(driver().fillRows(places[role] + uint64_t(first) * position,
                                                   uint64_t(rows.length) * position, 0,
                                                   uint64_t(count) * position,
                                                   uint64_t(p.attention.batch), stream),
                                 "cuMemsetD2D8Async of what attention does not see");
  }

  Result prepareLse() const {
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

  Result compute() const {
    for (size_t role = 0; role < p.attention.roles(); ++role) {
      uint64_t offset = uint64_t(rowsOf(p, role).offset()) * 2;
      Address at = role == Attention::Lse ? lse : places[role] + offset;
      p.places[int64_t(role) + 1] = fromHandle<void>(at);
    }
    cudnnStatus_t code =
        fe::detail::set_stream(library.handle, reinterpret_cast<cudaStream_t>(stream));
    if (code != CUDNN_STATUS_SUCCESS) {
      return say(concat("cudnnSetStream: error ", int(code)));
    }
    fe::error_t error = p.graph.execute(library.handle, p.places, fromHandle<void>(rest));
    return error.is_good()
               ? nullptr
               : say(concat("cudnnBackendExecute of an attention: ", error.get_message()));
  }

  Result move(size_t role) const {
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

  Result finish() const {
    Result failed = p.attention.isBackward ? nullptr : moveLse(/*isOut=*/true);
    for (size_t role = 0; !failed && role < p.attention.roles(); ++role) {
      if (!p.attention.isResult(role) || role == Attention::Lse) {
        continue;
      }
      Rows rows = rowsOf(p, role);
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

/// Loads a library that others then find by its name, wherever it lies.
void *preload(const std::string &file, std::string &error) {
  void *found = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!found) {
    fail(error, "cannot load ", file, ", which cuDNN's attention is compiled with: ", dlerror());
  }
  return found;
}

/// What `cudnn` compiles attention with, of the CUDA that it was built for. It would look for these
/// later, and in fewer places.
bool loadCompiler(void *cudnn, std::string &error) {
  auto builtFor =
      reinterpret_cast<decltype(&cudnnGetCudartVersion)>(dlsym(cudnn, "cudnnGetCudartVersion"));
  if (!builtFor) {
    return fail(error, "cannot use libcudnn.so.9, CUDA's library of attention: ", dlerror());
  }
  std::string major = std::to_string(builtFor() / 1000);
  void *compiler = preload("libnvrtc.so." + major, error);
  if (!compiler) {
    return false;
  }
  using Version = int (*)(int *major, int *minor);
  auto versionOf = reinterpret_cast<Version>(dlsym(compiler, "nvrtcVersion"));
  int numbers[2] = {};
  if (!versionOf || versionOf(&numbers[0], &numbers[1]) != 0) {
    return fail(error, "cannot use libnvrtc.so.", major, ": it does not say its version");
  }
  return preload(concat("libnvrtc-builtins.so.", numbers[0], ".", numbers[1]), error) &&
         preload("libcudart.so." + major, error);
}

/// Whether cuDNN is there and new enough is settled by the first success.
bool findLibrary(std::string &error) {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  if (fe::cudnn_dlhandle) {
    return true;
  }
  void *found = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
  if (!found) {
    return fail(error, "cannot load libcudnn.so.9, CUDA's library of attention: ", dlerror());
  }
  auto version = reinterpret_cast<decltype(&cudnnGetVersion)>(dlsym(found, "cudnnGetVersion"));
  if (!version) {
    return fail(error, "cannot use libcudnn.so.9, CUDA's library of attention: ", dlerror());
  }
  if (size_t number = version(); number < kOldest) {
    return fail(error, "libcudnn.so.9 is version ", number / 10000, ".", number / 100 % 100, ".",
                number % 100, ", expected 9.15.1 or later");
  }
  if (!loadCompiler(found, error)) {
    return false;
  }
  fe::cudnn_dlhandle = found;
  return true;
}

Result openAttention(Device &device) {
  if (device.attention) {
    return nullptr;
  }
  auto made = std::make_unique<AttentionLibrary>();
  Result failed =
      resultOf(driver().load(&made->module, kWidenPtx, 0, nullptr, nullptr), "cuModuleLoadDataEx");
  failed = failed ? failed
                  : resultOf(driver().entry(&made->widen, made->module, "weft_widen"),
                             "cuModuleGetFunction");
  if (failed) {
    return failed;
  }
  if (cudnnStatus_t code = fe::detail::create_handle(&made->handle); code != CUDNN_STATUS_SUCCESS) {
    return say(concat("cudnnCreate on device ", device.number, ": error ", int(code)));
  }
  device.attention = made.release(); // Whole, or the next attention begins anew.
  return nullptr;
}

/// Runs what may throw.
template <typename Body> Result guarded(const Body &body) {
  try {
    return body();
  } catch (const std::exception &thrown) {
    return say(concat("cuDNN: ", thrown.what()));
  }
}

Result prepareAttention(Handle handle, const Attention *attention, const AttentionPart *part,
                        bool isDeterministic, Handle *prepared, const char **refusal) {
  *prepared = 0;
  *refusal = nullptr;
  Device *device = nullptr;
  if (Result failed = enter(handle, device)) {
    return failed;
  }
  std::string error;
  if (!findLibrary(error)) {
    *refusal = say(error);
    return nullptr;
  }
  *refusal = guarded([&]() -> Result {
    if (Result failed = openAttention(*device)) {
      return failed;
    }
    std::string reason;
    // The one that it prefers may have no engine for what the other does.
    for (auto implementation :
         {fe::AttentionImplementation_t::AUTO, fe::AttentionImplementation_t::COMPOSITE}) {
      auto made = std::make_unique<Prepared>(Prepared{*attention, *part, {}, {}});
      reason = build(*made, device->attention->handle, isDeterministic, implementation);
      if (reason.empty()) {
        *prepared = toHandle(made.release());
        return nullptr;
      }
      if (attention->isBackward) {
        break;
      }
    }
    return say(reason);
  });
  return nullptr;
}

Result freeAttention(Handle, Handle prepared) {
  delete fromHandle<Prepared>(prepared);
  return nullptr;
}

Result runAttention(Handle handle, Handle stream, Handle prepared, const Address *operands,
                    size_t) {
  Device *device = nullptr;
  if (Result failed = enter(handle, device)) {
    return failed;
  }
  return guarded([&]() -> Result {
    Run run(*device->attention, *fromHandle<Prepared>(prepared), fromHandle<CUstream_st>(stream),
            operands);
    Result failed = run.prepareLse();
    failed = failed ? failed : run.compute();
    return failed ? failed : run.finish();
  });
}

} // namespace

Result cuda::closeAttention(Device &device) {
  AttentionLibrary *library = std::exchange(device.attention, nullptr);
  if (!library) {
    return nullptr;
  }
  std::unique_ptr<AttentionLibrary> owned(library);
  return guarded([&]() -> Result {
    cudnnStatus_t code = fe::detail::destroy_handle(owned->handle);
    return code == CUDNN_STATUS_SUCCESS ? nullptr : say(concat("cudnnDestroy: error ", int(code)));
  });
}

void cuda::addAttention(Library &library) {
  library.prepareAttention = prepareAttention;
  library.freeAttention = freeAttention;
  library.runAttention = runAttention;
}
