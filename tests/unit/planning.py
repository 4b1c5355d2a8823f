"""What the planning, launching and recording tests start from: small studies, the two sites, blocks and their contexts."""

import copy
from pathlib import Path
from typing import Any

from tare.backends import Argv, Backend, Context, load_backends
from tare.cases import Block, plan_blocks
from tare.config import STUDY_DEFAULTS, Mapping, complete_site, load_manifests, load_toolchains
from tare.launch import Program, launch_argv, mpirun_argv
from tare.records import plan_digests
from tare.yamlio import ROOT, read_yaml

DATA = ROOT / "tests" / "data"
BACKENDS = ["native", "singularity", "docker-host", "docker-macvlan", "docker-overlay"]
INSTANCES = [
    f"singularity-instance-{network}{limits}" for network in ("host", "macvlan", "overlay") for limits in ("", "+cgroup")
]
BUILT: Mapping = {"binary": "b1", "images": {"docker": "d1", "singularity": "s1"}}
ARMS = ["native", "singularity", "docker-host", "docker-overlay"]

STUDY: Mapping = {
    "name": "pretend",
    "site": "embedded",
    "apps": {"dac": {"options": {"rectangles": 1000}}},
    "toolchains": ["gcc14"],
    "flags": ["O3_native"],
    "backends": BACKENDS,
    "nodes": [2],
    "ranks": [2],
    "repeats": 2,
    "noise_floor": False,
    "seed": 20220818,
}


def study(**changes: Any) -> Mapping:
    """A checked study, with some keys changed."""
    return {**copy.deepcopy(STUDY_DEFAULTS), **copy.deepcopy(STUDY), "where": "study.yaml", **changes}


def embedded(**changes: Any) -> Mapping:
    """The embedded site as committed: what `make up` discovered on this machine is left out."""
    path = ROOT / "config" / "sites" / "embedded.yaml"
    site = {key: value for key, value in read_yaml(path).items() if key != "discovered"}
    return complete_site(site | changes, "embedded.yaml")


def other(**changes: Any) -> Mapping:
    """A site that shares no name, number or habit with the embedded one."""
    return complete_site(read_yaml(DATA / "sites" / "other.yaml") | changes, "other.yaml")


def planned(site: Mapping | None = None, **changes: Any) -> tuple[Block, ...]:
    """The blocks of a small study."""
    return plan_blocks(study(**changes), site or embedded(), load_manifests(), load_toolchains())


def block(site: Mapping | None = None, **changes: Any) -> Block:
    """The only block of a small study."""
    (only,) = planned(site, **changes)
    return only


def built(block: Block, digests: Mapping = BUILT) -> Mapping:
    """What was built for every arm of a block: the same for all."""
    return {arm.name: digests for arm in block.arms}


def plans_of(block: Block, digests: Mapping = BUILT) -> dict[str, str]:
    """Every arm's plan digest."""
    return plan_digests(block, built(block, digests))


def embedded_context(**changes: Any) -> Context:
    """What backends know of a two-node block on the embedded cluster."""
    values: dict[str, Any] = {
        "site": embedded(),
        "interconnect": "ethernet",
        "session": "slurm41",
        "root": "/tare",
        "block_dir": "/tare/results/pretend/work/slurm41",
        "nodes": ("node01", "node02"),
        "cpus": ("0", "1"),
        "user": "1000:1000",
        "tools": "/tare/build/debian13",
        "image": "login:5000/tare/debian13@sha256:5eed",
        "sif": "/tare/build/images/debian13.sif",
    }
    return Context(**values | changes)


def other_context(**changes: Any) -> Context:
    """What backends know of a block on three of the other site's nodes."""
    values: dict[str, Any] = {
        "site": other(),
        "interconnect": "roce",
        "session": "slurm990017",
        "root": "/project/weigh",
        "block_dir": "/project/weigh/results/big/work/slurm990017",
        "nodes": ("c17", "c18", "c21"),
        "cpus": ("0,1,2,3,4,5,6,7",) * 3,
        "user": "2041:513",
        "tools": "/project/weigh/build/debian13",
        "image": "sha256:0ddba11",
        "sif": "/project/weigh/build/images/debian13.sif",
    }
    return Context(**values | changes)


EMBEDDED_PROGRAM = Program("mpirun", "build/debian13/gcc14/O3_native/dac", {"rectangles": 1000}, (1, 1), True, False)
OTHER_PROGRAM = Program(
    "/sw/openmpi-5.0/bin/mpirun",
    "build/debian13/gcc14/O2/spmd",
    {"grid": "200x400x600", "steps": 300, "coefficient": 10, "retain": 0.99},
    (6, 5, 5),
    True,
    False,
)


def backend(name: str) -> Backend:
    """One backend by name."""
    return load_backends()[name]


OPEN_MPI_5 = "mpirun (Open MPI) 5.0.7"
OPEN_MPI_4 = "mpirun (Open MPI) 4.1.0"


def whole_argv(name: str, context: Context, program: Program, interfaces: tuple[str, ...], mpi: str = OPEN_MPI_5) -> Argv:
    """The whole command of one repeat of a backend."""
    of = backend(name)
    mpirun = mpirun_argv(program, of, context, interfaces, mpi)
    return launch_argv(of, context, mpirun, f"{context.block_dir}/timed.json", 600.0)


def golden(name: str) -> str:
    """A golden file's text."""
    return (DATA / "golden" / name).read_text(encoding="utf-8")


def relative(path: Path) -> str:
    """A path as a person would write it."""
    return str(path.relative_to(ROOT))
