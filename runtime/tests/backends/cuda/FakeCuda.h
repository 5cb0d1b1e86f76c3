//===- FakeCuda.h - fakes of CUDA's libraries -----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// FakeDriver.cpp, FakeMatmuls.cpp and FakeCommunication.cpp are libraries with the names that
// libweft-rt-cuda loads. Memory is the host's, and work is done when it is enqueued. Tests use them
// to check the arguments of calls and the handling of results. Whole programs set them by
// variables: WEFT_FAKE_PHASES loads their kernels, which do nothing, WEFT_FAKE_DEVICES is the
// number of devices, WEFT_FAKE_NO_WINDOWS declines windows; FakeFaults.h has more.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_TESTS_BACKENDS_CUDA_FAKECUDA_H
#define WEFT_RT_TESTS_BACKENDS_CUDA_FAKECUDA_H

#include <cstdint>

extern "C" {

/// Makes the next call of an exported function return `code`.
void weft_fake_fail(const char *function, int code);
/// Returns the number of the driver's objects that were not freed.
int64_t weft_fake_left();
/// Returns the device of the thread's current context; -1 for none.
int weft_fake_current();
/// Returns the priority of the last stream that was made; lower numbers come first.
int weft_fake_priority();
/// Advances the device's clock.
void weft_fake_elapse(float milliseconds);

/// Sets `count` algorithms for matmuls and their times; one with a time below 0 is refused.
void weft_fake_ways(const float *milliseconds, int count);
/// Makes algorithm `wrong` leave out the last term of sums, and `split` sum parts; -1 for none.
void weft_fake_faults(int wrong, int split);
/// Makes algorithm `first` ignore the scale factor of the library's first operand, and `second`
/// that of the second; -1 for none.
void weft_fake_forgets(int first, int second);
/// Returns the smallest alignment in the last call that asked for algorithms.
uint32_t weft_fake_alignment();
/// Returns the algorithm of the last matmul.
int weft_fake_taken();

/// Sets NCCL's version, the state of its communicators, and whether it makes windows.
void weft_fake_nccl(int version, int state, bool hasWindows);
/// Makes NCCL's next allocation fail.
void weft_fake_nccl_full();
/// Sets NCCL's last error message.
void weft_fake_nccl_says(const char *message);
/// Returns the calls since the last call of this function, with their arguments.
const char *weft_fake_nccl_calls();
}

#endif // WEFT_RT_TESTS_BACKENDS_CUDA_FAKECUDA_H
