//===- Experts.h - the experts of a model's description -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_DESCRIPTION_EXPERTS_H
#define WEFT_LIB_DESCRIPTION_EXPERTS_H

#include "Fields.h"
#include "weft/Description/Model.h"
#include "weft/model.pb.h"

namespace weft::desc::detail {

/// Checks the rules model_r21 to model_r24, and model_r26. `fields` are those of `model.experts()`.
void checkExperts(const proto::Model &model, Fields fields);

/// Returns the experts of `model`, all defaults filled in.
/// REQUIRES: checkExperts has found nothing wrong.
ExpertsSpec resolveExperts(const proto::Model &model);

} // namespace weft::desc::detail

#endif // WEFT_LIB_DESCRIPTION_EXPERTS_H
