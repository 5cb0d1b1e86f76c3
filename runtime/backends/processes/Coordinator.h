//===- Coordinator.h - decides which failure of a run was the first -------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All ranks report to the process of rank 0 that they failed, left or wait too long, and it
// notices when one is gone. The Coordinator keeps these reports and decides which failure
// was the first; only that one is printed. It knows no sockets: it sends messages by a
// function that it is given.
//
// Only one thread at a time may use it.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_PROCESSES_COORDINATOR_H
#define WEFT_RT_BACKENDS_PROCESSES_COORDINATOR_H

#include "weft-rt/Backend.h"

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace weft::rt::mpi {

/// The kinds of messages on the ControlChannel.
enum class Message : uint8_t {
  /// The socket is closed.
  Gone = 0,
  /// Messages to rank 0: a Failure, a Leaving, a Waiting, an Answer, a vote of `agree`, and the
  /// Failure that ends a rank which rank 0 did not answer.
  Failed,
  Left,
  Waits,
  Answers,
  Agrees,
  GivesUp,
  /// Messages from rank 0: the first Failure, a question that wants an Answer, the end of a run
  /// without failures, the result of `agree`.
  Stop,
  Asks,
  Over,
  Agreed,
};

/// Encode and decode the texts of messages. Decoding returns nothing unless the text is valid in a
/// run of `ranks` ranks: all numbers are in their ranges.
std::string encode(const Failure &failure);
std::optional<Failure> decodeFailure(const std::string &text, int64_t ranks);

/// A report of a rank that waits in a collective.
struct Waiting {
  /// "rank 1 waits in all-reduce ...", "rank 1 waited 2 s in all-reduce ...".
  std::string text;
  /// True if the rank gives up; else it only asks whether the missing ranks can still come.
  bool isTooLong = false;
  /// The `group` of a rank whose device waits: the missing ranks are unknown, so all others are
  /// asked how far they are.
  static constexpr int64_t kDevice = -1;
  /// The key of the group in `Leaving::begun`, and the number of its collectives that the rank has
  /// begun.
  int64_t group = 0, begun = 0;
  std::vector<int64_t> missing;
  /// The time that the rank has waited, if `isTooLong`.
  std::chrono::milliseconds patience{0};

  std::string encode() const;
  static std::optional<Waiting> decode(const std::string &text, int64_t ranks);
};

/// A report of a rank that leaves the run.
struct Leaving {
  /// "has left the run after all-reduce ...".
  std::string text;
  /// The number of collectives that it has begun, by group.
  std::map<int64_t, int64_t> begun;

  std::string encode() const;
  static std::optional<Leaving> decode(const std::string &text);
};

/// A rank's answer to `Message::Asks`.
struct Answer {
  /// "is in all-reduce ..." or "last finished all-reduce ...".
  std::string text;
  /// The time since the rank's work last made progress.
  std::chrono::milliseconds moved{0};

  std::string encode() const;
  static std::optional<Answer> decode(const std::string &text);
};

class Coordinator {
public:
  using Clock = std::chrono::steady_clock;
  using Send = std::function<void(int64_t rank, Message message, const std::string &text)>;

  /// The time that a rank has to answer.
  static constexpr std::chrono::milliseconds kPatience{500};

  /// `places` describes by rank where it runs: "process 12 on 'host'".
  Coordinator(std::vector<std::string> places, Send send)
      : places(std::move(places)), ranks(this->places.size()), send(std::move(send)) {}

  /// Handles a message of `rank`, except a vote of `agree`. One of another kind, or that is not
  /// valid, is a failure of that rank.
  void handle(int64_t rank, uint8_t kind, const std::string &text, Clock::time_point now);
  void failed(const Failure &failure);
  void left(int64_t rank, const Leaving &leaving, Clock::time_point now);
  void waits(int64_t rank, const Waiting &waiting, Clock::time_point now);
  void answers(int64_t rank, const Answer &answer, Clock::time_point now);
  /// Records that the socket of `rank` is closed.
  void isGone(int64_t rank);
  /// Decides inquiries whose answers are complete or late. Call it regularly.
  void look(Clock::time_point now);

  const std::optional<Failure> &failure() const { return first; }
  /// Returns true if all ranks have left or are gone.
  bool allLeft() const;
  /// Forgets all reports, for another run.
  void beginAgain() { ranks.assign(ranks.size(), {}); }

private:
  struct Rank {
    std::optional<Leaving> leaving;
    /// True if its process has ended or does not answer.
    bool gone = false;
    std::optional<Answer> answer;
  };
  /// A report that is decided once the other ranks have answered.
  struct Inquiry {
    int64_t rank = 0;
    Waiting waiting;
    Clock::time_point end;
  };
  std::string tell(int64_t rank) const;
  ExitCode codeOfInquiry(bool someAreMute) const;

  const std::vector<std::string> places;
  std::vector<Rank> ranks;
  const Send send;
  std::optional<Failure> first;
  std::optional<Inquiry> inquiry;
};

} // namespace weft::rt::mpi

#endif // WEFT_RT_BACKENDS_PROCESSES_COORDINATOR_H
