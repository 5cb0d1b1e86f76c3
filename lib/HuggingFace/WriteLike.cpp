//===- WriteLike.cpp - writes a checkpoint folder with new parameters -----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Weights.h"
#include "checkpoint/OptimizerState.h"
#include "support/Elements.h"
#include "support/OutputFile.h"
#include "support/Text.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <cmath>
#include <map>
#include <set>

using namespace weft;
using namespace weft::hf;
using llvm::StringRef;
using Tensor = rt::SafetensorsFile::Tensor;

namespace {

/// Writes the folder. Methods return false after adding to the diagnostics.
class LikeWriter {
public:
  LikeWriter(const Folder &folder, const Weights &like, const std::string &source,
             desc::Diagnostics &diagnostics)
      : folder(folder), like(like), source(source), diagnostics(diagnostics) {
    for (const Slot &slot : folder.getSlots()) {
      slotsOf[slot.tensor].push_back(&slot);
    }
  }

  /// Lists the files to copy, and checks that none of all files is a link out of the checkpoint.
  bool listFiles();
  bool openSource();
  bool writeFile(size_t number, const std::string &target);
  bool copyTexts(const std::string &target);

private:
  bool checkPlace(const std::string &name);
  bool checkParameter(const Slot &slot);
  bool checkOthers();
  /// Returns the bytes of tensor `name` with the parameters of the source.
  bool fill(const std::string &name, const Tensor &tensor, std::vector<char> &bytes);
  bool fillSlot(const Slot &slot, const Tensor &tensor, std::vector<char> &bytes);
  bool copy(const std::string &name, const std::string &target);
  bool refuse(const desc::Diagnostic &diagnostic) {
    diagnostics.push_back(diagnostic);
    return false;
  }

  const Folder &folder;
  const Weights &like;
  const std::string &source;
  desc::Diagnostics &diagnostics;
  rt::SafetensorsFile parameters;
  std::vector<std::string> texts;
  /// By the name of the tensor.
  std::map<std::string, std::vector<const Slot *>> slotsOf;
};

bool LikeWriter::openSource() {
  if (rt::Status status = parameters.open(source); !status) {
    return refuse(inFile("", "", status.error().message));
  }
  bool fits =
      llvm::all_of(folder.getSlots(), [&](const Slot &slot) { return checkParameter(slot); });
  return fits && checkOthers();
}

bool LikeWriter::checkParameter(const Slot &slot) {
  auto found = parameters.tensors.find(slot.parameter);
  if (found == parameters.tensors.end()) {
    return refuse(inFile(source, slot.parameter,
                         "missing: the model of '" + folder.getPath() + "' has this parameter"));
  }
  if (found->second.shape != slot.shape) {
    return refuse(inFile(source, slot.parameter,
                         "expected shape " + rt::shapeText(slot.shape) + ", got " +
                             rt::shapeText(found->second.shape)));
  }
  if (!rt::floatTypeOf(found->second.dtype)) {
    return refuse(inFile(source, slot.parameter,
                         "expected type F64, F32, BF16 or F16, got " + found->second.dtype));
  }
  return true;
}

bool LikeWriter::checkOthers() {
  std::set<StringRef> known;
  for (const Slot &slot : folder.getSlots()) {
    known.insert(slot.parameter);
  }
  for (const auto &[name, tensor] : parameters.tensors) {
    // Optimizer state is called "adam_m/<parameter>".
    StringRef parameter = StringRef(name).contains('/') ? StringRef(name).split('/').second : name;
    if (!known.count(parameter) && !rt::isOfNoParameter(name)) {
      return refuse(inFile(source, readable(name),
                           "the model of '" + folder.getPath() + "' has no such parameter"));
    }
  }
  return true;
}

bool LikeWriter::fillSlot(const Slot &slot, const Tensor &tensor, std::vector<char> &bytes) {
  const Tensor &parameter = parameters.tensors.at(slot.parameter);
  rt::ElementType from = *rt::floatTypeOf(parameter.dtype), to = *rt::floatTypeOf(tensor.dtype);
  auto bytesFrom = int64_t(rt::sizeOf(from)), bytesTo = int64_t(rt::sizeOf(to));
  char *first = bytes.data() + slot.offset() * bytesTo;
  std::vector<float> row(size_t(slot.inputs));
  for (int64_t i = 0; i < slot.outputs; ++i) {
    int64_t element = (slot.skippedOutputs + i) * slot.inputs;
    rt::decode(from, parameter.data.data() + element * bytesFrom, 1, slot.inputs, row.data());
    for (float value : row) {
      if (std::isfinite(value) && std::abs(value) >= rt::leastTooLarge(to)) {
        return refuse(inFile(source, slot.parameter,
                             rt::concat("expected numbers that fit into ", tensor.dtype,
                                        ", the type of '", slot.tensor, "', got ", value)));
      }
    }
    rt::encode(to, row.data(), slot.inputs, first + i * slot.outputStride() * bytesTo,
               slot.inputStride());
  }
  return true;
}

bool LikeWriter::fill(const std::string &name, const Tensor &tensor, std::vector<char> &bytes) {
  // A head that repeats the embedding goes on repeating it.
  bool isTiedHead = name == kHeadName && folder.getConfig().model.tiedEmbeddings;
  const std::string &meant = isTiedHead ? folder.getSlots().front().tensor : name;
  return llvm::all_of(slotsOf[meant],
                      [&](const Slot *slot) { return fillSlot(*slot, tensor, bytes); });
}

bool LikeWriter::writeFile(size_t number, const std::string &target) {
  const rt::SafetensorsFile &old = *like.files[number];
  std::vector<std::pair<const std::string *, const Tensor *>> tensors;
  for (const auto &[name, tensor] : old.tensors) {
    tensors.emplace_back(&name, &tensor);
  }
  // In the order of their places; tensors without elements come first.
  llvm::sort(tensors, [](const auto &a, const auto &b) {
    return std::pair(a.second->data.data(), a.second->data.size()) <
           std::pair(b.second->data.data(), b.second->data.size());
  });
  rt::OutputFile file;
  rt::Status status = file.open(inFolder(target, like.fileNames[number]));
  status = status ? file.write(old.header()) : status;
  for (size_t i = 0; status && i < tensors.size(); ++i) {
    auto [name, tensor] = tensors[i];
    std::vector<char> bytes(tensor->data.begin(), tensor->data.end());
    if (!fill(*name, *tensor, bytes)) {
      return false;
    }
    status = file.write(bytes);
  }
  status = status ? file.commit() : status;
  return status || refuse(inFile("", "", status.error().message));
}

bool LikeWriter::copy(const std::string &name, const std::string &target) {
  rt::MappedFile from;
  rt::Status status = from.open(inFolder(folder.getPath(), name));
  status = status ? rt::writeFile(inFolder(target, name), from.bytes()) : status;
  return status || refuse(inFile("", "", status.error().message));
}

/// Returns true for files of a checkpoint that do not depend on its weights: configs, tokenizers,
/// templates, but not an index of weights in another format.
bool isText(StringRef name) {
  return name == kIndexName || (llvm::is_contained({".json", ".txt", ".model", ".jinja"},
                                                   llvm::sys::path::extension(name)) &&
                                !name.ends_with(".index.json"));
}

/// Returns the folders where the files of a checkpoint may be: its own, and the files of the model
/// in a cache of the Hugging Face hub, in which snapshots/REVISION has links to ../../blobs. Both
/// are without links.
std::vector<std::string> placesOf(const std::string &folder) {
  namespace path = llvm::sys::path;
  llvm::SmallString<128> own;
  if (llvm::sys::fs::real_path(folder, own)) {
    return {};
  }
  std::vector<std::string> places = {own.str().str()};
  StringRef snapshots = path::parent_path(own);
  if (path::filename(snapshots) == "snapshots") {
    llvm::SmallString<128> blobs(path::parent_path(snapshots)), real;
    path::append(blobs, "blobs");
    if (!llvm::sys::fs::real_path(blobs, real) && real == blobs) {
      places.push_back(blobs.str().str());
    }
  }
  return places;
}

/// A link could bring any file of this user's into the export, of which others may get copies.
bool LikeWriter::checkPlace(const std::string &name) {
  std::string file = inFolder(folder.getPath(), name);
  llvm::SmallString<128> real;
  if (std::error_code code = llvm::sys::fs::real_path(file, real)) {
    return refuse(inFile(file, "", "cannot be read: " + code.message()));
  }
  bool isInside = llvm::any_of(placesOf(folder.getPath()), [&](StringRef place) {
    return real.str().starts_with((place + "/").str());
  });
  return isInside ||
         refuse(inFile(file, "",
                       "expected a file of the checkpoint, or of its cache of the Hugging Face "
                       "hub, got a symbolic link to '" +
                           real.str().str() + "'"));
}

bool LikeWriter::listFiles() {
  std::error_code code;
  for (llvm::sys::fs::directory_iterator entry(folder.getPath(), code), end; entry != end && !code;
       entry.increment(code)) {
    std::string name = llvm::sys::path::filename(entry->path()).str();
    if (isText(name) && llvm::sys::fs::is_regular_file(entry->path())) {
      texts.push_back(name);
    }
  }
  if (code) {
    return refuse(inFile("", "", "cannot read '" + folder.getPath() + "': " + code.message()));
  }
  llvm::sort(texts);
  auto check = [&](const std::string &name) { return checkPlace(name); };
  return llvm::all_of(texts, check) && llvm::all_of(like.fileNames, check);
}

bool LikeWriter::copyTexts(const std::string &target) {
  return llvm::all_of(texts, [&](const std::string &name) { return copy(name, target); });
}

} // namespace

desc::Diagnostics Folder::writeLike(const std::string &source, const std::string &target) const {
  desc::Diagnostics diagnostics;
  LikeWriter writer(*this, *weights, source, diagnostics);
  bool ok = writer.listFiles() && writer.openSource();
  for (size_t i = 0; ok && i < weights->files.size(); ++i) {
    ok = writer.writeFile(i, target);
  }
  if (ok) {
    writer.copyTexts(target);
  }
  return diagnostics;
}
