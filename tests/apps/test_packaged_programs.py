"""Packaged programs as they are launched: their input files, their numbers, their answer, and the proof of the loaded library."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from appbench import Bench, clean_environment, mpirun_argv

from tare.build import proof_argv
from tare.config import load_manifests
from tare.packaged import PROOF_FILE, command_of, placeholders, read_answer
from tare.yamlio import ROOT

SMALL: dict[str, dict[str, Any]] = {"hpcc": {"memory_MB": 0.5, "block": 32}, "lammps": {"cells": 6, "steps": 20}}
Ran = tuple[dict[str, Any] | None, str | None]
Launch = Callable[..., Ran]


@pytest.fixture(scope="session")
def library(bench: Bench) -> Path:
    """The library that is loaded into packaged programs."""
    out = bench.directory / "proof.so"
    subprocess.run(proof_argv({"compiler": "gcc", "mpicc": "mpicc"}, str(out)), check=True, cwd=ROOT)
    return out


@pytest.fixture
def launched(library: Path, tmp_path: Path) -> Launch:
    """Runs a program of a manifest on some ranks; gives its answer and what is wrong with it."""

    def launch(manifest: dict[str, Any], ranks: int, **options: Any) -> Ran:
        program = manifest["program"]
        if shutil.which(program["executable"]) is None:
            if os.environ.get("CI") == "true":
                pytest.fail(f"{program['executable']} is not installed")
            pytest.skip(f"{program['executable']} is not installed")
        values = placeholders({name: spec["default"] for name, spec in manifest["options"].items()} | options, ranks, 1)
        command = command_of(program, values)
        for name, text in command.inputs.items():
            (tmp_path / name).write_text(text)
        proof = [f"LD_PRELOAD={library}", f"TARE_PROOF={tmp_path / PROOF_FILE}"]
        argv = ["env", *command.environment, *proof, command.executable, *command.arguments]
        done = subprocess.run(
            [*mpirun_argv(ranks), *argv],
            cwd=tmp_path,
            env=clean_environment(),
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return read_answer(program, values, tmp_path, done.stdout)

    return launch


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("app", SMALL)
def test_a_packaged_program_answers_rightly_on_any_number_of_ranks(launched: Launch, app: str, ranks: int) -> None:
    manifest = load_manifests()[app]
    answer, problem = launched(manifest, ranks, **SMALL[app])
    assert problem is None
    assert answer is not None
    assert answer["answer"]["ok"] is True
    numbers = {name for name, spec in manifest["program"]["numbers"].items() if ranks > 1 or "absent" not in spec}
    assert set(answer["metrics"]) == numbers | {"init_to_finalize_s"}
    assert all(value >= 0 for name, value in answer["metrics"].items() if "energy" not in name)
    assert 0 < answer["app_s"] < 300


def test_its_proof_is_that_of_our_own_programs(launched: Launch) -> None:
    answer, _ = launched(load_manifests()["lammps"], 2, **SMALL["lammps"])
    assert answer is not None
    proof = answer["proof"]
    assert [(rank["rank"], rank["size"]) for rank in proof] == [(0, 2), (1, 2)]
    digest = hashlib.sha256(Path("/usr/bin/lmp").read_bytes()).hexdigest()
    assert {rank["binary_sha256"] for rank in proof} == {digest}
    assert {rank["ns"]["net"] for rank in proof} == {str(Path("/proc/self/ns/net").stat().st_ino)}
    assert all(rank["cpu_s"] > 0 for rank in proof)


def test_a_wrong_answer_of_it_is_told(launched: Launch) -> None:
    manifest = load_manifests()["lammps"]
    inputs = {"in.melt": manifest["program"]["inputs"]["in.melt"].replace("0.8442", "0.8")}
    answer, problem = launched({**manifest, "program": {**manifest["program"], "inputs": inputs}}, 1, **SMALL["lammps"])
    assert answer is not None
    assert answer["answer"]["ok"] is False
    assert problem is not None
    assert problem.startswith("wrong answer: potential energy of the lattice: ")


@pytest.mark.parametrize("without", [True, False])
def test_a_program_without_mpi_is_asked_when_it_exits_and_only_if_that_is_said(launched: Launch, without: bool) -> None:
    program = {
        "executable": "/bin/echo",
        "arguments": ["{ranks} ranks"],
        "mpi": not without,
        "numbers": {"ranks": {"regex": r"(\d+) ranks"}},
        "answer": [{"says": "it spoke", "regex": "ranks"}],
    }
    answer, problem = launched({"program": program, "options": {}}, 1)
    if without:
        assert answer is not None
        assert problem is None
        assert answer["metrics"]["ranks"] == 1
        assert [(rank["rank"], rank["size"]) for rank in answer["proof"]] == [(0, 1)]
    else:
        assert answer is None
        assert str(problem).startswith("no proof: rank 0 did not come to MPI_Finalize")
