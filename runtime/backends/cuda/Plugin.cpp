//===- Plugin.cpp - the table of CUDA's functions -------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the shared library exports, and all that it does; see Library.h.
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/Parts.h"

using namespace weft::rt::cuda;

/// Without what a sealed device refuses.
static const Library &plainLibrary() {
  static const Library library = [] {
    Library made = {};
    addDriver(made);
    addProducts(made);
    addCommunication(made);
    addAttention(made);
    addGraphs(made);
    return made;
  }();
  return library;
}

/// A function that makes, loads, prepares or frees something, which may take long or wait for the
/// device. None that a step calls comes through here.
template <auto function> struct Unsealed;
template <typename... Arguments, Result (*Library::*function)(Handle, Arguments...)>
struct Unsealed<function> {
  static Result run(Handle device, Arguments... arguments) {
    return fromHandle<Device>(device)->isSealed
               ? say("nothing may be made, prepared or freed on a sealed device")
               : (plainLibrary().*function)(device, arguments...);
  }
};

template <auto... functions> static void guard(Library &library) {
  ((library.*functions = &Unsealed<functions>::run), ...);
}

static Result seal(Handle device) {
  fromHandle<Device>(device)->isSealed = true;
  return nullptr;
}

static Result unseal(Handle device) {
  fromHandle<Device>(device)->isSealed = false;
  return nullptr;
}

static Library makeLibrary() {
  Library library = plainLibrary();
  guard<&Library::allocate, &Library::free, &Library::allocatePinned, &Library::freePinned,
        &Library::makeStream, &Library::freeStream, &Library::makeEvent, &Library::freeEvent,
        &Library::load, &Library::unload, &Library::entry, &Library::prepareProduct,
        &Library::freeProduct, &Library::join, &Library::split, &Library::end,
        &Library::freeCommunicator, &Library::allocateShared, &Library::freeShared,
        &Library::registerMemory, &Library::unregister, &Library::prepareAttention,
        &Library::freeAttention, &Library::beginCapture, &Library::freeGraph,
        &Library::makeUrgentStream, &Library::makeTimer, &Library::reserveLocal,
        &Library::freeMemory, &Library::nameProducts>(library);
  library.seal = seal;
  library.unseal = unseal;
  return library;
}

__attribute__((visibility("default"))) const Library *weft_rt_cuda(uint32_t version) {
  static const Library library = makeLibrary();
  return version == Library::kVersion ? &library : nullptr;
}
