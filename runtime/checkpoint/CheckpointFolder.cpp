//===- CheckpointFolder.cpp - the folder of a run's checkpoints -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "checkpoint/CheckpointFolder.h"

#include "support/OutputFile.h"
#include "support/Text.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <dirent.h>
#include <fcntl.h>
#include <fstream>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace weft::rt;

static constexpr std::string_view kStep = "step-";
static const char *const kWriting = ".writing-";
static const char *const kRemoving = ".removing-";

static Error cannot(const char *what, const std::string &path) {
  return makeError("cannot ", what, " '", path, "': ", systemError(errno));
}

static Result<std::vector<std::string>> listNames(const std::string &path) {
  DIR *folder = opendir(path.c_str());
  if (!folder) {
    return cannot("read", path);
  }
  std::vector<std::string> names;
  errno = 0;
  while (dirent *entry = readdir(folder)) {
    std::string name = entry->d_name;
    if (name != "." && name != "..") {
      names.push_back(name);
    }
  }
  int code = errno; // What ended the loop.
  closedir(folder);
  errno = code;
  if (code != 0) {
    return cannot("read", path);
  }
  return names;
}

/// Returns the names in a folder that contains only files with names of a checkpoint's files;
/// nothing for other folders, which Weft does not touch.
static std::optional<std::vector<std::string>> namesOfOurs(const std::string &path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
    return std::nullopt;
  }
  Result<std::vector<std::string>> names = listNames(path);
  auto isOurs = [&](const std::string &name) {
    return (name == "manifest.json" ||
            (name.starts_with("rank-") && name.ends_with(".safetensors"))) &&
           lstat((path + "/" + name).c_str(), &info) == 0 && !S_ISDIR(info.st_mode);
  };
  if (!names || !std::all_of(names->begin(), names->end(), isOurs)) {
    return std::nullopt;
  }
  return std::move(*names);
}

/// Removes a checkpoint's folder; leaves a folder with other files alone.
static Status removeCheckpoint(const std::string &path) {
  std::optional<std::vector<std::string>> names = namesOfOurs(path);
  if (!names) {
    return {};
  }
  for (const std::string &name : *names) {
    std::string file = path + "/" + name;
    if (unlink(file.c_str()) != 0) {
      return cannot("remove", file);
    }
  }
  if (rmdir(path.c_str()) != 0) {
    return cannot("remove", path);
  }
  return {};
}

CheckpointFolder::~CheckpointFolder() {
  if (lockFile >= 0) {
    ::close(lockFile);
  }
}

std::string CheckpointFolder::nameOf(int64_t step) {
  char name[48];
  std::snprintf(name, sizeof name, "step-%08lld", static_cast<long long>(step));
  return name;
}

std::optional<int64_t> CheckpointFolder::stepOf(const std::string &name) {
  int64_t step = -1;
  if (name.starts_with(kStep)) {
    std::from_chars(name.data() + kStep.size(), name.data() + name.size(), step);
  }
  return step >= 0 && name == nameOf(step) ? std::optional(step) : std::nullopt;
}

std::string CheckpointFolder::pathOf(int64_t step) const { return inside(nameOf(step)); }

std::string CheckpointFolder::writingPath(int64_t step) const {
  return inside(kWriting + nameOf(step));
}

Status CheckpointFolder::open(const std::string &folder) {
  path = folder;
  struct stat status;
  if (stat(path.c_str(), &status) != 0) {
    if (errno != ENOENT) {
      return cannot("read", path);
    }
    return {};
  }
  if (Status status = lock(); !status) {
    return status;
  }
  return removeLeftovers();
}

Status CheckpointFolder::create() {
  if (lockFile >= 0) {
    return {};
  }
  if (mkdir(path.c_str(), 0777) != 0) {
    return cannot("write", path);
  }
  size_t slash = path.find_last_not_of('/');
  slash = slash == std::string::npos ? slash : path.rfind('/', slash);
  std::string parent = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  if (Status status = syncFolder(parent); !status) {
    return status;
  }
  return lock();
}

Status CheckpointFolder::lock() {
  std::string file = inside(".lock");
  lockFile = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lockFile < 0) {
    return cannot("write", file);
  }
  if (flock(lockFile, LOCK_EX | LOCK_NB) == 0) {
    return {};
  }
  int code = errno;
  ::close(lockFile);
  lockFile = -1;
  errno = code;
  if (code == EWOULDBLOCK) {
    return makeError("'", path, "' is in use: another run writes its checkpoints there");
  }
  return cannot("lock", file);
}

Result<std::vector<int64_t>> CheckpointFolder::list() const {
  std::vector<int64_t> steps;
  if (lockFile < 0) {
    return steps;
  }
  Result<std::vector<std::string>> names = listNames(path);
  if (!names) {
    return names.error();
  }
  for (const std::string &name : *names) {
    if (std::optional<int64_t> step = stepOf(name)) {
      steps.push_back(*step);
    }
  }
  std::sort(steps.rbegin(), steps.rend());
  return steps;
}

std::optional<std::string> CheckpointFolder::latest() const {
  std::ifstream file(inside("LATEST"));
  if (!file) {
    return std::nullopt;
  }
  std::string line;
  std::getline(file, line);
  return line;
}

Status CheckpointFolder::begin(int64_t step) {
  std::string folder = writingPath(step);
  if (mkdir(folder.c_str(), 0777) != 0) {
    return cannot("write", folder);
  }
  return {};
}

Status CheckpointFolder::commit(int64_t step) {
  std::string from = writingPath(step), to = pathOf(step), name = nameOf(step) + "\n";
  if (Status status = syncFolder(from); !status) {
    return status;
  }
  if (access(to.c_str(), F_OK) == 0) {
    if (Status status = discard(step); !status) {
      return status;
    }
  }
  if (Status status = nameWhole(from, to, path); !status) {
    return status;
  }
  return writeFile(inside("LATEST"), name);
}

/// Renames a checkpoint, so that its name never stands for a half removed one, and removes it.
Status CheckpointFolder::discard(int64_t step) {
  std::string from = pathOf(step), to = inside(kRemoving + nameOf(step));
  if (rename(from.c_str(), to.c_str()) != 0) {
    return cannot("remove", from);
  }
  return removeCheckpoint(to);
}

Status CheckpointFolder::prune(int64_t step, int64_t keep, const std::vector<int64_t> &damaged) {
  Result<std::vector<int64_t>> steps = list();
  if (!steps) {
    return steps.error();
  }
  int64_t kept = 1; // That of `step`.
  for (int64_t other : *steps) {
    if (other >= step || !namesOfOurs(pathOf(other))) {
      continue;
    }
    if (kept < keep) {
      kept += std::find(damaged.begin(), damaged.end(), other) == damaged.end();
    } else if (Status status = discard(other); !status) {
      return status;
    }
  }
  return {};
}

Status CheckpointFolder::removeLeftovers() {
  if (lockFile < 0) {
    return {};
  }
  Result<std::vector<std::string>> names = listNames(path);
  if (!names) {
    return names.error();
  }
  for (const std::string &name : *names) {
    bool leftover = name.starts_with(kWriting + std::string(kStep)) ||
                    name.starts_with(kRemoving + std::string(kStep));
    if (leftover) {
      if (Status status = removeCheckpoint(inside(name)); !status) {
        return status;
      }
    }
  }
  if (unlink(inside("LATEST.partial").c_str()) == 0 || errno == ENOENT) {
    return {};
  }
  return cannot("remove", inside("LATEST.partial"));
}
