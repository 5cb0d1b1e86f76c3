//===- Simulator.cpp - simulates CUDA devices for tests -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "testing/Simulator.h"

#include "testing/SimulatorDevice.h"

#include <algorithm>

using namespace weft::rt;
using namespace weft::rt::cuda;

struct Simulator::State {
  SimulatorSettings settings;
  Counterparts counterparts;
  Faults faults;

  struct Slot {
    /// The number of times that the device was opened.
    uint64_t openings = 0;
    std::unique_ptr<Device> device = nullptr;
  };

  /// Declared before the devices, whose destructors use it.
  World world;
  std::vector<Slot> slots;

  /// REQUIRES: the world's lock.
  Device &find(uint64_t handle);
};

/// The simulator that the table's functions call, since they take no object.
static Simulator::State *current = nullptr;

namespace {

using Handle = DriverTable::Handle;
using CallResult = DriverTable::Result;

/// A function's name as a template argument.
template <size_t size> struct Name {
  char text[size];
  constexpr Name(const char (&name)[size]) { std::copy_n(name, size, text); }
};

/// The last error of a thread.
thread_local Misuse told;

bool lacksMemory() { return told.lacksMemory; }

/// Runs a function of the table, and turns a thrown Misuse into an error.
template <typename Body> CallResult answer(const char *name, const Body &body) {
  try {
    if (!current) {
      misuse("there is no simulator");
    }
    std::lock_guard lock(current->world.mutex);
    body();
    current->world.notify();
    return nullptr;
  } catch (const Misuse &fault) {
    told = {concat(name, ": ", fault.text), fault.lacksMemory};
    return told.text.c_str();
  }
}

/// A function of the table that calls a method of Device.
template <Name name, auto method> struct Call;
template <Name name, typename... Arguments, void (Device::*method)(Arguments...)>
struct Call<name, method> {
  static CallResult run(Handle handle, Arguments... arguments) {
    return answer(name.text, [&] {
      Device &device = current->find(handle);
      device.enter();
      device.begin(name.text);
      (device.*method)(arguments...);
    });
  }
};

const char *nameOfLibrary() { return "a simulator for CUDA"; }

CallResult countDevices(int64_t *count) {
  return answer("countDevices", [&] {
    current->faults.call("countDevices");
    *count = current->settings.devices;
  });
}

CallResult openDevice(int64_t number, Handle *opened, DeviceFacts *facts) {
  return answer("open", [&] {
    current->faults.call("open");
    if (number < 0 || number >= current->settings.devices) {
      misuse("expected a device from 0 to before ", current->settings.devices, ", got ", number);
    }
    Simulator::State::Slot &slot = current->slots[size_t(number)];
    if (slot.device) {
      misuse("device ", number, " is open already");
    }
    slot.device = std::make_unique<Device>(number, current->settings, current->counterparts,
                                           current->faults, current->world);
    *opened = HandleParts{number, Kind::Device, ++slot.openings}.pack();
    const SimulatorSettings &settings = current->settings;
    *facts = {.name = "simulator",
              .identity = {},
              .architecture = settings.architecture,
              .multiprocessors = 4,
              .memoryBytes = settings.memoryBytes,
              .freeBytes = settings.memoryBytes,
              .communicationBytes = settings.communicationBytes};
    // Devices of other processes may have the same numbers.
    facts->identity[0] = settings.isAlone ? 0 : uint8_t(1 + number);
  });
}

CallResult closeDevice(Handle handle) {
  return answer("close", [&] {
    Device &device = current->find(handle);
    device.enter();
    current->faults.call("close");
    device.close();
    current->slots[size_t(HandleParts::of(handle).device)].device.reset();
  });
}

CallResult makeWorldId(WorldId *id) {
  return answer("makeWorldId", [&] {
    current->faults.call("makeWorldId");
    *id = current->world.makeId();
  });
}

/// The only function that any thread may call.
CallResult giveUp(Handle handle) {
  return answer("giveUp", [&] {
    Device &device = current->find(handle);
    current->faults.call("giveUp");
    device.giveUp();
  });
}

template <Name name, auto method> constexpr auto call = &Call<name, method>::run;

const DriverTable kLibrary = {
    .lacksMemory = lacksMemory,
    .name = nameOfLibrary,
    .countDevices = countDevices,
    .open = openDevice,
    .close = closeDevice,
    .freeMemory = call<"freeMemory", &Device::freeMemory>,
    .allocate = call<"allocate", &Device::allocate>,
    .free = call<"free", &Device::free>,
    .allocatePinned = call<"allocatePinned", &Device::allocatePinned>,
    .freePinned = call<"freePinned", &Device::freePinned>,
    .makeStream = call<"makeStream", &Device::makeStream>,
    .makeUrgentStream = call<"makeUrgentStream", &Device::makeStream>,
    .freeStream = call<"freeStream", &Device::freeStream>,
    .makeEvent = call<"makeEvent", &Device::makeEvent>,
    .freeEvent = call<"freeEvent", &Device::freeEvent>,
    .record = call<"record", &Device::record>,
    .wait = call<"wait", &Device::wait>,
    .reached = call<"reached", &Device::reached>,
    .await = call<"await", &Device::await>,
    .makeTimer = call<"makeTimer", &Device::makeTimer>,
    .elapsed = call<"elapsed", &Device::elapsed>,
    .copyToDevice = call<"copyToDevice", &Device::copyToDevice>,
    .copyToHost = call<"copyToHost", &Device::copyToHost>,
    .copy = call<"copy", &Device::copy>,
    .zero = call<"zero", &Device::zero>,
    .writeProgress = call<"writeProgress", &Device::writeProgress>,
    .countProgress = call<"countProgress", &Device::countProgress>,
    .load = call<"load", &Device::load>,
    .unload = call<"unload", &Device::unload>,
    .entry = call<"entry", &Device::entry>,
    .localBytes = call<"localBytes", &Device::localBytes>,
    .reserveLocal = call<"reserveLocal", &Device::reserveLocal>,
    .launch = call<"launch", &Device::launch>,
    .nameMatmuls = call<"nameMatmuls", &Device::nameMatmuls>,
    .prepareMatmul = call<"prepareMatmul", &Device::prepareMatmul>,
    .freeMatmul = call<"freeMatmul", &Device::freeMatmul>,
    .runMatmul = call<"runMatmul", &Device::runMatmul>,
    .makeWorldId = makeWorldId,
    .join = call<"join", &Device::join>,
    .split = call<"split", &Device::split>,
    .ready = call<"ready", &Device::ready>,
    .end = call<"end", &Device::end>,
    .freeCommunicator = call<"freeCommunicator", &Device::freeCommunicator>,
    .giveUp = giveUp,
    .beginGroup = call<"beginGroup", &Device::beginGroup>,
    .endGroup = call<"endGroup", &Device::endGroup>,
    .allReduce = call<"allReduce", &Device::allReduce>,
    .allGather = call<"allGather", &Device::allGather>,
    .reduceScatter = call<"reduceScatter", &Device::reduceScatter>,
    .send = call<"send", &Device::send>,
    .receive = call<"receive", &Device::receive>,
    .allocateShared = call<"allocateShared", &Device::allocateShared>,
    .freeShared = call<"freeShared", &Device::freeShared>,
    .registerMemory = call<"registerMemory", &Device::registerMemory>,
    .isRegistered = call<"isRegistered", &Device::isRegistered>,
    .unregister = call<"unregister", &Device::unregister>,
    .prepareAttention = call<"prepareAttention", &Device::prepareAttention>,
    .freeAttention = call<"freeAttention", &Device::freeAttention>,
    .runAttention = call<"runAttention", &Device::runAttention>,
    .beginCapture = call<"beginCapture", &Device::beginCapture>,
    .endCapture = call<"endCapture", &Device::endCapture>,
    .launchGraph = call<"launchGraph", &Device::launchGraph>,
    .freeGraph = call<"freeGraph", &Device::freeGraph>,
    .seal = call<"seal", &Device::seal>,
    .unseal = call<"unseal", &Device::unseal>,
    .standFor = nullptr,
};

} // namespace

Device &Simulator::State::find(uint64_t handle) {
  HandleParts parts = HandleParts::of(handle);
  // Devices have no owner that they could be confused with.
  uint64_t serial = serialOf(handle, Kind::Device, parts.device);
  if (parts.device >= int64_t(slots.size()) || serial > slots[size_t(parts.device)].openings) {
    misuse("device ", parts.device, " was never opened");
  }
  Slot &slot = slots[size_t(parts.device)];
  if (!slot.device || serial < slot.openings) {
    misuse("device ", parts.device, " is closed");
  }
  return *slot.device;
}

Simulator::Simulator(SimulatorSettings settings, Counterparts counterparts)
    : state(std::make_unique<State>()) {
  state->settings = settings;
  state->world.isAlone = settings.isAlone;
  state->counterparts = std::move(counterparts);
  state->slots.resize(size_t(settings.devices));
  current = state.get();
}

Simulator::~Simulator() { current = nullptr; }

const DriverTable &Simulator::library() const { return kLibrary; }

void Simulator::failAt(const std::string &function, int64_t n, const std::string &text) {
  state->faults.failAt(function, n, text);
}

void Simulator::failWorkAt(int64_t n, const std::string &text) {
  state->faults.failAt("work", n, text);
}

int64_t Simulator::calls(const std::string &function) const {
  return state->faults.calls(function);
}

std::map<std::string, int64_t> Simulator::allCalls() const { return state->faults.allCalls(); }
