//===- BlockEmulator.h - a device's block on the host ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs code that was made for the threads of a block, each as a fiber, in an order that is drawn: a
// thread runs until it waits for others. Whoever reads before it has waited for the one that writes
// reads something else in another order, and fails the test where the memory is watched. So does a
// wait that never ends, and a thread that needs more stack than it has.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_UNITTESTS_LOWER_BLOCKEMULATOR_H
#define WEFT_UNITTESTS_LOWER_BLOCKEMULATOR_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>

namespace weft::test {

/// Runs `body` on `threads` threads, a multiple of 32. It may call the functions below, and must
/// not throw. One block at a time. Unless it `watches`, which takes several times as long, nobody
/// looks at what is touched.
void runBlock(int64_t threads, std::mt19937 &dice, const std::function<void()> &body,
              bool watches = true);

/// From now on threads must wait for each other before they touch an element that one of them
/// writes. Who touches it says so by `weft_test_touch`.
void watchShared(const char *start, size_t bytes, size_t elementBytes);
void forgetShared();
/// Whether anyone has touched it in a block that watches, since it was forgotten.
bool wasSharedTouched();

} // namespace weft::test

/// What kernels for devices call, see lower-kernels-to-loops.
extern "C" int64_t weft_device_thread();
extern "C" void weft_device_barrier();
extern "C" void weft_device_warp_barrier();
extern "C" int32_t weft_device_shuffle(int32_t value, int32_t mask);
extern "C" int16_t weft_device_round(float value);
/// What tests put into them.
extern "C" void weft_test_touch(const char *at, int64_t bytes, int64_t isWrite);

#endif // WEFT_UNITTESTS_LOWER_BLOCKEMULATOR_H
