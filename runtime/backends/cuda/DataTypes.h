//===- DataTypes.h - element types as CUDA's libraries name them -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_CUDA_DATATYPES_H
#define WEFT_RT_BACKENDS_CUDA_DATATYPES_H

#include "weft-rt/Program.h"

#include <library_types.h>

namespace weft::rt::cuda {

/// Returns CUDA's name for an element type of matmuls.
inline cudaDataType_t dataTypeOf(ElementType type) {
  return type == ElementType::F64      ? CUDA_R_64F
         : type == ElementType::F32    ? CUDA_R_32F
         : type == ElementType::BF16   ? CUDA_R_16BF
         : type == ElementType::F8E4M3 ? CUDA_R_8F_E4M3
         : type == ElementType::F8E5M2 ? CUDA_R_8F_E5M2
                                       : CUDA_R_16F;
}

} // namespace weft::rt::cuda

#endif // WEFT_RT_BACKENDS_CUDA_DATATYPES_H
