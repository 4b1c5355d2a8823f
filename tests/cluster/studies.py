"""Small studies in the checkout that a cluster shares, measured by real Slurm jobs, and everything that may happen to them."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tare.records import Record, Store, read_records
from tare.yamlio import ROOT

ARMS = ["native", "singularity", "docker-host", "docker-macvlan", "docker-overlay"]
LAUNCHED = ("timed", "mpirun", "prterun", "prted", "pinned", "dac", "pingpong")
QUICK = ("--seconds-between-status-checks", "3", "--slurm-init-seconds-before-status-checks", "2")
Done = subprocess.CompletedProcess[str]


def run(*argv: str, timeout_s: float = 60) -> Done:
    """Run a command in the checkout to its end."""
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=timeout_s, check=False)


def output(*argv: str) -> str:
    """A command's stdout."""
    done = run(*argv)
    assert done.returncode == 0, f"{' '.join(argv)}: {done.stdout}{done.stderr}"
    return done.stdout


def on(node: str, *command: str) -> str:
    """What a command says on a node."""
    return output("ssh", "-o", "BatchMode=yes", node, *command)


def wait_for(condition: Callable[[], Any], what: str, within_s: float = 60) -> Any:
    """Wait until something comes true; return what it gave."""
    deadline = time.monotonic() + within_s
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {within_s:g} s: {what}"
        time.sleep(0.2)
    return found


def no_cluster() -> str | None:
    """Why there is no Slurm cluster here, or None."""
    if shutil.which("sbatch") is None:
        return "sbatch is not on PATH: run on the login node of a cluster (make test-cluster)"
    done = run("sinfo", "--noheader", "--format", "%T")
    if done.returncode != 0:
        return f"sinfo: {done.stderr.strip()}"
    bad = set(done.stdout.split()) - {"idle", "mixed", "allocated", "completing"}
    return f"nodes are {', '.join(sorted(bad))}: start the cluster (make up)" if bad else None


class Study:
    """One study of a name of its own; whatever it left goes when the test ends."""

    def __init__(self, name: str, **changes: Any) -> None:
        self.name = f"test-{name}-{os.getpid()}"
        self.document: dict[str, Any] = {
            "name": self.name,
            "site": "embedded",
            "apps": {"dac": {"options": {"rectangles": 20_000_000}}},
            "toolchains": ["gcc14"],
            "flags": ["O3_native"],
            "backends": ARMS,
            "nodes": [2],
            "ranks": [2],
            "repeats": 2,
            "noise_floor": False,
            "seed": 7,
            **changes,
        }
        for key in changes.get("compare", {}):
            self.document.pop(key, None)
        self.root = ROOT / "results" / self.name
        self.store = Store(self.root)
        self.running: subprocess.Popen[str] | None = None
        self.write()

    # --- the study and its results

    def write(self, **changes: Any) -> None:
        """Write the study's file, with some keys changed for good."""
        self.document |= changes
        self.root.mkdir(parents=True, exist_ok=True)
        (self.root / "study.yaml").write_text(json.dumps(self.document))

    def block(self, app: str = "dac") -> str:
        """The study's block of an app."""
        compare = self.document.get("compare", {})
        toolchain, flags = ("+".join(compare.get(key) or self.document[key][:1]) for key in ("toolchains", "flags"))
        return f"{app}/{toolchain}/{flags}/n{self.document['nodes'][0]}r{self.document['ranks'][0]}"

    def path(self, arm: str, app: str = "dac") -> Path:
        """A cell's records."""
        return self.store.records(self.block(app), arm)

    def records(self, arm: str, app: str = "dac") -> list[Record]:
        """A cell's records without warm-ups."""
        return [record for record in read_records(self.path(arm, app)) if not record["warmup"]]

    def stamp(self, arm: str, app: str = "dac") -> Record:
        """A cell's stamp."""
        (stamp,) = read_records(self.store.stamp(self.block(app), arm))
        return stamp

    def contents(self, app: str = "dac") -> dict[str, bytes]:
        """Every record file of a block."""
        paths = {arm: self.path(arm, app) for arm in self.document["backends"]}
        return {arm: path.read_bytes() for arm, path in paths.items() if path.is_file()}

    def count(self) -> int:
        """How many launches are on record, without warm-ups."""
        return sum(len(self.records(arm)) for arm in self.document["backends"])

    def rounds(self, arm: str) -> list[int]:
        """The rounds that a cell has records of."""
        return [record["round"] for record in self.records(arm)]

    def logs(self) -> str:
        """What the study's jobs said."""
        return "".join(path.read_text(errors="replace")[-3000:] for path in self.root.glob("logs/**/*.log"))

    # --- running it

    def argv(self, *arguments: str) -> list[str]:
        """Snakemake's command for this study."""
        return ["snakemake", "--profile", "slurm", *arguments, "--configfile", f"results/{self.name}/study.yaml"]

    def target(self, arm: str = "native", app: str = "dac") -> str:
        """One cell's stamp, relative to the checkout."""
        return str(self.store.stamp(self.block(app), arm).relative_to(ROOT))

    def targets(self) -> list[str]:
        """All stamps of the study's first block."""
        return [self.target(arm) for arm in self.document["backends"]]

    def measure(self, *targets: str) -> Done:
        """Run snakemake to its end for some targets (all stamps of the first block unless told)."""
        done = run(*self.argv(*QUICK, *(targets or self.targets())), timeout_s=280)
        assert done.returncode == 0, done.stderr + self.logs()
        return done

    def start(self) -> None:
        """Start snakemake and leave it running."""
        self.running = subprocess.Popen(
            self.argv(*QUICK, *self.targets()),
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def wait(self) -> tuple[int, str]:
        """Wait for the snakemake that was started; return its exit code and stderr."""
        assert self.running is not None
        _, stderr = self.running.communicate(timeout=120)
        return self.running.returncode, stderr

    def stop(self) -> None:
        """Interrupt the snakemake that was started, as Ctrl-C does."""
        assert self.running is not None
        self.running.send_signal(signal.SIGINT)
        self.wait()

    def job(self) -> str:
        """The Slurm job that measures now."""
        return str(wait_for(self.job_now, "a measuring job", 90))

    def job_now(self) -> str | None:
        """The running job whose log stands in this study's folder, or None."""
        lease = self.store.directory(self.block()) / "lease"
        with contextlib.suppress(OSError, ValueError):
            return str(json.loads(lease.read_text())["job"])
        return None

    def clear(self) -> None:
        """Stop what still runs and remove everything of the study."""
        if self.running is not None and self.running.poll() is None:
            self.stop()
        job = self.job_now()
        if job is not None and job_is_there(job):
            run("scancel", job)
            wait_for(lambda: not job_is_there(job), f"end of job {job}")
        shutil.rmtree(self.root, ignore_errors=True)


# --- jobs, nodes, processes


def nodes() -> list[str]:
    """The cluster's compute nodes."""
    return sorted(set(output("sinfo", "--noheader", "--Node", "--format", "%N").split()))


def job_is_there(job: str) -> bool:
    """Say whether Slurm still has a job that waits, runs or ends."""
    return bool(run("squeue", "--noheader", "--jobs", job, "--format", "%T").stdout.strip())


def fact(job: str, name: str) -> str:
    """What Slurm says of a job."""
    line = output("scontrol", "show", "job", job, "--oneliner")
    found = re.search(rf" {name}=(\S+)", line)
    assert found is not None, line
    return found[1]


def job_end(job: str) -> float:
    """When a job ended, in seconds since 1970."""
    return time.mktime(time.strptime(fact(job, "EndTime"), "%Y-%m-%dT%H:%M:%S"))


def processes(pattern: str) -> list[str]:
    """The command lines on all nodes that a regular expression is found in."""
    lines = [line for node in nodes() for line in on(node, "ps", "-eo", "args").splitlines()]
    return [line for line in lines if re.search(pattern, line)]


def leftovers(job: str) -> list[str]:
    """Containers and processes of an ended job on any node; what younger jobs do is not counted."""
    ended = job_end(job)
    found = []
    for node in nodes():
        names = on(node, "docker", "ps", "--all", "--format", "'{{.Names}}'").split()
        found += [f"{node}: container {name}" for name in names if f"slurm{job}-" in name]
        table = on(node, "ps", "-u", str(os.getuid()), "-o", "etimes=,comm=,args=").splitlines()
        for age_s, command, arguments in (line.split(maxsplit=2) for line in table):
            ours = command in LAUNCHED or "tare.node_agent" in arguments or "tare.cli measure" in arguments
            if ours and time.time() - float(age_s) < ended - 1.0:
                found.append(f"{node}: {arguments}")
    return found


def assert_clean(job: str) -> None:
    """Within half a minute a job and all that it started are gone."""
    wait_for(lambda: not job_is_there(job), f"end of job {job}", 90)
    deadline = time.monotonic() + 30
    while (left := leftovers(job)) and time.monotonic() < deadline:
        time.sleep(0.5)
    assert left == []


def measuring_process(study: Study) -> tuple[str, int]:
    """The node and number of the Python process that measures a study."""
    pattern = f"^python3 -m tare.cli measure --plan results/{study.name}/plan.json"
    for node in nodes():
        done = run("ssh", "-o", "BatchMode=yes", node, "pgrep", "-f", f"'{pattern}'")
        if done.stdout.split():
            return node, int(done.stdout.split()[0])
    raise AssertionError(f"no process measures {study.name}")


# --- what may happen to a job


def kill_the_measuring_process(study: Study, _job: str) -> None:
    """SIGKILL: no handler runs, nothing is cleaned up by the process itself."""
    node, pid = measuring_process(study)
    on(node, "kill", "-KILL", str(pid))


def cancel_the_job(_study: Study, job: str) -> None:
    """Scancel, as a user does it."""
    output("scancel", job)


def let_the_jobs_time_run_out(_study: Study, job: str) -> None:
    """The job's time limit is moved to a moment from now; Slurm looks at limits every half minute."""
    soon = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() + 2))
    output("scontrol", "update", f"JobId={job}", f"EndTime={soon}")


def kill_snakemake(study: Study, _job: str) -> None:
    """SIGKILL for the whole of Snakemake; its Slurm job lives on."""
    assert study.running is not None
    os.killpg(study.running.pid, signal.SIGKILL)
    study.running.wait()
