//===- Manifests.cpp - manifests of checkpoints ----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The bytes are a manifest.json, once unchanged and once after a first line with the
// right checksum, since readers refuse all other files.
//
//===----------------------------------------------------------------------===//

#include "Fuzz.h"

#include "checkpoint/Manifest.h"

#include <string_view>

using namespace weft::rt;

static void check(std::string_view text) {
  Result<Manifest> manifest = readManifest(text);
  if (!manifest) {
    require(!manifest.error().message.empty(), "an error says something");
    return;
  }
  for (const SavedTensor &tensor : manifest->tensors) {
    for (const SavedPart &part : tensor.parts) {
      require(part.shard < manifest->shards.size(), "parts lie in shards");
    }
  }
  for (const Shard &shard : manifest->shards) {
    require(shard.file.find('/') == std::string::npos, "shards lie in the checkpoint's folder");
  }
  std::string written = toText(*manifest);
  Result<Manifest> again = readManifest(written);
  require(bool(again), "a manifest that is written can be read");
  require(toText(*again) == written, "and is the same then");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text(reinterpret_cast<const char *>(data), size);
  Checksum checksum;
  checksum.add(text);
  check(text);
  check("{\"checksum\": \"" + digestText(checksum.digest()) + "\",\n" + std::string(text));
  return 0;
}
