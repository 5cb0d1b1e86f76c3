//===- Coordinator.cpp - decides which failure of a run was the first ----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/processes/Coordinator.h"

#include "execution/Lateness.h"
#include "support/Text.h"

#include <algorithm>
#include <charconv>
#include <sstream>

using namespace weft::rt;
using namespace weft::rt::mpi;

namespace {

/// Reads numbers, each followed by a blank, and the text after them.
class FieldReader {
public:
  explicit FieldReader(std::string_view text) : rest(text) {}

  /// Returns the next number; 0, and the text is not valid, unless it is from `least` to `most`.
  int64_t read(int64_t least, int64_t most) {
    int64_t value = 0;
    auto [end, code] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    ok = ok && code == std::errc() && end != rest.data() + rest.size() && *end == ' ' &&
         value >= least && value <= most;
    if (!ok) {
      return 0;
    }
    rest.remove_prefix(size_t(end - rest.data()) + 1);
    return value;
  }
  bool isValid() const { return ok; }
  std::string text() const { return std::string(rest); }

private:
  std::string_view rest;
  bool ok = true;
};

/// More than any run takes; sums and nanoseconds still fit.
constexpr int64_t kMostMilliseconds = int64_t(1) << 40;

std::chrono::milliseconds readTime(FieldReader &fields) {
  return std::chrono::milliseconds(fields.read(0, kMostMilliseconds));
}

/// Returns true for the codes that a failure can have.
bool isFailureCode(int64_t code) {
  switch (ExitCode(code)) {
  case ExitCode::Error:
  case ExitCode::NotFinite:
  case ExitCode::OutOfMemory:
  case ExitCode::Dead:
  case ExitCode::Stuck:
  case ExitCode::Slow:
    return true;
  case ExitCode::Success:
    return false;
  }
  return false;
}

} // namespace

std::string mpi::encode(const Failure &failure) {
  return concat(failure.rank, " ", int(failure.code), " ", failure.message);
}

std::optional<Failure> mpi::decodeFailure(const std::string &text, int64_t ranks) {
  FieldReader fields(text);
  Failure failure;
  failure.rank = fields.read(0, ranks - 1);
  int64_t code = fields.read(0, UINT8_MAX);
  failure.code = ExitCode(code);
  failure.message = fields.text();
  return fields.isValid() && isFailureCode(code) ? std::optional(failure) : std::nullopt;
}

std::string Answer::encode() const { return concat(moved.count(), " ", text); }

std::optional<Answer> Answer::decode(const std::string &text) {
  FieldReader fields(text);
  Answer answer;
  answer.moved = readTime(fields);
  answer.text = fields.text();
  return fields.isValid() ? std::optional(answer) : std::nullopt;
}

std::string Waiting::encode() const {
  std::ostringstream out;
  out << isTooLong << " " << patience.count() << " " << group << " " << begun << " "
      << missing.size();
  for (int64_t rank : missing) {
    out << " " << rank;
  }
  out << " " << text;
  return out.str();
}

std::optional<Waiting> Waiting::decode(const std::string &text, int64_t ranks) {
  FieldReader fields(text);
  Waiting waiting;
  waiting.isTooLong = fields.read(0, 1) == 1;
  waiting.patience = readTime(fields);
  waiting.group = fields.read(kDevice, INT64_MAX);
  waiting.begun = fields.read(0, INT64_MAX);
  for (int64_t count = fields.read(0, ranks); count > 0 && fields.isValid(); --count) {
    waiting.missing.push_back(fields.read(0, ranks - 1));
  }
  waiting.text = fields.text();
  return fields.isValid() ? std::optional(waiting) : std::nullopt;
}

std::string Leaving::encode() const {
  std::ostringstream out;
  out << begun.size();
  for (const auto &[group, count] : begun) {
    out << " " << group << " " << count;
  }
  out << " " << text;
  return out.str();
}

std::optional<Leaving> Leaving::decode(const std::string &text) {
  FieldReader fields(text);
  Leaving leaving;
  for (int64_t count = fields.read(0, int64_t(text.size())); count > 0 && fields.isValid();
       --count) {
    int64_t group = fields.read(0, INT64_MAX);
    leaving.begun[group] = fields.read(0, INT64_MAX);
  }
  leaving.text = fields.text();
  return fields.isValid() ? std::optional(leaving) : std::nullopt;
}

void Coordinator::handle(int64_t rank, uint8_t kind, const std::string &text,
                         Clock::time_point now) {
  auto orInvalid = [&](const auto &decoded, const auto &act) {
    if (decoded) {
      return act(*decoded);
    }
    failed({rank, concat("rank ", rank, " has sent an invalid message"), ExitCode::Error});
  };
  auto count = int64_t(ranks.size());
  switch (Message(kind)) {
  case Message::Gone:
    return isGone(rank);
  case Message::Failed:
  case Message::GivesUp:
    return orInvalid(decodeFailure(text, count), [&](const Failure &found) { failed(found); });
  case Message::Left:
    return orInvalid(Leaving::decode(text), [&](const Leaving &found) { left(rank, found, now); });
  case Message::Waits:
    return orInvalid(Waiting::decode(text, count),
                     [&](const Waiting &found) { waits(rank, found, now); });
  case Message::Answers:
    return orInvalid(Answer::decode(text), [&](const Answer &found) { answers(rank, found, now); });
  default:
    return orInvalid(std::optional<Answer>(), [](const Answer &) {});
  }
}

void Coordinator::failed(const Failure &failure) {
  if (first) {
    return;
  }
  first = failure;
  for (int64_t other = 1; other < int64_t(ranks.size()); ++other) {
    if (!ranks[size_t(other)].gone) {
      send(other, Message::Stop, encode(failure));
    }
  }
}

void Coordinator::left(int64_t rank, const Leaving &leaving, Clock::time_point now) {
  ranks[size_t(rank)].leaving = leaving;
  look(now);
}

void Coordinator::isGone(int64_t rank) {
  ranks[size_t(rank)].gone = true;
  if (!ranks[size_t(rank)].leaving) {
    failed({rank,
            concat("rank ", rank, " is gone: its ", places[size_t(rank)],
                   " has ended without a word, as it does when it is killed"),
            ExitCode::Dead});
  }
}

void Coordinator::answers(int64_t rank, const Answer &answer, Clock::time_point now) {
  ranks[size_t(rank)].answer = answer;
  look(now);
}

void Coordinator::waits(int64_t rank, const Waiting &waiting, Clock::time_point now) {
  if (first || inquiry) {
    return;
  }
  auto cannotCome = [&](int64_t other) {
    const std::optional<Leaving> &leaving = ranks[size_t(other)].leaving;
    if (!leaving) {
      return false;
    }
    auto begun = leaving->begun.find(waiting.group);
    return begun == leaving->begun.end() || begun->second < waiting.begun;
  };
  if (!waiting.isTooLong &&
      std::none_of(waiting.missing.begin(), waiting.missing.end(), cannotCome)) {
    return;
  }
  inquiry = Inquiry{rank, waiting, now + kPatience};
  // Ask all ranks, since the missing ones may wait for one that is stuck.
  for (Rank &each : ranks) {
    each.answer.reset();
  }
  ranks[size_t(rank)].answer = {"waits", waiting.patience};
  for (int64_t other = 0; other < int64_t(ranks.size()); ++other) {
    if (other != rank) {
      send(other, Message::Asks, "");
    }
  }
  look(now);
}

/// Describes a missing rank; empty if it has not answered yet.
std::string Coordinator::tell(int64_t rank) const {
  const Rank &who = ranks[size_t(rank)];
  if (who.leaving || !who.answer) {
    return who.leaving ? who.leaving->text : "";
  }
  bool isLate = inquiry->waiting.isTooLong;
  return who.answer->text +
         (isLate ? movedText(who.answer->moved, inquiry->waiting.patience) : std::string());
}

void Coordinator::look(Clock::time_point now) {
  if (first || !inquiry) {
    return;
  }
  std::vector<int64_t> mute;
  for (int64_t rank = 0; rank < int64_t(ranks.size()); ++rank) {
    if (tell(rank).empty()) {
      mute.push_back(rank);
    }
  }
  if (!mute.empty() && now < inquiry->end) {
    return;
  }
  std::string message = inquiry->waiting.text;
  for (int64_t rank : inquiry->waiting.missing) {
    if (std::string known = tell(rank); !known.empty()) {
      bool isMissing = inquiry->waiting.group != Waiting::kDevice;
      message += concat("; rank ", rank, isMissing ? " is missing: it " : " ", known);
    }
  }
  for (int64_t rank : mute) {
    message += concat("; rank ", rank, " is missing: its ", places[size_t(rank)],
                      " does not answer, as when it is stopped");
  }
  // Stopped processes get the failure too: once the launcher wakes and ends them, they must not
  // report that as the reason.
  failed({inquiry->rank, message, codeOfInquiry(!mute.empty())});
  for (int64_t rank : mute) {
    ranks[size_t(rank)].gone = true; // Its end is not waited for.
  }
}

/// Returns the code for a timeout: a missing rank may itself wait for a rank of another group.
ExitCode Coordinator::codeOfInquiry(bool someAreMute) const {
  const Waiting &waiting = inquiry->waiting;
  bool someoneMoves = std::ranges::any_of(ranks, [&](const Rank &rank) {
    return !rank.leaving && rank.answer && isMoving(rank.answer->moved, waiting.patience);
  });
  return !waiting.isTooLong             ? ExitCode::Error
         : someAreMute || !someoneMoves ? ExitCode::Stuck
                                        : ExitCode::Slow;
}

bool Coordinator::allLeft() const {
  return std::all_of(ranks.begin(), ranks.end(),
                     [](const Rank &rank) { return rank.leaving || rank.gone; });
}
