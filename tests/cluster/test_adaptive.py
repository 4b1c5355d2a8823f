"""Adaptive repeats through Slurm: a block goes on by whole rounds until it is precise enough, or has the maximum."""

from collections.abc import Callable

import pytest
from studies import Study

ARMS = ["native", "docker-host"]


@pytest.fixture(scope="module")
def study(new_study: Callable[..., Study]) -> Study:
    """Any three rounds are precise to within a factor of eleven."""
    study = new_study("adaptive", backends=ARMS, warmup=0, repeats={"min": 3, "max": 5, "until": 10.0})
    study.measure(f"results/{study.name}/measurements.csv")
    return study


def test_a_block_that_is_precise_enough_stops_before_the_maximum(study: Study) -> None:
    assert {arm: study.rounds(arm) for arm in ARMS} == {arm: [1, 2, 3] for arm in ARMS}
    assert [study.stamp(arm)["planned"] for arm in ARMS] == [3, 3]


def test_asked_for_more_precision_it_goes_on_to_the_maximum_and_rewrites_nothing(study: Study) -> None:
    before = study.contents()
    study.write(repeats={"min": 3, "max": 5, "until": 1e-9})
    study.measure()
    after = study.contents()
    assert all(after[arm].startswith(before[arm]) for arm in ARMS)
    assert {arm: study.rounds(arm) for arm in ARMS} == {arm: [1, 2, 3, 4, 5] for arm in ARMS}
    assert [study.stamp(arm)["pairs"] for arm in ARMS] == [5, 5]
