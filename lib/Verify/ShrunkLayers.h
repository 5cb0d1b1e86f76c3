//===- ShrunkLayers.h - the layers that stand for those of a large model --===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_VERIFY_SHRUNKLAYERS_H
#define WEFT_LIB_VERIFY_SHRUNKLAYERS_H

#include "weft/Verify/Shrink.h"

namespace weft::verify {

/// Returns the number of layers of each chunk of pipeline stages, which have `layers` together;
/// nothing if there are no stages.
std::vector<int64_t> countChunkLayers(const desc::PipelineSpec &pipeline, int64_t layers);

/// Gives `small` some layers of `model` and what depends on their number: the place of experts, the
/// plan's `activation` entries and the layers of chunks. Layers are of one kind that have experts
/// or none, and the same `activation` entries.
///
/// Without stages, these are two layers of each kind, or the only one. With stages, of each chunk
/// the first and the last, through which it receives and sends, one of each kind, and as many more
/// as are needed so that of two chunks the same one is longer, or both are equally long. If experts
/// cannot have the same places among these layers, entries do not count without stages, and with
/// stages all layers stay.
///
/// REQUIRES: `small` has the plan of the large model but for the mesh.
void chooseLayers(const desc::ModelSpec &model, const desc::PlanSpec &plan, Shrunk &small);

} // namespace weft::verify

#endif // WEFT_LIB_VERIFY_SHRUNKLAYERS_H
