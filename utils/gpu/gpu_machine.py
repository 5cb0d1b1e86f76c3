#===- gpu_machine.py - bare machines for utils/gpu/rehearse ------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""A machine that has only what it is given: a root folder, in which commands run without a network.

A root holds a Python without packages, a shell, the libraries of both, and the tracked files of this tree. Commands run
in namespaces of their own: their mounts and processes end with them.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from gpu_kit import ROOT

FAKES = Path(__file__).resolve().parent / "fakes"
# Where a machine has this tree, a toolkit, and the simulator.
TREE, TOOLKIT, SIMULATOR = "/weft", "/usr/local/cuda", "/opt/simulator.so"
# Files of the libraries that stand for CUDA's.
LIBRARIES = ("libcublasLt.so.*", "libcudnn.so.*", "libnvrtc.so.*", "libnccl.so.*")
SHELL = "/bin/sh"
DEVICES = ("null", "zero", "random", "urandom")
# Turns the loopback interface on, which a new network has off.
LOOPBACK = """
import fcntl, socket, struct
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as some:
    fcntl.ioctl(some, 0x8914, struct.pack("16sH14s", b"lo", 1, b""))
"""
# Mounts what a root needs, and runs the command of the remaining arguments in it.
ENTER = f"""
set -e
root=$1 python=$2 library=$3; shift 3
"$python" -c '{LOOPBACK}'
mount --bind "$library" "$root$library"
[ ! -d "$root$library/site-packages" ] || mount -t tmpfs none "$root$library/site-packages"
mount -t proc proc "$root/proc"
for name in {' '.join(DEVICES)}; do mount --bind /dev/$name "$root/dev/$name"; done
mount -t tmpfs none "$root/dev/shm"
exec chroot "$root" {SHELL} -c 'cd "$0" && exec "$@"' {TREE} "$@"
"""


@dataclass(frozen=True)
class Machine:
    """What a machine has beside a driver, Python and this tree."""
    name: str
    has_toolkit: bool = False
    has_libraries: bool = False
    has_torch: bool = False


MACHINES = (Machine("driver"), Machine("toolkit", True), Machine("libraries", True, True),
            Machine("torch", True, True, True))


def namespaces():
    """Returns the command that runs another one in namespaces of its own; users other than root get rights in them.
    """
    users = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return ["unshare", *users, "--mount", "--net", "--pid", "--fork", "--kill-child"]


def lack_of_rights(folder):
    """Returns the reason why this user cannot make machines; empty if it can. `folder` is empty."""
    proc = folder / "proc"
    proc.mkdir()
    try:
        done = subprocess.run([*namespaces(), "mount", "-t", "proc", "proc", proc], capture_output=True, text=True,
                              check=False)
    except OSError as error:
        return f"unshare: {error.strerror}"
    return "" if done.returncode == 0 else done.stderr.strip() or f"unshare: status {done.returncode}"


def linked(files):
    """Returns the libraries that programs and libraries are linked with, the loader among them."""
    done = subprocess.run(["ldd", *files], capture_output=True, text=True, check=False)
    return sorted(set(re.findall(r"(/\S+\.so\S*) \(", done.stdout)))


def copy(file, root, to=""):
    """Copies a file to its own place in the root, or to `to`."""
    place = Path(str(root) + (str(to) or str(file)))
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(file, place)


def tracked():
    """Returns this tree's tracked files that exist."""
    done = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, text=True, check=True)
    return [name for name in done.stdout.split("\0") if (ROOT / name).is_file()]


def add_base(root):
    """Adds folders, Python and the shell, with their libraries."""
    for name in ("bin", "lib", "lib64"):
        if Path("/", name).is_symlink():
            (root / name).symlink_to(os.readlink(Path("/", name)))
        (root / "usr" / name).mkdir(parents=True, exist_ok=True)
    for name in ("proc", "dev/shm", "tmp", "etc", "results"):
        (root / name).mkdir(parents=True)
    for name in DEVICES:
        (root / "dev" / name).touch()
    (root / "etc/hosts").write_text("127.0.0.1 localhost\n")
    library, python = Path(sysconfig.get_path("stdlib")), Path(sys.executable).resolve()
    (root / library.relative_to("/")).mkdir(parents=True)
    copy(python, root, "/usr/bin/python3")
    copy(SHELL, root)
    for file in linked([python, SHELL, *library.glob("lib-dynload/*.so")]):
        copy(file, root)


def make(machine, root, build, hidden=()):
    """Makes the machine in the empty folder `root`, with fakes of CUDA that this build has made. Its toolkit lacks the
    files that the patterns `hidden` name."""
    libraries = build / "runtime/fake-cuda"
    add_base(root)
    for name in tracked():
        copy(ROOT / name, root, f"{TREE}/{name}")
    copy(build / "lib/libweft-rt-cuda-simulator-plugin.so", root, SIMULATOR)
    copy(libraries / "libcuda.so.1", root, "/usr/lib/x86_64-linux-gnu/libcuda.so.1")
    if machine.has_toolkit:
        copy(FAKES / "compute-sanitizer", root, f"{TOOLKIT}/bin/compute-sanitizer")
    if machine.has_libraries:
        for file in (file for name in LIBRARIES for file in libraries.glob(name)):
            copy(file, root, f"{TOOLKIT}/lib64/{file.name}")
    for file in (file for pattern in hidden for file in Path(f"{root}{TOOLKIT}").rglob(pattern)):
        file.unlink()
    if machine.has_torch:
        copy(FAKES / "torch/__init__.py", root, f"{sysconfig.get_path('purelib')}/torch/__init__.py")


def command(root, words):
    """Returns the command that runs `words` in the tree of a machine."""
    return [*namespaces(), "sh", "-c", ENTER, "sh", root, sys.executable, sysconfig.get_path("stdlib"), *words]


def environment():
    """Returns all variables that commands on a machine have."""
    return {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/tmp", "LANG": "C.UTF-8",
            "WEFT_SIMULATOR_LOADS": "1"}
