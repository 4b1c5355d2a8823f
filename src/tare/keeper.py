"""Keeps what does not live on an open stdin (an Apptainer instance, an unpacked image): starts it, and ends it when stdin closes.

A container whose own process reads its stdin goes when its holder goes. What puts itself into the background does not, so
the keeper does the same: it leaves the holder's process tree before it starts anything, so that what kills the holder
(SIGKILL too) leaves it alive to clean up. A job that kills by cgroup takes keeper and kept together.
"""

import json
import os
import signal
import subprocess
import sys

Argv = list[str]


def run(argv: Argv) -> int:
    """Run a command to its end; its words go to the log that is this process's stdout and stderr."""
    try:
        return subprocess.run(argv, stdin=subprocess.DEVNULL, check=False).returncode
    except OSError as error:
        print(f"{argv[0]}: {error.strerror}", flush=True)
        return 127


def keep(start: list[Argv], end: list[Argv]) -> int:
    """Start, wait for the end of stdin, end; when starting fails, end at once. Return the exit code of what failed, else 0."""
    failed = next((code for code in map(run, start) if code != 0), 0)
    if not failed:
        sys.stdin.buffer.read()
    for argv in end:
        run(argv)
    return failed


def in_background(start: list[Argv], end: list[Argv]) -> int:
    """Keep in a process of its own session whose parent is not this one; return its outcome when it has let go."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            os.close(reader)
            os.write(writer, bytes([keep(start, end) & 0xFF]))
        os._exit(0)
    os.wait()
    os.close(writer)
    said = os.read(reader, 1)
    return said[0] if said else 1


if __name__ == "__main__":
    sys.exit(in_background(**json.loads(sys.argv[1])))
