//===- BuildInit.cpp - initial values of the parameters -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ModelBuilder.h"
#include "weft/Pipeline/Import/Parameters.h"

using namespace mlir;
using namespace weft;

/// The 64-bit FNV-1a hash of the name.
uint64_t weft::streamOf(llvm::StringRef name) {
  uint64_t hash = 0xCBF29CE484222325;
  for (unsigned char byte : name.bytes()) {
    hash = (hash ^ byte) * 0x100000001B3;
  }
  return hash;
}

namespace {

/// Builds the initial values of `parameter`.
Value fill(ModelBuilder &builder, const Parameter &parameter, Value seed) {
  Location location = builder.location(parameter.name);
  RankedTensorType type = builder.heldType(parameter);
  double deviation = initialDeviation(builder.model, parameter);
  if (deviation == 0.0) {
    double value = parameter.kind == ParameterKind::NormScale ? 1.0 : 0.0;
    return FillOp::create(builder.builder, location, type, value);
  }
  Value stream = builder.index(parameter.name, static_cast<int64_t>(streamOf(parameter.name)));
  return FillOp::create(builder.builder, location, type, deviation, seed, stream);
}

} // namespace

void weft::buildInit(ModelBuilder &builder) {
  builder.function("init", {}, {}, /*isPrivate=*/false);
  Value seed = builder.read("seed", builder.counterType());
  for (const Parameter &parameter : modelParameters(builder.model)) {
    Value value = fill(builder, parameter, seed);
    AssignOp::create(builder.builder, builder.location(parameter.name), parameter.name, value);
  }
  func::ReturnOp::create(builder.builder, builder.location("init"));
}
