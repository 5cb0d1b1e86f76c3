//===- Json.h - reads untrusted JSON --------------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_HUGGINGFACE_JSON_H
#define WEFT_LIB_HUGGINGFACE_JSON_H

#include "weft/Description/Diagnostic.h"

#include "llvm/Support/JSON.h"

namespace weft::hf {

/// Parses `text` as an object. Fails with line and column if it is not JSON, is nested too deep, or
/// is not an object.
desc::Result<llvm::json::Object> parseObject(llvm::StringRef text, const std::string &file);

/// Makes text from a file fit in one readable line: cuts long text, and replaces characters that
/// cannot be printed by question marks.
std::string readable(llvm::StringRef text);
/// Returns a value's text as `readable` does.
std::string shown(const llvm::json::Value &value);

/// The keys of a JSON object. Readers must ask for every key: refuseOthers refuses the rest. A key
/// with the value null counts as missing. Methods that find an error add a diagnostic and return
/// the value for a missing key, or something harmless.
class Keys {
public:
  /// `path` comes before each key in diagnostics, as "rope_scaling.". All references must outlive
  /// the object.
  Keys(const llvm::json::Object &object, std::string file, std::string path,
       desc::Diagnostics &diagnostics)
      : object(object), file(std::move(file)), path(std::move(path)), diagnostics(diagnostics) {}

  /// Returns true if the key has a value other than null.
  bool has(llvm::StringRef key) const;
  /// Returns true if the value is null.
  bool isNull(llvm::StringRef key) const;

  /// Returns a count, 1 to 2^31 - 1, or `unless` if the key is missing. Without `unless`, a missing
  /// key is an error.
  int64_t count(llvm::StringRef key, std::optional<int64_t> unless = std::nullopt);
  /// As count, but allows 0.
  int64_t index(llvm::StringRef key, int64_t unless);
  double real(llvm::StringRef key, std::optional<double> unless = std::nullopt);
  bool flag(llvm::StringRef key, bool unless);
  std::string word(llvm::StringRef key, std::optional<llvm::StringRef> unless = std::nullopt);
  /// Returns the keys of `value`, the value of `key`.
  Keys inside(llvm::StringRef key, const llvm::json::Object &value) const {
    return {value, file, path + key.str() + ".", diagnostics};
  }
  /// Returns null if the key is missing.
  const llvm::json::Object *nested(llvm::StringRef key);
  const llvm::json::Array *array(llvm::StringRef key);

  /// Marks keys as known whose values have no effect.
  void passOver(llvm::ArrayRef<llvm::StringLiteral> keys);
  /// Refuses values of the flag other than `wanted`; `reason` ends the message.
  void expectFlag(llvm::StringRef key, bool wanted, llvm::StringRef reason);
  /// Adds the error "key: message".
  void refuse(llvm::StringRef key, const llvm::Twine &message);
  /// Refuses all keys that were not asked for.
  void refuseOthers();

private:
  /// Returns the value and marks the key as known; null if there is none.
  const llvm::json::Value *find(llvm::StringRef key);
  int64_t number(llvm::StringRef key, int64_t least, std::optional<int64_t> unless);
  const llvm::json::Value *findRequired(llvm::StringRef key, bool isOptional);
  void refuseType(llvm::StringRef key, llvm::StringRef expected, const llvm::json::Value &value);

  const llvm::json::Object &object;
  std::string file, path;
  desc::Diagnostics &diagnostics;
  std::vector<llvm::StringRef> known;
};

} // namespace weft::hf

#endif // WEFT_LIB_HUGGINGFACE_JSON_H
