"""The job that a block runs in: its nodes, how to reach them, and whether another job is still alive."""

import contextlib
import json
import os
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tare.backends import Argv
from tare.config import Mapping
from tare.errors import TareError
from tare.records import Holder
from tare.yamlio import ROOT

SLURM_VARIABLES = ("SLURM_", "SRUN_", "PMI", "OMPI_", "PRTE_")
KEPT_VARIABLES = ("SLURM_CONF",)


@dataclass(frozen=True)
class Allocation:
    """The nodes that a job holds."""

    job: str | None  # Slurm's job id; None where no scheduler runs
    nodes: tuple[str, ...]

    @property
    def session(self) -> str:
        """Return the name of this run of the block, unlike that of any other."""
        if self.job is not None:
            return f"slurm{self.job}"
        return f"local{int(Path('/proc/self/stat').stat().st_ctime)}p{os.getpid()}"

    def holder(self) -> Holder:
        """Return how this job signs a lease."""
        return Holder(self.session, self.job, socket.gethostname(), os.getpid())


def clean_environment() -> dict[str, str]:
    """Return the environment without an outer layer's Slurm and MPI variables."""
    return {name: value for name, value in os.environ.items() if name in KEPT_VARIABLES or not name.startswith(SLURM_VARIABLES)}


def output_of(argv: Argv) -> str:
    """Return a short command's stdout; a failure is a TareError."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False, env=clean_environment())
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TareError(f"{argv[0]}: cannot be run: {error}") from error
    if done.returncode != 0:
        raise TareError(f"{' '.join(argv)}: exit {done.returncode}: {done.stderr.strip()[-300:]}")
    return done.stdout


def find_allocation(site: Mapping, wanted: int) -> Allocation:
    """Return the job's nodes, asked of Slurm (the job's step has no list of them in its environment)."""
    if site["launch"] == "local":
        return Allocation(None, (socket.gethostname(),))
    if site["launch"] == "simulated":
        return Allocation(None, tuple(f"simulated{number}" for number in range(1, wanted + 1)))
    job = os.environ.get("SLURM_JOB_ID")
    if job is None:
        raise TareError(
            f"measure: not inside a Slurm job; site {site['name']!r} launches by {site['launch']!r}; use --profile slurm"
        )
    nodes = node_names(output_of(["scontrol", "show", "job", job, "--oneliner"]))
    names = tuple(output_of(["scontrol", "show", "hostnames", nodes]).split())
    if len(names) < wanted:
        raise TareError(f"job {job}: found {len(names)} nodes ({nodes}); the block needs {wanted}; check the rule's resources")
    return Allocation(job, names[:wanted])


def node_names(job_line: str) -> str:
    """Return the node list of a line of ``scontrol show job``."""
    for word in job_line.split():
        key, _, value = word.partition("=")
        if key == "NodeList" and value not in ("", "(null)"):
            return value
    raise TareError("scontrol show job: no NodeList; is the job running?")


def is_alive(holder: Holder) -> bool:
    """Say whether a lease's holder may still write."""
    if holder.job is not None:
        return job_is_alive(holder.job)
    if holder.host != socket.gethostname():
        return True
    try:
        os.kill(holder.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def job_is_alive(job: str) -> bool:
    """Say whether Slurm still has a job that runs or is ending; a job that it no longer knows is dead."""
    argv = [
        "squeue",
        "--noheader",
        "--jobs",
        job,
        "--states",
        "RUNNING,COMPLETING,SUSPENDED,STOPPED",
        "--format",
        "%T",
    ]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False, env=clean_environment())
    return done.returncode == 0 and bool(done.stdout.strip())


def agent_argv(site: Mapping, allocation: Allocation, node: str) -> Argv:
    """Return the command that starts a node's agent."""
    agent = [sys.executable, "-m", "tare.node_agent"]
    if allocation.job is None:
        return agent
    cpus = str(site["cpus_per_node"])
    step = [
        "srun",
        f"--jobid={allocation.job}",
        "--overlap",
        "--nodes=1",
        "--ntasks=1",
        f"--cpus-per-task={cpus}",
    ]
    return [*step, "--cpu-bind=none", "--mpi=none", "--unbuffered", f"--nodelist={node}", *agent]


class NodeLink:
    """The runner's end of the line to one node's agent."""

    def __init__(self, node: str, argv: Argv) -> None:
        self.node = node
        environment = {**clean_environment(), "PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=ROOT,
            start_new_session=True,
        )

    def send(self, do: str, **arguments: Any) -> None:
        """Ask the agent to do something; the answer is read by ``receive``."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
            self.process.stdin.flush()
        except OSError as error:
            raise TareError(f"{self.node}: the node's agent has gone: {error.strerror}; see the job's log") from error

    def receive(self) -> dict[str, Any]:
        """Read the agent's next answer."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise TareError(f"{self.node}: the node's agent has gone (exit {self.process.poll()}); see the job's log")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Send and receive."""
        self.send(do, **arguments)
        return self.receive()

    def close(self) -> None:
        """Let the agent go: its stdin closes, it lets go of what it holds and leaves."""
        with contextlib.suppress(OSError):
            if self.process.stdin is not None:
                self.process.stdin.close()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def ask_all(links: list[NodeLink], do: str, **arguments: Any) -> list[dict[str, Any]]:
    """Ask every node at once and return the answers in the nodes' order."""
    for link in links:
        link.send(do, **arguments)
    return [link.receive() for link in links]
