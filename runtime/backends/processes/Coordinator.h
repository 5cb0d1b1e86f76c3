//===- Coordinator.h - what rank 0 knows and decides ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rank 0's process hears of everything: that a rank has failed, has left, waits too long,
// or is gone. The Coordinator keeps that, and decides which failure is the first, and thus
// the one that is reported. It knows no sockets: what it has to tell goes to a function.
//
// Belongs to one thread at a time.
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

/// What processes tell each other on the ControlChannel.
enum class Message : uint8_t {
  /// The end of a socket.
  Gone = 0,
  /// To rank 0: a failure; the end of a rank's part; a wait; an answer; to `agree`.
  Failed,
  Left,
  Waits,
  Answers,
  Agrees,
  /// From rank 0: the failure; how far are you; all is well and over; to
  /// `agree`.
  Stop,
  Asks,
  Over,
  Agreed,
};

/// A failure as it is sent.
std::string encode(const Failure &failure);
Failure decodeFailure(const std::string &text);

/// How a rank waits in a collective.
struct Waiting {
  /// "rank 1 waits in all-reduce ...", "rank 1 waited 2 s in all-reduce ...".
  std::string text;
  /// Whether it will not wait longer; otherwise it only asks if who is missing can still come.
  bool isTooLong = false;
  /// In the place of a group: where a device waits, nobody knows who is missing, and all others
  /// are to say where they are.
  static constexpr int64_t kDevice = -1;
  /// The group, and how many collectives of it the rank has begun.
  int64_t group = 0, begun = 0;
  std::vector<int64_t> missing;
  /// How long it has waited, if too long.
  std::chrono::milliseconds patience{0};

  std::string encode() const;
  static Waiting decode(const std::string &text);
};

/// What is left of a rank that has left.
struct Leaving {
  /// "has left the run after all-reduce ...".
  std::string text;
  /// How many collectives of each group it has begun.
  std::map<int64_t, int64_t> begun;

  std::string encode() const;
  static Leaving decode(const std::string &text);
};

/// What a rank says when it is asked.
struct Answer {
  /// "is in all-reduce ..." or "last finished all-reduce ...".
  std::string text;
  /// How long ago its work has come on last.
  std::chrono::milliseconds moved{0};

  std::string encode() const;
  static Answer decode(const std::string &text);
};

class Coordinator {
public:
  using Clock = std::chrono::steady_clock;
  using Send = std::function<void(int64_t rank, Message message, const std::string &text)>;

  /// How long a rank may take to answer.
  static constexpr std::chrono::milliseconds kPatience{500};

  /// `places` says by rank where it runs: "process 12 on 'host'".
  Coordinator(std::vector<std::string> places, Send send)
      : places(std::move(places)), ranks(this->places.size()), send(std::move(send)) {}

  void failed(const Failure &failure);
  void left(int64_t rank, const Leaving &leaving, Clock::time_point now);
  void waits(int64_t rank, const Waiting &waiting, Clock::time_point now);
  void answers(int64_t rank, const Answer &answer, Clock::time_point now);
  /// Its socket is closed.
  void isGone(int64_t rank);
  /// To be called now and then.
  void look(Clock::time_point now);

  const std::optional<Failure> &failure() const { return first; }
  /// Whether a rank has failed or will not wait longer.
  bool hasReport() const { return first || inquiry; }
  /// Whether all ranks have left or are gone.
  bool allLeft() const;
  /// Another run begins.
  void beginAgain() { ranks.assign(ranks.size(), {}); }

private:
  struct Rank {
    std::optional<Leaving> leaving;
    /// Its process has ended, or does not answer.
    bool gone = false;
    std::optional<Answer> answer;
  };
  /// A report that waits for answers.
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
