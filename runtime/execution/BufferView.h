//===- BufferView.h - host access to a rank's buffers ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A rank's buffers lie in the memory of its device: host memory or other memory.
// Host code reads and writes them through views and drafts, which are always host
// memory:
//
//                 buffers in host memory      buffers elsewhere
//   BufferView    the buffer's own place      a copy, made when the view is
//   BufferDraft   the buffer's own place      memory that is copied to the buffer
//                                             when the draft ends
//
// An address in a view or draft is invalid after its destruction. At most one view
// or draft may exist at a time. They belong to the rank's thread, as does the
// Executor that makes them.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_EXECUTION_BUFFERVIEW_H
#define WEFT_RT_EXECUTION_BUFFERVIEW_H

#include <span>
#include <type_traits>
#include <utility>

namespace weft::rt {

/// Lends host memory that stands for buffers, and takes it back.
class BufferLender {
public:
  /// Takes back the copy of a buffer that begins at `memory`.
  virtual void endView(const char *memory) = 0;
  /// Copies the draft at `memory` into its buffer and takes the memory back.
  virtual void endDraft(char *memory) = 0;

protected:
  ~BufferLender() = default;
};

/// The bytes of a buffer: `const char` in a view, `char` in a draft.
template <typename Byte> class LentBytes {
public:
  /// Refers to memory that nobody takes back, as that of a buffer.
  explicit LentBytes(std::span<Byte> place) : memory(place) {}
  /// Refers to memory that `lender` takes back at the end.
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
  // The memory of a temporary ends with it.
  std::span<Byte> bytes() const && = delete;
  void *data() const && = delete;

private:
  std::span<Byte> memory;
  BufferLender *lender = nullptr;
};

/// The content of a buffer or of a part of it, for reading.
using BufferView = LentBytes<const char>;

/// New content for a buffer or a part of it. Its bytes are unspecified at first, so the user must
/// write all of them.
using BufferDraft = LentBytes<char>;

} // namespace weft::rt

#endif // WEFT_RT_EXECUTION_BUFFERVIEW_H
