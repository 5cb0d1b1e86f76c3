//===- TestDelays.cpp - slow links and shaken threads, for tests ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "support/TestDelays.h"

#include "support/CheckedMath.h"
#include "support/ParseNumber.h"
#include "support/Random.h"
#include "support/Text.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <thread>

using namespace weft::rt;

/// The longest latency or sleep. A longer one would look like a rank that is stuck.
static constexpr double kMostSeconds = 10;

/// Reads a whole text as a finite number from 0 to `most`.
static bool parseUpTo(std::string_view text, double most, double &number) {
  return parseNumber(text, number) && number >= 0 && number <= most;
}

static bool isSet(const char *name) {
  const char *text = std::getenv(name);
  return text && *text;
}

/// The two parts of a setting; the second is empty without a comma.
static std::pair<std::string_view, std::string_view> partsOf(const char *name) {
  std::string_view text = std::getenv(name);
  size_t comma = std::min(text.find(','), text.size());
  return {text.substr(0, comma), text.substr(std::min(comma + 1, text.size()))};
}

Result<TestDelays> TestDelays::read() {
  constexpr const char *kLink = "WEFT_TEST_LINK", *kShake = "WEFT_TEST_SHAKE";
  TestDelays delays;
  if (isSet(kLink)) {
    auto [latency, bandwidth] = partsOf(kLink);
    if (!parseUpTo(latency, kMostSeconds, delays.latencySeconds) ||
        !parseUpTo(bandwidth, 1e15, delays.bytesPerSecond) || delays.bytesPerSecond < 1) {
      return makeError(kLink, " is '", std::getenv(kLink), "', expected SECONDS,BYTES_PER_SECOND, ",
                       "at most ", kMostSeconds, " and at least 1");
    }
  }
  if (isSet(kShake)) {
    auto [seed, seconds] = partsOf(kShake);
    if (!parseNumber(seed, delays.seed) || !parseUpTo(seconds, kMostSeconds, delays.shakeSeconds)) {
      return makeError(kShake, " is '", std::getenv(kShake), "', expected SEED,SECONDS, a whole ",
                       "number and at most ", kMostSeconds);
    }
  }
  return delays;
}

TestDelays::Duration TestDelays::ofLink(const Collective &collective, size_t members) const {
  if (bytesPerSecond == 0 || members < 2) {
    return {};
  }
  // What a rank sends in a ring: the number of its messages, and their bytes over the operand's.
  double steps = double(members - 1), share = steps / double(members);
  switch (collective.kind) {
  case CollectiveKind::AllReduce:
    steps *= 2;
    share *= 2;
    break;
  case CollectiveKind::AllGather:
    share = steps;
    break;
  case CollectiveKind::ReduceScatter:
  case CollectiveKind::AllToAll:
    break;
  case CollectiveKind::Permute:
  case CollectiveKind::Transfer:
    steps = share = 1;
    break;
  }
  double bytes = double(elementCount(collective.shape)) * double(sizeOf(collective.type));
  double seconds = steps * latencySeconds + share * bytes / bytesPerSecond;
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

TestDelays::Duration Shaker::next() {
  if (delays.shakeSeconds == 0) {
    return {};
  }
  const uint64_t bits = randomBits(delays.seed, stream, drawn++);
  const double share = bits % 2 == 0 ? 0 : double(bits >> 11) * 0x1p-53;
  return std::chrono::duration_cast<TestDelays::Duration>(
      std::chrono::duration<double>(share * delays.shakeSeconds));
}

void weft::rt::sleepFor(TestDelays::Duration time, const std::function<bool()> &isStopped) {
  const auto end = std::chrono::steady_clock::now() + time;
  for (auto left = time; left.count() > 0 && !isStopped();
       left = end - std::chrono::steady_clock::now()) {
    std::this_thread::sleep_for(
        std::min<TestDelays::Duration>(left, std::chrono::milliseconds(10)));
  }
}
