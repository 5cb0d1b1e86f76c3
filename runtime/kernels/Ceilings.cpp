//===- Ceilings.cpp - measures a device's peak rates ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kernels/Ceilings.h"

#include "support/Text.h"
#include "weft-rt/Program.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <vector>

using namespace weft::rt;
using namespace weft::rt::cuda;
using namespace weft::rt::kernels;

namespace {

/// A device with a stream. It keeps the first error, and does nothing after it.
class Bench {
public:
  explicit Bench(const DriverTable &library) : library(library) {
    if (check(library.open(0, &device, &facts)) && check(library.makeStream(device, &stream))) {
      check(library.makeEvent(device, &event));
    }
  }
  ~Bench() {
    for (DriverTable::Address place : places) {
      library.free(device, place);
    }
    if (event) {
      library.freeEvent(device, event);
    }
    if (stream) {
      library.freeStream(device, stream);
    }
    if (device) {
      library.close(device);
    }
  }

  bool check(DriverTable::Result result) {
    text = text.empty() && result ? result : text;
    return text.empty();
  }

  DriverTable::Address allocate(uint64_t bytes) {
    DriverTable::Address place = 0;
    if (check(library.allocate(device, bytes, &place)) && !place) {
      text = concat("no ", bytesText(bytes), " are free on the device");
    }
    if (place) {
      places.push_back(place);
    }
    return place;
  }

  /// Returns the seconds of the work that one call of `enqueue` enqueues: the best of some batches.
  double time(double seconds, const std::function<DriverTable::Result()> &enqueue) {
    double best = 0;
    auto run = [&](int64_t count) {
      auto start = std::chrono::steady_clock::now();
      for (int64_t i = 0; i < count && text.empty(); ++i) {
        check(enqueue());
      }
      if (text.empty() && check(library.record(device, event, stream))) {
        check(library.await(device, event));
      }
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    run(1);
    constexpr int64_t kBatches = 4;
    auto count = int64_t(std::clamp(seconds / kBatches / std::max(run(1), 1e-6), 1.0, 200.0));
    for (int64_t batch = 0; batch < kBatches && text.empty(); ++batch) {
      double each = run(count) / double(count);
      best = batch == 0 ? each : std::min(best, each);
    }
    return best;
  }

  const DriverTable &library;
  DriverTable::Handle device = 0, stream = 0, event = 0;
  DeviceFacts facts = {};
  std::string text;

private:
  std::vector<DriverTable::Address> places;
};

void measureCopies(Bench &bench, uint64_t bytes, double seconds, Ceilings &ceilings) {
  DriverTable::Address from = bench.allocate(bytes), to = bench.allocate(bytes);
  const DriverTable &library = bench.library;
  if (from && to && bench.check(library.zero(bench.device, bench.stream, from, bytes))) {
    double each = bench.time(
        seconds, [&] { return library.copy(bench.device, bench.stream, to, from, bytes); });
    ceilings.copiedBytesPerSecond = 2 * double(bytes) / each;
  }
}

/// Fills with numbers from 0.5 to 1, of both signs, since devices multiply zeros faster.
void fillWithNumbers(ElementType type, void *to, uint64_t bytes) {
  uint32_t state = 1;
  auto next = [&] { return (state = state * 1664525 + 1013904223) >> 16; };
  for (uint64_t i = 0; i < bytes / sizeOf(type); ++i) {
    if (isFloat8(type)) {
      static_cast<uint8_t *>(to)[i] = uint8_t(0x30 | (next() & 0x87)); // E4M3.
    } else {
      static_cast<uint16_t *>(to)[i] = uint16_t(0x3F00 | (next() & 0x807F));
    }
  }
}

/// Returns the operations per second of a matmul of square matrices of `type`, bf16 or F8E4M3.
double measureMatmul(Bench &bench, ElementType type, int64_t size, double seconds) {
  Matmul matmul = {.type = type,
                   .transposeB = isFloat8(type),
                   .m = size,
                   .n = size,
                   .k = size,
                   .lda = size,
                   .ldb = size,
                   .ldc = size};
  matmul.workspaceBytes = uint64_t(32) << 20;
  const DriverTable &library = bench.library;
  uint64_t bytes = uint64_t(size * size) * sizeOf(matmul.resultType());
  uint64_t read = uint64_t(size * size) * sizeOf(type);
  MatmulPlaces places = {};
  void *pinned = nullptr;
  for (DriverTable::Address *place : {&places.a, &places.b, &places.c}) {
    *place = bench.text.empty() ? bench.allocate(bytes) : 0;
  }
  places.workspace = bench.text.empty() ? bench.allocate(matmul.workspaceBytes) : 0;
  places.factorA = places.factorB = bench.text.empty() ? bench.allocate(sizeof(float)) : 0;
  if (!bench.text.empty() || !bench.check(library.allocatePinned(bench.device, bytes, &pinned)) ||
      !pinned) {
    return 0;
  }
  auto send = [&](DriverTable::Address to, uint64_t count) {
    bench.check(library.copyToDevice(bench.device, bench.stream, to, pinned, count));
    bench.check(library.record(bench.device, bench.event, bench.stream));
    bench.check(library.await(bench.device, bench.event));
  };
  const float factor = 1;
  std::memcpy(pinned, &factor, sizeof factor);
  send(places.factorA, sizeof factor);
  fillWithNumbers(type, pinned, read);
  send(places.a, read);
  send(places.b, read);
  MatmulAlgorithm way = {};
  DriverTable::Handle prepared = 0;
  double rate = 0;
  if (bench.text.empty() &&
      bench.check(library.prepareMatmul(bench.device, &matmul, &way, &prepared))) {
    double each = bench.time(
        seconds, [&] { return library.runMatmul(bench.device, bench.stream, prepared, &places); });
    rate = 2 * double(size) * double(size) * double(size) / each;
    bench.check(library.freeMatmul(bench.device, prepared));
  }
  bench.check(library.freePinned(bench.device, pinned));
  return rate;
}

} // namespace

Result<Ceilings> weft::rt::kernels::measureCeilings(const DriverTable &library, CeilingKind kind,
                                                    uint64_t bytes, int64_t size, double seconds) {
  Bench bench(library);
  Ceilings ceilings;
  ceilings.device = bench.facts.name;
  ceilings.libraries = library.name();
  ceilings.copiedBytes = bytes;
  ceilings.matmulSize = size;
  bool isOfMatmuls = kind == CeilingKind::Matmuls;
  if (bench.text.empty() && !isOfMatmuls) {
    measureCopies(bench, bytes, seconds, ceilings);
  }
  if (bench.text.empty() && isOfMatmuls) {
    ceilings.matmulFlopsPerSecond = measureMatmul(bench, ElementType::BF16, size, seconds);
  }
  if (bench.text.empty() && isOfMatmuls && bench.facts.multipliesBytes()) {
    ceilings.fp8MatmulFlopsPerSecond = measureMatmul(bench, ElementType::F8E4M3, size, seconds);
  }
  if (!bench.text.empty()) {
    return makeError(bench.text);
  }
  return ceilings;
}
