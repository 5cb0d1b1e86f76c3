//===- Count.h - counts a word up, on a device ----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_CUDA_COUNT_H
#define WEFT_RT_BACKENDS_CUDA_COUNT_H

namespace weft::rt::cuda {

/// weft_count(word) adds 1 to a word, in one thread. Only one stream writes the word, so that no
/// atomic addition is needed, which host memory may not support. A reader of the new value sees all
/// writes before it.
inline constexpr const char *kCountPtx = R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry weft_count(.param .u64 word) {
  .reg .b32 %count;
  .reg .b64 %word;
  ld.param.u64 %word, [word];
  cvta.to.global.u64 %word, %word;
  ld.relaxed.sys.global.u32 %count, [%word];
  add.u32 %count, %count, 1;
  fence.acq_rel.sys;
  st.relaxed.sys.global.u32 [%word], %count;
  ret;
}
)";

} // namespace weft::rt::cuda

#endif // WEFT_RT_BACKENDS_CUDA_COUNT_H
