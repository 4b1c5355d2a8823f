import numpy as np
import pandas as pd
import pytest
from analysis_data import campaign, frame, row, study
from test_stats import one_block, only

from tare.verdicts import holm, judged, rank_test_needs

FLAT = {"dac": 2.0}


def verdict_of(ratios, **facts):
    times = {"native": [1.0] * len(ratios), "docker-host": ratios}
    return only(judged(*one_block(times, **facts)), "docker-host")


@pytest.mark.parametrize(
    ("ratios", "expected"),
    [
        ([1.10, 1.11, 1.09, 1.10, 1.12], "slower"),
        ([0.90, 0.91, 0.89, 0.90, 0.92], "faster"),
        ([1.001, 0.999, 1.002, 0.998, 1.0], "equivalent"),
        ([1.2, 0.9, 1.0, 1.3, 0.8], "undecided"),
        ([1.10], "undecided"),
        ([1.10, 1.10], "undecided"),
        ([None, None], "not measured"),
    ],
)
def test_a_cell_gets_the_verdict_its_ratios_deserve(ratios, expected):
    assert verdict_of(ratios)["verdict"] == expected


def test_a_sure_difference_below_delta_is_called_equivalent():
    ratios = [1.0050, 1.0051, 1.0049, 1.0050, 1.0052]
    assert verdict_of(ratios)["verdict"] == "equivalent"
    assert verdict_of(ratios, equivalence=0.001)["verdict"] == "slower"


def test_an_undecided_cell_says_how_many_repeats_would_decide():
    ratios = [1.05, 1.01, 1.04, 0.99, 1.03]
    needed = verdict_of(ratios)["repeats_to_decide"]
    assert 5 < needed < 30
    again = verdict_of(ratios * (int(needed) // 5 + 1))
    assert again["verdict"] == "slower"


def test_a_decided_cell_needs_no_more_repeats():
    assert pd.isna(verdict_of([1.10, 1.11, 1.09, 1.10, 1.12])["repeats_to_decide"])


def test_no_sensible_number_of_repeats_decides_a_ratio_next_to_one():
    ratios = [1.3, 1 / 1.3, 1.0, 1.2, 1 / 1.2]
    assert pd.isna(verdict_of(ratios, equivalence=1e-6)["repeats_to_decide"])


def test_holm_is_the_printed_example():
    # Holm 1979 as worked by hand: 0.01·4, 0.013·3, 0.014·2, 0.19·1, made monotone
    found = holm(pd.Series([0.19, 0.013, 0.01, 0.014]))
    assert found.tolist() == pytest.approx([0.19, 0.04, 0.04, 0.04])


def test_a_cell_without_a_p_value_stays_in_the_family():
    found = holm(pd.Series([0.02, np.nan]))
    assert found[0] == pytest.approx(0.04)
    assert pd.isna(found[1])


def test_the_more_cells_the_higher_the_bar():
    alone = judged(*campaign(planted={"native": 1.0, "singularity": 1.02}, apps=FLAT, rank_counts=(1,)))
    many = judged(*campaign(planted={"native": 1.0, "singularity": 1.02}))
    assert (alone["p_difference_holm"] == alone["p_difference"]).all()
    assert (many["p_difference_holm"] >= many["p_difference"]).all()
    assert (many["p_difference_holm"] > many["p_difference"]).any()


def test_the_noise_floor_is_no_member_of_the_family():
    counted = judged(*campaign(planted={"native": 1.0, "singularity": 1.02}))
    beside = judged(*campaign(planted={"native": 1.0, "singularity": 1.02, "native-aa": 1.0}))
    floor = beside[beside["backend"] == "native-aa"]
    assert (floor["p_difference_holm"] == floor["p_difference"]).all()
    assert only(counted[counted["block"] == counted["block"][0]], "singularity")["p_difference_holm"] > 0


def test_planted_zeros_are_rarely_called_different():
    wrong = 0
    for seed in range(40):
        table = judged(*campaign(repeats=5, planted={"native": 1.0, "docker-host": 1.0}, seed=seed))
        wrong += bool(table.loc[table["metric"] == "wall_s", "verdict"].isin(["slower", "faster"]).any())
    assert wrong <= 6  # at most 5 % of 40 studies expected; 7 or more has a chance below 0.4 %


@pytest.mark.parametrize(("family", "needs"), [(36, 11), (1, 6)])
def test_a_corrected_rank_test_needs_a_minimum_of_pairs(family, needs):
    assert rank_test_needs(family) == needs


def test_an_empty_study_has_no_verdicts():
    assert judged(frame([]), study([])).empty


def test_rows_of_one_round_are_told_apart_by_block():
    rows = [row(f"dac/gcc14/O2/n2r{ranks}", "native", ranks, 1, 1.0) for ranks in (1, 2)]
    assert judged(frame(rows), study([])).empty
