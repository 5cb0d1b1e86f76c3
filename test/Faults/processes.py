#!/usr/bin/python3
#===- processes.py - ranks as processes, and their faults ---------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Runs a compiled program under mpirun, and as torchrun does, with and without faults.

Without faults it must write the same bits as ranks that are threads of one process, and each must
resume from the other's checkpoints. When a rank is killed, stopped, or started with something
else, the run must end soon, with the right exit status and one line on standard error, and leave no
process behind. Prints a line for each case, then "N passed, N failed"; fails if one failed or none
ran. Started by root, it needs the two variables of Open MPI that docs/Running.md names. It does not
need PyTorch.
"""

import argparse
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import faults

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "runtime/tests"))
import torchrun  # pylint: disable=wrong-import-position

RANKS = 4
# Exit statuses of docs/Running.md.
DEAD, STUCK = 5, 6
# Seconds that a rank waits for others in cases with such a wait.
PATIENCE = 4
# Seconds that a run may take to end; more is a hang.
TIME_LIMIT = 90


class Bench:
    """A folder with a program for four ranks, and the cases tried so far."""

    # The target of the compilation.
    TARGET = ()

    def __init__(self, weft, folder):
        self.weft, self.folder = str(Path(weft).resolve()), folder
        self.environment = dict(os.environ, WEFT_TEST_RUN=str(folder))
        self.passed = self.failed = 0
        for name, text in (("model", faults.MODEL), ("recipe", faults.RECIPE),
                           ("machine", faults.MACHINE), ("text", faults.TEXT)):
            (folder / name).write_text(text)
        self.check(self.call([self.weft, "compile", "model", "--machine", "machine", "--recipe",
                              "recipe", "--pin", "dp=2", "--pin", "tp=2", *self.TARGET, "-o",
                              "train"]))

    def check(self, done):
        """Ends the test unless the command succeeded."""
        if done.returncode != 0:
            sys.exit(f"{' '.join(map(str, done.args))}: expected success, got {done.stderr}")

    def call(self, command, **environment):
        """Runs a command in the folder; returns its result."""
        return subprocess.run(command, cwd=self.folder, text=True, capture_output=True,
                              env={**self.environment, **environment}, timeout=TIME_LIMIT)

    def command(self, backend, *options, program="train"):
        """Returns the command that runs the program."""
        if backend == "tcp":
            return [torchrun.__file__, "-n", str(RANKS), "./" + program, "--data", "text", *options]
        return [self.weft, "run", "-n", str(RANKS), "--backend", backend, program, "--", "--data",
                "text", *options]

    def train(self, backend, *options):
        """Expects a run to succeed."""
        self.check(self.call(self.command(backend, *options)))

    def contents(self, name):
        """Returns the content of a file, or of all files of a folder by name."""
        path = self.folder / name
        if path.is_dir():
            return {str(file.relative_to(path)): file.read_bytes()
                    for file in path.rglob("*") if file.is_file()}
        return path.read_bytes()

    def ranks(self):
        """Returns the numbers of our processes, by rank; a launcher has none."""
        found = {}
        for process in Path("/proc").iterdir():
            if not process.name.isdigit():
                continue
            try:
                words = (process / "environ").read_bytes().split(b"\0")
                is_dead = (process / "stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
            except OSError:
                continue
            values = dict(word.split(b"=", 1) for word in words if b"=" in word)
            if not is_dead and values.get(b"WEFT_TEST_RUN") == str(self.folder).encode():
                rank = int(values.get(b"OMPI_COMM_WORLD_RANK", values.get(b"RANK", -1)))
                found.setdefault(rank, []).append(int(process.name))
        return found

    def left(self):
        """Returns an error if processes remain, or None. Their launcher takes a moment to end."""
        end = time.monotonic() + 10
        while (found := self.ranks()) and time.monotonic() < end:
            time.sleep(0.05)
        for process in sum(found.values(), []):
            os.kill(process, signal.SIGKILL)
        return f"left processes of ranks {sorted(found)} behind" if found else None

    def tell(self, what, fault):
        """Counts and prints one case."""
        self.passed, self.failed = self.passed + (not fault), self.failed + bool(fault)
        print(f"{'FAIL' if fault else 'pass'} {what}" + (f": {fault}" if fault else ""), flush=True)

    def judge(self, what, status, errors, expected_status, message):
        """Checks the end of a run."""
        fault = None
        if status not in expected_status:
            fault = f"expected exit status {expected_status}, got {status}: {errors[-300:]}"
        elif not re.fullmatch(message + "\n", errors):
            fault = f"expected '{message}', got '{errors[-600:]}'"
        self.tell(what, fault or self.left())

    def fault(self, what, command, message, **environment):
        """Expects a run to fail by itself."""
        done = self.call(command, **environment)
        self.judge(what, done.returncode, done.stderr, (1,), message)

    def faults(self, what, processes, message):
        """Processes without a launcher, each (command, variables), of which one at least must fail;
        the lines of all count."""
        status, errors = self.ended(processes)
        self.judge(what, status, errors, (1,), message)

    def ended(self, processes):
        """Returns the greatest exit status of such processes, and the errors of all."""
        started = [subprocess.Popen(command, cwd=self.folder, text=True, stderr=subprocess.PIPE,
                                    stdout=subprocess.DEVNULL,
                                    env={**self.environment, **variables})
                   for command, variables in processes]
        errors = "".join(process.communicate(timeout=TIME_LIMIT)[1] for process in started)
        return max(process.returncode for process in started), errors

    def strike(self, backend, what, rank, number, statuses, message):
        """Sends a signal to one rank of a long run."""
        status, errors, behind = self.struck(backend, rank, number)
        self.judge(what, status, errors + (f"({behind})" if behind else ""), statuses, message)

    def struck(self, backend, rank, number):
        """Returns the exit status of one such run, its errors, and its remaining processes."""
        with open(self.folder / "metrics", "wb"), open(self.folder / "errors", "w+") as errors:
            run = subprocess.Popen(
                self.command(backend, "--steps", "100000000", "--quiet", "--timeout", str(PATIENCE),
                             "--metrics", "metrics"),
                cwd=self.folder, env=self.environment, stderr=errors, stdout=subprocess.DEVNULL)
            end = time.monotonic() + TIME_LIMIT
            while (self.folder / "metrics").read_bytes().count(b"\n") < 5:
                if run.poll() is not None or time.monotonic() > end:
                    break
                time.sleep(0.05)
            if run.poll() is not None:
                errors.seek(0)
                sys.exit(f"{' '.join(run.args)}: expected it to go on, got {errors.read()}")
            target = self.ranks().get(rank, [run.pid])[0]
            os.kill(target, number)
            try:
                got = run.wait(TIME_LIMIT)
            except subprocess.TimeoutExpired:
                run.kill()
                got = "a hang"
            # Output still arrives in the file until all processes have ended.
            behind = self.left()
            errors.seek(0)
            return got, errors.read(), behind


    def continued(self, what, rank, message):
        """Stops one rank of a long run without a launcher, which goes on once the others have ended."""
        _, port = torchrun.take_port("127.0.0.1")
        (self.folder / "metrics").write_bytes(b"")
        command = ["./train", "--data", "text", "--steps", "100000000", "--quiet", "--timeout", str(PATIENCE),
                   "--metrics", "metrics"]
        ranks = [subprocess.Popen(command, cwd=self.folder, text=True, stderr=subprocess.PIPE,
                                  stdout=subprocess.DEVNULL, env={**self.environment, **variables})
                 for variables in torchrun.variables(RANKS, port)]
        end = time.monotonic() + TIME_LIMIT
        while (self.folder / "metrics").read_bytes().count(b"\n") < 5 and time.monotonic() < end:
            time.sleep(0.05)
        ranks[rank].send_signal(signal.SIGSTOP)
        for other in ranks[:rank] + ranks[rank + 1:]:
            other.wait(TIME_LIMIT)
        ranks[rank].send_signal(signal.SIGCONT)
        errors = "".join(each.communicate(timeout=TIME_LIMIT)[1] for each in ranks)
        statuses = {each.returncode for each in ranks}
        self.judge(what, statuses.pop() if len(statuses) == 1 else sorted(statuses), errors, (STUCK,), message)


def same_files(bench, processes):
    """Ranks in processes write the same as ranks in threads."""
    options = ("--validation-split", "0.2", "--gradients-step", "1", "--steps", "3", "--quiet")
    outputs = ("save", "save-gradients", "metrics", "checkpoint-dir", "profile")
    for backend in ("local", processes):
        bench.train(backend, *options,
                    *sum(((f"--{name}", f"{backend}-{name}") for name in outputs), ()))
    for name in ("save", "save-gradients", "checkpoint-dir"):
        same = bench.contents(f"local-{name}") == bench.contents(f"{processes}-{name}")
        bench.tell(f"{processes}: --{name} has the same bytes", None if same else "it differs")

    def numbers(backend):
        lines = map(json.loads, bench.contents(f"{backend}-metrics").splitlines())
        return [[line.get(key) for key in ("step", "loss", "gradient_norm", "validation_loss")]
                for line in lines]

    bench.tell(f"{processes}: --metrics has the same numbers",
               None if numbers("local") == numbers(processes) else "they differ")
    profile = json.loads(bench.contents(f"{processes}-profile"))
    ok = profile["ranks"] == RANKS and profile["step"]["seconds"] > 0
    bench.tell(f"{processes}: --profile is of all ranks", None if ok else f"got {profile}"[:300])


def checkpoints(bench, processes):
    """Either kind of run resumes from the checkpoints of the other."""
    for backend, other in (("local", processes), (processes, "local")):
        folder = f"{backend}-to-{other}"
        bench.train(backend, "--steps", "2", "--checkpoint-dir", folder, "--quiet")
        bench.train(other, "--steps", "4", "--checkpoint-dir", folder, "--quiet", "--save",
                    f"{folder}.save")
    bench.train("local", "--steps", "4", "--quiet", "--save", "never-stopped")
    for name in (f"local-to-{processes}", f"{processes}-to-local"):
        same = bench.contents(f"{name}.save") == bench.contents("never-stopped")
        bench.tell(f"checkpoint {name}", None if same else "the end differs from a run at one go")


def last_update(bench, processes):
    """Weights of one rank that overflow in the last update are in no file."""
    (bench.folder / "leaping.recipe").write_text(faults.LEAPING)
    bench.check(bench.call([bench.weft, "compile", "model", "--machine", "machine", "--recipe", "leaping.recipe",
                            "--pin", "fsdp=4", "-o", "leaping"]))
    bench.check(bench.call([bench.weft, "run", "leaping", "--", "--steps", "0", "--save", "start"]))
    weights = {name: values.copy() for name, values in faults.safetensors.load(bench.folder / "start").items()
               if "/" not in name}
    weights["embed.tokens.weight"][-1, 5] = 1e37  # On the last rank alone; no loss depends on it.
    faults.safetensors.save(bench.folder / "large", weights)
    for options in (("--save", "never"), ("--checkpoint-dir", "never", "--checkpoint-keep", "1")):
        done = bench.call(bench.command(processes, "--load", "large", "--steps", "1", "--quiet", *options,
                                        program="leaping"))
        kept = [path for path in (bench.folder / "never").rglob("*") if path.name != ".lock"]
        kept += [bench.folder / "never"] if (bench.folder / "never").is_file() else []
        bench.judge(f"{processes}: {options[0]} of weights that overflow on one rank", done.returncode,
                    done.stderr + "".join(f"{path} is there\n" for path in kept), (3,),
                    r"error: after 1 steps 'embed\.tokens\.weight' has -inf at \[127, 5\], expected finite numbers: "
                    r"nothing of it is saved")


def starts(bench, processes):
    """Runs that cannot start."""
    (starts_of_mpi if processes == "mpi" else starts_of_tcp)(bench)


def starts_of_tcp(bench):
    """Runs without a launcher that ends the others, and runs with wrong variables."""
    program = ["./train", "--data", "text", "--quiet"]
    store, port = torchrun.take_port("127.0.0.1")
    ranks = torchrun.variables(RANKS, port)

    def changed(rank, **variables):
        return [*ranks[:rank], {**ranks[rank], **variables}, *ranks[rank + 1:]]

    def fault(what, message, variables, *options):
        bench.faults(what, [([*program, *options], each) for each in variables], message)

    soon = ("--timeout", "3")
    bench.fault("tcp without processes", [*program, "--backend", "tcp"],
                r"error: --backend tcp needs a process for each rank: start the program by 'torchrun .*")
    bench.fault("mpi by torchrun", [*program, "--backend", "mpi"],
                r"error: torchrun has started this process, but --backend mpi is given: expected "
                r"--backend tcp, or none", **ranks[0])
    bench.fault("threads by torchrun", [*program, "--backend", "local"],
                r"error: torchrun has started 4 processes, but --backend local runs all ranks in one",
                **ranks[0])
    bench.fault("a variable that is wrong", program,
                r"error: RANK is 'four', expected a whole number from 0 to below WORLD_SIZE",
                **{**ranks[0], "RANK": "four"})
    bench.fault("a variable that is missing", program,
                r"error: MASTER_ADDR is '', expected the machine of rank 0",
                **{**ranks[0], "MASTER_ADDR": ""})
    fault("too few processes", r"error: 3 processes were started, but the plan of this program is for "
          r"4 ranks", torchrun.variables(3, port))
    fault("a rank that does not come", rf"error: waited 3 s at port {port + 1} \(MASTER_PORT \+ 1\) for "
          r"rank 3, which has not come", ranks[:3], *soon)
    fault("no rank 0", rf"(error: rank \d tried for 3 s to reach rank 0 at 127.0.0.1 port {port + 1} "
          r"\(MASTER_ADDR, MASTER_PORT \+ 1\): Connection refused\n?){3}", ranks[1:], *soon)
    fault("one rank twice",
          r"(?s)(?=.*error: waited 3 s at port .* for rank 3, which has not come; a process from .* was "
          r"sent away: there is a RANK 2 already, from .*)(?=.*error: rank 0 at .* has sent this "
          r"process, rank 2, away: there is a RANK 2 already, from .*)(error: [^\n]*\n?){2}",
          changed(3, RANK="2"), *soon)
    fault("another number of processes",
          r"(?s)(?=.*error: waited 3 s .*)(?=.* away: its WORLD_SIZE is 5, that of rank 0 is 4\n)"
          r"(error: [^\n]*\n?){2}", changed(3, WORLD_SIZE="5"), *soon)
    bench.fault("a port that is taken", program,
                rf"error: rank 0 cannot listen for the other ranks at port {port} \(WEFT_PORT\): "
                r"Address already in use", **ranks[0], WEFT_PORT=str(port))
    bench.faults("other options on a rank", [
        *((program, each) for each in ranks[:3]), ([*program, "--seed", "5"], ranks[3])],
                 r"error: rank 3 was given other options than rank 0")
    store.close()


def starts_of_mpi(bench):
    """Starts under mpirun."""
    mpirun = ["mpirun", "--quiet", "--oversubscribe"]
    program = ["./train", "--data", "text"]
    bench.fault("too few processes", [*mpirun, "-n", "3", *program],
                r"error: 3 processes were started, but the plan of this program is for 4 ranks")
    bench.fault("mpi without processes", [*program, "--backend", "mpi"],
                r"error: --backend mpi needs a process for each rank: start the program by .*")
    bench.fault("threads in several processes", [*mpirun, "-n", "4", *program, "--backend", "local"],
                r"error: mpirun has started 4 processes, but --backend local runs all ranks in one")
    bench.fault("other options on a rank", [*mpirun, "-n", "3", *program, ":", "-n", "1", *program,
                                            "--seed", "5"],
                r"error: rank 3 was given other options than rank 0")
    shutil.copy(bench.folder / "train", bench.folder / "other")
    with open(bench.folder / "other", "ab") as file:
        file.write(b"x")
    bench.fault("another executable on a rank", [*mpirun, "-n", "2", *program, ":", "-n", "2",
                                                 "./other", *program[1:]],
                r"error: rank 2 runs another program than rank 0: on '.*' plan .*, file xxh3.*; "
                r"rank 0 on '.*' plan .*, file xxh3.*")
    (bench.folder / "empty").mkdir()
    bench.fault("no data", [*mpirun, "-n", "4", "./train"], r"error: --data is missing: .*")
    bench.fault("data that is missing on a rank", [
        *mpirun, "-n", "4", "sh", "-c",
        "test $OMPI_COMM_WORLD_RANK = 2 && cd empty; exec $PLACE/train --data text"],
                r"error: cannot read 'text': .*", PLACE=str(bench.folder))
    bench.fault("unknown option", [*mpirun, "-n", "4", "./train", "--dta", "x"],
                r"error: unknown option --dta; the nearest is --data")
    bench.fault("library of another kind", [*mpirun, "-n", "4", *program],
                r"error: '.*' is not the library that --backend mpi needs: .*",
                WEFT_RT_MPI="libm.so.6")
    (bench.folder / "newer.c").write_text("void *weft_rt_mpi(unsigned version) { return 0; }\n")
    bench.check(bench.call(["cc", "-shared", "-fPIC", "newer.c", "-o", "newer.so"]))
    bench.fault("library of another version", [*mpirun, "-n", "4", *program],
                r"error: '/.*/newer.so' is of another version than this program, which needs 1; "
                r"compile again", WEFT_RT_MPI="./newer.so")
    # As in /tmp: others could have put a library beside the program, where it looks first.
    bench.folder.chmod(0o1777)
    shutil.copy(bench.folder / "newer.so", bench.folder / "libweft-rt-mpi.so.1")
    bench.fault("library that others could have made", [*mpirun, "-n", "4", *program],
                r"error: --backend mpi needs libweft-rt-mpi.so.1, .*: '.*/libweft-rt-mpi.so.1' could be other "
                r"users' code: other users can write '.*' \(mode 01777\), expected a place that only root and "
                r"this program's user can write")
    (bench.folder / "libweft-rt-mpi.so.1").unlink()
    bench.folder.chmod(0o700)
    bench.fault("launcher of MPICH", program, r"error: the program was started by an mpiexec that is "
                r"not Open MPI's, but --backend mpi uses Open MPI v.*", PMI_RANK="0", PMI_SIZE="4")


def network(bench, processes):
    """Where ranks listen, and whom they let in."""
    (secrets_of_mpi if processes == "mpi" else network_of_tcp)(bench)


def network_of_tcp(bench):
    """Runs with and without a secret, and their ports."""
    store, port = torchrun.take_port("127.0.0.1")
    ranks = torchrun.variables(RANKS, port)
    program = ["./train", "--data", "text", "--steps", "2", "--quiet"]
    ours, other = ({"WEFT_SECRET": f"the secret of {whom}"} for whom in ("all ranks", "strangers"))

    listening = bench.folder / "listening.so"
    bench.check(bench.call(["cc", "-shared", "-fPIC", str(Path(__file__).with_name("listening.c")),
                            "-o", str(listening)]))

    def ports(host, secret):
        """Returns the addresses and ports at which the ranks of a run listen."""
        log = bench.folder / "listening"
        log.unlink(missing_ok=True)
        added = {**secret, "MASTER_ADDR": host, "LD_PRELOAD": str(listening), "LISTENING": str(log)}
        status, errors = bench.ended([(program, {**rank, **added}) for rank in ranks])
        if status != 0:
            sys.exit(f"expected a run at {host} to succeed, got {errors}")
        return [line.split() for line in log.read_text().splitlines()]

    for host in ("127.0.0.1", "localhost"):
        found = ports(host, ours)
        # Rank 0 awaits the others twice, and the others each other; one may try again.
        ok = (len(found) >= RANKS + 1 and str(port + 1) in (each[1] for each in found)
              and all(each[0] in ("127.0.0.1", "::1") for each in found))
        bench.tell(f"tcp: with {host} no port is open to other machines",
                   None if ok else f"ranks listen at {found}")
    found = ports("0.0.0.0", {})
    ok = len(found) >= RANKS + 1 and any(each[0] in ("::", "0.0.0.0") for each in found)
    bench.tell("tcp: another name opens ports to other machines", None if ok else f"got {found}")

    secret = (r"(?s)(?=.*error: waited 3 s at port .* for rank 3, which has not come; a process from .* was "
              r"sent away: it has another secret, or none; this process has {0})(?=.*error: rank 0 at .* "
              r"has sent this process, rank 3, away: it has another secret, or none; this process has "
              r"{1})(error: [^\n]*\n?){{2}}")
    the_one, none = r"the one in WEFT_SECRET\n", r"none \(neither WEFT_SECRET nor WEFT_SECRET_FILE is set\)\n"
    soon = [*program, "--timeout", "3"]
    for what, first, last, texts in (("another secret on a rank", ours, other, (the_one, the_one)),
                                     ("no secret on a rank", ours, {}, (the_one, none)),
                                     ("a secret on one rank alone", {}, ours, (none, the_one))):
        bench.faults(f"tcp: {what}", [*((soon, {**rank, **first}) for rank in ranks[:3]),
                                      (soon, {**ranks[3], **last})], secret.format(*texts))
    (bench.folder / "secret").write_text("the secret of all ranks\n")
    (bench.folder / "secret").chmod(0o640)
    file = {"WEFT_SECRET_FILE": "secret"}
    bench.fault("tcp: a secret that others can read", program,
                r"error: other users can open 'secret' of WEFT_SECRET_FILE: expected mode 0600 or 0400, "
                r"got 0640; chmod go= removes their rights", **ranks[0], **file)
    (bench.folder / "secret").chmod(0o600)
    stranger(bench, [(program, {**rank, **file}) for rank in ranks[:3]],
             (program, {**ranks[3], **ours}), port + 1)
    store.close()


def stranger(bench, first, last, port):
    """A stranger comes while a run with a secret begins; it is told nothing, and the run goes on."""
    waiting = [subprocess.Popen(command, cwd=bench.folder, env={**bench.environment, **variables})
               for command, variables in first]

    def answer(*words):
        """Returns the bytes that rank 0 sends until it closes the connection."""
        end = time.monotonic() + TIME_LIMIT
        while True:
            try:
                with socket.create_connection(("127.0.0.1", port), TIME_LIMIT) as connection:
                    received = b""
                    for word in words:
                        connection.sendall(word)
                        received += connection.recv(1024)
                    while more := connection.recv(1024):
                        received += more
                    return received
            except ConnectionRefusedError:  # Rank 0 does not listen yet.
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)
            except ConnectionResetError:
                return received

    hello = b"weft tcp" + struct.pack("<II", 2, 0)
    told = answer(b"GET / HTTP/1.1\r\n\r\n")
    greeted = answer(hello + bytes(32), bytes(56))
    status, errors = bench.ended([last])
    status = max([status, *(process.wait(TIME_LIMIT) for process in waiting)])
    fault = None
    if told:
        fault = f"rank 0 answered {told}"
    elif len(greeted) != 48 or not greeted.startswith(hello):
        fault = f"expected a random number and no more, got {greeted}"
    elif status != 0:
        fault = f"the run has failed: {errors}"
    bench.tell("tcp: a stranger is told nothing", fault or bench.left())


def secrets_of_mpi(bench):
    """The control channel beside MPI takes the secret, too."""
    mpirun = ["mpirun", "--quiet", "--oversubscribe", "-n", "4"]
    program = "./train --data text --steps 2 --quiet"
    ours = {"WEFT_SECRET": "the secret of all ranks"}
    done = bench.call([*mpirun, *program.split()], **ours)
    bench.tell("mpi: a secret", done.stderr if done.returncode != 0 else None)
    bench.fault("mpi: another secret on a rank", [
        *mpirun, "sh", "-c",
        f"test $OMPI_COMM_WORLD_RANK = 2 && export WEFT_SECRET=of_strangers_only; exec {program}"],
                r"error: rank 2 cannot connect to rank 0, at .* \(port and addresses\): the process at .* "
                r"has another secret \(WEFT_SECRET or WEFT_SECRET_FILE\), or none"
                # mpirun then ends the others one by one, and those may see that rank 0 went first.
                r"(\nerror: rank 0 is gone: [^\n]*)*", **ours)


def signals(bench, processes):
    """A rank that is killed, terminated or suspended; and the launcher."""
    gone = (r"error: rank {0} is gone: its process \d+ on '.*' has ended without a word, as it does "
            r"when it is killed")
    stuck = (r"error: rank \d waited " + str(PATIENCE) + r" s in [a-z-]+ .* \(.* instruction \d+, .*"
             r"\);.* rank {0} is missing: its process \d+ on '.*' does not answer, as when it is "
             r"stopped")
    for rank in (0, 2):
        # The launcher returns the signal or the report's status, whichever it sees first.
        bench.strike(processes, f"{processes}: rank {rank} is killed", rank, signal.SIGKILL, (DEAD, 137),
                     gone.format(rank))
        bench.strike(processes, f"{processes}: rank {rank} is told to end", rank, signal.SIGTERM, (DEAD, 143),
                     gone.format(rank))
        # More than one rank may report, and after the report that rank 0 has ended: to be mended.
        more = rf"(?:{stuck.format(rank)}|{gone.format(0)})"
        bench.strike(processes, f"{processes}: rank {rank} is stopped", rank, signal.SIGSTOP, (STUCK,),
                     rf"(?:{more}\n)*{stuck.format(rank)}(?:\n{more})*")
        if processes == "tcp":
            bench.continued(f"{processes}: rank {rank} is stopped, and goes on when the others have ended", rank,
                            stuck.format(rank))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weft", default="build/bin/weft", help="the compiler")
    parser.add_argument("--only", help="one group: same_files, checkpoints, last_update, starts, "
                                       "network or signals")
    parser.add_argument("--backend", choices=("mpi", "tcp"), help="one of both")
    options = parser.parse_args()
    passed = failed = 0
    for backend in (options.backend,) if options.backend else ("mpi", "tcp"):
        with tempfile.TemporaryDirectory() as folder:
            bench = Bench(options.weft, Path(folder))
            for group in (same_files, checkpoints, last_update, starts, network, signals):
                if options.only in (None, group.__name__):
                    group(bench, backend)
            passed, failed = passed + bench.passed, failed + bench.failed
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
