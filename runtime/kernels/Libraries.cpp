//===- Libraries.cpp - which of CUDA's libraries a machine has --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kernels/Libraries.h"

#include "weft-rt/Attention.h"

using namespace weft::rt;
using namespace weft::rt::cuda;
using namespace weft::rt::kernels;

static std::string reasonOf(const char *reason) { return reason ? reason : ""; }

/// Prepares a small causal attention; returns the reason if that fails or is refused.
static std::string missingAttention(const DriverTable &library, DriverTable::Handle device) {
  Attention attention;
  attention.batch = attention.keyHeads = attention.group = 1;
  attention.queries = attention.keys = 128;
  attention.features = attention.valueFeatures = 64;
  attention.isCausal = true;
  attention.operands = {0, 1, 2, 3, 4};
  attention.workspaceBytes = attentionWorkspace(attention);
  const AttentionPart part = {true, 0, 0, 128, 0, 128};
  DriverTable::Handle prepared = 0;
  const char *refusal = nullptr;
  if (const char *failed =
          library.prepareAttention(device, &attention, &part,
                                   /*isDeterministic=*/false, &prepared, &refusal)) {
    return failed;
  }
  std::string reason = reasonOf(refusal);
  return prepared ? reasonOf(library.freeAttention(device, prepared)) : reason;
}

MissingLibraries weft::rt::kernels::findMissingLibraries(const DriverTable &library) {
  DriverTable::Handle device = 0;
  DeviceFacts facts = {};
  if (const char *failed = library.open(0, &device, &facts)) {
    return {failed, failed, failed, failed};
  }
  MissingLibraries missing;
  const char *name = nullptr;
  WorldId id;
  missing.matmuls = reasonOf(library.nameMatmuls(device, &name));
  missing.attention = missingAttention(library, device);
  missing.collectives = reasonOf(library.makeWorldId(&id));
  missing.driver = reasonOf(library.close(device));
  return missing;
}
