//===- Introductions.cpp - the first messages after the handshake ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The bytes are the introductions of all ranks; and they are changes to two introductions that are
// right: pairs of a place, of two bytes, and a value there.
//
//===----------------------------------------------------------------------===//

#include "Fuzz.h"

#include "backends/processes/Introduction.h"

using namespace weft::rt;
using namespace weft::rt::mpi;

static void read(std::span<const char> bytes) {
  Result<std::vector<Introduction>> all = readIntroductions(bytes);
  if (!all) {
    require(!all.error().message.empty(), "a failure has a reason");
    return;
  }
  require(all->size() * Introduction::kBytes == bytes.size(), "each rank has one");
  for (size_t rank = 0; rank < all->size(); ++rank) {
    std::vector<char> again = all->at(rank).encode();
    require(
        std::equal(again.begin(), again.end(), bytes.subspan(rank * Introduction::kBytes).begin()),
        "and all of it was read");
    require(all->at(rank).program == all->front().program, "they run the same");
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  read({reinterpret_cast<const char *>(data), size});
  Introduction one = {"node0", 12, "plan 1, file 2", "hash", {1, 2}, "4000 10.0.0.1 ::1", ""};
  std::vector<char> bytes = one.encode(), second = bytes;
  bytes.insert(bytes.end(), second.begin(), second.end());
  for (; size >= 3; size -= 3, data += 3) {
    bytes[(size_t(data[0]) << 8 | data[1]) % bytes.size()] = char(data[2]);
  }
  read(bytes);
  return 0;
}
