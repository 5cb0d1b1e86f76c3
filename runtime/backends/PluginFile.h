//===- PluginFile.h - finds the shared libraries of the runtime -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program looks for a plugin of the runtime beside itself, too. If other users can put files
// there, as into /tmp, they could have it run their code.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_PLUGINFILE_H
#define WEFT_RT_BACKENDS_PLUGINFILE_H

#include "weft-rt/Status.h"

#include <string>
#include <vector>

namespace weft::rt {

/// Returns the path of the plugin to load: of the file that the environment variable `variable`
/// names, or else of `file`. One that is no path is looked for in `libraryFolders()`. Fails if
/// there is none, or if `checkPlugin` does.
Result<std::string> findPlugin(const char *variable, const std::string &file);

/// Returns `path` without links. Fails unless only root, this user and the owner of this program
/// can change the file there: no others own or can write it, its folder, or a folder above; except
/// that a folder above may be one like /tmp, where only owners remove files. A group counts as the
/// owner if it has the owner's number, as groups of one user have.
Result<std::string> checkPlugin(const std::string &path);

/// Returns the folders where the dynamic linker looks for this program's libraries, in order.
std::vector<std::string> libraryFolders();

} // namespace weft::rt

#endif // WEFT_RT_BACKENDS_PLUGINFILE_H
