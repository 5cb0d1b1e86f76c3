//===- AttentionGraph.cpp - a part of attention in cuDNN -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Only this file includes cudnn_frontend, which takes half a minute to compile. It throws if
// a library lacks a function; no exception leaves this file.
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/AttentionGraph.h"
#include "backends/cuda/LibraryNames.h"
#include "support/CheckedMath.h"
#include "support/Text.h"

#define NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#include <cudnn_frontend.h>

#include <dlfcn.h>
#include <mutex>

namespace fe = cudnn_frontend;
using namespace weft::rt;
using namespace weft::rt::cuda;

// cudnn_frontend looks up cuDNN's functions by this handle.
void *cudnn_frontend::cudnn_dlhandle = nullptr;

namespace {

/// The first version without the errors for which other projects avoid cuDNN: gradients that are
/// NaN and reads beyond the keys (TransformerEngine#2344), and padding that must be masked
/// (cudnn-frontend#178).
constexpr size_t kOldest = 91501;

using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;
using Graph = std::shared_ptr<fe::graph::Graph>;

/// Returns the first reason in cuDNN's message, which has lines for each engine that it tried.
std::string reasonOf(const std::string &message) {
  constexpr std::string_view kMark = "Reason: ";
  size_t mark = message.find(kMark);
  size_t begin = mark == std::string::npos ? 0 : mark + kMark.size();
  return message.substr(begin, message.find('\n', begin) - begin);
}

/// Runs `body` and returns its status, or the text of its exception.
template <typename Body> Status guarded(const Body &body) {
  try {
    return body();
  } catch (const std::exception &thrown) {
    return makeError("cuDNN: ", thrown.what());
  }
}

//===----------------------------------------------------------------------===//
// Scores that count
//===----------------------------------------------------------------------===//

/// Returns the alignment at which the last query sees the last key.
fe::DiagonalAlignment_t alignmentOf(const AttentionPart &part) {
  return part.keys == part.queries ? fe::DiagonalAlignment_t::TOP_LEFT
                                   : fe::DiagonalAlignment_t::BOTTOM_RIGHT;
}

/// Hides scores, which cuDNN computes in tiles of queries by keys.
class Mask {
public:
  Mask(const AttentionPart &part, Graph graph, Tensor starts)
      : part(part), graph(std::move(graph)), starts(std::move(starts)),
        hidden(std::make_shared<fe::graph::Tensor_attributes>(kHidden)) {}

  Tensor operator()(Tensor scores) const {
    Tensor key = graph->pointwise(
        scores, integers("key").set_mode(fe::PointwiseMode_t::GEN_INDEX).set_axis(3));
    key->set_data_type(fe::DataType_t::INT32);
    const auto &[first, second] = part.runs;
    Tensor seen = fromStart(scores, key, first.position);
    if (second.keys > 0) {
      Tensor later = fromStart(scores, key, second.position - first.keys);
      seen = select(later, seen, isNotBelow(key, number(first.keys)));
    }
    return part.isCausal ? upToOwn(seen) : seen;
  }

private:
  /// The score of hidden keys. It is not infinite, since cuDNN would divide by 0 for a query that
  /// sees none of the part's keys; such rows count nothing, as e to this power is 0. It is a power
  /// of two, since on sm_100 cuDNN subtracts the greatest score by a fused operation, in which
  /// products of other numbers do not cancel.
  static constexpr float kHidden = -0x1p100f;

  static fe::graph::Pointwise_attributes integers(const char *name) {
    return fe::graph::Pointwise_attributes().set_name(name).set_compute_data_type(
        fe::DataType_t::INT32);
  }
  static Tensor number(int64_t value) {
    return std::make_shared<fe::graph::Tensor_attributes>(int32_t(value));
  }
  Tensor isNotBelow(const Tensor &a, const Tensor &b) const {
    auto options = fe::graph::Pointwise_attributes().set_name("seen");
    options.set_mode(fe::PointwiseMode_t::CMP_GE).set_compute_data_type(fe::DataType_t::BOOLEAN);
    Tensor result = graph->pointwise(a, b, options);
    result->set_data_type(fe::DataType_t::BOOLEAN);
    return result;
  }
  Tensor select(const Tensor &a, const Tensor &otherwise, const Tensor &where) const {
    auto options = fe::graph::Pointwise_attributes().set_name("scores");
    options.set_mode(fe::PointwiseMode_t::BINARY_SELECT);
    Tensor result = graph->pointwise(a, otherwise, where, options);
    result->set_data_type(fe::DataType_t::FLOAT);
    return result;
  }

  /// Hides keys before the query's document. Key 0 is at `position`.
  Tensor fromStart(const Tensor &scores, const Tensor &key, int64_t position) const {
    Tensor at = graph->pointwise(key, number(position),
                                 integers("position").set_mode(fe::PointwiseMode_t::ADD));
    at->set_data_type(fe::DataType_t::INT32);
    return select(scores, hidden, isNotBelow(at, starts));
  }
  /// Hides keys outside a band as cudnn_frontend does: cuDNN recognizes this mask and skips tiles.
  Tensor upToOwn(const Tensor &scores) const {
    std::optional<int64_t> left;
    if (part.window > 0) {
      left = part.window;
    }
    return fe::graph::attn::score_modifiers::sliding_window_mask(
        graph, scores, alignmentOf(part), left, 0, part.queries, part.keys, nullptr, nullptr);
  }

  const AttentionPart &part;
  Graph graph;
  Tensor starts, hidden;
};

//===----------------------------------------------------------------------===//
// The graph
//===----------------------------------------------------------------------===//

class CudnnGraph : public AttentionGraph {
public:
  CudnnGraph(const Attention &attention, const AttentionPart &part)
      : attention(attention), part(part) {}

  uint64_t workspaceBytes() const override { return uint64_t(needed); }
  Status run(cudnnHandle_t handle, CUstream stream, const Places &places,
             CUdeviceptr workspace) override;
  /// `implementation` is for the direction that has several.
  Status build(const AttentionTarget &target, bool isDeterministic, int64_t workspace,
               fe::AttentionImplementation_t implementation);

private:
  static int64_t numberOf(size_t role) { return int64_t(role) + 1; }
  void setShape(fe::graph::Tensor_attributes &tensor, size_t role) const;
  Tensor input(size_t role);
  template <typename Options> void setMask(Options &options);
  void describeForward(fe::AttentionImplementation_t implementation);
  void describeBackward(bool isDeterministic);

  const Attention attention;
  const AttentionPart part;
  fe::graph::Graph graph;
  int64_t needed = 0;
  std::unordered_map<int64_t, void *> at;
};

void CudnnGraph::setShape(fe::graph::Tensor_attributes &tensor, size_t role) const {
  AttentionRows rows = rowsOf(attention, part, role);
  tensor.set_uid(numberOf(role));
  if (role == Attention::Lse) {
    tensor.set_dim({attention.batch, rows.heads, rows.count, 1})
        .set_stride({rows.heads * rows.count, rows.count, 1, 1})
        .set_data_type(fe::DataType_t::FLOAT);
    return;
  }
  int64_t position = rows.heads * rows.features;
  tensor.set_dim({attention.batch, rows.heads, rows.count, rows.features})
      .set_stride({rows.length * position, rows.features, position, 1})
      .set_data_type(fe::DataType_t::BFLOAT16);
}

Tensor CudnnGraph::input(size_t role) {
  fe::graph::Tensor_attributes tensor;
  setShape(tensor, role);
  return graph.tensor(tensor);
}

/// `Options` are the two directions' attributes, which have no class in common.
template <typename Options> void CudnnGraph::setMask(Options &options) {
  if (attention.starts) {
    Tensor starts = graph.tensor(fe::graph::Tensor_attributes()
                                     .set_uid(numberOf(kStarts))
                                     .set_dim({attention.batch, 1, part.queries, 1})
                                     .set_stride({attention.queries, attention.queries, 1, 1})
                                     .set_alignment(4)
                                     .set_data_type(fe::DataType_t::INT32));
    options.set_score_mod([this, starts](Graph scope, Tensor scores) {
      return Mask(part, std::move(scope), starts)(std::move(scores));
    });
    return; // With a mask of its own a graph has no others.
  }
  if (!part.isCausal) {
    return;
  }
  options.set_diagonal_alignment(alignmentOf(part));
  options.set_diagonal_band_right_bound(0);
  if (part.window > 0) {
    options.set_diagonal_band_left_bound(int(part.window));
  }
}

void CudnnGraph::describeForward(fe::AttentionImplementation_t implementation) {
  auto options = fe::graph::SDPA_attributes().set_name("attention").set_generate_stats(true);
  options.set_implementation(implementation);
  options.set_attn_scale(float(attention.scale));
  setMask(options);
  auto [output, lse] =
      graph.sdpa(input(Attention::Query), input(Attention::Key), input(Attention::Value), options);
  setShape(output->set_output(true), Attention::Output);
  setShape(lse->set_output(true), Attention::Lse);
}

void CudnnGraph::describeBackward(bool isDeterministic) {
  auto options = fe::graph::SDPA_backward_attributes().set_name("attention_gradient");
  options.set_attn_scale(float(attention.scale));
  options.set_deterministic_algorithm(isDeterministic);
  setMask(options);
  auto [query, key, value] = graph.sdpa_backward(
      input(Attention::Query), input(Attention::Key), input(Attention::Value),
      input(Attention::Output), input(Attention::Gradient), input(Attention::Lse), options);
  setShape(query->set_output(true), Attention::QueryGradient);
  setShape(key->set_output(true), Attention::KeyGradient);
  setShape(value->set_output(true), Attention::ValueGradient);
}

Status CudnnGraph::build(const AttentionTarget &target, bool isDeterministic, int64_t workspace,
                         fe::AttentionImplementation_t implementation) {
  graph.set_io_data_type(fe::DataType_t::BFLOAT16)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  fe::error_t error;
  if (!target.handle) {
    auto properties = std::make_shared<fe::DeviceProperties>();
    error = properties->deserialize({target.properties.begin(), target.properties.end()});
    graph.set_device_properties(properties);
    graph.set_sm_version(target.architecture);
  }
  attention.isBackward ? describeBackward(isDeterministic) : describeForward(implementation);
  error = error.is_good() ? graph.validate() : error;
  error = error.is_good() ? graph.build_operation_graph(target.handle) : error;
  error = error.is_good() ? graph.create_execution_plans({fe::HeurMode_t::A}) : error;
  if (error.is_good()) {
    graph.deselect_workspace_greater_than(workspace);
    error = graph.check_support();
  }
  error = error.is_good() ? graph.build_plans() : error;
  error = error.is_good() ? graph.get_workspace_size(needed) : error;
  if (error.is_bad()) {
    return makeError("cuDNN refuses: ", reasonOf(error.get_message()), ", with a workspace of ",
                     bytesText(uint64_t(workspace)));
  }
  return needed <= workspace ? Status()
                             : makeError("cuDNN needs a workspace of ", bytesText(uint64_t(needed)),
                                         ", the program has ", bytesText(uint64_t(workspace)));
}

Status CudnnGraph::run(cudnnHandle_t handle, CUstream stream, const Places &places,
                       CUdeviceptr workspace) {
  return guarded([&]() -> Status {
    for (size_t role = 0; role < attention.roles(); ++role) {
      at[numberOf(role)] = reinterpret_cast<void *>(places[role]);
    }
    if (attention.starts) {
      at[numberOf(kStarts)] = reinterpret_cast<void *>(places[kStarts]);
    }
    cudnnStatus_t code = fe::detail::set_stream(handle, reinterpret_cast<cudaStream_t>(stream));
    if (code != CUDNN_STATUS_SUCCESS) {
      return makeError("cudnnSetStream: error ", int(code));
    }
    fe::error_t error = graph.execute(handle, at, reinterpret_cast<void *>(workspace));
    return error.is_good()
               ? Status()
               : makeError("cudnnBackendExecute of an attention: ", error.get_message());
  });
}

//===----------------------------------------------------------------------===//
// The library
//===----------------------------------------------------------------------===//

/// Loads a library from `file`, so that others then find it by its name.
Result<void *> preload(const std::string &file) {
  void *found = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!found) {
    return makeError("cannot load ", file,
                     ", which cuDNN's attention is compiled with: ", dlerror());
  }
  return found;
}

/// Loads the compiler libraries that `cudnn` needs, of the CUDA that it was built for. cuDNN would
/// load them later, and look in fewer places.
Status loadCompiler(void *cudnn) {
  auto builtFor =
      reinterpret_cast<decltype(&cudnnGetCudartVersion)>(dlsym(cudnn, "cudnnGetCudartVersion"));
  if (!builtFor) {
    return makeError("cannot use libcudnn.so.9, CUDA's library of attention: ", dlerror());
  }
  std::string major = std::to_string(builtFor() / 1000);
  Result<void *> compiler = preload("libnvrtc.so." + major);
  if (!compiler) {
    return compiler.error();
  }
  using Version = int (*)(int *major, int *minor);
  auto versionOf = reinterpret_cast<Version>(dlsym(*compiler, "nvrtcVersion"));
  int numbers[2] = {};
  if (!versionOf || versionOf(&numbers[0], &numbers[1]) != 0) {
    return makeError("cannot use libnvrtc.so.", major, ": it does not report its version");
  }
  for (const std::string &file :
       {concat("libnvrtc-builtins.so.", numbers[0], ".", numbers[1]), "libcudart.so." + major}) {
    if (Result<void *> loaded = preload(file); !loaded) {
      return loaded.error();
    }
  }
  return {};
}

} // namespace

Status cuda::findCudnn() {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  if (fe::cudnn_dlhandle) {
    return {};
  }
  Result<LoadedLibrary> library = openLibrary(kAttention);
  if (!library) {
    return library.error();
  }
  void *found = library->handle;
  auto version = reinterpret_cast<decltype(&cudnnGetVersion)>(dlsym(found, "cudnnGetVersion"));
  if (!version) {
    return makeError("cannot use libcudnn.so.9, CUDA's library of attention: ", dlerror());
  }
  if (size_t number = version(); number < kOldest) {
    return makeError("libcudnn.so.9 is version ", number / 10000, ".", number / 100 % 100, ".",
                     number % 100, ", expected 9.15.1 or later");
  }
  if (Status status = loadCompiler(found); !status) {
    return status;
  }
  fe::cudnn_dlhandle = found;
  return {};
}

Result<cudnnHandle_t> cuda::openCudnn() {
  cudnnHandle_t handle = nullptr;
  Status status = guarded([&]() -> Status {
    cudnnStatus_t code = fe::detail::create_handle(&handle);
    return code == CUDNN_STATUS_SUCCESS ? Status() : makeError("cudnnCreate: error ", int(code));
  });
  if (!status) {
    return status.error();
  }
  return handle;
}

Status cuda::closeCudnn(cudnnHandle_t handle) {
  return guarded([&]() -> Status {
    cudnnStatus_t code = fe::detail::destroy_handle(handle);
    return code == CUDNN_STATUS_SUCCESS ? Status() : makeError("cudnnDestroy: error ", int(code));
  });
}

AttentionRows cuda::rowsOf(const Attention &a, const AttentionPart &part, size_t role) {
  bool isOfKeys = role == Attention::Key || role == Attention::Value ||
                  role == Attention::KeyGradient || role == Attention::ValueGradient;
  bool isOfValues = role == Attention::Value || role == Attention::ValueGradient ||
                    role == Attention::Output || role == Attention::Gradient;
  int64_t features = isOfValues ? a.valueFeatures : a.features;
  return isOfKeys ? AttentionRows{a.keyHeads, features, a.keys, part.firstKey, part.keys}
                  : AttentionRows{a.keyHeads * a.group, features, a.queries, part.firstQuery,
                                  part.queries};
}

uint64_t cuda::stagedBytes(const Attention &a) {
  auto rounded = [](uint64_t bytes) {
    return (bytes + kStagedPart - 1) / kStagedPart * kStagedPart;
  };
  uint64_t bytes = rounded(elementCount(a.shapeOf(Attention::Lse)) * 4);
  for (size_t role = 0; role < a.roles(); ++role) {
    bytes += a.isResult(role) && a.isStaged(role) ? rounded(elementCount(a.shapeOf(role)) * 2) : 0;
  }
  return bytes;
}

Result<std::unique_ptr<AttentionGraph>>
AttentionGraph::make(const Attention &attention, const AttentionPart &part,
                     const AttentionTarget &target, bool isDeterministic, uint64_t workspace) {
  Status status;
  // cuDNN's preferred implementation may lack an engine that another one has.
  for (auto implementation :
       {fe::AttentionImplementation_t::AUTO, fe::AttentionImplementation_t::COMPOSITE}) {
    auto made = std::make_unique<CudnnGraph>(attention, part);
    status = guarded(
        [&] { return made->build(target, isDeterministic, int64_t(workspace), implementation); });
    if (status) {
      return std::unique_ptr<AttentionGraph>(std::move(made));
    }
    if (attention.isBackward) {
      break;
    }
  }
  return status.error();
}
