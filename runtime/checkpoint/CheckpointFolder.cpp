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

static bool cannot(const char *what, const std::string &path, std::string &error) {
  return fail(error, "cannot ", what, " '", path, "': ", systemError(errno));
}

static bool listNames(const std::string &path, std::vector<std::string> &names,
                      std::string &error) {
  DIR *folder = opendir(path.c_str());
  if (!folder) {
    return cannot("read", path, error);
  }
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
  return code == 0 || cannot("read", path, error);
}

/// Returns true if `path` is a folder that contains only files with names of a checkpoint's files.
/// Weft does not touch other folders.
static bool isOurs(const std::string &path, std::vector<std::string> &names) {
  struct stat status;
  std::string error;
  return lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         listNames(path, names, error) &&
         std::all_of(names.begin(), names.end(), [&](const std::string &name) {
           return (name == "manifest.json" ||
                   (name.starts_with("rank-") && name.ends_with(".safetensors"))) &&
                  lstat((path + "/" + name).c_str(), &status) == 0 && !S_ISDIR(status.st_mode);
         });
}

/// Removes a checkpoint's folder; leaves a folder with other files alone.
static bool removeCheckpoint(const std::string &path, std::string &error) {
  std::vector<std::string> names;
  if (!isOurs(path, names)) {
    return true;
  }
  for (const std::string &name : names) {
    std::string file = path + "/" + name;
    if (unlink(file.c_str()) != 0) {
      return cannot("remove", file, error);
    }
  }
  return rmdir(path.c_str()) == 0 || cannot("remove", path, error);
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

bool CheckpointFolder::open(const std::string &folder, std::string &error) {
  path = folder;
  struct stat status;
  if (stat(path.c_str(), &status) != 0) {
    return errno == ENOENT || cannot("read", path, error);
  }
  return lock(error) && removeLeftovers(error);
}

bool CheckpointFolder::create(std::string &error) {
  if (lockFile >= 0) {
    return true;
  }
  if (mkdir(path.c_str(), 0777) != 0) {
    return cannot("write", path, error);
  }
  size_t slash = path.find_last_not_of('/');
  slash = slash == std::string::npos ? slash : path.rfind('/', slash);
  std::string parent = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  return succeeds(syncFolder(parent), error) && lock(error);
}

bool CheckpointFolder::lock(std::string &error) {
  std::string file = inside(".lock");
  lockFile = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lockFile < 0) {
    return cannot("write", file, error);
  }
  if (flock(lockFile, LOCK_EX | LOCK_NB) == 0) {
    return true;
  }
  int code = errno;
  ::close(lockFile);
  lockFile = -1;
  errno = code;
  return code == EWOULDBLOCK
             ? fail(error, "'", path, "' is in use: another run writes its checkpoints there")
             : cannot("lock", file, error);
}

bool CheckpointFolder::list(std::vector<int64_t> &steps, std::string &error) const {
  std::vector<std::string> names;
  if (lockFile >= 0 && !listNames(path, names, error)) {
    return false;
  }
  for (const std::string &name : names) {
    if (std::optional<int64_t> step = stepOf(name)) {
      steps.push_back(*step);
    }
  }
  std::sort(steps.rbegin(), steps.rend());
  return true;
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

bool CheckpointFolder::begin(int64_t step, std::string &error) {
  std::string folder = writingPath(step);
  return mkdir(folder.c_str(), 0777) == 0 || cannot("write", folder, error);
}

bool CheckpointFolder::commit(int64_t step, std::string &error) {
  std::string from = writingPath(step), to = pathOf(step), name = nameOf(step) + "\n";
  if (!succeeds(syncFolder(from), error)) {
    return false;
  }
  if (access(to.c_str(), F_OK) == 0 && !discard(step, error)) {
    return false;
  }
  if (rename(from.c_str(), to.c_str()) != 0) {
    return cannot("write", to, error);
  }
  return succeeds(syncFolder(path), error) && succeeds(writeFile(inside("LATEST"), name), error);
}

/// Renames a checkpoint, so that its name never stands for a half removed one, and removes it.
bool CheckpointFolder::discard(int64_t step, std::string &error) {
  std::string from = pathOf(step), to = inside(kRemoving + nameOf(step));
  return (rename(from.c_str(), to.c_str()) == 0 || cannot("remove", from, error)) &&
         removeCheckpoint(to, error);
}

bool CheckpointFolder::prune(int64_t step, int64_t keep, const std::vector<int64_t> &damaged,
                             std::string &error) {
  std::vector<int64_t> steps;
  if (!list(steps, error)) {
    return false;
  }
  int64_t kept = 1; // That of `step`.
  for (int64_t other : steps) {
    std::vector<std::string> names;
    if (other >= step || !isOurs(pathOf(other), names)) {
      continue;
    }
    if (kept < keep) {
      kept += std::find(damaged.begin(), damaged.end(), other) == damaged.end();
    } else if (!discard(other, error)) {
      return false;
    }
  }
  return true;
}

bool CheckpointFolder::removeLeftovers(std::string &error) {
  std::vector<std::string> names;
  if (lockFile < 0) {
    return true;
  }
  if (!listNames(path, names, error)) {
    return false;
  }
  for (const std::string &name : names) {
    bool leftover = name.starts_with(kWriting + std::string(kStep)) ||
                    name.starts_with(kRemoving + std::string(kStep));
    if (leftover && !removeCheckpoint(inside(name), error)) {
      return false;
    }
  }
  return unlink(inside("LATEST.partial").c_str()) == 0 || errno == ENOENT ||
         cannot("remove", inside("LATEST.partial"), error);
}
