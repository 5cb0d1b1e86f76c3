//===- Widen.h - converts bf16 to float32 on a device ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_CUDA_WIDEN_H
#define WEFT_RT_BACKENDS_CUDA_WIDEN_H

#include <cstdint>

namespace weft::rt::cuda {

inline constexpr uint32_t kWidenThreads = 256;

/// weft_widen(to, from, count) converts `count` numbers; threads take turns. A bf16 is the upper
/// half of a float32.
inline constexpr const char *kWidenPtx = R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry weft_widen(.param .u64 to, .param .u64 from, .param .u64 count) {
  .reg .pred %done;
  .reg .b16 %half;
  .reg .b32 %thread, %block, %size, %blocks, %whole;
  .reg .b64 %to, %from, %count, %i, %step, %at;
  ld.param.u64 %to, [to];
  ld.param.u64 %from, [from];
  ld.param.u64 %count, [count];
  cvta.to.global.u64 %to, %to;
  cvta.to.global.u64 %from, %from;
  mov.u32 %thread, %tid.x;
  mov.u32 %block, %ctaid.x;
  mov.u32 %size, %ntid.x;
  mov.u32 %blocks, %nctaid.x;
  mul.wide.u32 %i, %block, %size;
  cvt.u64.u32 %at, %thread;
  add.u64 %i, %i, %at;
  mul.wide.u32 %step, %blocks, %size;
next:
  setp.ge.u64 %done, %i, %count;
  @%done bra end;
  shl.b64 %at, %i, 1;
  add.u64 %at, %at, %from;
  ld.global.b16 %half, [%at];
  cvt.u32.u16 %whole, %half;
  shl.b32 %whole, %whole, 16;
  shl.b64 %at, %i, 2;
  add.u64 %at, %at, %to;
  st.global.b32 [%at], %whole;
  add.u64 %i, %i, %step;
  bra next;
end:
  ret;
}
)";

} // namespace weft::rt::cuda

#endif // WEFT_RT_BACKENDS_CUDA_WIDEN_H
