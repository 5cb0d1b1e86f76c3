//===- PassDiagnostics.cpp - how errors of passes are printed ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Driver/PassDiagnostics.h"

#include "mlir/IR/Location.h"

using namespace mlir;

static void printDiagnostic(llvm::raw_ostream &os, Diagnostic &diagnostic, llvm::StringRef kind) {
  Location location = diagnostic.getLocation();
  if (auto place = location->findInstanceOf<FileLineColLoc>()) {
    os << place.getFilename().getValue() << ":";
    if (place.getLine() > 0) { // Options have no lines.
      os << place.getLine() << ":" << place.getColumn() << ":";
    }
    os << " ";
  } else if (auto part = location->findInstanceOf<NameLoc>()) {
    os << part.getName().getValue() << ": "; // A part of the model.
  }
  os << kind << ": " << diagnostic << '\n';
}

LogicalResult weft::printPassDiagnostic(Diagnostic &diagnostic) {
  bool isError = diagnostic.getSeverity() == DiagnosticSeverity::Error;
  if (!isError && diagnostic.getSeverity() != DiagnosticSeverity::Warning) {
    return success();
  }
  printDiagnostic(llvm::errs(), diagnostic, isError ? "error" : "warning");
  for (Diagnostic &note : diagnostic.getNotes()) {
    printDiagnostic(llvm::errs(), note, "note");
  }
  llvm::errs().flush();
  return success();
}
