//===- ChildProcess.cpp - a program that does not outlive this one --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChildProcess.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/// What a shell says of a command that it cannot begin.
static constexpr int kNotBegun = 127;

/// The child from its beginning to that of the program. Other threads of the parent may hold any
/// lock: nothing here takes one.
[[noreturn]] static void becomeProgram(char *const *words, const char *said, pid_t parent,
                                       unsigned seconds) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) { // It has died before it could be watched.
    ::_exit(kNotBegun);
  }
  int nothing = ::open("/dev/null", O_RDONLY);
  int file = ::open(said, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (nothing >= 0 && file >= 0 && ::dup2(nothing, STDIN_FILENO) >= 0 &&
      ::dup2(file, STDOUT_FILENO) >= 0 && ::dup2(file, STDERR_FILENO) >= 0) {
    ::alarm(seconds); // It goes on to the program, which knows nothing of it and so is ended.
    ::execv(words[0], words);
  }
  ::_exit(kNotBegun);
}

std::string weft::runChild(const std::vector<std::string> &words, const std::string &said,
                           unsigned seconds) {
  std::vector<char *> pointers;
  for (const std::string &word : words) {
    pointers.push_back(const_cast<char *>(word.c_str()));
  }
  pointers.push_back(nullptr);
  pid_t parent = ::getpid(), child = ::fork();
  if (child == 0) {
    becomeProgram(pointers.data(), said.c_str(), parent, seconds);
  }
  int status = 0;
  pid_t ended = child;
  while (child > 0 && (ended = ::waitpid(child, &status, 0)) < 0 && errno == EINTR) {
  }
  if (ended < 0) {
    return std::string("cannot begin a process: ") + std::strerror(errno);
  }
  if (WIFSIGNALED(status)) {
    return WTERMSIG(status) == SIGALRM ? "it was not done after " + std::to_string(seconds) + " s"
                                       : "signal " + std::to_string(WTERMSIG(status));
  }
  int code = WEXITSTATUS(status);
  if (code == kNotBegun) {
    return "it could not begin";
  }
  return code == 0 ? "" : "exit status " + std::to_string(code);
}
