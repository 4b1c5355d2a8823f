"""GCC 9.3.0 + Open MPI 4.1 of Debian 11 against GCC 14 + Open MPI 5.0 of Debian 13, for real; needs the images of debian11.

`make test-cluster` makes these images (cluster/tare-cluster images debian11).
"""

import csv
import json
from collections.abc import Callable
from typing import Any

import pytest
from studies import Study, run

BOTH = {"toolchains": ["gcc9", "gcc14"]}


@pytest.fixture(scope="module")
def study(new_study: Callable[..., Study]) -> Study:
    """Both toolchains on three backends, up to Table 9."""
    study = new_study("toolchains", compare=BOTH, backends=["native", "singularity", "docker-overlay"])
    table = f"results/{study.name}/tables/toolchains.csv"
    done = run(*study.argv(table, f"results/{study.name}/study.json"), timeout_s=400)
    assert done.returncode == 0, done.stderr + study.logs()
    return study


def last(study: Study, arm: str) -> Any:
    """A cell's last record."""
    return study.records(arm)[-1]


@pytest.mark.parametrize(
    ("arm", "mpi", "libc", "compiler"),
    [
        ("docker-overlay+gcc9", "4.1.0", "2.31", "9.3.0"),
        ("docker-overlay+gcc14", "5.0", "2.41", "14."),
        ("native+gcc9", "5.0", "2.41", "9.3.0"),
        ("native+gcc14", "5.0", "2.41", "14."),
    ],
)
def test_ranks_prove_the_mpi_and_the_libc_of_their_place_and_the_build_its_compiler(
    study: Study, arm: str, mpi: str, libc: str, compiler: str
) -> None:
    record = last(study, arm)
    assert record["status"] == "ok"
    assert all(f"v{mpi}" in rank["mpi"] and libc in rank["libc"] for rank in record["proof"])
    assert compiler in record["build"]["compiler"]


def test_open_mpi_4_and_5_are_launched_in_their_own_words(study: Study) -> None:
    four, five = (last(study, f"docker-overlay+{name}")["argv"] for name in BOTH["toolchains"])
    assert "plm_rsh_agent" in four and "self,vader,tcp" in four and "--prtemca" not in four
    assert "plm_ssh_agent" in five and "self,sm,tcp" in five


def test_a_launcher_outside_and_ranks_inside_with_another_mpi_are_refused(study: Study) -> None:
    stamp = study.stamp("singularity+gcc9")
    assert (stamp["measured"], stamp["failed"]) == (0, 0)
    assert "mixed MPI versions" in stamp["skipped"] and "4.1.0" in stamp["skipped"]
    assert study.stamp("singularity+gcc14")["measured"] == 2


def test_a_record_says_for_which_cpu_native_code_was_compiled(study: Study) -> None:
    for arm in ("docker-overlay+gcc9", "docker-overlay+gcc14"):
        build = last(study, arm)["build"]
        assert build["native_cpu"] and build["cpu_model"] == last(study, arm)["cpu_model"]
    assert last(study, "docker-overlay+gcc9")["build"]["built_in"] == "debian11-build"
    assert last(study, "docker-overlay+gcc14")["build"]["built_in"] == "node"


def test_table_9_pairs_both_toolchains_on_each_backend_that_has_both(study: Study) -> None:
    with (study.root / "tables" / "toolchains.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["backend"] for row in rows} == {"native", "docker-overlay"}
    assert all({row["toolchain_a"], row["toolchain_b"]} == {"gcc9", "gcc14"} and row["n_pairs"] == "2" for row in rows)
    assert all(float(row["low"]) <= float(row["ratio"]) <= float(row["high"]) for row in rows)


def test_the_study_says_in_what_native_and_container_differ(study: Study) -> None:
    cells = json.loads((study.root / "study.json").read_text())["cells"]
    parts = {cell["arm"]: cell["with"] for cell in cells}
    assert parts["docker-overlay+gcc9"]["compiler"] == parts["native+gcc9"]["compiler"]
    assert parts["docker-overlay+gcc9"]["mpi"] != parts["native+gcc9"]["mpi"]
