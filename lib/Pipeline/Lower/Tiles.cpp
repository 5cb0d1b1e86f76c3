//===- Tiles.cpp - products in registers ---------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Tiles.h"

namespace weft::lower {

void emitTileProduct(Code &code, const TileProduct &product) {
  mlir::Type type = product.b.getElementType();
  int64_t lanes = vectorLanes(type);
  Num zero = code.spread(code.real(type, 0), lanes);
  Num none = code.index(0);
  code.loop(none, code.index(product.n), lanes, [&](Num j) {
    code.loop(none, code.index(product.m), kTileRows, [&](Num i) {
      Nums start;
      for (int64_t row = 0; row < kTileRows; ++row) {
        start.push_back(product.start ? product.start(i + row, j) : zero);
      }
      Nums sums = code.carry(none, code.index(product.k), 1, start,
                             [&](Num l, mlir::ArrayRef<Num> carried) {
                               Num b = product.b.loadVector(lanes, {l, j});
                               Nums next;
                               for (int64_t row = 0; row < kTileRows; ++row) {
                                 Num a = code.spread(product.a(i + row, l), lanes);
                                 next.push_back(code.multiplyAdd(a, b, carried[row]));
                               }
                               return next;
                             });
      for (int64_t row = 0; row < kTileRows; ++row) {
        product.finish(i + row, j, sums[row]);
      }
    });
  });
}

} // namespace weft::lower
