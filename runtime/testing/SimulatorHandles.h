//===- SimulatorHandles.h - handles of a simulated device's objects ------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A handle holds the object's device, its kind and a serial number, which counts from 1 for each
// kind, so that errors can describe a wrong handle.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_TESTING_SIMULATORHANDLES_H
#define WEFT_RT_TESTING_SIMULATORHANDLES_H

#include "support/Text.h"

#include <cstdint>
#include <map>
#include <string>

namespace weft::rt::cuda {

/// The exception for a wrong call or wrong work. Functions of the table catch it.
struct Misuse {
  std::string text;
  bool lacksMemory = false;
};

template <typename... Parts> [[noreturn]] void misuse(const Parts &...parts) {
  throw Misuse{concat(parts...)};
}

enum class Kind : uint8_t {
  Device,
  Stream,
  Event,
  Module,
  Entry,
  Matmul,
  Communicator,
  Registration,
  Attention,
  Graph
};

inline const char *nameOf(Kind kind) {
  static constexpr const char *names[] = {"device",    "stream", "event",        "module",
                                          "entry",     "matmul", "communicator", "registration",
                                          "attention", "graph"};
  return names[size_t(kind)];
}

/// "a stream", "an event".
inline std::string articleOf(Kind kind) {
  return concat(kind == Kind::Event || kind == Kind::Entry || kind == Kind::Attention ? "an "
                                                                                      : "a ",
                nameOf(kind));
}

/// The contents of a handle.
struct HandleParts {
  int64_t device = 0;
  Kind kind = Kind::Device;
  uint64_t serial = 0;

  uint64_t pack() const { return uint64_t(device + 1) << 48 | uint64_t(kind) << 40 | serial; }
  static HandleParts of(uint64_t handle) {
    return {int64_t(handle >> 48) - 1, Kind(handle >> 40 & 0xFF), handle & 0xFFFFFFFFFF};
  }
};

/// Returns the serial number of a handle; fails unless it is of `kind` and of `device`.
inline uint64_t serialOf(uint64_t handle, Kind kind, int64_t device) {
  HandleParts parts = HandleParts::of(handle);
  if (parts.device < 0 || parts.kind > Kind::Graph || parts.serial == 0) {
    misuse("expected a handle of ", articleOf(kind), ", got ", handle, ", which is none");
  }
  if (parts.kind != kind) {
    misuse("expected a handle of ", articleOf(kind), ", got one of ", articleOf(parts.kind));
  }
  if (parts.device != device) {
    misuse("expected ", articleOf(kind), " of device ", device, ", got one of device ",
           parts.device);
  }
  return parts.serial;
}

/// A device's objects of one kind.
template <typename Item> class Handles {
public:
  Handles(int64_t device, Kind kind) : device(device), kind(kind) {}

  uint64_t add(Item item) {
    items.emplace(++made, std::move(item));
    return HandleParts{device, kind, made}.pack();
  }

  Item &find(uint64_t handle) {
    uint64_t serial = serialOf(handle, kind, device);
    auto found = items.find(serial);
    if (found == items.end()) {
      misuse(nameOf(kind), " ", serial,
             serial > made         ? " was never made"
             : kind == Kind::Entry ? " is of a module that is unloaded"
                                   : " is freed");
    }
    return found->second;
  }

  void remove(uint64_t handle) { items.erase(HandleParts::of(handle).serial); }

  /// By serial number.
  std::map<uint64_t, Item> items;

private:
  int64_t device;
  Kind kind;
  uint64_t made = 0;
};

} // namespace weft::rt::cuda

#endif // WEFT_RT_TESTING_SIMULATORHANDLES_H
