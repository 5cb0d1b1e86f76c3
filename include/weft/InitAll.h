//===- InitAll.h - registration of dialects and passes --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_INITALL_H
#define WEFT_INITALL_H

#include "mlir/IR/DialectRegistry.h"

namespace weft {

/// Adds the weft dialect, the dialects that programs are lowered through, and Weft's external
/// models of interfaces for ops of other dialects.
void registerAllWeft(mlir::DialectRegistry &registry);

/// Registers the passes of all phases, and passes of MLIR that are useful beside them. Call it
/// once, before any pass pipeline is parsed.
void registerAllWeftPasses();

} // namespace weft

#endif // WEFT_INITALL_H
