//===- Monitor.h - notices devices that do not come on ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A rank's thread that waits for its device has no deadline: a kernel that does not end, or
// a collective whose partner is gone, holds it for ever. Each device tells how far it has
// come by words in the host's memory (ProgressMarks.h). The Monitor's thread looks at the
// words of all ranks of its process, and calls nothing of a device's library, so that
// nothing can hold it.
//
// A rank is late when it has work and no word of it has changed for ten times as long as the
// work up to the next mark is predicted to take, and for a floor besides. Ten, as a
// prediction may be wrong by two or three, and a machine slower by as much; the floor is for
// all that nobody predicts, such as the first call of a library.
//
// A rank that is late in a collective waits for those that are behind it, and these perhaps
// for others. So whoever is late, the one at the end of that line is judged: if it has come
// on meanwhile it is slow, and else it is stuck as soon as it is late itself. Then the
// Monitor stops the run with a report: where the device stands, and where those are that
// take part in the same collective.
//
// Ranks that do not end soon after the run has stopped, whoever has stopped it, have their
// devices given up, each on a thread of its own, as that may not return either.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_EXECUTION_MONITOR_H
#define WEFT_RT_EXECUTION_MONITOR_H

#include "execution/ProgressMarks.h"
#include "weft-rt/Backend.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace weft::rt {

class Monitor {
public:
  using Clock = std::chrono::steady_clock;
  using Now = std::function<Clock::time_point()>;

  static constexpr double kFactor = 10;

  /// Where a device is in what it does in order.
  struct Place {
    /// The mark that it comes to next, and how many came before.
    uint32_t mark = 0, done = 0;
    /// Marks behind instructions are counted over all lines of a rank, by fours, so that the same
    /// mark has one turn on all ranks; copies, which each rank has of its own, come in between. It
    /// is odd where nothing more is issued, behind what was.
    uint32_t turn = 1;

    bool isIdle() const { return turn % 2 != 0; }
    bool isBefore(uint32_t other) const { return int32_t(turn - other) < 0; }
  };

  /// What a device does in order, as one of its streams does.
  class Line {
  public:
    /// `word` is what the device writes, 0 so far. No more than `room` marks are ever issued and
    /// not reached. `turns` is the last turn of all lines of the rank.
    Line(const uint32_t *word, size_t room, std::shared_ptr<uint32_t> turns);

    /// To be called before it is enqueued that the device has come to a mark. Returns what the word
    /// then becomes.
    uint32_t issue(uint32_t mark);

    /// For any thread.
    uint32_t done() const;
    Place place() const;

  private:
    struct Issued {
      uint32_t mark = 0, turn = 0;
    };
    size_t slot(uint32_t value) const { return value & (marks.size() - 1); }

    const uint32_t *const word;
    const std::shared_ptr<uint32_t> turns;
    std::atomic<uint32_t> issued = 0;
    /// By what the word becomes; as many as a power of 2.
    std::vector<std::atomic<Issued>> marks;
  };

  /// `program` must outlive this; `floor` is what all work may take. `clock` is read by several
  /// threads, one at a time.
  Monitor(const Program &program, Clock::duration floor, Now clock = Clock::now);
  ~Monitor();

  const ProgressMarks &marks() const { return progress; }

  /// By a rank's thread: watches it from now on. `giveUp` is called by another thread, perhaps
  /// after this object's end.
  void begin(int64_t rank, Communicator &link, std::function<void()> giveUp);
  /// Adds what the rank does. The result is the rank's thread's until `end`.
  Line &addLine(int64_t rank, const uint32_t *word);
  /// By the same thread: looks at nothing of the rank any more. Nothing happens if it never began.
  /// Where the run has stopped, the device is left for `endsWithin`.
  void end(int64_t rank);

  /// Gives up, side by side, the devices of ranks that have ended after the run had stopped, and
  /// waits until none is being given up any more. Returns false if that takes longer: then the
  /// process must end without destroying what they use.
  bool endsWithin(Clock::duration limit);

private:
  using Lines = std::vector<std::shared_ptr<Line>>;

  struct Rank {
    Communicator *link = nullptr;
    std::function<void()> giveUp;
    Lines lines = {};
    std::shared_ptr<uint32_t> turns = std::make_shared<uint32_t>(0);
    std::vector<uint32_t> seen = {};
    /// Whether it had nothing to do when it was last looked at.
    bool isIdle = true;
    /// When it was last seen to have come on, and when to have done so or to have got work.
    Clock::time_point moved, begun;
    /// When it was first seen that the run has stopped.
    std::optional<Clock::time_point> stopped = {};
    bool isGivenUp = false;
    /// Whether others have been asked where they are.
    bool hasAsked = false;
  };
  /// Of a rank's lines the one that waits for none of the others: of those that have something to
  /// do the one whose turn comes first.
  struct Front {
    size_t line = 0;
    Place place;
  };
  /// What the others do that take part in the collective in which a rank is, if it is in one.
  struct Partners {
    /// Of those in this process: "; rank 0 waits there too".
    std::string text;
    /// Of those who have not come to it, the one that is furthest behind.
    std::optional<int64_t> behind;
    /// Those in other processes.
    std::vector<int64_t> elsewhere;
  };
  /// Threads that give devices up; they may outlive the Monitor.
  struct Helpers {
    std::mutex mutex;
    std::condition_variable changed;
    int64_t running = 0;
  };

  void run();
  void look(Clock::time_point now);
  void lookAt(int64_t number, Rank &rank);
  void giveUp(const std::function<void()> &device);
  static Front frontOf(const Lines &lines);
  Clock::duration budgetOf(const Rank &rank) const;
  /// ": its device is in ..." or what else it does.
  std::string deviceText(const Place &place) const;
  std::string placeText(const Place &place) const;
  Partners partnersOf(int64_t number, Clock::time_point now, Clock::duration patience) const;
  /// For whom a rank waits in the end; itself if that is nobody of this process.
  int64_t rootOf(int64_t number) const;
  /// Of a rank that is late.
  void judge(int64_t number, Rank &rank, Clock::time_point now);
  void report(int64_t number, int64_t root, Clock::time_point now, Clock::duration patience);

  const Program &program;
  const ProgressMarks progress;
  const Clock::duration floor;
  const Now clock;
  const std::shared_ptr<Helpers> helpers = std::make_shared<Helpers>();

  std::mutex mutex;
  std::condition_variable changed;
  bool isEnding = false;
  std::map<int64_t, Rank> ranks;
  /// How to give up devices whose ranks have ended.
  std::vector<std::function<void()>> left;
  Clock::time_point lastLook;
  std::thread thread;
};

} // namespace weft::rt

#endif // WEFT_RT_EXECUTION_MONITOR_H
