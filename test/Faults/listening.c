//===- listening.c - notes where a program listens --------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loaded before the C library (LD_PRELOAD), for tests alone. Appends a line to the file that the
// environment variable LISTENING names for every socket of IPv4 or IPv6 that begins to listen: its
// address and port.
//
//===----------------------------------------------------------------------===//

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static void note(int descriptor) {
  struct sockaddr_in6 six = {0};
  socklen_t size = sizeof six;
  char address[INET6_ADDRSTRLEN] = "", line[128];
  int file = open(getenv("LISTENING"), O_WRONLY | O_CREAT | O_APPEND, 0666);
  getsockname(descriptor, (struct sockaddr *)&six, &size);
  if (six.sin6_family == AF_INET6) {
    inet_ntop(AF_INET6, &six.sin6_addr, address, sizeof address);
  } else if (six.sin6_family == AF_INET) {
    inet_ntop(AF_INET, &((struct sockaddr_in *)&six)->sin_addr, address, sizeof address);
  }
  // The port is at the same place in both.
  int length = snprintf(line, sizeof line, "%s %d\n", address, ntohs(six.sin6_port));
  if (file < 0 || (address[0] && write(file, line, (size_t)length) != length)) {
    abort();
  }
  close(file);
}

int listen(int descriptor, int backlog) {
  int result = ((__typeof__(&listen))dlsym(RTLD_NEXT, "listen"))(descriptor, backlog);
  if (result == 0) {
    note(descriptor);
  }
  return result;
}
