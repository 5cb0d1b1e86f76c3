//===- Checkpoint.cpp - a program's tensors in files ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "checkpoint/Checkpoint.h"

#include "checkpoint/FiniteTensors.h"
#include "checkpoint/OptimizerState.h"
#include "execution/CollectedBytes.h"
#include "program/OwnedTensors.h"
#include "program/Shards.h"
#include "support/CheckedMath.h"
#include "support/Elements.h"
#include "support/OutputFile.h"
#include "support/Text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>
#include <set>

using namespace weft::rt;

Result<bool> weft::rt::saveTensors(const std::string &path,
                                   const std::vector<TensorHeader> &tensors,
                                   const std::map<std::string, std::string> &metadata,
                                   const std::function<bool(size_t, std::span<char>)> &read) {
  OutputFile file;
  if (Status status = file.open(path); !status) {
    return status.error();
  }
  if (Status status = file.write(safetensorsHeader(tensors, metadata)); !status) {
    return status.error();
  }
  std::vector<char> bytes;
  for (size_t i = 0; i < tensors.size(); ++i) {
    TensorLayout whole = {tensors[i].type, tensors[i].shape, {}};
    bytes.resize(globalBytes(whole));
    if (!read(i, bytes)) {
      return false;
    }
    if (Status status = file.write(bytes); !status) {
      return status.error();
    }
  }
  if (Status status = file.commit(); !status) {
    return status.error();
  }
  return true;
}

/// Assembles the parts of a tensor in `whole`, on rank 0. `own` is empty if another rank sends the
/// same part.
static bool collectTensor(const TensorInParts &tensor, Communicator &link,
                          std::span<const char> own, std::span<char> whole) {
  const TensorLayout &layout = *tensor.layout;
  const Program &program = *tensor.owner;
  size_t partBytes = elementCount(localShape(layout, program.mesh)) * sizeOf(layout.type);
  return link.collect(own, [&](int64_t rank, std::span<const char> bytes) {
    if (!bytes.empty() && program.ranks().has(rank) && hasSize(link, rank, bytes, partBytes)) {
      gatherShard(layout, program.mesh, program.coordinatesOf(rank), bytes.data(), whole.data());
    }
  });
}

bool weft::rt::saveParts(const std::string &path, const Executor &executor,
                         const std::vector<TensorInParts> &tensors,
                         const std::function<BufferView(size_t)> &part, int64_t step) {
  auto collect = [&](size_t i, std::span<char> whole) {
    const TensorLayout &layout = *tensors[i].layout;
    std::optional<BufferView> own;
    if (tensors[i].owner->ranks().has(executor.rank()) &&
        holdsFirstCopy(layout, executor.coordinates())) {
      own.emplace(part(i));
    }
    if (!collectTensor(tensors[i], executor.communicator(),
                       own ? own->bytes() : std::span<const char>(), whole)) {
      return false;
    }
    if (!tensors[i].mustBeFinite) {
      return true;
    }
    Region region = {std::vector<int64_t>(layout.globalShape.size()), layout.globalShape};
    auto reason = notFiniteText(tensors[i].name, layout.type, region, whole, 0, step);
    return !reason ||
           executor.communicator().fail(*reason + ": nothing of it is saved", ExitCode::NotFinite);
  };
  if (executor.rank() != 0) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (!collect(i, {})) {
        return false;
      }
    }
    return true;
  }
  std::vector<TensorHeader> headers;
  for (const TensorInParts &tensor : tensors) {
    headers.push_back({tensor.name, tensor.layout->type, tensor.layout->globalShape});
  }
  std::map<std::string, std::string> metadata = {
      {"format", "weft"}, {"step", std::to_string(step)}, {"plan", executor.planHash()}};
  Result<bool> isSaved = saveTensors(path, headers, metadata, collect);
  // If `collect` returned false, the communicator knows the reason.
  return isSaved ? *isSaved : executor.communicator().fail(isSaved.error().message);
}

bool weft::rt::saveCheckpoint(const std::string &path, std::span<const Program> programs,
                              const Executor &executor, int64_t step) {
  std::vector<TensorInParts> tensors;
  std::vector<uint32_t> buffers;
  for (auto [tensor, owner] : savedTensorsOf(programs)) {
    tensors.push_back({tensor->name, &tensor->layout, owner, true});
    buffers.push_back(tensor->buffer);
  }
  auto part = [&](size_t i) { return executor.view(buffers[i]); };
  return saveParts(path, executor, tensors, part, step);
}

Status Checkpoint::open(const std::string &path, std::span<const Program> programs) {
  this->path = path;
  if (Status status = file.open(path); !status) {
    return status;
  }
  for (auto [parameter, owner] : parametersOf(programs)) {
    if (!file.tensors.count(parameter->name)) {
      return makeError("'", path, "' lacks the parameter '", parameter->name, "'");
    }
    if (Status status = checkTensor(*parameter); !status) {
      return status;
    }
  }
  if (Status status = checkNames(programs); !status) {
    return status;
  }
  if (Status status = checkState(programs); !status) {
    return status;
  }
  if (Status status = readStep(programs); !status) {
    return status;
  }
  if (rounded > 0) {
    remark += concat("'", path, "': rounded ", rounded, " tensors from F64 to F32\n");
  }
  return {};
}

/// Returns the first of `count` numbers that is too large for a float, or null. They are not
/// aligned.
static std::optional<double> firstTooLarge(const char *numbers, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    double number;
    std::memcpy(&number, numbers + i * sizeof(number), sizeof(number));
    if (std::isfinite(number) && std::abs(number) >= leastTooLarge(ElementType::F32)) {
      return number;
    }
  }
  return std::nullopt;
}

Status Checkpoint::checkTensor(const NamedTensor &tensor) {
  const SafetensorsFile::Tensor &found = file.tensors.at(tensor.name);
  std::optional<ElementType> type = floatTypeOf(found.dtype);
  if (!type) {
    return makeError("'", tensor.name, "' in '", path, "' is ", found.dtype,
                     ", expected F64, F32, BF16 or F16");
  }
  if (found.shape != tensor.layout.globalShape) {
    return makeError("'", tensor.name, "' in '", path, "' has shape ", shapeText(found.shape),
                     ", expected ", shapeText(tensor.layout.globalShape));
  }
  if (*type == ElementType::F64 && tensor.layout.type == ElementType::F32) {
    ++rounded;
    if (auto number = firstTooLarge(found.data.data(), found.data.size() / sizeof(double))) {
      return makeError("'", tensor.name, "' in '", path, "' has ", *number,
                       ", expected numbers that fit into F32, the type of the program");
    }
  }
  return {};
}

Status Checkpoint::checkNames(std::span<const Program> programs) {
  std::set<std::string> known, parameters;
  for (auto [tensor, owner] : parametersOf(programs)) {
    parameters.insert(tensor->name);
  }
  known = parameters;
  for (auto [tensor, owner] : optimizerStateOf(programs)) {
    known.insert(tensor->name);
  }
  size_t passedOver = 0;
  for (const auto &[name, tensor] : file.tensors) {
    if (known.count(name)) {
      continue;
    }
    // "adam_m/<parameter>" in a program with another optimizer.
    size_t slash = name.find('/');
    bool isState = slash != std::string::npos && parameters.count(name.substr(slash + 1));
    if (!isState && !isOfNoParameter(name)) {
      return makeError("'", path, "' has the tensor '", name, "', which the model does not have");
    }
    ++passedOver;
  }
  if (passedOver > 0) {
    remark += concat("'", path, "': passed over ", passedOver,
                     " tensors of optimizer state that this program does not have\n");
  }
  return {};
}

Status Checkpoint::checkState(std::span<const Program> programs) {
  const NamedTensor *present = nullptr, *absent = nullptr;
  for (auto [state, owner] : optimizerStateOf(programs)) {
    bool there = file.tensors.count(state->name) != 0;
    (there ? present : absent) = state;
    if (there) {
      if (Status status = checkTensor(*state); !status) {
        return status;
      }
    }
  }
  if (present && absent) {
    return makeError("'", path, "' has the optimizer state '", present->name, "' but lacks '",
                     absent->name, "'");
  }
  hasState = !absent;
  if (absent) {
    remark += concat("'", path, "': no optimizer state, which starts at zero, as does the step\n");
  }
  return {};
}

Status Checkpoint::readStep(std::span<const Program> programs) {
  auto found = file.metadata.find("step");
  if (!hasState) {
    return {};
  }
  if (found == file.metadata.end()) {
    if (!optimizerStateOf(programs).empty()) {
      return makeError("'", path,
                       "' has optimizer state but no metadata 'step', expected the number "
                       "of steps that it has seen");
    }
    return {};
  }
  const std::string &text = found->second;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), step);
  if (code != std::errc() || end != text.data() + text.size() || step < 0) {
    return makeError("'", path, "' has the metadata step '", text, "', expected a number");
  }
  return {};
}

void Checkpoint::loadTensor(const NamedTensor &tensor, const Program &program,
                            Executor &executor) const {
  const SafetensorsFile::Tensor &found = file.tensors.at(tensor.name);
  const TensorLayout &layout = tensor.layout;
  BufferDraft part = executor.draft(tensor.buffer);
  if (found.dtype == safetensorsName(layout.type)) {
    scatterShard(layout, program.mesh, executor.coordinates(), found.data.data(), part.data());
    return;
  }
  // Copies the part as the file stores it, then converts each element.
  ElementType type = *floatTypeOf(found.dtype);
  Region whole = {std::vector<int64_t>(found.shape.size(), 0), found.shape};
  Region own = localRegion(layout, program.mesh, executor.coordinates());
  auto count = static_cast<int64_t>(elementCount(own.shape));
  std::vector<char> stored(size_t(count) * sizeOf(type)); // Padding is zero in every type.
  copyOverlap(whole, found.data.data(), own, stored.data(), sizeOf(type));
  if (layout.type == ElementType::F32) {
    decode(type, stored.data(), 1, count, static_cast<float *>(part.data()));
    return;
  }
  std::vector<float> values(size_t(count), 0.0F); // Has all bits of what is not F64.
  decode(type, stored.data(), 1, count, values.data());
  std::copy(values.begin(), values.end(), static_cast<double *>(part.data()));
}

void Checkpoint::load(const Program &program, Executor &executor) const {
  for (const auto *list : {&program.parameters, &program.optimizerState}) {
    for (const NamedTensor &tensor : *list) {
      if (file.tensors.count(tensor.name)) {
        loadTensor(tensor, program, executor);
      } else {
        executor.zero(tensor.buffer);
      }
    }
  }
}
