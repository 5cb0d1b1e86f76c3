//===- weft-lsp-server.cpp - tells editors about .mlir files with weft ops ===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/InitAll.h"

#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  weft::registerAllWeft(registry);
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
