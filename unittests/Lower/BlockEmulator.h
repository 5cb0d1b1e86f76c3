//===- BlockEmulator.h - a device's block on the host ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs code for the threads of a block, each as a fiber, in a random order: a thread runs until it
// waits for others. A thread that reads an element without waiting for its writer gets another
// value in another order, and fails the test if the memory is watched. A wait that never ends and a
// thread that overflows its stack fail the test too.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_UNITTESTS_LOWER_BLOCKEMULATOR_H
#define WEFT_UNITTESTS_LOWER_BLOCKEMULATOR_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>

namespace weft::test {

/// Runs `body` on `threads` threads, a multiple of 32. `body` may call the functions below, and
/// must not throw. One block runs at a time. Accesses are checked only with `watches`, which takes
/// several times as long.
void runBlock(int64_t threads, std::mt19937 &dice, const std::function<void()> &body,
              bool watches = true);

/// Watches memory: from now on threads must wait for each other before they access an element that
/// one of them writes. Accesses are reported by `weft_test_touch`.
void watchShared(const char *start, size_t bytes, size_t elementBytes);
void forgetShared();
/// Returns true if a block that watches has accessed the memory since `forgetShared`.
bool wasSharedTouched();

} // namespace weft::test

/// The functions that kernels for devices call, see lower-kernels-to-loops.
extern "C" int64_t weft_device_thread();
extern "C" void weft_device_barrier();
extern "C" void weft_device_warp_barrier();
extern "C" int32_t weft_device_shuffle(int32_t value, int32_t mask);
extern "C" int16_t weft_device_round(float value);
extern "C" float weft_device_exp2(float value);
/// The call that tests insert into kernels.
extern "C" void weft_test_touch(const char *at, int64_t bytes, int64_t isWrite);

#endif // WEFT_UNITTESTS_LOWER_BLOCKEMULATOR_H
