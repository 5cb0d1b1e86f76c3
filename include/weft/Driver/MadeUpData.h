//===- MadeUpData.h - made-up data to train on ---------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DRIVER_MADEUPDATA_H
#define WEFT_DRIVER_MADEUPDATA_H

#include "weft-rt/Program.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace weft {

/// Returns true if `program` is trained on tokens, and false if on images. Made-up tokens have the
/// format of nanoGPT.
bool readsTokens(const rt::Program &program);

/// Writes `batches` batches of tokens, or of images from -1 to 1 and their labels, to `path`. The
/// same arguments give the same bytes. Small tokens and labels are more frequent, so that a model
/// has something to learn.
llvm::Error writeMadeUpData(llvm::StringRef path, const rt::Program &program, int64_t batches);

} // namespace weft

#endif // WEFT_DRIVER_MADEUPDATA_H
