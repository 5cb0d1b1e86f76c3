//===- Plugin.cpp - the table of CUDA's functions -------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The exported function of the shared library, and its table; see DriverTable.h.
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/Parts.h"

using namespace weft::rt::cuda;

/// Returns the table without the checks of sealed devices.
static const DriverTable &plainLibrary() {
  static const DriverTable library = [] {
    DriverTable made = {};
    addDriver(made);
    addMatmuls(made);
    addCommunication(made);
    addAttention(made);
    addGraphs(made);
    return made;
  }();
  return library;
}

/// A function of the table that a sealed device refuses: it makes, loads, prepares or frees
/// objects, which may take long or wait for the device. Steps call none of these.
template <auto function> struct Unsealed;
template <typename... Arguments, CallResult (*DriverTable::*function)(Handle, Arguments...)>
struct Unsealed<function> {
  static CallResult run(Handle device, Arguments... arguments) {
    return fromHandle<Device>(device)->isSealed
               ? say("nothing may be made, prepared or freed on a sealed device")
               : (plainLibrary().*function)(device, arguments...);
  }
};

template <auto... functions> static void guard(DriverTable &library) {
  ((library.*functions = &Unsealed<functions>::run), ...);
}

static CallResult seal(Handle device) {
  fromHandle<Device>(device)->isSealed = true;
  return nullptr;
}

static CallResult unseal(Handle device) {
  fromHandle<Device>(device)->isSealed = false;
  return nullptr;
}

static DriverTable makeLibrary() {
  DriverTable library = plainLibrary();
  guard<&DriverTable::allocate, &DriverTable::free, &DriverTable::allocatePinned,
        &DriverTable::freePinned, &DriverTable::makeStream, &DriverTable::freeStream,
        &DriverTable::makeEvent, &DriverTable::freeEvent, &DriverTable::load, &DriverTable::unload,
        &DriverTable::entry, &DriverTable::prepareMatmul, &DriverTable::freeMatmul,
        &DriverTable::join, &DriverTable::split, &DriverTable::end, &DriverTable::freeCommunicator,
        &DriverTable::allocateShared, &DriverTable::freeShared, &DriverTable::registerMemory,
        &DriverTable::unregister, &DriverTable::prepareAttention, &DriverTable::freeAttention,
        &DriverTable::beginCapture, &DriverTable::freeGraph, &DriverTable::makeUrgentStream,
        &DriverTable::makeTimer, &DriverTable::reserveLocal, &DriverTable::freeMemory,
        &DriverTable::nameMatmuls>(library);
  library.seal = seal;
  library.unseal = unseal;
  return library;
}

__attribute__((visibility("default"))) const DriverTable *weft_rt_cuda(uint32_t version) {
  static const DriverTable library = makeLibrary();
  return version == DriverTable::kVersion ? &library : nullptr;
}
