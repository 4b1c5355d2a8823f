"""wave: the exact solution's seismograms, the same bits whatever the cuboids, and layers that absorb."""

import itertools

import pytest
from appbench import Bench

P_SPEED, S_SPEED = 3464.0, 2000.0
SHORT = ["--grid", "16x18x20", "--layer", "4", "--steps", "30"]


@pytest.fixture(scope="module")
def arrived(bench: Bench) -> dict[str, float]:
    """The metrics of a run in which both waves pass the receivers."""
    done = bench.run("wave", "--grid=24x24x24", "--layer=6", "--steps=190", processes=2)
    assert (done.code, done.stderr) == (0, "")
    metrics: dict[str, float] = done.report["metrics"]
    return metrics


@pytest.mark.parametrize("wave", ["p", "s"])
def test_each_wave_arrives_when_the_exact_solution_says(arrived: dict[str, float], wave: str) -> None:
    assert arrived[f"{wave}_arrival_s"] == pytest.approx(arrived[f"{wave}_arrival_exact_s"], abs=0.002)
    assert 0 < arrived[f"{wave}_departure"] < 0.01


# The pulse is centred at 0.72 s and its velocity peaks before the centre; the receivers are 1000 m away.
def test_waves_travel_at_the_speeds_of_the_medium(arrived: dict[str, float]) -> None:
    travel = {"p": 1000 / P_SPEED, "s": 1000 / S_SPEED}
    peaks = {wave: arrived[f"{wave}_arrival_s"] - travel[wave] for wave in travel}
    assert all(0.4 < peak < 0.72 for peak in peaks.values())


def test_neither_seismograms_nor_fields_depend_on_the_cuboids(bench: Bench) -> None:
    reports = [bench.run("wave", *SHORT, processes=ranks).report for ranks in (1, 2, 5, 8)]
    cuts = {tuple(report["metrics"][f"parts_{axis}"] for axis in "xyz") for report in reports}
    assert len(cuts) == 4
    assert (2, 2, 2) in cuts
    assert len({report["answer"]["checksum"] for report in reports}) == 1


def test_a_run_too_short_for_the_waves_has_no_arrivals_but_a_departure(bench: Bench) -> None:
    metrics = bench.run("wave", *SHORT, processes=1).report["metrics"]
    assert "p_arrival_s" not in metrics
    assert 0 < metrics["s_departure"] < 0.01


def test_ranks_in_the_corners_have_more_absorbing_cells(bench: Bench) -> None:
    three = bench.run("wave", "--grid=64x16x16", "--layer=4", "--steps=2", processes=3).report["metrics"]
    sizes = [(24, 24, 24)] * 3
    layers = [
        sum(sides * 4 * x * y * z // size for size, sides in zip((x, y, z), (outer, 2, 2), strict=True))
        for (x, y, z), outer in zip(sizes, (1, 0, 1), strict=True)
    ]
    assert (three["layer_cells_of_least_busy_rank"], three["layer_cells_of_busiest_rank"]) == (min(layers), max(layers))


# Echoes of walls that did not absorb would be as large as the waves.
@pytest.mark.parametrize("grid", sorted(set(itertools.permutations((16, 16, 30)))), ids=str)
def test_layers_absorb_in_every_direction(bench: Bench, grid: tuple[int, ...]) -> None:
    done = bench.single("wave", f"--grid={'x'.join(map(str, grid))}", "--layer=6", "--steps=200")
    assert (done.code, done.stderr) == (0, "")
    assert done.report["answer"]["error"] < 0.015
