//===- Secret.h - the secret that the processes of a run share ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The user gives all processes of a run one secret, in the environment variable WEFT_SECRET or in
// the file that WEFT_SECRET_FILE names. It never leaves a process: processes prove that they know
// it (see Handshake.h). Without a secret the key is the same in all programs, and proves nothing.
//
// Values; any thread may use them.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_PROCESSES_CONNECTIONS_SECRET_H
#define WEFT_RT_BACKENDS_PROCESSES_CONNECTIONS_SECRET_H

#include "backends/Launcher.h"
#include "support/Sha256.h"
#include "weft-rt/Status.h"

namespace weft::rt::tcp {

class Secret {
public:
  /// The fewest and the most bytes of a secret. A short one can be guessed from one handshake.
  static constexpr size_t kFewest = 16, kMost = 4096;

  /// No secret.
  Secret();
  /// Reads the secret that the user gave; one line break at the end of a file is not part of it.
  /// Fails if both variables are set, if the secret is too short or too long, and if other users
  /// can read or write the file, or it belongs to one.
  static Result<Secret> find(const mpi::Environment &environment);
  static Result<Secret> find();

  /// The key of handshakes at the rendezvous, before a run has a number.
  const Bytes32 &key() const { return ownKey; }
  /// The key of all later handshakes of the run. Rank 0 makes `run`, a random number, and tells it
  /// to all ranks.
  Bytes32 keyOf(const Bytes32 &run) const;

  /// Describes where this process has its secret: "this process has the one of WEFT_SECRET".
  const std::string &text() const { return described; }

private:
  Secret(const std::string &secret, std::string described);

  Bytes32 ownKey;
  std::string described;
};

/// Returns 16 digits that name a run and do not disclose its key: other users may see them.
std::string publicNameOf(const Bytes32 &runKey);

} // namespace weft::rt::tcp

#endif // WEFT_RT_BACKENDS_PROCESSES_CONNECTIONS_SECRET_H
