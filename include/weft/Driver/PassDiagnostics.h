//===- PassDiagnostics.h - how errors of passes are printed -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DRIVER_PASSDIAGNOSTICS_H
#define WEFT_DRIVER_PASSDIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"

namespace weft {

/// Prints an error or a warning of a pass with its notes to standard error, each behind its place:
/// "file:line:column", an option such as "--pin", or a part of the model. (Without a handler, MLIR
/// prints errors alone.) Succeeds, so that no other handler prints them.
llvm::LogicalResult printPassDiagnostic(mlir::Diagnostic &diagnostic);

} // namespace weft

#endif // WEFT_DRIVER_PASSDIAGNOSTICS_H
