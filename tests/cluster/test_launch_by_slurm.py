"""A site that forbids ssh between nodes: native and Singularity ranks are started through Slurm."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from checkouts import Checkout
from studies import QUICK, ROOT, run

from tare.records import Record, Store, read_records
from tare.yamlio import read_yaml

ARMS = ["native", "singularity"]
BUILT = ["build/debian13/gcc14/O3_native/dac", "build/debian13/timed", "build/debian13/pinned", "build/images/debian13.sif"]
BLOCK = "dac/gcc14/O3_native/n2r2"


@pytest.fixture(scope="module")
def elsewhere(cluster: None) -> Iterator[Checkout]:
    """A copy of the checkout that all nodes see, with what was built, and a site file that says `launch: slurm`."""
    del cluster
    done = run("snakemake", "--profile", "slurm", *QUICK, *BUILT, timeout_s=280)
    assert done.returncode == 0, done.stderr
    folder = ROOT / "results" / f"test-launch-{os.getpid()}"
    folder.mkdir(parents=True)
    checkout = Checkout.make(folder / "tare")
    shutil.copytree(ROOT / "build", checkout.root / "build", copy_function=os.link)
    site = read_yaml(ROOT / "config" / "sites" / "embedded.yaml") | {"name": "closed", "launch": "slurm"}
    checkout.write_site(**site)
    yield checkout
    shutil.rmtree(folder)


def records(checkout: Checkout, arm: str) -> list[Record]:
    """A cell's records."""
    return read_records(Store(checkout.root / "results" / "closed").records(BLOCK, arm))


def test_native_and_singularity_are_launched_without_ssh_and_prove_their_nodes(elsewhere: Checkout) -> None:
    study = elsewhere.write_study(
        name="closed",
        site="closed",
        apps={"dac": {"options": {"rectangles": 20_000_000}}},
        toolchains=["gcc14"],
        flags=["O3_native"],
        backends=ARMS,
        nodes=[2],
        ranks=[2],
        repeats=1,
        seed=1,
    )
    target = f"results/closed/cells/{BLOCK}/native.json"
    done = elsewhere.snakemake("--profile", "slurm", *QUICK, target, "--configfile", study)
    assert done.returncode == 0, done.stderr
    for arm in ARMS:
        warm_up, record = records(elsewhere, arm)
        assert (warm_up["status"], record["status"], record["reason"]) == ("ok", "ok", None)
        assert len({rank["hostname"] for rank in record["proof"]}) == 2
        (agent,) = [word for word in record["argv"] if word.endswith("/srun-agent")]
        assert Path(agent).is_relative_to(elsewhere.root / "results" / "closed" / "work")
        assert not [word for word in record["argv"] if word.startswith("ssh ")]
