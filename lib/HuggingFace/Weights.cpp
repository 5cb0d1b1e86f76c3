//===- Weights.cpp - the tensors of a checkpoint folder -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Weights.h"

#include "support/Elements.h"
#include "support/Text.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <set>

using namespace weft;
using namespace weft::hf;
using llvm::StringRef;

namespace {

/// A config is a few KiB, an index of a thousand layers some MiB.
constexpr uint64_t kLargestText = 64 << 20;

/// The file of each tensor by the index.
using Index = std::map<std::string, std::string>;

/// Returns true if `name` is that of a file beside the index, not a path to another folder.
bool isPlainName(StringRef name) {
  return !name.empty() && name != "." && name != ".." &&
         llvm::all_of(name, [](char c) { return llvm::isPrint(c) && c != '/' && c != '\\'; });
}

Index readIndex(const std::string &file, desc::Diagnostics &diagnostics) {
  desc::Result<std::string> text = readText(file);
  if (!text) {
    diagnostics = text.diagnostics();
    return {};
  }
  desc::Result<llvm::json::Object> object = parseObject(*text, file);
  if (!object) {
    diagnostics = object.diagnostics();
    return {};
  }
  const llvm::json::Object *map = object->getObject("weight_map");
  if (!map || map->empty()) {
    const llvm::json::Value *value = object->get("weight_map");
    diagnostics.push_back(inFile(file, "weight_map",
                                 "expected an object of tensors and their files, got " +
                                     (value ? shown(*value) : "nothing")));
    return {};
  }
  Index index;
  for (const auto &[tensor, value] : *map) {
    std::optional<StringRef> name = value.getAsString();
    if (!name || !isPlainName(*name)) {
      diagnostics.push_back(
          inFile(file, "weight_map." + readable(tensor),
                 "expected the name of a file in the folder, got " + shown(value)));
      return {};
    }
    index[StringRef(tensor).str()] = name->str();
  }
  return index;
}

/// Refuses weights in PyTorch's format, so that they are not ignored.
void refusePickled(const std::string &folder, desc::Diagnostics &diagnostics) {
  for (StringRef name : {"pytorch_model.bin", "pytorch_model.bin.index.json"}) {
    if (std::string file = inFolder(folder, name); llvm::sys::fs::exists(file)) {
      diagnostics.push_back(inFile(file, "",
                                   "expected weights in safetensors files, got a file of PyTorch; "
                                   "save_pretrained of transformers writes the former"));
    }
  }
}

/// Opens the files in the order of their names.
void openFiles(const std::string &folder, Weights &weights, desc::Diagnostics &diagnostics) {
  for (const std::string &name : weights.fileNames) {
    auto file = std::make_unique<rt::SafetensorsFile>();
    if (rt::Status status = file->open(inFolder(folder, name)); !status) {
      diagnostics.push_back(inFile("", "", status.error().message));
    }
    weights.files.push_back(std::move(file));
  }
}

void listTensors(const std::string &folder, Weights &weights, desc::Diagnostics &diagnostics) {
  for (size_t i = 0; i < weights.files.size(); ++i) {
    for (const auto &[name, tensor] : weights.files[i]->tensors) {
      auto [found, isNew] = weights.tensors.insert({name, {i, &tensor}});
      if (!isNew) {
        diagnostics.push_back(
            inFile(inFolder(folder, weights.fileNames[i]), readable(name),
                   "is in '" + weights.fileNames[found->second.file] + "' as well"));
      }
    }
  }
}

/// Checks that the index agrees with the files.
void checkIndex(const std::string &folder, const Index &index, const Weights &weights,
                desc::Diagnostics &diagnostics) {
  std::string file = inFolder(folder, kIndexName);
  for (const auto &[tensor, name] : index) {
    auto found = weights.tensors.find(tensor);
    if (found == weights.tensors.end() || weights.fileNames[found->second.file] != name) {
      diagnostics.push_back(
          inFile(file, "weight_map." + readable(tensor), "'" + name + "' has no such tensor"));
    }
  }
  for (const auto &[tensor, entry] : weights.tensors) {
    if (!index.count(tensor)) {
      diagnostics.push_back(inFile(file, "weight_map." + readable(tensor),
                                   "missing, but in '" + weights.fileNames[entry.file] + "'"));
    }
  }
}

/// Checks that the slot's tensor exists with the right shape and a supported type.
void checkSlot(const std::string &folder, const Slot &slot, const Weights &weights,
               desc::Diagnostics &diagnostics) {
  auto found = weights.tensors.find(slot.tensor);
  if (found == weights.tensors.end()) {
    diagnostics.push_back(inFile(folder, slot.tensor, "missing: no file has this tensor"));
    return;
  }
  std::string file = inFolder(folder, weights.fileNames[found->second.file]);
  const rt::SafetensorsFile::Tensor &tensor = *found->second.tensor;
  if (tensor.shape != slot.tensorShape) {
    diagnostics.push_back(inFile(file, slot.tensor,
                                 "expected shape " + rt::shapeText(slot.tensorShape) + ", got " +
                                     rt::shapeText(tensor.shape)));
  }
  std::optional<rt::ElementType> type = rt::floatTypeOf(tensor.dtype);
  if (!type || *type == rt::ElementType::F64) {
    diagnostics.push_back(
        inFile(file, slot.tensor, "expected type F32, BF16 or F16, got " + tensor.dtype));
  }
}

/// A tied head may be saved beside the embedding if it is the same.
bool repeatsEmbedding(const Config &config, const std::vector<Slot> &slots,
                      const Weights::Entry &entry, const Weights &weights) {
  auto embedding = weights.tensors.find(slots.front().tensor);
  return config.model.tiedEmbeddings && embedding != weights.tensors.end() &&
         entry.tensor->dtype == embedding->second.tensor->dtype &&
         entry.tensor->shape == embedding->second.tensor->shape &&
         std::ranges::equal(entry.tensor->data, embedding->second.tensor->data);
}

} // namespace

std::string weft::hf::inFolder(const std::string &folder, StringRef name) {
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, name);
  return path.str().str();
}

desc::Diagnostic weft::hf::inFile(const std::string &file, const std::string &field,
                                  const std::string &message) {
  return {{file, 0, 0}, field, "", message};
}

desc::Result<std::string> weft::hf::readText(const std::string &file) {
  rt::MappedFile mapped;
  if (rt::Status status = mapped.open(file); !status) {
    return desc::Diagnostics{inFile("", "", status.error().message)};
  }
  if (mapped.bytes().size() > kLargestText) {
    return desc::Diagnostics{
        inFile(file, "", "expected at most 64 MiB, got " + rt::bytesText(mapped.bytes().size()))};
  }
  return std::string(mapped.bytes().data(), mapped.bytes().size());
}

std::unique_ptr<Weights> weft::hf::openWeights(const std::string &folder,
                                               desc::Diagnostics &diagnostics) {
  auto weights = std::make_unique<Weights>();
  Index index;
  // transformers tries the files in this order.
  if (llvm::sys::fs::exists(inFolder(folder, kWeightsName))) {
    weights->fileNames = {kWeightsName};
  } else if (std::string file = inFolder(folder, kIndexName); llvm::sys::fs::exists(file)) {
    index = readIndex(file, diagnostics);
    std::set<std::string> names;
    for (const auto &[tensor, name] : index) {
      names.insert(name);
    }
    weights->fileNames.assign(names.begin(), names.end());
  } else {
    refusePickled(folder, diagnostics);
  }
  openFiles(folder, *weights, diagnostics);
  if (diagnostics.empty()) {
    listTensors(folder, *weights, diagnostics);
  }
  if (diagnostics.empty() && !index.empty()) {
    checkIndex(folder, index, *weights, diagnostics);
  }
  return diagnostics.empty() && !weights->files.empty() ? std::move(weights) : nullptr;
}

void weft::hf::checkWeights(const std::string &folder, const Config &config,
                            const std::vector<Slot> &slots, const Weights &weights,
                            desc::Diagnostics &diagnostics) {
  std::set<std::string> expected;
  for (const Slot &slot : slots) {
    if (expected.insert(slot.tensor).second) {
      checkSlot(folder, slot, weights, diagnostics);
    }
  }
  for (const auto &[name, entry] : weights.tensors) {
    if (expected.count(name) || isBuffer(config.kind, name)) {
      continue;
    }
    std::string file = inFolder(folder, weights.fileNames[entry.file]);
    if (name != kHeadName || !config.model.tiedEmbeddings) {
      diagnostics.push_back(inFile(file, readable(name), "the model has no such tensor"));
    } else if (!repeatsEmbedding(config, slots, entry, weights)) {
      diagnostics.push_back(inFile(file, name,
                                   "differs from the token embedding, but tie_word_embeddings "
                                   "says that they are the same"));
    }
  }
}
