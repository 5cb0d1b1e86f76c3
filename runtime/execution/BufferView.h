//===- BufferView.h - what the host sees of a buffer ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A rank's buffers lie where its device computes: in host memory, or elsewhere.
// Whoever is not the device reads and writes them through views and drafts, which
// are host memory either way:
//
//                 buffers in host memory      buffers elsewhere
//   BufferView    the buffer's own place      a copy, made when the view is
//   BufferDraft   the buffer's own place      memory that is copied to the buffer
//                                             when the draft ends
//
// So an address in one means nothing after its end. There is one at a time, of either:
// take it, use it, let it go. They belong to the rank's thread, as does the Executor
// that gives them.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_EXECUTION_BUFFERVIEW_H
#define WEFT_RT_EXECUTION_BUFFERVIEW_H

#include <span>
#include <type_traits>
#include <utility>

namespace weft::rt {

/// Has host memory to lend in place of buffers, and gets it back.
class BufferLender {
public:
  /// The copy of a buffer that begins at `memory` is not needed any more.
  virtual void endView(const char *memory) = 0;
  /// What has been written at `memory` is to be the content of the buffer that it stands for.
  virtual void endDraft(char *memory) = 0;

protected:
  ~BufferLender() = default;
};

/// Bytes of a buffer: `const char` in a view, `char` in a draft.
template <typename Byte> class LentBytes {
public:
  /// Memory that stays where it is, as that of a buffer.
  explicit LentBytes(std::span<Byte> place) : memory(place) {}
  /// Memory that `lender` gets back in the end.
  LentBytes(std::span<Byte> copy, BufferLender &lender) : memory(copy), lender(&lender) {}

  LentBytes(LentBytes &&other) noexcept
      : memory(other.memory), lender(std::exchange(other.lender, nullptr)) {}
  LentBytes &operator=(LentBytes &&) = delete;

  ~LentBytes() {
    if (!lender) {
      return;
    }
    if constexpr (std::is_const_v<Byte>) {
      lender->endView(memory.data());
    } else {
      lender->endDraft(memory.data());
    }
  }

  std::span<Byte> bytes() const & { return memory; }
  auto *data() const & {
    return static_cast<std::conditional_t<std::is_const_v<Byte>, const void, void> *>(
        memory.data());
  }
  // Of one that ends at once.
  std::span<Byte> bytes() const && = delete;
  void *data() const && = delete;

private:
  std::span<Byte> memory;
  BufferLender *lender = nullptr;
};

/// The content of a buffer, or of a part of it, to read.
using BufferView = LentBytes<const char>;

/// The content to be of a buffer, or of a part of it. What it holds at first is unspecified, so all
/// of it is to be written.
using BufferDraft = LentBytes<char>;

} // namespace weft::rt

#endif // WEFT_RT_EXECUTION_BUFFERVIEW_H
