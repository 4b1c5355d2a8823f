"""Programs about places and not about computing: startup, netping, fileio."""

from pathlib import Path

import pytest
from appbench import Bench, clean_environment


def test_startup_says_when_main_began_and_what_mpi_took(bench: Bench) -> None:
    metrics = bench.run("startup", processes=3).report["metrics"]
    times = ["mpi_init_s", "launch_to_main_s", "launch_to_last_main_s", "launch_to_ready_s", "mpi_finalize_s"]
    assert list(metrics) == times
    assert all(value > 0 for value in metrics.values())
    assert metrics["launch_to_main_s"] <= metrics["launch_to_last_main_s"] < metrics["launch_to_ready_s"]
    assert metrics["launch_to_main_s"] + metrics["mpi_init_s"] * 0.5 < metrics["launch_to_ready_s"]


@pytest.mark.parametrize("launched", [None, "", "early"])
def test_startup_without_a_launch_instant_leaves_out_what_counts_from_it(bench: Bench, launched: str | None) -> None:
    environment = clean_environment() | ({} if launched is None else {"TARE_LAUNCHED_S": launched})
    done = bench.single("startup", env=environment)
    assert (done.code, list(done.report["metrics"])) == (0, ["mpi_init_s", "mpi_finalize_s"])


def test_a_launch_after_main_is_a_wrong_answer(bench: Bench) -> None:
    done = bench.single("startup", env=clean_environment() | {"TARE_LAUNCHED_S": "99999999999"})
    assert done.code == 3
    assert done.complaints("startup")[0].endswith("not in this order; do not use this run's times")


def test_netping_with_one_place_pings_itself_as_often_as_asked(bench: Bench) -> None:
    metrics = bench.run("netping", "--count=7", processes=3).report["metrics"]
    assert (metrics["places"], metrics["pairs"]) == (1, 1)
    assert 0 < metrics["round_trip_min_us"] <= metrics["round_trip_median_us"] <= metrics["round_trip_max_us"]
    assert sum(value for name, value in metrics.items() if name.startswith("round_trips_")) == 7


def test_netping_uses_the_network_that_mpi_was_given(bench: Bench) -> None:
    environment = clean_environment() | {"OMPI_MCA_btl_tcp_if_include": "127.0.0.0/8"}
    assert bench.single("netping", "--count=2", env=environment).report["answer"]["ok"] is True


@pytest.mark.parametrize("place", ["tmp", "shared"])
def test_fileio_removes_its_file(bench: Bench, tmp_path: Path, place: str) -> None:
    environment = clean_environment() | {"TMPDIR": str(tmp_path)}
    done = bench.single("fileio", "--place", place, "--size_MiB=1", env=environment)
    assert (done.code, done.stderr) == (0, "")
    assert all(value > 0 for value in done.report["metrics"].values())
    assert list(tmp_path.glob("tare-fileio*")) == []
    assert list(bench.binary("fileio").parent.glob("tare-fileio*")) == []


def test_fileio_says_where_fio_is_missing(bench: Bench, tmp_path: Path) -> None:
    done = bench.single("fileio", env=clean_environment() | {"PATH": str(tmp_path)})
    assert done.code != 0
    assert done.complaints("fileio") == [
        "fileio: error: fio cannot be run here; add Debian's package fio to the node or the image"
    ]
