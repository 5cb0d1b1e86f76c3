//===- MadeUpData.cpp - made-up data to train on -------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Driver/MadeUpData.h"

#include "weft/Driver/CommandLine.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"

#include <algorithm>

using namespace weft;

/// Writes a whole file by `write`, which gets a stream.
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

/// Returns the next number, of 31 bits, of a small generator.
static uint32_t nextOf(uint64_t &state) {
  state = state * 6364136223846793005u + 1442695040888963407u; // Knuth's MMIX.
  return static_cast<uint32_t>(state >> 33);
}

/// Returns a number below `range`; small numbers are more frequent.
static uint64_t skewed(uint64_t &state, int64_t range) {
  uint64_t most = nextOf(state) % std::max<int64_t>(range, 1);
  return nextOf(state) % (most + 1);
}

/// Two bytes for each token.
static void writeTokens(llvm::raw_ostream &stream, const rt::Program &program, int64_t batches) {
  int64_t range = std::min<int64_t>(program.vocabulary, 1 << 16);
  uint64_t state = 1;
  uint64_t count =
      static_cast<uint64_t>(batches) * program.globalBatch * program.sequenceLength + 1;
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t token = skewed(state, range);
    stream << static_cast<char>(token) << static_cast<char>(token >> 8);
  }
}

static void writeBytes(llvm::raw_ostream &stream, const void *data, size_t size) {
  stream.write(static_cast<const char *>(data), size);
}

/// Images from -1 to 1, and their labels, as safetensors.
static void writeImages(llvm::raw_ostream &stream, const rt::Program &program,
                        const rt::TensorLayout &images, int64_t batches) {
  uint64_t samples = static_cast<uint64_t>(batches) * program.globalBatch, state = 1;
  uint64_t count = samples;
  std::string shape = std::to_string(samples);
  for (int64_t size : llvm::drop_begin(images.globalShape)) {
    count *= size;
    shape += "," + std::to_string(size);
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
    int64_t label = static_cast<int64_t>(skewed(state, program.vocabulary));
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

bool weft::readsTokens(const rt::Program &program) { return !imagesOf(program); }

llvm::Error weft::writeMadeUpData(llvm::StringRef path, const rt::Program &program,
                                  int64_t batches) {
  const rt::TensorLayout *images = imagesOf(program);
  return writeFile(path, [&](llvm::raw_ostream &stream) {
    images ? writeImages(stream, program, *images, batches) : writeTokens(stream, program, batches);
  });
}
