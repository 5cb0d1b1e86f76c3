//===- ImportCommand.cpp - models of other programs as ours -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"

#include "weft/Driver/CommandLine.h"
#include "weft/Driver/ImportFiles.h"

using namespace weft;

namespace {

CommandLine declare(ImportFilesOptions &options) {
  CommandLine line(
      "weft import SOURCE -o FOLDER [options]",
      "Reads a checkpoint folder of Hugging Face transformers (gpt2, llama, mistral, qwen2, "
      "qwen3,\nmixtral, qwen3_moe or deepseek_v3: config.json, and model.safetensors whole or in "
      "several\nfiles), or an ONNX file, and writes\n\n"
      "  model.textproto      the description, for 'weft compile'\n"
      "  weights.safetensors  the weights in float32, for a compiled program's --load\n"
      "  model.onnx           for an ONNX file: the graph, which the description names\n\n"
      "A folder without weights gives the description alone. 'weft export' converts back "
      "to\ntransformers. docs/HuggingFace.md and docs/Onnx.md list the supported models and ops.");
  line.addText("-o", "FOLDER", "where to write; a new folder, or an empty one", options.output);
  line.addPositional("SOURCE", options.source);
  return line;
}

llvm::Error run(const ImportFilesOptions &options) {
  return options.output.empty() ? makeError("expected -o FOLDER") : importFiles(options);
}

} // namespace

int weft::importCommand(llvm::ArrayRef<const char *> arguments) {
  ImportFilesOptions options;
  CommandLine line = declare(options);
  return line.run("import", arguments, [&] { return run(options); });
}
