"""What commands use of the machine, processor time and memory, measured so that what else runs there says little."""

import functools
import resource
import subprocess
import sys
import time

# Between a program and a large process, whose memory at the fork would count as the program's.
_SMALL_PARENT = ("import os, subprocess, sys; child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL); "
                 "_, status, usage = os.wait4(child.pid, 0); print(os.waitstatus_to_exitcode(status), usage.ru_maxrss)")
_REFERENCE_SECONDS = 0.05  # of _work() where limits of seconds were set


def peak_of(arguments):
    """(exit status, peak resident bytes, stderr) of a command."""
    done = subprocess.run([sys.executable, "-c", _SMALL_PARENT, *map(str, arguments)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=True)
    status, kib = map(int, done.stdout.split())
    return status, 1024 * kib, done.stderr


def seconds_of_children():
    """Processor time of all commands that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _work():
    """Processor time of some numbers, texts and a table."""
    begun, number, kept = time.process_time(), 1, {}
    for _ in range(300_000):
        number = number * 1103515245 + 12345 & 0x7FFFFFFF
        kept[number & 1023] = str(number)
    return time.process_time() - begun


@functools.cache
def slowness():
    """How many times as long as where limits of processor seconds were set this machine takes, at least 1; the best of
    several tries."""
    return max(1.0, min(_work() for _ in range(7)) / _REFERENCE_SECONDS)
