//===- Monitor.h - detects devices that make no progress ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A rank's thread waits for its device without a deadline: a kernel that does not
// end, or a collective whose partner is gone, blocks it forever. Each device
// reports its progress in words of host memory (ProgressMarks.h). The Monitor's
// thread watches the words of all ranks of its process. It calls no library of a
// device, so nothing can block it.
//
// A rank is late if it has work and none of its words has changed for a floor plus
// ten times the predicted time of the work up to the next mark. Ten, because a
// prediction may be wrong by a factor of two or three, and a machine slower by as
// much; the floor covers work without a prediction, such as the first call of a
// library.
//
// A rank that is late in a collective waits for ranks that are behind it, and these
// may wait for others. So the Monitor follows this chain and judges the rank at its
// end: if that rank has made progress meanwhile, it is slow; otherwise it is stuck
// as soon as it is late itself. The Monitor then stops the run with a report of the
// device's position and of the positions of its partners in the collective.
//
// If a rank does not end soon after the run has stopped, for whatever reason, the
// Monitor gives its device up, each device on a thread of its own, because giving
// up may block too.
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

  /// The position of a device in one line.
  struct Place {
    /// The next mark, and the number of marks already reached.
    uint32_t mark = 0, done = 0;
    /// The turn of the next mark. Marks after instructions count over all lines of a rank in steps
    /// of 4, so that the same mark has the same turn on all ranks; copies, which differ between
    /// ranks, take turns in between. Odd if the line is idle: everything issued is done.
    uint32_t turn = 1;

    bool isIdle() const { return turn % 2 != 0; }
    bool isBefore(uint32_t other) const { return int32_t(turn - other) < 0; }
  };

  /// A sequence of a device's work that runs in order, as one stream.
  class Line {
  public:
    /// The device writes `word`, which is 0 at first. At most `room` marks may be issued and not
    /// yet reached. `turns` is the last turn of all lines of the rank.
    Line(const uint32_t *word, size_t room, std::shared_ptr<uint32_t> turns);

    /// Announces that the device will report `mark`, and returns the value that it then writes to
    /// the word. Call it before enqueuing that write.
    uint32_t issue(uint32_t mark);

    /// Any thread may call these.
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
    /// Indexed by the word's value; the size is a power of 2.
    std::vector<std::atomic<Issued>> marks;
  };

  /// `program` must outlive this object. `floor` is the time that any work may take in addition to
  /// ten times its prediction. Several threads call `clock`, one at a time.
  Monitor(const Program &program, Clock::duration floor, Now clock = Clock::now);
  ~Monitor();

  const ProgressMarks &marks() const { return progress; }

  /// Starts watching a rank; called by the rank's thread. Another thread calls `giveUp`, perhaps
  /// after the destruction of this object.
  void begin(int64_t rank, Communicator &link, std::function<void()> giveUp);
  /// Adds a line of the rank's work. The result belongs to the rank's thread until `end`.
  Line &addLine(int64_t rank, const uint32_t *word);
  /// Stops watching the rank; called by the rank's thread. Does nothing for a rank that never
  /// began. If the run has stopped, `endsWithin` gives the device up.
  void end(int64_t rank);

  /// Gives up, concurrently, the devices of ranks that ended after the run had stopped, and waits
  /// until all are given up. Returns false after `limit`: then the process must end without
  /// destroying the data that the devices use.
  bool endsWithin(Clock::duration limit);

private:
  using Lines = std::vector<std::shared_ptr<Line>>;

  struct Rank {
    Communicator *link = nullptr;
    std::function<void()> giveUp;
    Lines lines = {};
    std::shared_ptr<uint32_t> turns = std::make_shared<uint32_t>(0);
    std::vector<uint32_t> seen = {};
    /// Whether the rank was idle when last looked at.
    bool isIdle = true;
    /// When the rank last made progress, and when it last made progress or got work.
    Clock::time_point moved, begun;
    /// When the Monitor first saw that the run had stopped.
    std::optional<Clock::time_point> stopped = {};
    bool isGivenUp = false;
    /// Whether other processes have been asked for their positions.
    bool hasAsked = false;
  };
  /// The line of a rank that waits for none of its others: among those with work, the one with the
  /// earliest turn.
  struct Front {
    size_t line = 0;
    Place place;
  };
  /// The partners of a rank in its present collective, if it is in one.
  struct Partners {
    /// The positions of partners in this process: "; rank 0 waits there too".
    std::string text;
    /// The partner that is furthest behind, of those that have not reached the collective.
    std::optional<int64_t> behind;
    /// Partners in other processes.
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
  /// Returns ": its device is in ..." or another description of its state.
  std::string deviceText(const Place &place) const;
  std::string placeText(const Place &place) const;
  Partners partnersOf(int64_t number, Clock::time_point now, Clock::duration patience) const;
  /// Returns the rank at the end of the chain of waits; `number` itself if it waits for no rank of
  /// this process.
  int64_t rootOf(int64_t number) const;
  /// Decides whether a late rank is slow or stuck.
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
  /// Functions that give up the devices of ranks that have ended.
  std::vector<std::function<void()>> left;
  Clock::time_point lastLook;
  std::thread thread;
};

} // namespace weft::rt

#endif // WEFT_RT_EXECUTION_MONITOR_H
