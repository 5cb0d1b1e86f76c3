//===- SharedTiles.cpp - tiles in the shared memory of a block ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SharedTiles.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft::lower;

Buffer weft::lower::sharedTile(Code &code, Type type) {
  constexpr int64_t kWord = 4;
  return code.shared(type, {kTileSide, kTileSide + std::max<int64_t>(kWord / sizeOf(type), 1)});
}

void weft::lower::overTile(Code &code, Span outer, Span inner, function_ref<void(Num, Num)> body) {
  constexpr int64_t side = kTileSide;
  int64_t lanes = inner.size % code.countLanes() == 0 ? code.countLanes() : 1;
  int64_t chunks = side / lanes, threads = code.countThreads();
  bool isWhole = outer.size % side == 0 && inner.size % side == 0;
  int64_t rounds = llvm::divideCeil(side * chunks, threads);
  for (int64_t round = 0; round < rounds; ++round) {
    Num number = code.thread() + round * threads;
    Num row = number / chunks, first = code.remainder(number, chunks) * lanes;
    auto run = [&] {
      for (int64_t lane = 0; lane < lanes; ++lane) {
        body(row, first + lane);
      }
    };
    if (isWhole && (round + 1) * threads <= side * chunks) {
      run();
      continue;
    }
    code.when(row < side, [&] {
      code.when(outer.first + row < outer.size,
                [&] { code.when(inner.first + first < inner.size, run); });
    });
  }
}
