//===- FakeCuda.h - what stands in for CUDA's libraries in a test ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// FakeDriver.cpp, FakeMatmuls.cpp and FakeCommunication.cpp are libraries of the names that
// libweft-rt-cuda loads. Memory is the host's, and work is done when it is enqueued: they show what
// the libraries are asked for, and what becomes of their answers.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_TESTS_BACKENDS_CUDA_FAKECUDA_H
#define WEFT_RT_TESTS_BACKENDS_CUDA_FAKECUDA_H

#include <cstdint>

extern "C" {

/// The next call of the function, named as the libraries export it, gives `code`.
void weft_fake_fail(const char *function, int code);
/// What was made of the driver and not freed.
int64_t weft_fake_left();
/// The number of the device whose context the thread has; -1 for none.
int weft_fake_current();
/// Of the stream that was made last; the lowest number goes first.
int weft_fake_priority();
/// The device's clock goes on.
void weft_fake_elapse(float milliseconds);

/// There are `count` ways to compute a matmul, which take so long; below 0: it is refused.
void weft_fake_ways(const float *milliseconds, int count);
/// Way `wrong` leaves out the last of a sum, and way `split` adds up parts; -1 is none.
void weft_fake_faults(int wrong, int split);
/// Ways `first` and `second` do not look at the factor of that operand, as the library has them; -1
/// is none.
void weft_fake_forgets(int first, int second);
/// How operands were said to be aligned, at least, when ways were asked for last.
uint32_t weft_fake_alignment();
/// The number of the way that was taken last.
int weft_fake_taken();

/// What NCCL says of its version, of how far communicators are, and whether it makes windows.
void weft_fake_nccl(int version, int state, bool hasWindows);
/// The next memory that NCCL is asked for is not there.
void weft_fake_nccl_full();
/// What its last message is from here on.
void weft_fake_nccl_says(const char *message);
/// What was called since this was asked last, with the numbers that it was given.
const char *weft_fake_nccl_calls();
}

#endif // WEFT_RT_TESTS_BACKENDS_CUDA_FAKECUDA_H
