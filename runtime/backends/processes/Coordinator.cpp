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
#include <sstream>

using namespace weft::rt;
using namespace weft::rt::mpi;

std::string mpi::encode(const Failure &failure) {
  return concat(failure.rank, " ", int(failure.code), " ", failure.message);
}

Failure mpi::decodeFailure(const std::string &text) {
  std::istringstream in(text);
  Failure failure;
  int code = 0;
  in >> failure.rank >> code;
  failure.code = ExitCode(code);
  in.get();
  std::getline(in, failure.message, '\0');
  return failure;
}

std::string Answer::encode() const { return concat(moved.count(), " ", text); }

Answer Answer::decode(const std::string &text) {
  std::istringstream in(text);
  Answer answer;
  int64_t moved = 0;
  in >> moved;
  answer.moved = std::chrono::milliseconds(moved);
  in.get();
  std::getline(in, answer.text, '\0');
  return answer;
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

Waiting Waiting::decode(const std::string &text) {
  std::istringstream in(text);
  Waiting waiting;
  size_t count = 0;
  int64_t patience = 0;
  in >> waiting.isTooLong >> patience >> waiting.group >> waiting.begun >> count;
  waiting.patience = std::chrono::milliseconds(patience);
  for (int64_t rank = 0; count > 0 && in >> rank; --count) {
    waiting.missing.push_back(rank);
  }
  in.get();
  std::getline(in, waiting.text, '\0');
  return waiting;
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

Leaving Leaving::decode(const std::string &text) {
  std::istringstream in(text);
  Leaving leaving;
  size_t count = 0;
  in >> count;
  for (int64_t group = 0, begun = 0; count > 0 && in >> group >> begun; --count) {
    leaving.begun[group] = begun;
  }
  in.get();
  std::getline(in, leaving.text, '\0');
  return leaving;
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
