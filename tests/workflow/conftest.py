"""One copy of the checkout for all dry runs, made once; another in which a study was really measured on this machine."""

import os
import shutil
from pathlib import Path

import pytest
from checkouts import Checkout


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A fresh copy: nothing is built or measured in it."""
    return Checkout.make(tmp_path_factory.mktemp("planned") / "tare")


def cannot_measure() -> str | None:
    """Why nothing can be measured on this machine, or None."""
    missing = [tool for tool in ("mpicc", "mpirun", "cc") if shutil.which(tool) is None]
    if missing:
        return f"not on PATH: {', '.join(missing)}; install a C compiler and Open MPI"
    if os.geteuid() == 0:
        return "mpirun does not run as root; run the tests as another user"
    return None


@pytest.fixture(scope="session")
def local_study() -> dict[str, object]:
    """The smallest study of this machine: native against itself."""
    return {
        "name": "here",
        "site": "local",
        "apps": {"dac": {"options": {"rectangles": 2000000}}},
        "toolchains": ["gcc"],
        "flags": ["O2"],
        "backends": ["native"],
        "noise_floor": True,
        "nodes": [1],
        "ranks": [1, 2],
        "repeats": 2,
        "seed": 3,
    }


@pytest.fixture(scope="session")
def measured(tmp_path_factory: pytest.TempPathFactory, local_study: dict[str, object]) -> Checkout:
    """A copy in which that study was measured, from nothing to the report."""
    reason = cannot_measure()
    if reason is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    here = Checkout.make(tmp_path_factory.mktemp("measured") / "tare")
    done = here.snakemake("--profile", "profiles/local", "--configfile", here.write_study(**local_study))
    logs = "".join(path.read_text() for path in Path(here.root).glob("results/here/logs/**/*.log"))
    assert done.returncode == 0, done.stderr + logs
    return here
