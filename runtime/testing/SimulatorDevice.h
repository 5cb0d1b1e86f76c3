//===- SimulatorDevice.h - a simulated device ----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements the functions of the table that take a device, with the table's names and arguments.
// They throw Misuse, and then have no effect.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_TESTING_SIMULATORDEVICE_H
#define WEFT_RT_TESTING_SIMULATORDEVICE_H

#include "testing/Simulator.h"
#include "testing/SimulatorHandles.h"
#include "testing/SimulatorMatmul.h"
#include "testing/SimulatorMemory.h"
#include "testing/SimulatorWork.h"
#include "testing/SimulatorWorld.h"

#include <atomic>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

namespace weft::rt::cuda {

/// The calls that are set to fail, of all devices.
class Faults {
public:
  void failAt(const std::string &function, int64_t n, const std::string &text);
  /// Counts a call, and fails if it is set to.
  void call(const std::string &function);
  int64_t calls(const std::string &function) const;
  std::map<std::string, int64_t> allCalls() const;

private:
  mutable std::mutex mutex;
  std::map<std::string, int64_t> counts;
  std::map<std::pair<std::string, int64_t>, std::string> texts;
};

/// Fails unless the touched bytes begin at a multiple of `alignment`.
void checkAlignment(const Touch &touch, uint64_t alignment);

class Device {
public:
  using Handle = DriverTable::Handle;
  using Address = DriverTable::Address;

  Device(int64_t number, const SimulatorSettings &settings, const Counterparts &counterparts,
         Faults &faults, World &world);
  ~Device();

  /// Call it first in each function: counts the call, and fails if the device has failed or another
  /// thread has opened it.
  void enter();
  /// Call it next: takes the memory that the function is set to take, and fails if it is set to.
  void begin(const std::string &function);
  /// Fails if anything is left.
  void close();
  /// Any thread may call it.
  void giveUp();

  void freeMemory(uint64_t *bytes);
  void allocate(uint64_t bytes, Address *address);
  void free(Address address);
  void allocatePinned(uint64_t bytes, void **place);
  void freePinned(void *place);

  void makeStream(Handle *stream);
  void freeStream(Handle stream);
  void makeEvent(Handle *event);
  void freeEvent(Handle event);
  void record(Handle event, Handle stream);
  void wait(Handle stream, Handle event);
  void reached(Handle event, bool *isReached);
  void await(Handle event);
  void makeTimer(Handle *event);
  void elapsed(Handle from, Handle to, double *seconds);

  void copyToDevice(Handle stream, Address to, const void *host, uint64_t bytes);
  void copyToHost(Handle stream, void *host, Address from, uint64_t bytes);
  void copy(Handle stream, Address to, Address from, uint64_t bytes);
  void zero(Handle stream, Address at, uint64_t bytes);
  void writeProgress(Handle stream, uint32_t *word, uint32_t value);
  void countProgress(Handle stream, uint32_t *word);

  void load(const void *bytes, Handle *module);
  void unload(Handle module);
  void entry(Handle module, const char *name, Handle *found);
  void localBytes(Handle entry, uint64_t *bytes);
  void reserveLocal(uint64_t bytes, bool *isThere);
  void launch(Handle stream, Handle entry, uint32_t blocks, uint32_t threads,
              const uint64_t *arguments, size_t count);

  void nameMatmuls(const char **name);
  void prepareMatmul(const Matmul *matmul, MatmulAlgorithm *way, Handle *prepared);
  void freeMatmul(Handle prepared);
  void runMatmul(Handle stream, Handle prepared, const MatmulPlaces *places);

  void join(const WorldId *id, int64_t ranks, int64_t rank, Handle *communicator);
  void split(Handle communicator, int64_t color, int64_t key, Handle *made);
  void ready(Handle communicator, bool *isReady);
  void end(Handle communicator);
  void freeCommunicator(Handle communicator);
  void beginGroup();
  void endGroup();
  void allReduce(Handle stream, Handle communicator, ReductionKind reduction, ElementType type,
                 Address from, Address to, uint64_t count);
  void allGather(Handle stream, Handle communicator, ElementType type, Address from, Address to,
                 uint64_t count);
  void reduceScatter(Handle stream, Handle communicator, ReductionKind reduction, ElementType type,
                     Address from, Address to, uint64_t count);
  void send(Handle stream, Handle communicator, ElementType type, Address from, uint64_t count,
            int64_t peer);
  void receive(Handle stream, Handle communicator, ElementType type, Address to, uint64_t count,
               int64_t peer);
  void allocateShared(uint64_t bytes, Address *address);
  void freeShared(Address address);
  void registerMemory(Handle communicator, Address at, uint64_t bytes, bool asWindow,
                      Handle *registered);
  void isRegistered(Handle registered, bool *is);
  void unregister(Handle registered);
  void prepareAttention(const Attention *attention, const AttentionPart *part, bool isDeterministic,
                        Handle *prepared, const char **refusal);
  void freeAttention(Handle prepared);
  void runAttention(Handle stream, Handle prepared, const Address *operands, size_t count);

  void beginCapture(Handle stream);
  void endCapture(Handle stream, Handle *graph);
  void launchGraph(Handle stream, Handle graph);
  void freeGraph(Handle graph);

  void seal();
  void unseal();

  // For other devices of its world.

  int64_t ordinal() const { return number; }
  bool isBefore(Place place) const { return graph.isBefore(place); }
  char *placeOf(Address address) const { return memory.place(address); }
  /// Does one unit of work, and keeps its failure. Returns false if there was none to do.
  bool advance();

private:
  struct Stream {
    uint64_t call = 0;
    /// The place of the work that was enqueued last.
    Place last;
    /// All work that comes before the next work.
    Clock clock = {};
    /// A communicator that may not have enqueued its issued collectives yet.
    Handle unsettled = 0;
    /// True if it belongs to a graph and not to the device's user.
    bool isOfGraph = false;
  };
  struct Event {
    uint64_t call = 0;
    /// All work that was enqueued before it was last recorded.
    std::optional<Clock> recorded = {};
    /// The number of times that `reached` has answered no since.
    uint64_t denials = 0;
    /// The capture in which it was last recorded, counted from 1, and its place there.
    uint64_t capture = 0;
    Clock captured = {};
    /// Its place in the last launch of that graph.
    std::shared_ptr<Clock> launched = {};
    /// The time at which a timer was last reached.
    std::shared_ptr<std::chrono::steady_clock::time_point> time = {};
  };
  struct Module {
    uint64_t call = 0;
    /// Memory for it, if it takes any.
    Address place = 0;
    Clock uses = {};
  };
  struct Entry {
    Handle module = 0;
    std::string name;
    const Counterpart *counterpart = nullptr;
    /// The bytes of local memory of each thread.
    uint64_t local = 0;
  };
  struct LoadedMatmul {
    uint64_t call = 0;
    Matmul matmul;
    SimulatorMatmul code = {};
    Clock uses = {};
  };

  /// This rank's part of a communicator.
  struct Link {
    uint64_t call = 0;
    /// Null until it is split off.
    std::shared_ptr<Clique> clique = nullptr;
    size_t rank = 0;
    /// The communicator that it was split off, and its color.
    Handle parent = 0;
    int64_t color = 0;
    /// The round that was last begun on it.
    std::shared_ptr<Round> round = nullptr;
    /// True if `ready` has answered yes since, and the number of times that it has not.
    bool isReady = false;
    uint64_t denials = 0;
    bool isEnded = false;
    uint64_t registrations = 0, graphs = 0;
    /// The kinds of collectives that were issued on it.
    std::set<std::string> issued = {};
    /// The call that first issued a collective; 0 for none.
    uint64_t firstCall = 0;
    Clock uses = {};
  };
  struct Registration {
    uint64_t call = 0;
    Handle communicator = 0;
    Address at = 0;
    uint64_t bytes = 0;
    bool isWindow = false;
  };
  struct Group {
    Handle stream = 0, communicator = 0;
    std::vector<Exchange> exchanges = {};
  };
  struct LoadedAttention {
    uint64_t call = 0;
    Attention attention;
    AttentionPart part;
    Clock uses = {};
  };

  struct Graph {
    uint64_t call = 0;
    /// The commands of a launch, in order.
    std::vector<std::function<void()>> commands = {};
    /// The graph's own streams, one for each captured stream; the first is for the origin.
    std::vector<Handle> lanes = {};
    std::set<Handle> communicators = {};
    /// All work before the end of its last launch.
    Clock last = {};
  };
  /// A captured stream.
  struct Lane {
    Handle lane = 0;
    /// Its last work in the capture, and all work before the next one.
    Place last;
    Clock clock = {};
  };
  struct Capture {
    Handle origin = 0;
    Graph graph;
    std::map<Handle, Lane> lanes = {};
  };

  void checkOpen(const char *what) const;
  /// Returns the lane of a captured stream; null if `stream` is not captured.
  Lane *laneOf(Handle stream);
  Lane &addLane(Handle stream);
  /// If `stream` is captured, adds `work` to the graph and returns true. A launch does it on the
  /// graph's own stream.
  bool captures(Handle stream, std::function<void(Handle)> work);
  void recordCaptured(Event &event, Lane &lane);
  void waitCaptured(Handle stream, const Event &event);
  void dropLanes(const Graph &graph);
  void dropCapture();
  /// Fails unless the host has seen that all work of `uses` is done.
  void checkIdle(const std::string &what, const Clock &uses) const;
  /// Fails unless the host may ask whether the event is reached.
  void checkSeen(Handle event);
  /// Finds an event; fails unless it has been recorded.
  Event &recordedEvent(Handle event);
  /// Returns the time at which `timer` was reached; fails unless the host has seen that.
  std::chrono::steady_clock::time_point timeOf(Handle timer);
  /// Records that the host has seen that all work of `clock` is done.
  void learn(const Clock &clock);
  /// Runs `body`, which does work, and keeps its failure.
  template <typename Body> void watch(const Body &body);
  bool finish(const Clock &clock);
  /// Finds a stream; fails if a communicator has yet to enqueue collectives on it.
  Stream &settledStream(Handle stream);

  Link &readyLink(Handle communicator);
  static void begin(Link &link, std::shared_ptr<Round> round);
  bool isBorn(Link &link);
  void add(Handle stream, Handle communicator, const Exchange &exchange);
  std::vector<Touch> touchesOf(const Exchange &exchange, size_t ranks);
  void issue(const Group &issued);
  /// Fail if the first collective of a kind comes too late.
  void checkFirst(const Link &link, uint64_t serial, const std::string &what) const;
  void checkOrderOfFirsts() const;
  /// Lists what the device has enqueued and others have not: ": send f32 of 4 to 1".
  std::string unmet() const;
  void enqueueGroup(const Group &issued);

  Touch touchDevice(Address address, uint64_t bytes, Access access, const std::string &what);
  Touch touchPinned(const void *host, uint64_t bytes, Access access);
  Memory &memoryOf(const Touch &touch);
  void checkTouches(const std::vector<Touch> &touches) const;
  Place enqueue(Handle stream, const std::string &what, const std::vector<Touch> &touches,
                std::function<void()> run, std::function<bool()> isMet = {});
  /// Makes the enqueued work hang or slow if the settings say so.
  void drill(std::function<void()> &run, std::function<bool()> &isMet);
  void checkWritten(const Touch &touch);
  std::vector<Touch> touchMatmul(const Matmul &matmul, const MatmulPlaces &at);
  void checkRowsWritten(const Touch &touch, const Matmul &matmul, bool isA);

  void runCounterpart(const Counterpart &counterpart, const std::vector<uint64_t> &arguments);

  const int64_t number;
  const SimulatorSettings &settings;
  const Counterparts &counterparts;
  Faults &faults;
  World &world;
  const std::thread::id owner = std::this_thread::get_id();

  Dice dice;
  WorkGraph graph{dice};
  Memory memory, pinned;
  Races races;
  Clock host;
  /// The number of the current call.
  uint64_t call = 0;
  bool isSealed = false;
  /// The units of work so far.
  int64_t parts = 0;
  std::atomic<bool> isGivenUp = false;
  std::optional<Group> group;
  /// The error of work that failed; from then on no work is done.
  std::string failure;

  Handles<Stream> streams;
  Handles<Event> events;
  Handles<Module> modules;
  Handles<Entry> entries;
  Handles<LoadedMatmul> matmuls;
  Handles<Link> links;
  Handles<Registration> registrations;
  Handles<LoadedAttention> attentions;
  /// The reserved local memory: bytes for each thread, and its address.
  uint64_t local = 0;
  Address localPlace = 0;
  Handles<Graph> graphs;
  std::optional<Capture> capture;
  /// The number of captures so far.
  uint64_t captureCount = 0;
  /// The number of streams made so far.
  size_t ordinals = 0;
};

} // namespace weft::rt::cuda

#endif // WEFT_RT_TESTING_SIMULATORDEVICE_H
