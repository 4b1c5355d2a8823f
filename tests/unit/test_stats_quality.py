import numpy as np
import pandas as pd
import pytest
from analysis_data import campaign
from test_stats import one_block, only

from tare.methods import METHODS, beyond_whiskers
from tare.quality import beyond_mad, drift, flagged, outliers

TEN = [1.00, 1.01, 0.99, 1.02, 0.98, 1.00, 1.01, 0.99, 1.005, 0.995]


def test_an_outlier_is_flagged_by_both_rules():
    values = np.array([*TEN, 1.5])
    assert list(np.flatnonzero(beyond_whiskers(values))) == [10]
    assert list(np.flatnonzero(beyond_mad(values))) == [10]


@pytest.mark.parametrize("values", [[], [1.0], [1.0] * 5, [1.0, 1.0, 1.0, 2.0]], ids=["none", "one", "equal", "no deviation"])
def test_too_little_spread_flags_by_mad_nothing(values):
    assert not beyond_mad(np.array(values)).any()


def test_an_outlier_stays_and_the_result_without_it_stands_beside():
    measurements, facts = one_block({"native": [1.0] * 11, "docker-host": [1.1 * value for value in TEN] + [3.0]})
    found = outliers(measurements, facts)
    docker = found[found["backend"] == "docker-host"].iloc[0]
    assert (docker["n"], docker["flagged"]) == (11, 1)
    assert docker["high"] > 1.2 > docker["high_without"] > 1.1
    assert len(measurements) == 22


def test_the_papers_and_the_boxes_agree_on_whiskers():
    # Tukey's fences of 1..9 and 20: quartiles 3.25 and 7.75, fences -3.5 and 14.5
    assert list(np.flatnonzero(beyond_whiskers(np.array([*range(1, 10), 20.0])))) == [9]
    assert not flagged(np.arange(1.0, 10.0)).any()


@pytest.mark.parametrize(
    ("name", "centre", "half_width"),
    [("tare", 1.0025, None), ("kononowicz2022", 1.0, None), ("alles2018", 13.1 / 12, 0.18655), ("liu2022", 1.0, 0.011785)],
)
def test_a_method_is_what_its_paper_says(name, centre, half_width):
    method, values = METHODS[name], np.array([*TEN, 1.5, 1.6])
    kept = method.keep(values)
    assert method.middle(kept) == pytest.approx(centre)
    found = method.half_width(kept)
    assert found == (None if half_width is None else pytest.approx(half_width, rel=1e-4))


def test_a_planted_drift_is_found_and_cancels_in_the_ratios():
    measurements, facts = campaign(repeats=20, rank_counts=(1,), apps={"dac": 2.0}, noise=0.002)
    slope = 1.01 ** measurements["round"]
    drifting = measurements.assign(wall_s=measurements["wall_s"] * slope)
    found = drift(drifting, facts).iloc[0]
    assert found["verdict"] == "drift"
    assert found["percent_per_round"] == pytest.approx(1.0, abs=0.1)
    before, after = (outliers(data, facts).set_index("backend")["ratio"] for data in (measurements, drifting))
    assert after["docker-overlay"] == pytest.approx(before["docker-overlay"])


def test_no_drift_is_found_where_none_was_planted():
    found = drift(*campaign(repeats=10))
    assert (found["verdict"] == "no drift shown").all()
    assert len(found) == 9


def test_drift_of_noise_is_called_as_seldom_as_promised():
    random = np.random.default_rng(5)
    values = [one_trend(random) for _ in range(400)]
    assert np.mean([value <= 0.05 for value in values]) == pytest.approx(0.05, abs=0.03)


def one_trend(random):
    from tare.quality import trend  # noqa: PLC0415

    return trend(random.normal(0, 0.01, 8))[1]


@pytest.mark.parametrize("rounds", [1, 2])
def test_two_rounds_have_no_drift_to_test(rounds):
    measurements, facts = one_block({"native": [1.0, 1.1][:rounds], "docker-host": [1.2, 1.3][:rounds]})
    assert drift(measurements, facts)["verdict"].tolist() == ["too few rounds"]


def test_data_without_rounds_have_no_drift():
    measurements, facts = one_block({"native": [1.0, 1.1], "docker-host": [1.2, 1.3]})
    assert drift(measurements.assign(round=np.nan), facts).empty


def test_a_cell_with_failed_repeats_only_has_no_line():
    measurements, facts = one_block({"native": [1.0, 1.1], "docker-host": [None, None]})
    assert outliers(measurements, facts)["backend"].tolist() == ["native"]
    assert pd.isna(outliers(measurements, facts)["ratio"].iloc[0])


def test_only_is_strict():
    with pytest.raises(AssertionError):
        only(pd.DataFrame({"backend": [], "metric": []}), "native")
