//===- ControlMessages.cpp - messages of the control channel ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The bytes are what the ranks of a run send to rank 0, which judges their failures; and the lines
// of the bytes are texts of such messages, whose kinds their first letters choose.
//
//===----------------------------------------------------------------------===//

#include "Fuzz.h"

#include "backends/processes/ControlChannel.h"
#include "backends/processes/Coordinator.h"

#include <algorithm>

using namespace weft::rt;
using namespace weft::rt::mpi;

static constexpr int64_t kRanks = 4;

namespace {

/// Rank 0 of a run, at a time that goes on.
class Judge {
public:
  void hear(int64_t rank, uint8_t kind, const std::string &text) {
    now += std::chrono::milliseconds(100);
    coordinator.handle(rank, kind, text, now);
    coordinator.look(now);
    if (const std::optional<Failure> &failure = coordinator.failure()) {
      require(failure->rank >= 0 && failure->rank < kRanks, "a rank of the run fails");
      require(failure->code != ExitCode::Success, "and that is no success");
      std::optional<Failure> again = decodeFailure(encode(*failure), kRanks);
      require(again && again->message == failure->message, "all ranks hear of it");
    }
  }

private:
  Coordinator::Clock::time_point now;
  Coordinator coordinator{std::vector<std::string>(kRanks, "process 1 on 'a'"),
                          [](int64_t rank, Message, const std::string &) {
                            require(rank >= 0 && rank < kRanks, "only ranks are told");
                          }};
};

} // namespace

static void readBytes(std::span<const char> bytes) {
  Judge judge;
  ControlMessages messages;
  size_t part = 1, heard = 0;
  bool isValid = true;
  while (!bytes.empty()) {
    size_t count = std::min(bytes.size(), part++);
    bool goesOn = messages.take(bytes.first(count), [&](uint8_t kind, const std::string &text) {
      require(isValid, "nothing is heard after an invalid message");
      require(kind > 0 && text.size() <= ControlMessages::kMostText, "a message has a kind");
      judge.hear(int64_t(heard++ % kRanks), kind, text);
    });
    require(isValid || !goesOn, "which is the end");
    isValid = goesOn;
    bytes = bytes.subspan(count);
  }
}

static void readLines(std::string_view text) {
  Judge judge;
  for (size_t rank = 0; !text.empty(); ++rank) {
    size_t end = std::min(text.find('\n'), text.size());
    auto kind = uint8_t(uint8_t(text[0]) % (uint8_t(Message::Agreed) + 1));
    judge.hear(int64_t(rank % kRanks), kind,
               std::string(text.substr(std::min<size_t>(1, end), end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::span<const char> bytes(reinterpret_cast<const char *>(data), size);
  readBytes(bytes);
  readLines({bytes.data(), bytes.size()});
  return 0;
}
