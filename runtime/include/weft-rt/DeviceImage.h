//===- DeviceImage.h - a program's kernels for CUDA devices -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The kernels of `weft_kernels`, compiled for one kind of device. Phase p of a
// kernel is the entry `<name>_phase_<p>`. Its arguments, of 8 bytes each, are the
// address of the rank's coordinates, the addresses of the instruction's operands,
// and its immediates. The iterations of a phase are divided among threads, on any
// number of blocks of up to kBlockThreads, or among blocks with the thread count in
// the table of kernels.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_DEVICEIMAGE_H
#define WEFT_RT_DEVICEIMAGE_H

#include <cstdint>

namespace weft::rt {

/// The most threads of a block if each thread takes iterations of its own.
inline constexpr uint32_t kBlockThreads = 256;
/// The most threads of a block if they share each iteration.
inline constexpr uint32_t kMostBlockThreads = 512;

struct DeviceImage {
  /// The compute capability times ten, as 90. Machine code runs on devices with the same major
  /// version and this minor version or a later one; PTX, which the driver compiles, runs on this
  /// capability and all later ones.
  uint32_t architecture = 0;
  bool isPtx = false;
  /// PTX ends with a 0, which `size` includes.
  const char *bytes = nullptr;
  uint64_t size = 0;
};

} // namespace weft::rt

#endif // WEFT_RT_DEVICEIMAGE_H
