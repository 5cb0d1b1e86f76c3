//===- ErrorOutput.cpp - printing a run's errors --------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "support/ErrorOutput.h"

#include <chrono>
#include <cstdio>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

static constexpr std::chrono::seconds kPatience(1);

void weft::rt::printError(const std::string &message) {
  std::fprintf(stderr, "error: %s\n", message.c_str());
  struct stat status = {};
  if (fstat(STDERR_FILENO, &status) != 0 || !S_ISFIFO(status.st_mode)) {
    return;
  }
  auto end = std::chrono::steady_clock::now() + kPatience;
  int unread = 0;
  while (ioctl(STDERR_FILENO, FIONREAD, &unread) == 0 && unread > 0 &&
         std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}
