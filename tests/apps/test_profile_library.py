"""The profiling library counts what a program is known to do, and changes neither its answer nor its stderr."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from appbench import APPS, Bench, clean_environment, mpirun_argv

from tare.build import profile_argv

STEPS, SIDE = 12, 16
SPMD = (f"--grid={SIDE}x{SIDE}x{SIDE}", f"--steps={STEPS}", "--coefficient=1")


@pytest.fixture(scope="module")
def library(bench: Bench) -> Path:
    path = bench.directory / "profile.so"
    argv = profile_argv({"compiler": "gcc", "mpicc": "mpicc"}, str(path))
    subprocess.run(argv, check=True, cwd=APPS.parents[1])
    return path


def profiled(bench: Bench, library: Path, directory: Path, kind: str, app: str, *options: str) -> list[dict[str, Any]]:
    """Launch an app on two ranks with the library; return what each rank wrote."""
    loaded = ["env", f"LD_PRELOAD={library}", f"TARE_PROFILE={kind}", f"TARE_PROFILE_DIR={directory}"]
    argv = [*mpirun_argv(2), *loaded, str(bench.binary(app)), *options]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False, env=clean_environment())
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads((directory / f"rank-{rank}.json").read_text()) for rank in range(2)]


def test_a_stencil_sends_one_face_per_step_to_its_neighbour(bench: Bench, library: Path, tmp_path: Path) -> None:
    ranks = profiled(bench, library, tmp_path, "mpi", "spmd", *SPMD)
    ring_messages, ring_bytes = 1, 4  # the proof's own message around the ring
    face_bytes = SIDE * SIDE * 8
    for rank, other in ((0, 1), (1, 0)):
        assert ranks[rank]["to"] == [[other, STEPS + ring_messages, STEPS * face_bytes + ring_bytes]]


def test_a_ping_for_every_pong(bench: Bench, library: Path, tmp_path: Path) -> None:
    few, more = (
        profiled(bench, library, tmp_path, "mpi", "pingpong", "--message_bytes=8", "--iterations=10", f"--samples={samples}")
        for samples in (5, 9)
    )
    for rank in range(2):
        for call in ("MPI_Send", "MPI_Recv"):
            assert more[rank]["calls"][call]["count"] - few[rank]["calls"][call]["count"] == 4 * 10
        assert more[rank]["calls"]["MPI_Send"]["bytes"] == 8 * more[rank]["calls"]["MPI_Send"]["count"]


def test_seconds_in_mpi_are_within_the_ranks_life(bench: Bench, library: Path, tmp_path: Path) -> None:
    for rank in profiled(bench, library, tmp_path, "mpi", "spmd", *SPMD):
        inside = sum(call["seconds"] for call in rank["calls"].values())
        assert 0 < inside < rank["span_s"] - rank["init_s"] - rank["finalize_s"]


def test_a_counter_is_a_number_or_has_a_reason(bench: Bench, library: Path, tmp_path: Path) -> None:
    for rank in profiled(bench, library, tmp_path, "perf", "spmd", *SPMD):
        assert rank["counters"]["task-clock"]["value"] > 0
        assert {"cycles", "instructions", "cache-misses", "cpu-migrations", "context-switches"} <= set(rank["counters"])
        for counter in rank["counters"].values():
            assert (counter["value"] is None) == ("reason" in counter)
        assert "calls" not in rank
