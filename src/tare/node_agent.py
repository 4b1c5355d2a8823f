"""One process per node of a block: runs short commands, holds containers, reads CPU time. Requests and answers are JSON lines.

It sleeps in read() between requests, so it takes no time from what is measured. When its stdin closes, for whatever
reason, it lets go of everything it holds and leaves.
"""

import contextlib
import json
import os
import pwd
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from tare.proof import parse_list
from tare.system import snapshot

Answer = dict[str, Any]
Commands = list[list[str]] | tuple[()]
NAMESPACES = ("net", "mnt", "uts", "pid", "user")


class Agent:
    """The node's end of the line."""

    def __init__(self) -> None:
        self.held: dict[str, subprocess.Popen[bytes]] = {}

    def hello(self) -> Answer:
        """Say what the node is: name, namespaces, CPUs the job may use, cores among them."""
        cpus = sorted(os.sched_getaffinity(0))
        return {
            "hostname": socket.gethostname(),
            "ns": {kind: namespace(kind) for kind in NAMESPACES},
            "cpus": cpus,
            "cores": sorted({tuple(core(cpu)) for cpu in cpus}),
            "sockets": sockets(cpus),
            "cpu_model": cpu_model(),
            "cpu_flags": sorted(cpu_flags()),
            "kernel": os.uname().release,
            "user": f"{os.getuid()}:{os.getgid()}",
            "user_name": pwd.getpwuid(os.getuid()).pw_name,
        }

    def run(self, argv: list[str], timeout_s: float, text: str = "") -> Answer:
        """Run a command to its end; a time-out or a missing program is an exit code like any other."""
        try:
            done = subprocess.run(argv, input=text, capture_output=True, text=True, timeout=timeout_s, check=False)
        except FileNotFoundError:
            return {"exit_code": 127, "stdout": "", "stderr": f"{argv[0]}: not found"}
        except PermissionError:
            return {"exit_code": 126, "stdout": "", "stderr": f"{argv[0]}: not permitted"}
        except subprocess.TimeoutExpired:
            return {"exit_code": 124, "stdout": "", "stderr": f"{argv[0]}: no end after {timeout_s:g} s"}
        return {"exit_code": done.returncode, "stdout": done.stdout, "stderr": done.stderr}

    def hold(self, name: str, argv: list[str], log: str, before: Commands = (), after: Commands = ()) -> Answer:
        """Start a command that lives as long as its stdin is open; with ``after``, a keeper does and undoes it."""
        if after:
            orders = json.dumps({"start": [*before, argv], "end": after})
            argv = [sys.executable, "-m", "tare.keeper", orders]
        with Path(log).open("ab") as file:
            try:
                self.held[name] = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=file, stderr=file, start_new_session=True)
            except OSError as error:
                return {"error": f"{argv[0]}: {error.strerror}"}
        return {}

    def held_ended(self, name: str) -> Answer:
        """Say whether a held command has ended, and with which code."""
        return {"exit_code": self.held[name].poll()}

    def release(self) -> Answer:
        """Close every held command's stdin and wait for its end; kill what does not leave."""
        for process in self.held.values():
            if process.stdin is not None:
                with contextlib.suppress(OSError):
                    process.stdin.close()
        for process in self.held.values():
            try:
                process.wait(timeout=15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.held.clear()
        return {}

    def system(self) -> Answer:
        """Return what the node's kernel has counted by now."""
        return snapshot()

    def busy(self) -> Answer:
        """Return the CPU seconds that the job's CPUs have been busy since the machine started."""
        wanted = {f"cpu{cpu}" for cpu in os.sched_getaffinity(0)}
        ticks = 0
        for line in Path("/proc/stat").read_text().splitlines():
            name, *fields = line.split()
            if name in wanted:
                user, nice, system, _idle, _iowait, irq, softirq, *rest = map(int, fields)
                ticks += user + nice + system + irq + softirq + sum(rest[:1])
        return {"busy_s": ticks / os.sysconf("SC_CLK_TCK")}


def namespace(kind: str) -> str:
    """Return the inode number of one of this process's namespaces."""
    return str(Path(f"/proc/self/ns/{kind}").readlink()).partition("[")[2].rstrip("]")


def core(cpu: int) -> list[int]:
    """Return the hardware threads that share a CPU's core."""
    path = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
    if not path.is_file():
        return [cpu]
    return sorted(parse_list(path.read_text()))


def sockets(cpus: list[int]) -> list[dict[str, Any]]:
    """Return the sockets that hold these CPUs: ``cores`` (lists of those CPUs that share one) and ``mems`` (memory nodes)."""
    found: dict[int, set[int]] = {}
    for cpu in cpus:
        found.setdefault(socket_of(cpu), set()).add(cpu)
    return [
        {
            "cores": sorted({tuple(sorted(set(core(cpu)) & members)) for cpu in members}),
            "mems": sorted({node for cpu in members for node in memory_nodes(cpu)}),
        }
        for _, members in sorted(found.items())
    ]


def socket_of(cpu: int) -> int:
    """Return the socket that holds a CPU; 0 where the kernel does not say."""
    path = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id")
    return max(0, int(path.read_text())) if path.is_file() else 0


def memory_nodes(cpu: int) -> list[int]:
    """Return the memory node of a CPU; none where the kernel does not say."""
    names = (path.name for path in Path(f"/sys/devices/system/cpu/cpu{cpu}").glob("node*"))
    return [int(name.removeprefix("node")) for name in names if name.removeprefix("node").isdigit()]


def cpu_model() -> str | None:
    """Return the processor's name, or None where the kernel does not say."""
    return cpuinfo("model name")


def cpu_flags() -> frozenset[str]:
    """Return the processor's abilities as the kernel calls them (x86: flags, ARM: Features); none where it does not say."""
    return frozenset((cpuinfo("flags") or cpuinfo("Features") or "").split())


def cpuinfo(key: str) -> str | None:
    """Return what /proc/cpuinfo says of the first CPU under a key."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == key:
            return value.strip()
    return None


def leave(_signal: int, _frame: object) -> None:
    """Turn SIGTERM into an ordinary exit, so that what is held is let go."""
    raise SystemExit(0)


def main() -> None:
    """Answer requests until stdin ends."""
    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGINT, leave)
    agent = Agent()
    try:
        for line in sys.stdin:
            request = json.loads(line)
            answer = getattr(agent, request.pop("do"))(**request)
            print(json.dumps(answer), flush=True)
    finally:
        agent.release()


if __name__ == "__main__":
    main()
