import math

import numpy as np
import pytest
from analysis_data import campaign, cell, frame, row, study

from tare.metrics import Scale, scale_by_name, scale_of
from tare.ratios import PAIRED, UNPAIRED, log_ratio_paired
from tare.stats import overheads, spread

BLOCK = "dac/gcc14/O2/n2r2"


def one_block(times, **facts):
    """Build a study of one block from backend → times by round (None: that repeat failed)."""
    rows, cells = [], []
    for backend, values in times.items():
        here = [row(BLOCK, backend, 2, number, value) for number, value in enumerate(values, 1)]
        rows += here
        cells.append(cell(BLOCK, backend, 2, len(values), here))
    return frame(rows), study(cells, **facts)


def only(table, backend, metric="wall_s"):
    found = table[(table["backend"] == backend) & (table["metric"] == metric)]
    assert len(found) == 1
    return found.iloc[0]


def test_a_ratio_is_paired_within_the_round():
    measurements, facts = one_block({"native": [1.0, 2.0, 4.0], "docker-host": [1.1, 2.2, 4.4]})
    found = only(overheads(measurements, facts), "docker-host")
    assert found["ratio"] == pytest.approx(1.1)
    assert found["n_pairs"] == 3
    assert found["method"] == PAIRED
    assert found["difference"] == pytest.approx(0.2)
    assert found["ratio_of_medians"] == pytest.approx(1.1)


def test_rounds_of_another_session_are_no_partners():
    measurements, facts = one_block({"native": [1.0, 1.0], "docker-host": [1.5, 1.5]})
    measurements.loc[(measurements["backend"] == "native") & (measurements["rep"] == 2), "session"] = "s2"
    assert only(overheads(measurements, facts), "docker-host")["n_pairs"] == 1


def test_an_interval_is_student_t_on_log_ratios():
    ratios = np.array([1.10, 1.12, 1.08, 1.11, 1.09])
    logs = np.log(ratios)
    half = 2.776445105 * logs.std(ddof=1) / math.sqrt(5)  # t(0.975; 4 degrees of freedom), from a printed table
    low, high = log_ratio_paired(ratios).interval(0.95)
    assert (low, high) == pytest.approx((math.exp(logs.mean() - half), math.exp(logs.mean() + half)), rel=1e-8)


def test_inverted_ratios_give_the_inverted_interval():
    ratios = np.array([1.3, 1.25, 1.4])
    low, high = log_ratio_paired(ratios).interval(0.95)
    assert log_ratio_paired(1 / ratios).interval(0.95) == pytest.approx((1 / high, 1 / low))


@pytest.mark.parametrize("times", [[1.0], [1.0, 1.0, 1.0]], ids=["one repeat", "zero spread"])
def test_what_cannot_be_told_is_absent(times):
    measurements, facts = one_block({"native": times, "docker-host": [1.2] * len(times)})
    found = only(overheads(measurements, facts), "docker-host")
    assert found["ratio"] == pytest.approx(1.2)
    assert found[["low", "high", "p_difference", "p_equivalence"]].isna().all()


def test_a_failed_repeat_has_no_part_in_any_number():
    measurements, facts = one_block({"native": [1.0, 1.0, 1.0], "docker-host": [1.2, None, 1.3]})
    found = only(overheads(measurements, facts), "docker-host")
    assert (found["n"], found["n_pairs"], found["failed"]) == (2, 2, 1)
    assert found["ratio"] == pytest.approx(1.25)


def test_a_round_whose_native_failed_makes_no_pair():
    measurements, facts = one_block({"native": [None, 1.0], "docker-host": [1.2, 1.3]})
    assert only(overheads(measurements, facts), "docker-host")["n_pairs"] == 1


@pytest.mark.parametrize("missing", ["native", "docker-host"])
def test_an_arm_without_a_measured_repeat_leaves_an_empty_row(missing):
    times = {"native": [1.0, 1.0], "docker-host": [1.1, 1.2]} | {missing: [None, None]}
    found = only(overheads(*one_block(times)), "docker-host")
    assert found[["ratio", "low", "high", "ratio_of_medians"]].isna().all()


def test_nothing_measured_at_all_still_lists_every_cell():
    measurements, facts = one_block({"native": [None], "docker-host": [None], "singularity": [None]})
    table = overheads(measurements, facts)
    assert list(table.loc[table["metric"] == "wall_s", "backend"]) == ["docker-host", "singularity"]


def test_the_noise_floor_stands_beside_every_cell_and_is_not_counted():
    measurements, facts = one_block({"native": [1.0, 1.1], "native-aa": [1.02, 1.12], "docker-host": [1.5, 1.6]})
    table = overheads(measurements, facts)
    floor, docker = only(table, "native-aa"), only(table, "docker-host")
    assert docker["floor_ratio"] == floor["ratio"] == pytest.approx((1.02 + 1.12 / 1.1) / 2)
    assert (bool(floor["counted"]), bool(docker["counted"])) == (False, True)


def test_wall_and_app_time_are_compared_apart():
    measurements, facts = one_block({"native": [1.4, 1.4], "docker-host": [1.9, 1.9]})
    table = overheads(measurements, facts)
    assert only(table, "docker-host", "app_s")["ratio"] == pytest.approx(1.5)
    assert only(table, "docker-host", "wall_s")["ratio"] == pytest.approx(1.9 / 1.4)


def test_a_rate_that_drops_is_an_overhead():
    measurements, facts = one_block({"native": [1.0, 1.0], "docker-host": [1.0, 1.0]})
    measurements["metric"] = "sent_bytes_per_s"
    measurements["value"] = np.where(measurements["backend"] == "native", 100.0, 80.0)
    found = only(overheads(measurements, facts), "docker-host", "sent_bytes_per_s")
    assert found["ratio"] == pytest.approx(1.25)
    assert found["difference"] == pytest.approx(-20)
    assert found["unit"] == "bytes/s"


def test_the_manifest_says_what_the_name_of_a_rate_does_not():
    measurements, facts = one_block({"native": [1.0, 1.0, 1.0], "docker-host": [1.0, 1.0, 1.0]})
    measurements["metric"] = "performance"
    measurements["value"] = np.where(measurements["backend"] == "native", 100.0, 80.0)
    for planned in facts["cells"]:
        planned |= {"metric": "performance", "unit": "ns/day", "better": "higher"}
    found = only(overheads(measurements, facts), "docker-host", "performance")
    assert (found["ratio"], found["unit"], found["better"]) == (pytest.approx(1.25), "ns/day", "higher")


@pytest.mark.parametrize(
    ("name", "unit", "better"),
    [("wall_s", "s", "lower"), ("half_round_trip_s", "s", "lower"), ("sent_bytes_per_s", "bytes/s", "higher")],
)
def test_a_metrics_name_says_its_unit_and_its_direction(name, unit, better):
    assert scale_by_name(name) == Scale(unit, better)


def test_declared_scales_win_over_names():
    declared = [{"name": "hpl", "unit": "GFLOP/s", "better": "higher"}]
    cell = {"metric": "own_s", "unit": "Gs", "better": "higher", "metrics": declared}
    assert scale_of("own_s", cell) == Scale("Gs", "higher")
    assert scale_of("hpl", cell) == Scale("GFLOP/s", "higher")
    assert scale_of("half_round_trip_s", cell) == Scale("s", "lower")


def test_data_without_rounds_are_compared_unpaired():
    measurements, facts = one_block({"native": [1.0, 1.1, 1.05], "docker-host": [1.3, 1.2, 1.25, 1.21]})
    measurements["round"] = np.nan
    found = only(overheads(measurements, facts), "docker-host")
    assert found["method"] == UNPAIRED
    assert found["n_pairs"] == 0
    assert found["ratio"] == found["ratio_of_medians"] == pytest.approx(1.23 / 1.05)
    assert found["low"] < found["ratio_mean"] < found["high"]


def test_spread_is_described_by_quartiles_and_deviations():
    found = spread(np.array([1.0, 2.0, 3.0, 4.0, 10.0]))
    assert (found.n, found.median, found.mean, found.iqr, found.mad) == (5, 3.0, 4.0, 2.0, 1.0)
    assert found.cv == pytest.approx(math.sqrt(12.5) / 4)


@pytest.mark.parametrize(("values", "n"), [([], 0), ([2.0], 1)])
def test_spread_of_too_few_values_is_absent(values, n):
    found = spread(np.array(values))
    assert (found.n, found.iqr, found.mad, found.cv) == (n, None, None, None)


@pytest.mark.parametrize("n", [5, 10, 20])
def test_the_interval_covers_the_truth_as_often_as_it_says(n):
    random = np.random.default_rng(n)
    samples = np.exp(random.normal(math.log(1.05), 0.02, (1000, n)))
    intervals = [log_ratio_paired(ratios).interval(0.95) for ratios in samples]
    covered = np.mean([low <= 1.05 <= high for low, high in intervals])
    assert 0.93 <= covered <= 0.97


def test_planted_overheads_are_found():
    table = overheads(*campaign(repeats=20, noise=0.005))
    wall = table[(table["metric"] == "app_s") & (table["backend"] == "docker-overlay")]
    # the made-up times are (seconds · ratio + 0.5 s) of which 0.4 s are outside the app
    expected = {"dac": 2.0, "masterslave": 3.0, "spmd": 1.5}
    for found in wall.to_dict("records"):
        seconds = expected[found["app"]] / found["ranks"]
        assert found["ratio"] == pytest.approx((1.3 * seconds + 0.1) / (seconds + 0.1), rel=0.01)
