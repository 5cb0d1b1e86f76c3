//===- weft-translate.cpp - between modules and other forms of a program --===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Translations.h"

#include "mlir/Tools/mlir-translate/MlirTranslateMain.h"

int main(int argc, char **argv) {
  weft::registerImportTranslation();
  weft::registerProgramTranslation();
  weft::registerProblemTranslations();
  weft::registerDeviceTranslations();
  return mlir::failed(mlir::mlirTranslateMain(argc, argv, "Weft's translations"));
}
