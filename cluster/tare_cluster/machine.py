"""What the machine is and has: CPUs, memory, packages."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from .errors import ClusterError
from .layout import Cpu
from .shell import run_visibly, say, succeeds

CPU_FOLDER = Path("/sys/devices/system/cpu")
FUSE = Path("/dev/fuse")


def usable_cpus() -> list[Cpu]:
    """The CPUs this process may use (a container or taskset may leave out some)."""
    return [Cpu(number, _core(number)) for number in sorted(os.sched_getaffinity(0))]


def _core(number: int) -> tuple[int, int]:
    topology = CPU_FOLDER / f"cpu{number}" / "topology"
    if not topology.is_dir():  # some virtual machines tell nothing: each CPU counts as a core
        return 0, number
    return int((topology / "physical_package_id").read_text()), int((topology / "core_id").read_text())


def memory_mb() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20


def ensure_fuse() -> None:
    """Apptainer mounts its images through it; a minimal system has not loaded its module yet."""
    if not FUSE.exists():
        succeeds(["modprobe", "fuse"])
    if not FUSE.exists():
        raise ClusterError(f"cluster: {FUSE}: there is none, and modprobe fuse made none; the kernel needs FUSE; load its module")


def need_root(why: str) -> None:
    if os.geteuid() != 0:
        raise ClusterError(f"cluster: {why} needs root: the user id is {os.geteuid()}; run the same command with sudo")


def install(program: str, packages: list[str]) -> bool:
    """Installs packages when a program is missing; says whether it did."""
    if shutil.which(program):
        return False
    need_root(f"installing {program}")
    if not shutil.which("apt-get"):
        raise ClusterError(f"cluster: {program} is missing, and so is apt-get; install {' '.join(packages)} by hand")
    say(f"installing {' '.join(packages)} ({program} is missing)")
    run_visibly(["apt-get", "-qq", "update"])
    # Newer releases have parts of a package on their own (docker-cli): what the release does not know is left out.
    known = [name for name in packages if succeeds(["apt-cache", "show", name])]
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    run_visibly(["apt-get", "-qq", "install", "--yes", "--no-install-recommends", *known], env=quiet)
    return True
