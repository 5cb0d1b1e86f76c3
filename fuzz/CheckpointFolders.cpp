//===- CheckpointFolders.cpp - foreign entries in folders of checkpoints ---===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The first line is the content of LATEST; if empty, there is no such file. Each other
// line is a letter and a name in the folder: "f" for a file, "d" for a folder, "c" for
// a folder with the files of a checkpoint.
//
//===----------------------------------------------------------------------===//

#include "Fuzz.h"

#include "checkpoint/CheckpointFolder.h"
#include "tests/TemporaryFolder.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <sstream>

using namespace weft::rt;

/// Returns true if Weft may remove the entry: it removes only names of its own form.
static bool isLeftover(const std::string &line) {
  return (line[0] == 'f' && line.substr(1) == "LATEST.partial") ||
         (line[0] != 'f' && (line.substr(1).starts_with(".writing-step-") ||
                             line.substr(1).starts_with(".removing-step-")));
}

static bool make(const std::filesystem::path &path, char kind) {
  std::error_code code;
  if (std::filesystem::exists(path, code) || code) {
    return false;
  }
  if (kind == 'f') {
    return bool(std::ofstream(path) << "content");
  }
  if (!std::filesystem::create_directory(path, code)) {
    return false;
  }
  if (kind == 'c') {
    std::ofstream(path / "manifest.json") << "{";
    std::ofstream(path / "rank-00000.safetensors") << "x";
  }
  return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  TemporaryFolder folder;
  std::istringstream stream(std::string(reinterpret_cast<const char *>(data), size));
  std::string latest, line;
  if (std::getline(stream, latest)) {
    folder.write("LATEST", latest + "\n");
  }
  std::set<std::string> made;
  while (made.size() < 8 && std::getline(stream, line)) {
    bool isName = line.size() > 1 && line.find('/') == std::string::npos &&
                  line.find('\0') == std::string::npos && std::strchr("fdc", line[0]);
    if (isName && make(folder.path / line.substr(1), line[0])) {
      made.insert(line);
    }
  }

  CheckpointFolder checkpoints;
  Status opened = checkpoints.open(folder.path);
  Result<std::vector<int64_t>> listed = checkpoints.list();
  std::vector<int64_t> steps = opened && listed ? *listed : std::vector<int64_t>();
  if (!opened || !listed) {
    const Error &error = opened ? listed.error() : opened.error();
    require(!error.message.empty(), "an error says something");
  } else if (std::optional<std::string> read = checkpoints.latest()) {
    require(*read == latest, "LATEST is read as it was written");
  }
  require(std::is_sorted(steps.rbegin(), steps.rend()), "the newest comes first");
  for (int64_t step : steps) {
    require(CheckpointFolder::stepOf(CheckpointFolder::nameOf(step)) == step, "names are unique");
    require(folder.has(CheckpointFolder::nameOf(step)), "what is listed is there");
  }
  for (const std::string &name : made) {
    require(folder.has(name.substr(1)) || isLeftover(name), "what is not Weft's is left alone");
  }
  return 0;
}
