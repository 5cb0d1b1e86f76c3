//===- PluginFile.cpp - finds the shared libraries of the runtime ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/PluginFile.h"

#include "support/Text.h"

#include <cerrno>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace weft::rt;

/// Returns true for users that this program depends on anyway. The owner of "/" is root, or in a
/// container without root the user that stands for all unknown ones.
static bool isTrusted(uid_t user) {
  auto owns = [&](const char *path) {
    struct stat about = {};
    return stat(path, &about) == 0 && about.st_uid == user;
  };
  return user == 0 || user == geteuid() || owns("/") || owns("/proc/self/exe");
}

/// Returns how users that are not trusted can change the file or folder, or nothing. Where only
/// owners may remove files, a folder above is safe although others write there.
static std::string rightsOfOthers(const std::string &place, const struct stat &about,
                                  bool isAbove) {
  if (!isTrusted(about.st_uid)) {
    return concat("user ", about.st_uid, " owns '", place, "'");
  }
  bool groupWrites = (about.st_mode & S_IWGRP) && about.st_gid != about.st_uid;
  bool isSafe = isAbove && (about.st_mode & S_ISVTX);
  if (!isSafe && (groupWrites || (about.st_mode & S_IWOTH))) {
    return concat("other users can write '", place, "' (mode 0", std::oct, about.st_mode & 07777,
                  ")");
  }
  return "";
}

Result<std::string> weft::rt::checkPlugin(const std::string &path) {
  std::error_code code;
  std::filesystem::path real = std::filesystem::canonical(path, code);
  if (code) {
    return makeError("'", path, "': ", code.message());
  }
  // The file, its folder, and those above.
  std::filesystem::path place = real;
  for (bool isAbove = false;; isAbove = place != real, place = place.parent_path()) {
    struct stat about = {};
    if (stat(place.c_str(), &about) != 0) {
      return makeError("'", place.string(), "': ", systemError(errno));
    }
    std::string rights = rightsOfOthers(place.string(), about, isAbove);
    if (!rights.empty()) {
      return makeError("'", path, "' could be other users' code: ", rights,
                       ", expected a place that only root and this program's user can write");
    }
    if (place == place.root_path()) {
      return real.string();
    }
  }
}

std::vector<std::string> weft::rt::libraryFolders() {
  std::vector<std::string> folders;
  void *self = dlopen(nullptr, RTLD_NOW);
  Dl_serinfo size = {};
  if (self && dlinfo(self, RTLD_DI_SERINFOSIZE, &size) == 0) {
    std::vector<std::max_align_t> room(size.dls_size / sizeof(std::max_align_t) + 1);
    auto *found = reinterpret_cast<Dl_serinfo *>(room.data());
    *found = size;
    if (dlinfo(self, RTLD_DI_SERINFO, found) == 0) {
      for (unsigned i = 0; i < found->dls_cnt; ++i) {
        const char *name = found->dls_serpath[i].dls_name;
        folders.emplace_back(*name ? name : ".");
      }
    }
  }
  if (self) {
    dlclose(self);
  }
  return folders;
}

Result<std::string> weft::rt::findPlugin(const char *variable, const std::string &file) {
  const char *chosen = std::getenv(variable);
  std::string path = chosen && *chosen ? chosen : file;
  if (path.find('/') == std::string::npos) {
    std::string name = path;
    path.clear();
    for (const std::string &folder : libraryFolders()) {
      if (path.empty() && access(concat(folder, "/", name).c_str(), F_OK) == 0) {
        path = concat(folder, "/", name);
      }
    }
    if (path.empty()) {
      return makeError("no folder has '", name, "'");
    }
  }
  return checkPlugin(path);
}
