//===- Order.h - where positions are stored, as code ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_LOWER_ORDER_H
#define WEFT_LIB_PIPELINE_LOWER_ORDER_H

#include "weft/Dialect/Weft/IR/Weft.h"
#include "weft/Pipeline/Lower/Code.h"

namespace weft::lower {

/// Returns the position that is stored at index `stored` of the whole sequence.
Num positionAt(Code &code, ZigzagAttr order, Num stored);

/// Returns the index that `position` is stored at: the inverse of positionAt.
Num indexOf(Code &code, ZigzagAttr order, Num position);

} // namespace weft::lower

#endif // WEFT_LIB_PIPELINE_LOWER_ORDER_H
