"""Every app proves its answer, at each rank count and each flag set, and notices a wrong one."""

import math

import pytest
from appbench import APP_NAMES, FLAGS, Bench

FEW = ["--iterations=20", "--warmup=2", "--large_iterations=3", "--large_warmup=1"]
SMALL = {
    "wave": ["--grid", "16x17x18", "--steps", "40", "--layer", "4"],
    "cg": ["--coarse_grid", "1x2x3"],
    "bibw": ["--last_message_bytes", "16384", *FEW],
    "alltoall": ["--last_message_bytes", "16384", *FEW],
    "alltoallv": ["--last_message_bytes", "16384", *FEW],
    "contention": ["--last_message_bytes", "65536", "--repeats", "3"],
    "dac": ["--rectangles", "1000003"],
    "ep": ["--class", "S"],
    "masterslave": ["--packets_multiplier", "1", "--trapezoids", "1009"],
    "pingpong": ["--message_bytes", "1000", "--iterations", "10", "--samples", "3"],
    "startup": [],
    "netping": ["--count", "5"],
    "fileio": ["--size_MiB", "1"],
    "spmd": ["--grid", "9x10x11", "--steps", "12", "--coefficient", "3"],
}
# The first is the smallest that the app takes.
PROCESSES = {
    "wave": [1, 2, 3, 4],
    "cg": [1, 2, 3, 4],
    "bibw": [2],
    "alltoall": [1, 3, 4],
    "alltoallv": [1, 3, 4],
    "contention": [2, 4],
    "dac": [1, 2, 4],
    "ep": [1, 3],
    "masterslave": [2, 3, 4],
    "pingpong": [2],
    "startup": [1, 2, 3],
    "netping": [1, 3],
    "fileio": [1, 2],
    "spmd": [1, 2, 3, 4],
}
EXTRA_PROCESSES = {"masterslave": 1}


def test_every_app_is_in_these_tables() -> None:
    assert sorted(SMALL) == sorted(PROCESSES) == APP_NAMES


@pytest.mark.parametrize(("app", "processes"), [(app, n) for app in APP_NAMES for n in PROCESSES[app]])
def test_the_answer_is_right_at_each_rank_count(bench: Bench, app: str, processes: int) -> None:
    done = bench.run(app, *SMALL[app], processes=processes)
    assert (done.code, done.stderr) == (0, "")
    assert done.report["app"] == app
    assert done.report["processes"] == processes
    assert done.report["ranks"] == processes - EXTRA_PROCESSES.get(app, 0)
    assert done.report["app_s"] > 0
    assert done.report["answer"]["ok"] is True
    assert done.report["answer"]["error"] <= done.report["answer"]["tolerance"]


@pytest.mark.parametrize("app", APP_NAMES)
def test_the_answer_is_the_same_bits_at_each_flag_set(bench: Bench, app: str) -> None:
    runs = [bench.run(app, *SMALL[app], processes=2, flags=flags) for flags in FLAGS]
    assert [(run.code, run.stderr) for run in runs] == [(0, "")] * len(FLAGS)
    answers = [(run.report["answer"]["value"], run.report["answer"].get("checksum")) for run in runs]
    assert answers == [answers[0]] * len(FLAGS)


@pytest.mark.parametrize("app", APP_NAMES)
def test_sanitizers_find_no_fault(bench: Bench, app: str) -> None:
    done = bench.run(app, *SMALL[app], processes=2, flags="sanitized")
    assert (done.code, done.stderr) == (0, "")
    assert done.report["answer"]["ok"] is True


@pytest.mark.parametrize("app", APP_NAMES)
def test_an_injected_wrong_answer_exits_3_and_still_prints_its_line(bench: Bench, app: str) -> None:
    done = bench.run(app, *SMALL[app], "--inject-wrong-answer", processes=PROCESSES[app][0])
    assert done.code == 3
    assert done.report["answer"]["ok"] is False
    (complaint,) = done.complaints(app)
    assert complaint.startswith(f"{app}: error: wrong answer: ")
    assert complaint.endswith("; do not use this run's times")


@pytest.mark.parametrize(("app", "integral"), [("dac", math.log(201 / 101)), ("masterslave", math.log(101 / 2))])
def test_the_integral_is_the_logarithm(bench: Bench, app: str, integral: float) -> None:
    answer = bench.run(app, *SMALL[app], processes=2).report["answer"]
    assert answer["value"] == pytest.approx(integral, abs=answer["tolerance"])
    assert answer["tolerance"] < 1e-6
    assert answer["expected"] == pytest.approx(integral, rel=1e-15)


# Few rectangles are far off, many are not; and pieces of 0, 1 and 2 rectangles come out of 3 for 4 ranks.
@pytest.mark.parametrize(("rectangles", "error"), [(3, 1e-2), (4095, 1e-8), (4097, 1e-8), (10_000_000, 1e-13)])
def test_dac_adds_up_any_number_of_rectangles(bench: Bench, rectangles: int, error: float) -> None:
    done = bench.run("dac", f"--rectangles={rectangles}", processes=4)
    assert done.code == 0
    width = 100 / rectangles
    midpoints = math.fsum(width / (101 + width * (i + 0.5)) for i in range(min(rectangles, 5000)))
    if rectangles < 5000:
        assert done.report["answer"]["value"] == pytest.approx(midpoints, rel=1e-14)
    assert done.report["answer"]["error"] < error


def test_a_tree_of_four_ranks_has_two_levels(bench: Bench) -> None:
    assert bench.run("dac", *SMALL["dac"], processes=4).report["metrics"] == {"tree_levels": 2}


def test_masterslave_computes_the_same_bits_whoever_gets_which_packet(bench: Bench) -> None:
    ways = [(n, overlap, threads) for n in (2, 4) for overlap in ("0", "1") for threads in ("1", "3")]
    size = ["--packets_multiplier=1", "--trapezoids=100000"]
    runs = [
        bench.run("masterslave", *size, "--overlap", o, processes=n, mpirun=["-x", f"OMP_NUM_THREADS={t}"]) for n, o, t in ways
    ]
    assert [(run.code, run.stderr) for run in runs] == [(0, "")] * len(ways)
    assert len({run.report["answer"]["value"] for run in runs}) == 1


@pytest.mark.parametrize("overlap", ["0", "1"])
def test_masterslave_hands_out_a_hundred_packets_per_multiplier(bench: Bench, overlap: str) -> None:
    arguments = ["--packets_multiplier", "3", "--trapezoids", "5", "--overlap", overlap]
    metrics = bench.run("masterslave", *arguments, processes=2).report["metrics"]
    assert metrics == {"packets": 300, "packets_of_least_busy_rank": 300, "packets_of_busiest_rank": 300}
    metrics = bench.run("masterslave", *arguments, processes=4).report["metrics"]
    assert metrics["packets_of_least_busy_rank"] <= 100 <= metrics["packets_of_busiest_rank"]
