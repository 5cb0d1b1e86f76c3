//===- weft-opt.cpp - runs passes on modules, for people who work on passes ===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/InitAll.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  weft::registerAllWeft(registry);
  weft::registerAllWeftPasses();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "Weft's modular optimizer driver\n", registry));
}
