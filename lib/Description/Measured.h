//===- Measured.h - checks the measurements of a machine ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_DESCRIPTION_MEASURED_H
#define WEFT_LIB_DESCRIPTION_MEASURED_H

#include "Fields.h"
#include "weft/Description/Machine.h"
#include "weft/machine.pb.h"

namespace weft::desc::detail {

/// Checks the rules of `device.measured`. If `devicesPerNode` is 0, because it is wrong itself,
/// skips the rules that depend on it. `hasCluster` is true if there is a link between nodes.
void checkMeasured(const proto::Measured &measured, Fields fields, int64_t devicesPerNode,
                   bool hasCluster);

/// REQUIRES: all rules hold.
MeasuredSpec toSpec(const proto::Measured &measured);

} // namespace weft::desc::detail

#endif // WEFT_LIB_DESCRIPTION_MEASURED_H
