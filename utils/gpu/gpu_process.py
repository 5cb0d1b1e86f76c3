#===- gpu_process.py - processes of utils/gpu/check --------------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Processes whose children end with them, and whose output is kept even if they are killed."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile


class Process:
    """A command in a session of its own. What it prints lies in files, as a pipe would wait for all that it starts."""

    def __init__(self, command, environment):
        self.files = [tempfile.TemporaryFile() for _ in range(2)]
        try:
            self.running = subprocess.Popen([str(word) for word in command], env=environment, stdout=self.files[0],
                                            stderr=self.files[1], start_new_session=True)
        except OSError:
            self.close()
            raise

    @property
    def status(self):
        """Returns the exit status; None while the process runs."""
        return self.running.poll()

    @property
    def output(self):
        return self.said(0)

    @property
    def errors(self):
        return self.said(1)

    def said(self, file):
        # A seek would move the place where the process writes next.
        number = self.files[file].fileno()
        return os.pread(number, os.fstat(number).st_size, 0).decode(errors="replace")

    def wait(self, seconds):
        """Waits for the end of the process; returns whether it came in time."""
        try:
            self.running.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self):
        """Kills the process and all its children."""
        try:
            os.killpg(self.running.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def close(self):
        for file in self.files:
            file.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        # A process that waits for a stuck driver may never end.
        self.wait(10)
        self.close()


# The driver's description of the first device, and the number of devices.
DRIVER = """
import ctypes, sys
driver, count, version = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_int()
size, name = ctypes.c_size_t(), ctypes.create_string_buffer(96)
def call(function, *arguments):
    if status := getattr(driver, function)(*arguments):
        sys.exit(f"{function}: error {status}")
call("cuInit", 0)
call("cuDeviceGetCount", ctypes.byref(count))
if not count.value:
    sys.exit("cuDeviceGetCount: no device")
call("cuDriverGetVersion", ctypes.byref(version))
call("cuDeviceGetName", name, len(name), 0)
call("cuDeviceTotalMem_v2", ctypes.byref(size), 0)
print(f"{name.value.decode()}, CUDA {version.value // 1000}.{version.value % 1000 // 10}, {size.value >> 20} MiB")
print(count.value)
"""


def find_device(environment):
    """Returns the first device's description by nvidia-smi or the driver, or None and the reason."""
    found, reason = query_device("name,driver_version,memory.total")
    if found:
        return found, ""
    lines, last = ask_driver(environment)
    return (lines[0], "") if lines else (None, f"{reason}; {last}")


def count_devices(environment):
    """Returns the number of devices that programs see, by the driver; 1 if the driver does not answer."""
    lines, _ = ask_driver(environment)
    return int(lines[1]) if lines else 1


def ask_driver(environment):
    """Returns the lines of the driver's answer, or None and the reason."""
    with Process([sys.executable, "-c", DRIVER], environment) as asked:
        if not asked.wait(20):
            return None, "the driver does not answer"
        last = (asked.errors.strip().splitlines() or [f"status {asked.status}"])[-1]
        return (asked.output.splitlines(), "") if asked.status == 0 else (None, last)


def query_device(fields, form="csv,noheader"):
    """Returns the first device's description by nvidia-smi, or None and the reason why it gives none."""
    program = shutil.which("nvidia-smi", path=os.environ.get("PATH", "") + ":/usr/local/nvidia/bin") or "nvidia-smi"
    try:
        with Process([program, f"--query-gpu={fields}", f"--format={form}"], None) as asked:
            in_time = asked.wait(10)
            lines, errors, status = asked.output.strip().splitlines(), asked.errors.strip(), asked.status
    except OSError as error:
        return None, f"nvidia-smi: {error.strerror}"
    if not in_time:
        return None, "nvidia-smi: does not answer"
    if status == 0 and lines:
        return lines[0], ""
    return None, errors or "\n".join(lines) or f"nvidia-smi: status {status}"
