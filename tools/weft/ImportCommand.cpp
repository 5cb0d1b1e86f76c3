//===- ImportCommand.cpp - a Hugging Face checkpoint as a model -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CommandLine.h"
#include "Commands.h"
#include "OutputFile.h"
#include "OutputFolder.h"

#include "weft/HuggingFace/Folder.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Path.h"

using namespace weft;

namespace {

struct ImportOptions {
  std::string folder, output;
};

CommandLine declare(ImportOptions &options) {
  CommandLine line(
      "weft import FOLDER -o FOLDER [options]",
      "Reads a checkpoint folder of Hugging Face transformers (gpt2, llama, mistral, "
      "qwen2 or\nqwen3: config.json, and model.safetensors whole or in several files), "
      "and writes\n\n"
      "  model.textproto      what 'weft compile' takes\n"
      "  weights.safetensors  what a compiled program takes by --load, in float32\n\n"
      "A folder without weights gives the description alone. 'weft export' is the way "
      "back.\ndocs/HuggingFace.md lists what is read, and what is refused.");
  line.addText("-o", "FOLDER", "where to write; a new folder, or an empty one", options.output);
  line.addPositional("FOLDER", options.folder);
  return line;
}

std::string inFolder(llvm::StringRef folder, llvm::StringRef name) {
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, name);
  return path.str().str();
}

llvm::Error writeModel(const hf::Folder &folder, llvm::StringRef target) {
  llvm::Expected<OutputFile> file = OutputFile::create(inFolder(target, "model.textproto"));
  if (!file) {
    return file.takeError();
  }
  std::string text = "# proto-file: weft/model.proto\n# proto-message: Model\n# Imported from a "
                     "checkpoint of model_type " +
                     std::string(hf::nameOf(folder.getConfig().kind)) + ".\n" +
                     desc::printModel(folder.getConfig().model);
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
    llvm::outs() << inFolder(output, "weights.safetensors") << ": " << folder.getSlots().size()
                 << " tensors, from " << folder.countTensors() << " in " << folder.countFiles()
                 << (folder.countFiles() == 1 ? " file\n" : " files\n");
  } else {
    llvm::outs() << "no weights: '" << folder.getPath()
                 << "' has neither model.safetensors nor model.safetensors.index.json\n";
  }
}

/// Prints what is wrong with the checkpoint, if anything is; then the error says no more.
llvm::Error check(const desc::Diagnostics &diagnostics) {
  if (diagnostics.empty()) {
    return llvm::Error::success();
  }
  llvm::errs() << desc::str(diagnostics);
  return makeError("nothing was written");
}

llvm::Error run(llvm::ArrayRef<const char *> arguments) {
  ImportOptions options;
  CommandLine line = declare(options);
  if (llvm::Error error = line.parse(arguments)) {
    return error;
  }
  if (line.isHelpWanted()) {
    line.printHelp(llvm::outs());
    return llvm::Error::success();
  }
  if (options.output.empty()) {
    return makeError("expected -o FOLDER");
  }
  desc::Result<hf::Folder> folder = hf::Folder::open(options.folder);
  if (!folder) {
    return check(folder.diagnostics());
  }
  llvm::Expected<OutputFolder> output = OutputFolder::create(options.output);
  if (!output) {
    return output.takeError();
  }
  if (llvm::Error error = writeModel(*folder, output->getTemporaryPath())) {
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

} // namespace

int weft::importCommand(llvm::ArrayRef<const char *> arguments) {
  if (llvm::Error error = run(arguments)) {
    llvm::logAllUnhandledErrors(std::move(error), llvm::errs(), "weft import: ");
    return 1;
  }
  return 0;
}
