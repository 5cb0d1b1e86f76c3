//===- Latent.h - latent attention in a model's description ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_DESCRIPTION_LATENT_H
#define WEFT_LIB_DESCRIPTION_LATENT_H

#include "Reader.h"
#include "weft/Description/Model.h"
#include "weft/model.pb.h"

namespace weft::desc::detail {

/// Checks model_r27 to model_r29. `fields` are those of the model. REQUIRES: it has latent
/// attention.
void checkLatent(const proto::Model &model, Fields &fields);

/// REQUIRES: the rules hold.
LatentSpec resolveLatent(const proto::LatentAttention &latent, int64_t headSize);

} // namespace weft::desc::detail

#endif // WEFT_LIB_DESCRIPTION_LATENT_H
