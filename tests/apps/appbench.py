"""Builds the apps for each flag set and launches them on this machine."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

APPS = Path(__file__).resolve().parents[2] / "src" / "apps"
APP_NAMES = sorted(source.stem for source in APPS.glob("*.c"))
FLAGS = {"O0": ["-O0"], "O2": ["-O2"], "O3": ["-O3"], "O3_native": ["-O3", "-march=native"]}
COMPILE = [
    "mpicc",
    "-std=c11",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-D_GNU_SOURCE",
    "-ffp-contract=off",
    "-fopenmp",
    "-Wl,--as-needed",
]
SANITIZED = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
QUIET = {
    "ASAN_OPTIONS": "detect_leaks=0",  # what MPI keeps until the end is not the app's
    "OMP_NUM_THREADS": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    # Open MPI 4.1 complains on stderr where a container forbids process_vm_readv; newer ones look first.
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
    # Open MPI 4.1 would start a daemon for a process without mpirun.
    "OMPI_MCA_ess_singleton_isolated": "1",
}
LAUNCHER_PREFIXES = ("OMPI_", "PMIX_", "PMI_", "PRTE_", "SLURM_", "TARE_")


@dataclass(frozen=True)
class Finished:
    """One launch: its exit code and what it wrote."""

    code: int
    stdout: str
    stderr: str

    @property
    def report(self) -> dict[str, Any]:
        (line,) = self.stdout.splitlines()
        report: dict[str, Any] = json.loads(line)
        return report

    def complaints(self, app: str) -> list[str]:
        """The app's own lines on stderr: mpirun adds its own to any non-zero exit."""
        return [line for line in self.stderr.splitlines() if line.startswith(f"{app}: error: ")]


def clean_environment() -> dict[str, str]:
    """Without what a launcher around the tests may have set: singletons shall be singletons."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHER_PREFIXES)}
    return kept | QUIET


def mpirun_argv(processes: int, arguments: Sequence[str] = ()) -> list[str]:
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    placing = ["--map-by", "slot:OVERSUBSCRIBE", "--bind-to", "none"]
    return ["mpirun", *root, *placing, *arguments, "-n", str(processes)]


class Bench:
    """Compiles on first use, into one directory per flag set."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.finished: dict[tuple[str, ...], Finished] = {}

    def binary(self, app: str, flags: str = "O2") -> Path:
        path = self.directory / flags / app
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            sources = [APPS / f"{app}.c", *self._harness(flags)]
            command = [*COMPILE, *self._words(flags), "-o", path, *sources, "-lm"]
            subprocess.run([str(word) for word in command], check=True)
        return path

    def _words(self, flags: str) -> list[str]:
        """The compiler's options of a flag set, or of the sanitizers."""
        return SANITIZED if flags == "sanitized" else FLAGS[flags]

    def _harness(self, flags: str) -> list[Path]:
        """The harness's objects, compiled once per flag set."""
        directory = self.directory / flags / "harness"
        if not directory.exists():
            directory.mkdir()
            sources = [str(source) for source in sorted((APPS / "harness").glob("*.c"))]
            subprocess.run([*COMPILE, *self._words(flags), "-c", *sources], cwd=directory, check=True)
        return sorted(directory.glob("*.o"))

    def single(self, app: str, *arguments: str, flags: str = "O2", **popen: Any) -> Finished:
        """One process without mpirun."""
        return launch([str(self.binary(app, flags)), *arguments], **popen)

    def run(self, app: str, *arguments: str, processes: int, flags: str = "O2", mpirun: Sequence[str] = ()) -> Finished:
        launcher = mpirun_argv(processes, mpirun) if processes > 1 else []
        return launch([*launcher, str(self.binary(app, flags)), *arguments])


def launch(argv: Sequence[str], **popen: Any) -> Finished:
    environment = clean_environment() | {"TARE_LAUNCHED_S": f"{time.time():.6f}"}
    options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": environment} | popen
    done = subprocess.run(argv, text=True, timeout=120, check=False, stdin=subprocess.DEVNULL, **options)
    return Finished(done.returncode, done.stdout or "", done.stderr or "")


def missing_tools() -> list[str]:
    return [tool for tool in ("mpicc", "mpirun") if shutil.which(tool) is None]
