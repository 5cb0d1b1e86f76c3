//===- ExportCommand.cpp - trained weights as a Hugging Face checkpoint ---===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"

#include "weft/Driver/CommandLine.h"
#include "weft/Driver/OutputFolder.h"
#include "weft/HuggingFace/Folder.h"

using namespace weft;

namespace {

struct ExportOptions {
  std::string weights, like, output;
};

CommandLine declare(ExportOptions &options) {
  CommandLine line(
      "weft export WEIGHTS --like FOLDER -o FOLDER [options]",
      "Writes a checkpoint folder of Hugging Face transformers with the parameters of WEIGHTS, a\n"
      "file that a compiled program wrote by --save, or 'weft import'. Names, shapes and types of\n"
      "tensors and their split into files are those of the folder of --like, from which the model\n"
      "was imported; its configuration and tokenizer are copied. Links out of it are errors, but\n"
      "not those to the model's files in a cache of the Hugging Face hub. Numbers are rounded to\n"
      "the type of their tensor; untrained tensors keep their bits.");
  line.addText("--like", "FOLDER", "the checkpoint that the model was imported from", options.like);
  line.addText("-o", "FOLDER", "where to write; a new folder, or an empty one", options.output);
  line.addPositional("WEIGHTS", options.weights);
  return line;
}

/// Prints `errors`, if there are any, and then returns an error that adds nothing to them.
llvm::Error check(const desc::Diagnostics &diagnostics) {
  if (diagnostics.empty()) {
    return llvm::Error::success();
  }
  llvm::errs() << desc::str(diagnostics);
  return makeError("nothing was written");
}

llvm::Error run(const ExportOptions &options) {
  if (options.like.empty()) {
    return makeError("expected --like FOLDER");
  }
  if (options.output.empty()) {
    return makeError("expected -o FOLDER");
  }
  desc::Result<hf::Folder> folder = hf::Folder::open(options.like);
  if (!folder) {
    return check(folder.diagnostics());
  }
  if (!folder->hasWeights()) {
    return makeError("expected a checkpoint with weights: '" + options.like +
                     "' has neither model.safetensors nor model.safetensors.index.json");
  }
  llvm::Expected<OutputFolder> output = OutputFolder::create(options.output);
  if (!output) {
    return output.takeError();
  }
  if (llvm::Error error = check(folder->writeLike(options.weights, output->getTemporaryPath()))) {
    return error;
  }
  if (llvm::Error error = output->commit()) {
    return error;
  }
  llvm::outs() << options.output << ": " << folder->countTensors() << " tensors in "
               << folder->countFiles() << (folder->countFiles() == 1 ? " file\n" : " files\n");
  return llvm::Error::success();
}

} // namespace

int weft::exportCommand(llvm::ArrayRef<const char *> arguments) {
  ExportOptions options;
  CommandLine line = declare(options);
  return line.run("export", arguments, [&] { return run(options); });
}
