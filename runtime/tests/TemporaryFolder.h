//===- TemporaryFolder.h - a folder for one test ----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_TESTS_TEMPORARYFOLDER_H
#define WEFT_RT_TESTS_TEMPORARYFOLDER_H

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace weft::rt {

/// A folder that lives as long as the object.
class TemporaryFolder {
public:
  TemporaryFolder() {
    std::string pattern = std::filesystem::temp_directory_path() / "weft-XXXXXX";
    path = mkdtemp(pattern.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path); }

  std::string file(const std::string &name) const { return path / name; }

  std::string write(const std::string &name, const std::string &content) const {
    std::ofstream(file(name), std::ios::binary) << content;
    return file(name);
  }

  std::string read(const std::string &name) const {
    std::ifstream stream(file(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  bool has(const std::string &name) const { return std::filesystem::exists(path / name); }

  std::filesystem::path path;
};

} // namespace weft::rt

#endif // WEFT_RT_TESTS_TEMPORARYFOLDER_H
