//===- DeviceImage.h - a program's kernels for CUDA devices -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The same kernels as `weft_kernels`, for one kind of device. Phase p of a kernel is
// the entry `<name>_phase_<p>`. It takes the address of the rank's coordinates, the
// addresses of the instruction's operands, and its immediates; each is 8 bytes. Its
// threads, on any number of blocks of up to kBlockThreads, share the phase's
// iterations; or blocks do, each of as many threads as the table of kernels says.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_DEVICEIMAGE_H
#define WEFT_RT_DEVICEIMAGE_H

#include <cstdint>

namespace weft::rt {

/// The most threads of a block whose threads have iterations of their own.
inline constexpr uint32_t kBlockThreads = 256;
/// The most threads of a block that takes an iteration together.
inline constexpr uint32_t kMostBlockThreads = 512;

struct DeviceImage {
  /// Compute capability times ten of the devices that it is for. Machine code runs on those with
  /// the same tens and no fewer ones; PTX, from which a driver makes it, on all that are not less.
  uint32_t architecture = 0;
  bool isPtx = false;
  /// PTX ends with a 0, which counts.
  const char *bytes = nullptr;
  uint64_t size = 0;
};

} // namespace weft::rt

#endif // WEFT_RT_DEVICEIMAGE_H
