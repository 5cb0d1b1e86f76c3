//===- ProfiledRun.cpp - lets a compiled program measure itself ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProfiledRun.h"

#include "CommandLine.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Program.h"

#include <algorithm>

using namespace weft;

llvm::Error TemporaryFile::create(llvm::StringRef suffix) {
  std::error_code code = llvm::sys::fs::createTemporaryFile("weft", suffix, path);
  if (code) {
    return makeError("cannot make a temporary file: " + code.message());
  }
  remover.setFile(path);
  return llvm::Error::success();
}

/// A whole file by `write`, which gets a stream.
static llvm::Error writeFile(llvm::StringRef path,
                             llvm::function_ref<void(llvm::raw_ostream &)> write) {
  std::error_code code;
  llvm::raw_fd_ostream stream(path, code);
  if (!code) {
    write(stream);
    stream.close();
    code = stream.error();
    stream.clear_error();
  }
  return code ? makeError("cannot write '" + path + "': " + code.message())
              : llvm::Error::success();
}

/// A small generator's next number, of 31 bits.
static uint32_t nextOf(uint64_t &state) {
  state = state * 6364136223846793005u + 1442695040888963407u; // Knuth's MMIX.
  return static_cast<uint32_t>(state >> 33);
}

/// Two bytes for each token; enough for one batch, which may repeat.
static void writeTokens(llvm::raw_ostream &stream, const rt::Program &program) {
  uint64_t range = std::clamp<int64_t>(program.vocabulary, 1, 1 << 16), state = 1;
  uint64_t count = static_cast<uint64_t>(program.globalBatch) * program.sequenceLength + 1;
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t token = nextOf(state) % range;
    stream << static_cast<char>(token) << static_cast<char>(token >> 8);
  }
}

static void writeBytes(llvm::raw_ostream &stream, const void *data, size_t size) {
  stream.write(static_cast<const char *>(data), size);
}

/// One batch of images from -1 to 1, and their labels, as safetensors.
static void writeImages(llvm::raw_ostream &stream, const rt::Program &program,
                        const rt::TensorLayout &images) {
  uint64_t count = 1, samples = program.globalBatch, state = 1;
  std::string shape;
  for (int64_t size : images.globalShape) {
    count *= size;
    shape += (shape.empty() ? "" : ",") + std::to_string(size);
  }
  std::string middle = std::to_string(4 * count), end = std::to_string(4 * count + 8 * samples);
  std::string header = R"({"images":{"dtype":"F32","shape":[)" + shape + R"(],"data_offsets":[0,)" +
                       middle + R"(]},"labels":{"dtype":"I64","shape":[)" +
                       std::to_string(samples) + R"(],"data_offsets":[)" + middle + "," + end +
                       "]}}";
  uint64_t length = header.size();
  writeBytes(stream, &length, sizeof(length));
  stream << header;
  for (uint64_t i = 0; i < count; ++i) {
    float value = static_cast<float>(nextOf(state)) * 0x1p-30f - 1;
    writeBytes(stream, &value, sizeof(value));
  }
  for (uint64_t i = 0; i < samples; ++i) {
    int64_t label = nextOf(state) % std::max<int64_t>(program.vocabulary, 1);
    writeBytes(stream, &label, sizeof(label));
  }
}

/// The images that a program reads, or null.
static const rt::TensorLayout *imagesOf(const rt::Program &program) {
  for (const rt::NamedTensor &input : program.inputs) {
    if (input.name == "images") {
      return &input.layout;
    }
  }
  return nullptr;
}

llvm::Error weft::profileProgram(llvm::StringRef path, const rt::Program &program, int64_t steps,
                                 llvm::StringRef threads, llvm::StringRef profile) {
  TemporaryFile data;
  if (llvm::Error error = data.create("data")) {
    return error;
  }
  const rt::TensorLayout *images = imagesOf(program);
  llvm::Error written = writeFile(data.getPath(), [&](llvm::raw_ostream &stream) {
    images ? writeImages(stream, program, *images) : writeTokens(stream, program);
  });
  if (written) {
    return written;
  }
  llvm::SmallString<128> absolute(path);
  if (std::error_code code = llvm::sys::fs::make_absolute(absolute)) {
    return makeError("cannot run '" + path + "': " + code.message());
  }
  std::string stepsText = std::to_string(steps);
  llvm::SmallVector<llvm::StringRef> words = {absolute,  "--quiet", "--data",    data.getPath(),
                                              "--steps", stepsText, "--profile", profile};
  if (!images) {
    words.append({"--data-format", "nanogpt"});
  }
  if (!threads.empty()) {
    words.append({"--threads", threads});
  }
  std::string reason;
  int status = llvm::sys::ExecuteAndWait(absolute, words, /*Env=*/std::nullopt, /*Redirects=*/{},
                                         /*SecondsToWait=*/0, /*MemoryLimit=*/0, &reason);
  if (status == 0) {
    return llvm::Error::success();
  }
  return makeError("'" + path + "' did not run to its end: " +
                   (reason.empty() ? "exit status " + std::to_string(status) : reason));
}
