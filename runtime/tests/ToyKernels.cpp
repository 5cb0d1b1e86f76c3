//===- ToyKernels.cpp - the kernels of the small program --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "support/Random.h"
#include "tests/Toy.h"

#include <cmath>
#include <cstdlib>
#include <thread>

using namespace weft::rt;

double weft::rt::toyInitial(uint64_t seed, int64_t token) {
  return double(randomBits(seed, 0, uint64_t(token)) >> 11) * 0x1p-53;
}

static void init(void *const *buffers, const int64_t *immediates, const int64_t *coordinates,
                 int64_t, int64_t, int64_t) {
  uint64_t seed = *static_cast<uint64_t *>(buffers[0]);
  double *table = static_cast<double *>(buffers[1]), *momentum = static_cast<double *>(buffers[2]);
  for (int64_t i = 0; i < immediates[0]; ++i) {
    table[i] = toyInitial(seed, coordinates[1] * immediates[0] + i);
    momentum[i] = 0;
  }
}

static void hangIfAsked(int64_t rank) {
  const char *hang = std::getenv("WEFT_TOY_HANG");
  while (hang && std::atoi(hang) == rank) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

static void gradient(void *const *buffers, const int64_t *immediates, const int64_t *coordinates,
                     int64_t, int64_t, int64_t) {
  const double *table = static_cast<double *>(buffers[0]);
  const int32_t *tokens = static_cast<int32_t *>(buffers[1]);
  const int32_t *targets = static_cast<int32_t *>(buffers[2]);
  double *loss = static_cast<double *>(buffers[3]), *out = static_cast<double *>(buffers[4]);
  int64_t shard = immediates[0], first = coordinates[1] * shard;
  hangIfAsked(coordinates[0] * immediates[2] + coordinates[1]);
  *loss = 0;
  for (int64_t i = 0; i < shard; ++i) {
    out[i] = 0;
  }
  for (int64_t i = 0; i < immediates[1]; ++i) {
    int64_t token = tokens[i] - first;
    if (token >= 0 && token < shard) {
      double difference = table[token] - targets[i] / 256.0;
      *loss += difference * difference / (kToyBatch * kToySequence);
      out[token] += 2 * difference / (kToyBatch * kToySequence);
    }
  }
}

static void square(void *const *buffers, const int64_t *immediates, const int64_t *, int64_t,
                   int64_t, int64_t) {
  const double *gradient = static_cast<double *>(buffers[0]);
  double sum = 0;
  for (int64_t i = 0; i < immediates[0]; ++i) {
    sum += gradient[i] * gradient[i];
  }
  *static_cast<double *>(buffers[1]) = sum;
}

static void root(void *const *buffers, const int64_t *, const int64_t *, int64_t, int64_t,
                 int64_t) {
  double *norm = static_cast<double *>(buffers[0]);
  *norm = std::sqrt(*norm);
}

static void update(void *const *buffers, const int64_t *immediates, const int64_t *, int64_t,
                   int64_t, int64_t) {
  const double *gradient = static_cast<double *>(buffers[0]);
  double *momentum = static_cast<double *>(buffers[1]), *table = static_cast<double *>(buffers[2]);
  for (int64_t i = 0; i < immediates[0]; ++i) {
    momentum[i] = 0.9 * momentum[i] + gradient[i];
    table[i] -= 4 * momentum[i];
  }
}

static const int64_t kOnce[] = {1};

const KernelCode weft::rt::kToyKernels[] = {{init, 1, kOnce},
                                            {gradient, 1, kOnce},
                                            {square, 1, kOnce},
                                            {root, 1, kOnce},
                                            {update, 1, kOnce}};
