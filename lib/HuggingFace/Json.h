//===- Json.h - reads JSON that may be anything ---------------------------===//
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

/// The object that `text` is. Fails with line and column where it is not JSON, is nested deeper
/// than any of the files that we read, or is no object.
desc::Result<llvm::json::Object> parseObject(llvm::StringRef text, const std::string &file);

/// Text out of a file as a part of one readable line: cut where it is long, and with question marks
/// for what cannot be printed.
std::string readable(llvm::StringRef text);
/// The same of a value, as the file has it.
std::string shown(const llvm::json::Value &value);

/// The keys of a JSON object, each of which must be asked for: what nobody knows is refused in the
/// end. A key with the value null counts as missing. Methods that find something wrong say so in
/// the diagnostics and return the value for a missing key, or something harmless.
class Keys {
public:
  /// `path` comes before each key in diagnostics, as "rope_scaling.". All references must outlive
  /// the object.
  Keys(const llvm::json::Object &object, std::string file, std::string path,
       desc::Diagnostics &diagnostics)
      : object(object), file(std::move(file)), path(std::move(path)), diagnostics(diagnostics) {}

  /// Whether there is a value, null not counted.
  bool has(llvm::StringRef key) const;
  /// Whether the value is null.
  bool isNull(llvm::StringRef key) const;

  /// A count, 1 to 2^31 - 1: `unless` where the key is missing, which is wrong where that is empty.
  int64_t count(llvm::StringRef key, std::optional<int64_t> unless = std::nullopt);
  /// As count, but 0 is one too.
  int64_t index(llvm::StringRef key, int64_t unless);
  double real(llvm::StringRef key, std::optional<double> unless = std::nullopt);
  bool flag(llvm::StringRef key, bool unless);
  std::string word(llvm::StringRef key, std::optional<llvm::StringRef> unless = std::nullopt);
  /// The keys of `value`, which is that of `key`.
  Keys inside(llvm::StringRef key, const llvm::json::Object &value) const {
    return {value, file, path + key.str() + ".", diagnostics};
  }
  /// Null where the key is missing.
  const llvm::json::Object *nested(llvm::StringRef key);
  const llvm::json::Array *array(llvm::StringRef key);

  /// Keys whose value does not matter.
  void passOver(llvm::ArrayRef<llvm::StringLiteral> keys);
  /// Refuses any value of the flag but `wanted`, because of `reason`.
  void expectFlag(llvm::StringRef key, bool wanted, llvm::StringRef reason);
  /// "key: message".
  void refuse(llvm::StringRef key, const llvm::Twine &message);
  /// Refuses all keys that nobody has asked for.
  void refuseOthers();

private:
  /// The value, marked as known; null where there is none.
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
