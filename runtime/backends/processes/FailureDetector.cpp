//===- FailureDetector.cpp - reports failures between processes ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/processes/FailureDetector.h"

#include "support/Text.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

using namespace weft::rt;
using namespace weft::rt::mpi;

/// The time that a rank waits for rank 0's decision on a failure.
static constexpr std::chrono::seconds kFirstPatience(2);
/// The time that a process takes after SIGTERM to learn the reason and report it. Rank 0 reports;
/// it must not mistake the end of the others for the reason. mpirun waits a second before it kills.
static constexpr std::chrono::milliseconds kLastLook(250), kLastLookOfOthers(500);
/// The time for which a process that has reported in place of rank 0 keeps the socket name that
/// tells the others so: they look for it when their own patience ends.
static constexpr std::chrono::milliseconds kReporterStays(2500);

/// The time between two looks at whether the rank's thread is done.
static constexpr std::chrono::milliseconds kLongestPause(50);

/// Returns the failure of a run in which a message is none.
static Failure invalidMessage(int64_t from) {
  return {from, concat("rank ", from, " has sent an invalid message"), ExitCode::Error};
}

/// Returns true for what `agree` sends: the first letter tells a text from an error.
static bool isVote(const std::string &text) {
  return text.starts_with('t') || text.starts_with('e');
}

FailureDetector::FailureDetector(ControlChannel &controlChannel, int64_t rank,
                                 std::vector<std::string> places, std::string run,
                                 std::chrono::nanoseconds grace)
    : controlChannel(controlChannel), self(rank), places(std::move(places)), run(std::move(run)),
      grace(grace),
      coordinator(this->places,
                  [this](int64_t to, Message message, const std::string &text) {
                    if (to == 0) {
                      coordinator.answers(0, answer(),
                                          Clock::now()); // All that rank 0 is ever asked.
                    } else {
                      this->controlChannel.send(to, uint8_t(message), text);
                    }
                  }),
      votes(this->places.size()) {
  wakeDescriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signalDescriptor = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

FailureDetector::~FailureDetector() {
  if (reporter >= 0) {
    std::this_thread::sleep_for(kReporterStays);
  }
  for (int descriptor : {wakeDescriptor, signalDescriptor, reporter}) {
    if (descriptor >= 0) {
      close(descriptor);
    }
  }
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

Answer FailureDetector::answer() const {
  bool isInside = inside.load(std::memory_order_acquire);
  const std::string *text = last.load(std::memory_order_acquire);
  // The rank may have moved since this thread asked for the time.
  auto ago = std::max(Clock::now() - movedAt.load(std::memory_order_relaxed), Clock::duration());
  return {concat(isInside ? "is in " : "last finished ", text ? *text : "no collective at all",
                 describeDevice ? describeDevice() : ""),
          std::chrono::duration_cast<std::chrono::milliseconds>(ago)};
}

void FailureDetector::tellBy(std::function<std::string()> describe) {
  std::lock_guard lock(mutex);
  describeDevice = std::move(describe);
}

bool FailureDetector::fail(const std::string &message, ExitCode code) {
  std::lock_guard lock(mutex);
  isStopped.store(true, std::memory_order_release);
  if (self == 0) {
    coordinator.failed({0, message, code});
  } else if (!told) {
    told = Clock::now();
    toldFailure = {self, message, code};
    controlChannel.send(0, uint8_t(Message::Failed), encode(toldFailure));
  }
  wake();
  return false;
}

void FailureDetector::waits(const Waiting &waiting) {
  std::lock_guard lock(mutex);
  if (self == 0) {
    coordinator.waits(0, waiting, Clock::now());
  } else {
    if (waiting.isTooLong && !told) {
      told = Clock::now();
      toldFailure = {self, waiting.text, ExitCode::Stuck};
    }
    controlChannel.send(0, uint8_t(Message::Waits), waiting.encode());
  }
  wake();
}

void FailureDetector::wake() {
  uint64_t one = 1;
  [[maybe_unused]] ssize_t written = write(wakeDescriptor, &one, sizeof one);
}

/// Handles messages and signals; waits for them up to `limit`.
void FailureDetector::poll(std::chrono::microseconds limit) {
  controlChannel.wait(limit, std::array{wakeDescriptor, signalDescriptor});
  uint64_t count = 0;
  [[maybe_unused]] ssize_t taken = read(wakeDescriptor, &count, sizeof count);
  handleSignal();
  std::lock_guard lock(mutex);
  controlChannel.read([this](int64_t rank, uint8_t kind, const std::string &text) {
    self == 0 ? handle(rank, kind, text) : handleOther(kind, text);
  });
  auto now = Clock::now();
  if (self == 0) {
    coordinator.look(now);
    if (coordinator.failure()) {
      stop(*coordinator.failure());
    }
  } else if (!failure && told && now > *told + kFirstPatience) {
    firstIsMute = true;
    stop({self,
          concat(toldFailure.message, "; rank 0 is missing: its ", places[0],
                 " does not answer, as when it is stopped"),
          toldFailure.code});
    // Rank 0 reads it when its process goes on, and ends in the same way.
    controlChannel.send(0, uint8_t(Message::GivesUp), encode(*failure));
  }
}

void FailureDetector::stop(const Failure &found) {
  isStopped.store(true, std::memory_order_release);
  if (!failure) {
    failure = found;
    heard = Clock::now();
  }
}

/// Handles a message at rank 0.
void FailureDetector::handle(int64_t rank, uint8_t kind, const std::string &text) {
  wasMute |= Message(kind) == Message::GivesUp;
  if (Message(kind) == Message::Agrees) {
    votes[size_t(rank)] = text;
    return isVote(text) ? void() : coordinator.failed(invalidMessage(rank));
  }
  coordinator.handle(rank, kind, text, Clock::now());
}

/// Handles a message of rank 0 at another rank.
void FailureDetector::handleOther(uint8_t kind, const std::string &text) {
  switch (Message(kind)) {
  case Message::Gone:
    firstIsGone = true;
    if (!isAllOver) {
      stop({0,
            concat("rank 0 is gone: its ", places[0],
                   " has ended without a word, as it does when it is killed"),
            ExitCode::Dead});
    }
    return;
  case Message::Asks:
    return controlChannel.send(0, uint8_t(Message::Answers), answer().encode());
  case Message::Stop:
    firstTells = !firstIsMute; // Else this rank has told rank 0 that it reports.
    return stop(decodeFailure(text, int64_t(places.size())).value_or(invalidMessage(0)));
  case Message::Over:
    isAllOver = true;
    return;
  case Message::Agreed:
    if (!isVote(text)) {
      return stop(invalidMessage(0));
    }
    firstTells = firstTells || text.starts_with('e');
    agreed = text;
    return;
  default:
    return stop(invalidMessage(0));
  }
}

/// Handles SIGTERM: the launcher ends all processes when one has died. A process that knows the
/// reason may still report it.
void FailureDetector::handleSignal() {
  signalfd_siginfo information;
  if (read(signalDescriptor, &information, sizeof information) != sizeof information) {
    return;
  }
  isHurried = true;
  if (failure) {
    return;
  }
  auto end = Clock::now() + (self == 0 ? kLastLook : kLastLookOfOthers);
  while (Clock::now() < end) {
    poll(std::chrono::milliseconds(20));
    if (failure) {
      return;
    }
  }
  std::signal(SIGTERM, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  raise(SIGTERM);
}

Result<std::string> FailureDetector::agree(const Result<std::string> &given) {
  std::string own = given ? "t" + *given : "e" + given.error().message;
  if (self != 0) {
    std::lock_guard lock(mutex);
    controlChannel.send(0, uint8_t(Message::Agrees), own);
  } else {
    votes[0] = own;
  }
  // The result counts even if rank 0 has ended since.
  while (!agreed && !failure) {
    if (self == 0 && std::ranges::all_of(votes, [](auto &vote) { return vote.has_value(); })) {
      auto bad = std::ranges::find_if(votes, [](auto &vote) { return vote->starts_with('e'); });
      agreed = bad == votes.end() ? own : **bad;
      votes.assign(votes.size(), std::nullopt);
      for (int64_t rank = 1; rank < int64_t(places.size()); ++rank) {
        controlChannel.send(rank, uint8_t(Message::Agreed), *agreed);
      }
      break;
    }
    poll(std::chrono::milliseconds(100));
  }
  if (!agreed) {
    return makeError(failure->message);
  }
  std::string result = std::move(*agreed);
  agreed.reset();
  bool ok = result.starts_with('t');
  // Rank 0 reports the error and ends; if another process ends first, the launcher may kill rank 0.
  for (auto end = Clock::now() + grace; !ok && self != 0 && !firstIsGone && Clock::now() < end;) {
    poll(std::chrono::milliseconds(100));
  }
  hasDisagreed = !ok;
  if (!ok) {
    return makeError(result.substr(1));
  }
  return result.substr(1);
}

void FailureDetector::sendLeaving(const std::map<int64_t, int64_t> &begun) {
  const std::string *text = last.load(std::memory_order_acquire);
  Leaving leaving = {concat("has left the run after ", text ? *text : "no collective at all"),
                     begun};
  std::lock_guard lock(mutex);
  if (self == 0) {
    coordinator.left(0, leaving, Clock::now());
  } else {
    controlChannel.send(0, uint8_t(Message::Left), leaving.encode());
  }
  hasLeft = true;
}

/// Returns true if this process need not wait any more.
bool FailureDetector::isOver(bool isDone, Clock::time_point now) {
  // Rank 0 reports and then ends; if another process ends first, the launcher kills rank 0.
  bool isLate =
      failure && ((self == 0 && isHurried) ||
                  now > *heard + grace + (self == 0 ? Clock::duration() : kFirstPatience));
  if (self != 0) {
    return isLate || (isDone && (isAllOver || (failure && (firstIsGone || firstIsMute))));
  }
  if (!isLate && !(isDone && coordinator.allLeft())) {
    return false;
  }
  for (int64_t rank = 1; !failure && rank < int64_t(places.size()); ++rank) {
    controlChannel.send(rank, uint8_t(Message::Over), "");
  }
  coordinator.beginAgain();
  return true;
}

RunResult FailureDetector::serve(const std::function<bool()> &isDone, const Work &work,
                                 const std::function<std::map<int64_t, int64_t>()> &begun) {
  std::chrono::microseconds pause = kNoWork;
  for (;;) {
    poll(std::min<std::chrono::microseconds>(pause, kLongestPause));
    bool done = isDone();
    pause = done ? kNoWork : work();
    if (done && !hasLeft) {
      sendLeaving(begun());
    }
    std::lock_guard lock(mutex);
    if (isOver(done, Clock::now())) {
      hasLeft = isAllOver = false; // There may be another run.
      if (done) {
        last.store(nullptr); // The text ends with the run.
      }
      return {failure, !done};
    }
  }
}

bool FailureDetector::reportsErrors() {
  if (self == 0) {
    return !wasMute;
  }
  if (firstTells || (!firstIsGone && !firstIsMute)) {
    return false;
  }
  // Rank 0 does not report any more. On each machine the first process that binds this socket name,
  // which only one can, reports in its place.
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  std::string text = concat("weft-report-", run);
  std::memcpy(name.sun_path + 1, text.data(), text.size()); // The 0 before it: not a file.
  auto size = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  if (reporter < 0) {
    reporter = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(reporter, reinterpret_cast<sockaddr *>(&name), size) == 0) {
      return true;
    }
    close(reporter);
    reporter = -1;
  }
  return false;
}
