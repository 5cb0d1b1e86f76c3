//===- Overflow.cpp - what did not fit into an expert's buffer --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/Overflow.h"

#include "core/Pieces.h"
#include "core/Text.h"

#include <cmath>
#include <cstdio>

using namespace weft::rt;

namespace {

template <typename T>
std::optional<Overflow> findTyped(const Observation &observed, const Region &region,
                                  const T *values) {
  int64_t experts = region.shape.back(), rows = 1;
  for (int64_t size : region.shape) {
    rows *= size;
  }
  std::optional<Overflow> greatest;
  for (int64_t i = 0; i < rows; ++i) {
    auto value = double(values[i]);
    if (!(value <= observed.limit) && (!greatest || value > greatest->value)) {
      greatest = Overflow{0, region.offset.back() + i % experts, value};
    }
  }
  return greatest;
}

/// Rounded up to four places, since less would not be enough.
std::string factorText(double factor) {
  char text[32];
  std::snprintf(text, sizeof text, "%.10g", std::ceil(factor * 1e4 - 1e-6) / 1e4);
  return text;
}

} // namespace

std::optional<Overflow> weft::rt::findOverflow(const Program &program, uint32_t observation,
                                               std::span<const int64_t> coordinates,
                                               const void *data) {
  const Observation &observed = program.observations[observation];
  Region region = localRegion(observed.layout, program.mesh, coordinates);
  std::optional<Overflow> found =
      observed.layout.type == ElementType::F64
          ? findTyped(observed, region, static_cast<const double *>(data))
          : findTyped(observed, region, static_cast<const float *>(data));
  if (found) {
    found->observation = observation;
  }
  return found;
}

bool weft::rt::goesBefore(const Overflow &a, const Overflow &b) {
  return a.observation != b.observation ? a.observation < b.observation : a.value > b.value;
}

std::string weft::rt::describe(const Program &program, const Overflow &overflow) {
  const Observation &observed = program.observations[overflow.observation];
  std::string layer = observed.name.substr(observed.name.find('/') + 1);
  return concat(layer, ": expert ", overflow.expert, " gets ", overflow.value,
                " tokens of a sequence, its buffer holds ", observed.limit, ", the mean is ",
                observed.mean,
                "; the step changed nothing, compile with "
                "routing.buffer_factor of at least ",
                factorText(overflow.value / observed.mean));
}
