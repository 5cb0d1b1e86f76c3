//===- Main.cpp - the entry point of executables --------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "executable/Executable.h"

// Defined by the compiler's object file.
extern "C" const char weft_program[];
extern "C" const uint64_t weft_program_size;
extern "C" const weft::rt::KernelCode weft_kernels[];

// Defined only in programs for devices.
extern "C" [[gnu::weak]] const weft::rt::DeviceImage weft_images[];
extern "C" [[gnu::weak]] const uint64_t weft_image_count;

int main(int argc, char **argv) {
  std::span<const weft::rt::DeviceImage> images;
  if (&weft_image_count) {
    images = {weft_images, size_t(weft_image_count)};
  }
  return weft::rt::runExecutable({weft_program, size_t(weft_program_size)}, weft_kernels, images,
                                 {argv, size_t(argc)});
}
