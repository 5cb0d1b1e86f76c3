//===- Folder.cpp - a checkpoint folder of transformers -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/HuggingFace/Folder.h"

#include "Weights.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace weft;
using namespace weft::hf;
using llvm::StringRef;

namespace {

/// The most errors to list: a list of a thousand tensors would not help.
constexpr size_t kMostDiagnostics = 20;

/// Returns the model's name: the folder's own name.
std::string nameOfFolder(const std::string &path) {
  llvm::SmallString<128> real;
  std::error_code code = llvm::sys::fs::real_path(path, real);
  return llvm::sys::path::filename(code ? StringRef(path) : real.str()).str();
}

desc::Result<Config> readConfig(const std::string &path) {
  std::string file = inFolder(path, kConfigName);
  desc::Result<std::string> text = readText(file);
  if (!text) {
    return text.diagnostics();
  }
  return parseConfig(*text, file, nameOfFolder(path));
}

/// Returns true if any tensor has the name of a whole language model's tensor.
bool hasPrefix(Kind kind, const Weights &weights) {
  return llvm::any_of(weights.tensors, [&](const auto &tensor) {
    return StringRef(tensor.first).starts_with(namePrefix(kind));
  });
}

} // namespace

Folder::Folder() = default;
Folder::Folder(Folder &&) noexcept = default;
Folder &Folder::operator=(Folder &&) noexcept = default;
Folder::~Folder() = default;

desc::Result<Folder> Folder::open(const std::string &path) {
  desc::Result<Config> config = readConfig(path);
  if (!config) {
    return config.diagnostics();
  }
  Folder folder;
  folder.path = path;
  folder.config = *config;
  desc::Diagnostics diagnostics;
  folder.weights = openWeights(path, diagnostics);
  if (folder.weights) {
    folder.slots = parameterSlots(*config, hasPrefix(config->kind, *folder.weights));
    checkWeights(path, *config, folder.slots, *folder.weights, diagnostics);
  }
  if (diagnostics.empty()) {
    return folder;
  }
  if (diagnostics.size() > kMostDiagnostics) {
    size_t others = diagnostics.size() - kMostDiagnostics;
    diagnostics.resize(kMostDiagnostics);
    diagnostics.push_back(inFile(path, "", "and " + std::to_string(others) + " more like these"));
  }
  return diagnostics;
}

size_t Folder::countTensors() const { return weights ? weights->tensors.size() : 0; }
size_t Folder::countFiles() const { return weights ? weights->files.size() : 0; }
