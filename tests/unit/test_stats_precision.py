import numpy as np
import pytest

from tare.precision import half_width, precise_enough, widest
from tare.ratios import log_ratio_paired


def block(**arms):
    return {
        name.replace("_", "-"): {("s1", number): time for number, time in enumerate(times, 1) if time is not None}
        for name, times in arms.items()
    }


def test_half_the_width_is_that_of_the_overheads_interval():
    times = block(native=[1.0, 1.0, 1.0], docker_host=[1.1, 1.2, 1.15])
    low, high = log_ratio_paired(np.array([1.1, 1.2, 1.15])).interval(0.95)
    assert half_width(times["docker-host"], times["native"]) == pytest.approx((high - low) / 2)


def test_the_widest_cell_decides():
    times = block(native=[1.0, 1.0, 1.0], docker_host=[1.1, 1.2, 1.15], singularity=[1.1, 1.1001, 1.1002])
    assert widest(times) == half_width(times["docker-host"], times["native"])


@pytest.mark.parametrize(
    "times",
    [
        block(native=[1.0, 1.0, 1.0], docker_host=[None, None, 1.0]),
        block(native=[None, None, None], docker_host=[1.0, 1.1, 1.2]),
        block(native=[1.0, 1.0, 1.0]),
        block(docker_host=[1.0, 1.1, 1.2]),
        {},
    ],
    ids=["one pair", "native failed", "native alone", "no native", "nothing"],
)
def test_a_block_with_an_unknown_cell_is_never_precise_enough(times):
    assert widest(times) is None
    assert not precise_enough(times, until=1000.0)


def test_precision_must_hold_for_two_rounds_running():
    steady = [1.10, 1.12, 1.09, 1.105, 1.1]
    times = block(native=[1.0] * 5, docker_host=steady)
    now = widest(times)
    before = widest(block(native=[1.0] * 4, docker_host=steady[:4]))
    assert now < before
    assert not precise_enough(times, until=(now + before) / 2)
    assert precise_enough(times, until=before)
