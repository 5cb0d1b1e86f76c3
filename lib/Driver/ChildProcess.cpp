//===- ChildProcess.cpp - runs a program that dies with this process ------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Driver/ChildProcess.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/// A shell's exit status for a command that it cannot start.
static constexpr int kNotBegun = 127;

/// Redirects `stream` to the file `path`, if `path` is not empty.
static bool sayInto(const std::string &path, int stream) {
  if (path.empty()) {
    return true;
  }
  int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  return file >= 0 && ::dup2(file, stream) >= 0;
}

/// The child's code before it starts the program. It takes no locks, since other threads of the
/// parent may have held any at the fork.
[[noreturn]] static void becomeProgram(char *const *words, const weft::ChildRequest &request,
                                       pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) { // It has died before it could be watched.
    ::_exit(kNotBegun);
  }
  int nothing = ::open("/dev/null", O_RDONLY);
  if (nothing >= 0 && ::dup2(nothing, STDIN_FILENO) >= 0 &&
      sayInto(request.output, STDOUT_FILENO) &&
      (!request.output.empty() && request.errors == request.output
           ? ::dup2(STDOUT_FILENO, STDERR_FILENO) >= 0
           : sayInto(request.errors, STDERR_FILENO))) {
    // The alarm stays set in the program, which does not handle it and so is killed by it.
    ::alarm(request.seconds);
    ::execv(words[0], words);
  }
  ::_exit(kNotBegun);
}

weft::ChildEnd weft::runChild(const ChildRequest &request) {
  std::vector<char *> pointers;
  for (const std::string &word : request.words) {
    pointers.push_back(const_cast<char *>(word.c_str()));
  }
  pointers.push_back(nullptr);
  pid_t parent = ::getpid(), child = ::fork();
  if (child == 0) {
    becomeProgram(pointers.data(), request, parent);
  }
  int state = 0;
  pid_t ended = child;
  while (child > 0 && (ended = ::waitpid(child, &state, 0)) < 0 && errno == EINTR) {
  }
  if (ended < 0) {
    return {.fault = std::string("cannot begin a process: ") + std::strerror(errno)};
  }
  if (WIFSIGNALED(state)) {
    return {.fault = WTERMSIG(state) == SIGALRM
                         ? "it was not done after " + std::to_string(request.seconds) + " s"
                         : "signal " + std::to_string(WTERMSIG(state))};
  }
  int status = WEXITSTATUS(state);
  if (status == kNotBegun) {
    return {.fault = "it could not begin"};
  }
  return {status, status == 0 ? "" : "exit status " + std::to_string(status)};
}
