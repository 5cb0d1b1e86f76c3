//===- DeviceImages.h - images for devices, from a cache ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_EMIT_DEVICEIMAGES_H
#define WEFT_LIB_PIPELINE_EMIT_DEVICEIMAGES_H

#include "CodeCache.h"

#include "weft/Pipeline/Emit/DeviceCode.h"

namespace weft {

/// Like emitImages without a cache, but takes PTX and machine code from `cache` if it has them.
llvm::Expected<DeviceImages> emitImages(mlir::ModuleOp module, const CudaToolkit &toolkit,
                                        CodeCache &cache);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_EMIT_DEVICEIMAGES_H
