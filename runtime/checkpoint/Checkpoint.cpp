//===- Checkpoint.cpp - a program's tensors in files ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "checkpoint/Checkpoint.h"

#include "checkpoint/FiniteTensors.h"
#include "checkpoint/MappedTensors.h"
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

/// Calls `visit` with the slabs of a whole tensor until it returns false; returns what it returned
/// last.
static bool forEachSlabOf(std::span<const int64_t> shape, ElementType type,
                          const std::function<bool(const Region &)> &visit) {
  bool goesOn = true;
  forEachSlab(wholeRegion(shape), sizeOf(type),
              [&](const Region &slab, size_t) { goesOn = goesOn && visit(slab); });
  return goesOn;
}

Result<bool> weft::rt::saveTensors(const std::string &path,
                                   const std::vector<TensorHeader> &tensors,
                                   const std::map<std::string, std::string> &metadata,
                                   const ReadSlab &read) {
  OutputFile file;
  if (Status status = file.open(path); !status) {
    return status.error();
  }
  Status written = file.write(safetensorsHeader(tensors, metadata));
  bool isRead = true;
  std::vector<char> bytes;
  for (size_t i = 0; i < tensors.size() && isRead && written; ++i) {
    forEachSlabOf(tensors[i].shape, tensors[i].type, [&](const Region &slab) {
      bytes.resize(elementCount(slab.shape) * sizeOf(tensors[i].type));
      isRead = read(i, slab, bytes);
      written = isRead ? file.write(bytes) : Status();
      return isRead && written;
    });
  }
  if (!isRead) {
    return false;
  }
  if (!written) {
    return written.error();
  }
  if (Status status = file.commit(); !status) {
    return status.error();
  }
  return true;
}

namespace {

/// The rows of a rank's part of a tensor that lie in a slab.
RowsInSlab partOfSlab(const TensorInParts &tensor, int64_t rank, const Region &slab) {
  Region part = localRegion(*tensor.layout, tensor.owner->mesh, tensor.owner->coordinatesOf(rank));
  return rowsInSlab(part, slab, sizeOf(tensor.layout->type));
}

/// Assembles the parts of a slab in `bytes`, on rank 0. `own` is empty if another rank sends the
/// same part.
bool collectSlab(const TensorInParts &tensor, Communicator &link, const Region &slab,
                 std::span<const char> own, std::span<char> bytes) {
  return link.collect(own, [&](int64_t rank, std::span<const char> given) {
    if (given.empty() || !tensor.owner->ranks().has(rank)) {
      return;
    }
    RowsInSlab part = partOfSlab(tensor, rank, slab);
    if (hasSize(link, rank, given, part.count)) {
      copyOverlap(part.region, given.data(), slab, bytes.data(), sizeOf(tensor.layout->type));
    }
  });
}

} // namespace

bool weft::rt::saveParts(const std::string &path, const Executor &executor,
                         const std::vector<TensorInParts> &tensors,
                         const std::function<BufferView(size_t, uint64_t, uint64_t)> &part,
                         int64_t step) {
  auto collect = [&](size_t i, const Region &slab, std::span<char> bytes) {
    const TensorInParts &tensor = tensors[i];
    std::optional<BufferView> own;
    if (tensor.owner->ranks().has(executor.rank()) &&
        holdsFirstCopy(*tensor.layout, executor.coordinates())) {
      RowsInSlab mine = partOfSlab(tensor, executor.rank(), slab);
      if (mine.count > 0) {
        own.emplace(part(i, mine.begin, mine.count));
      }
    }
    if (!collectSlab(tensor, executor.communicator(), slab,
                     own ? own->bytes() : std::span<const char>(), bytes)) {
      return false;
    }
    if (!tensor.mustBeFinite || executor.rank() != 0) {
      return true;
    }
    auto reason = notFiniteText(tensor.name, tensor.layout->type, slab, bytes, 0, step);
    return !reason ||
           executor.communicator().fail(*reason + ": nothing of it is saved", ExitCode::NotFinite);
  };
  if (executor.rank() != 0) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      const TensorLayout &layout = *tensors[i].layout;
      if (!forEachSlabOf(layout.globalShape, layout.type,
                         [&](const Region &slab) { return collect(i, slab, {}); })) {
        return false;
      }
    }
    return true;
  }
  std::vector<TensorHeader> headers;
  headers.reserve(tensors.size());
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
  auto part = [&](size_t i, uint64_t begin, uint64_t count) {
    return executor.view(buffers[i], begin, count);
  };
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
    std::optional<double> number;
    file.mapped().readInParts(found.data, [&](std::span<const char> part) {
      number = firstTooLarge(part.data(), part.size() / sizeof(double));
      return !number;
    });
    if (number) {
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
  MappedTensor stored = {&file, &found, wholeRegion(found.shape)};
  Region own = localRegion(layout, program.mesh, executor.coordinates());
  if (!layout.paddedShape.empty()) {
    std::memset(part.data(), 0, part.bytes().size());
  }
  if (found.dtype == safetensorsName(layout.type)) {
    return stored.copy(own, part.data(), sizeOf(layout.type));
  }
  // Converts each element of what the file stores. Padding is zero in every type.
  ElementType type = *floatTypeOf(found.dtype);
  int64_t done = 0;
  std::vector<float> values;
  stored.copyInSlabs(own, sizeOf(type), [&](std::span<const char> bytes) {
    auto count = int64_t(bytes.size() / sizeOf(type));
    if (layout.type == ElementType::F32) {
      decode(type, bytes.data(), 1, count, static_cast<float *>(part.data()) + done);
    } else {
      values.resize(size_t(count)); // Have all bits of what is not F64.
      decode(type, bytes.data(), 1, count, values.data());
      std::copy(values.begin(), values.end(), static_cast<double *>(part.data()) + done);
    }
    done += count;
  });
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
