//===- Runs.cpp - whole runs with one damaged file -------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A run resumes from a checkpoint, or starts from a file, and writes all its outputs. The
// letter names the damaged input: "d" the data, "v" the validation data, "l" the file of
// --load, "m" metrics, "L" LATEST, "j" the manifest after its first line, "s" a shard.
// Checksums are made right. A run that fails must print an error, and leave every file as
// it was.
//
//===----------------------------------------------------------------------===//

#include "Fuzz.h"
#include "Patch.h"

#include "executable/Executable.h"
#include "support/Checksum.h"
#include "tests/TemporaryFolder.h"
#include "tests/Toy.h"

#include <nlohmann/json.hpp>

using namespace weft::rt;
using nlohmann::json;

namespace {

const char *const kManifest = "ck/step-00000002/manifest.json";
const char *const kShard = "ck/step-00000002/rank-00001.safetensors";

class Runs {
public:
  Runs() : program(serialize(makeToy(1, 2))) {
    folder.write("data", std::string(2000, 'x'));
    folder.write("validation", std::string(400, 'y'));
    require(run({"--steps", "1", "--save", "load"}) == 0, "a run without damage succeeds");
    require(run({"--steps", "2", "--metrics", "metrics", "--checkpoint-dir", "ck"}) == 0,
            "as does one with a checkpoint");
    whole = read();
  }

  void check(const Patch &patch);

private:
  /// Returns the exit status. The run's output goes to `said`.
  int run(std::vector<std::string> arguments);
  Files read() const;
  void write(const Files &files) const;
  Files damaged(const Patch &patch) const;

  TemporaryFolder folder;
  const std::vector<char> program;
  Files whole;
  std::string said;
};

int Runs::run(std::vector<std::string> words) {
  words.insert(words.begin(), {"toy", "--quiet", "--data", "data"});
  std::vector<const char *> arguments;
  for (const std::string &word : words) {
    arguments.push_back(word.c_str());
  }
  std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path);
  char *text = nullptr;
  size_t length = 0;
  FILE *terminal = stderr;
  stderr = open_memstream(&text, &length); // A sanitizer writes past it.
  int status = runExecutable(program, kToyKernels, {}, arguments);
  std::fclose(stderr);
  stderr = terminal;
  std::filesystem::current_path(before);
  said.assign(text, length);
  std::free(text);
  return status;
}

Files Runs::read() const {
  Files files;
  for (const auto &entry : std::filesystem::recursive_directory_iterator(folder.path)) {
    if (entry.is_regular_file()) {
      std::string name = std::filesystem::relative(entry.path(), folder.path);
      files[name] = folder.read(name);
    }
  }
  return files;
}

void Runs::write(const Files &files) const {
  for (const auto &entry : std::filesystem::directory_iterator(folder.path)) {
    std::filesystem::remove_all(entry.path());
  }
  std::filesystem::create_directories((folder.path / kShard).parent_path());
  for (const auto &[name, content] : files) {
    folder.write(name, content);
  }
}

std::string checksumOf(std::string_view bytes) {
  Checksum checksum;
  checksum.add(bytes);
  return digestText(checksum.digest());
}

std::string withFirstLine(const std::string &rest) {
  return "{\"checksum\": \"" + checksumOf(rest) + "\",\n" + rest;
}

/// The manifest of `files` for another shard.
std::string manifestFor(const Files &files, const std::string &shard) {
  json manifest = json::parse(files.at(kManifest));
  for (json &entry : manifest["shards"]) {
    if (std::string(kShard).ends_with(entry["file"].get<std::string>())) {
      entry["bytes"] = shard.size();
      entry["checksum"] = checksumOf(shard);
    }
  }
  manifest.erase("checksum");
  return withFirstLine(manifest.dump().substr(1));
}

/// Returns the name of a letter's file; null if there is none.
const char *nameOf(char letter) {
  switch (letter) {
  case 'd':
    return "data";
  case 'v':
    return "validation";
  case 'l':
    return "load";
  case 'm':
    return "metrics";
  case 'L':
    return "ck/LATEST";
  case 'j':
    return kManifest;
  case 's':
    return kShard;
  default:
    return nullptr;
  }
}

Files Runs::damaged(const Patch &patch) const {
  Files files = whole;
  std::string &content = files[nameOf(patch.file)];
  if (patch.file == 'j') {
    content.erase(0, content.find('\n') + 1);
  }
  patch.apply(content);
  if (patch.file == 'j') {
    content = withFirstLine(content);
  } else if (patch.file == 's') {
    files[kManifest] = manifestFor(whole, content);
  }
  return files;
}

void Runs::check(const Patch &patch) {
  Files files = damaged(patch);
  write(files);
  std::vector<std::string> arguments = {
      "--steps",          "3",     "--metrics",         "metrics",
      "--save",           "saved", "--save-gradients",  "gradients",
      "--gradients-step", "2",     "--validation-data", "validation"};
  if (patch.file == 'l') {
    arguments.insert(arguments.end(), {"--load", "load"});
  } else {
    arguments.insert(arguments.end(), {"--checkpoint-dir", "ck", "--allow-changes"});
  }
  int status = run(arguments);
  Files after = read();
  require(status == 0 || said.find("error: ") != std::string::npos, "a failure says why");
  for (const auto &[file, bytes] : after) {
    require(!file.ends_with(".partial") && file.find("-step-") == std::string::npos,
            "nothing is half written");
  }
  if (status == 1) {
    files["ck/.lock"] = after["ck/.lock"] = "";
    require(after == files, "a run that fails leaves files as they were");
  }
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static Runs runs;
  std::optional<Patch> patch = Patch::read(data, size);
  if (patch && nameOf(patch->file)) {
    runs.check(*patch);
  }
  return 0;
}
