//===- ImportFiles.cpp - models of other programs as ours -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Driver/ImportFiles.h"

#include "weft/Driver/CommandLine.h"
#include "weft/Driver/OutputFile.h"
#include "weft/Driver/OutputFolder.h"
#include "weft/HuggingFace/Folder.h"
#include "weft/Onnx/Import.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace weft;

namespace {

std::string inFolder(llvm::StringRef folder, llvm::StringRef name) {
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, name);
  return path.str().str();
}

/// `origin` ends the sentence "Imported from".
llvm::Error writeModel(const desc::ModelSpec &model, const std::string &origin,
                       llvm::StringRef target) {
  llvm::Expected<OutputFile> file = OutputFile::create(inFolder(target, "model.textproto"));
  if (!file) {
    return file.takeError();
  }
  std::string text = "# proto-file: weft/model.proto\n# proto-message: Model\n# Imported from " +
                     origin + ".\n" + desc::printModel(model);
  if (llvm::Error error = file->write(text)) {
    return error;
  }
  return file->commit();
}

void report(const hf::Folder &folder, llvm::StringRef output) {
  const desc::ModelSpec &model = folder.getConfig().model;
  llvm::outs() << inFolder(output, "model.textproto") << ": " << hf::nameOf(folder.getConfig().kind)
               << " of " << model.layers << " layers, " << desc::parameterCount(model)
               << " parameters\n";
  if (folder.hasWeights()) {
    size_t parameters = llvm::count_if(
        folder.getSlots(), [](const hf::Slot &slot) { return slot.skippedOutputs == 0; });
    llvm::outs() << inFolder(output, "weights.safetensors") << ": " << parameters
                 << " tensors, from " << folder.countTensors() << " in " << folder.countFiles()
                 << (folder.countFiles() == 1 ? " file\n" : " files\n");
  } else {
    llvm::outs() << "no weights: '" << folder.getPath()
                 << "' has neither model.safetensors nor model.safetensors.index.json\n";
  }
}

/// Prints the checkpoint's errors, if there are any, and then returns an error that adds nothing.
llvm::Error check(const desc::Diagnostics &diagnostics) {
  if (diagnostics.empty()) {
    return llvm::Error::success();
  }
  llvm::errs() << desc::str(diagnostics);
  return makeError("nothing was written");
}

llvm::Error importFolder(const ImportFilesOptions &options) {
  desc::Result<hf::Folder> folder = hf::Folder::open(options.source);
  if (!folder) {
    return check(folder.diagnostics());
  }
  llvm::Expected<OutputFolder> output = OutputFolder::create(options.output);
  if (!output) {
    return output.takeError();
  }
  std::string origin =
      "a checkpoint of model_type " + std::string(hf::nameOf(folder->getConfig().kind));
  if (llvm::Error error =
          writeModel(folder->getConfig().model, origin, output->getTemporaryPath())) {
    return error;
  }
  if (folder->hasWeights()) {
    std::string weights = inFolder(output->getTemporaryPath(), "weights.safetensors");
    if (llvm::Error error = check(folder->writeParameters(weights))) {
      return error;
    }
  }
  if (llvm::Error error = output->commit()) {
    return error;
  }
  report(*folder, options.output);
  return llvm::Error::success();
}

/// Returns a model's name for a file of this name, with the characters that names may have.
std::string modelName(llvm::StringRef path) {
  std::string name;
  for (char c : llvm::sys::path::stem(path).take_front(64)) {
    name += llvm::isAlnum(c) || c == '.' || c == '_' || c == '-' ? c : '-';
  }
  return name.empty() ? "model" : name;
}

llvm::Error importGraph(const ImportFilesOptions &options) {
  llvm::Expected<OutputFolder> output = OutputFolder::create(options.output);
  if (!output) {
    return output.takeError();
  }
  desc::Result<onnx::Imported> imported =
      onnx::importFile(options.source, output->getTemporaryPath());
  if (!imported) {
    return check(imported.diagnostics());
  }
  desc::ModelSpec model;
  model.name = modelName(options.source);
  model.graph = desc::GraphSpec{"model.onnx", imported->constants, 0, {}};
  if (llvm::Error error =
          writeModel(model, "an ONNX file of operator set " + std::to_string(imported->opset),
                     output->getTemporaryPath())) {
    return error;
  }
  if (llvm::Error error = output->commit()) {
    return error;
  }
  llvm::outs() << inFolder(options.output, "model.textproto") << ": a graph of " << imported->nodes
               << " nodes, operator set " << imported->opset << '\n'
               << inFolder(options.output, "weights.safetensors") << ": " << imported->tensors
               << " tensors, " << imported->elements << " parameters\n";
  if (imported->parted > 0) {
    llvm::outs() << imported->parted << " of them the exporter had merged with others, as all of "
                 << "their elements are the same number\n";
  }
  return llvm::Error::success();
}

} // namespace

llvm::Error weft::importFiles(const ImportFilesOptions &options) {
  llvm::StringRef name = llvm::sys::path::extension(options.source);
  bool isGraph =
      llvm::sys::fs::is_regular_file(options.source) || name == ".onnx" || name == ".textproto";
  return isGraph ? importGraph(options) : importFolder(options);
}
