//===- Overflow.cpp - tokens that exceed an expert's buffer ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "execution/Overflow.h"

#include "program/Shards.h"
#include "support/CheckedMath.h"
#include "support/Text.h"

#include <cmath>
#include <cstdio>

using namespace weft::rt;

namespace {

/// Returns the part of the shard `whole` that is not padding.
template <typename T>
std::optional<Overflow> findTyped(const Observation &observed, const Region &whole,
                                  const Region &part, const T *values) {
  std::optional<Overflow> greatest;
  for (uint64_t i = 0, count = elementCount(whole.shape); i < count; ++i) {
    auto rest = int64_t(i);
    bool isPadding = false;
    for (size_t dim = whole.shape.size(); dim-- > 0; rest /= whole.shape[dim]) {
      isPadding |= rest % whole.shape[dim] >= part.shape[dim];
    }
    auto value = double(values[i]);
    if (!isPadding && !(value <= observed.limit) && (!greatest || value > greatest->value)) {
      greatest = Overflow{0, whole.offset.back() + int64_t(i) % whole.shape.back(), value};
    }
  }
  return greatest;
}

/// Rounds up to four places; a smaller number would not suffice.
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
  Region whole = localRegion(observed.layout, program.mesh, coordinates);
  Region part = dataRegion(observed.layout, program.mesh, coordinates);
  std::optional<Overflow> found =
      observed.layout.type == ElementType::F64
          ? findTyped(observed, whole, part, static_cast<const double *>(data))
          : findTyped(observed, whole, part, static_cast<const float *>(data));
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
