"""NAS EP: the sums and counts of its specification whatever the ranks."""

import pytest
from appbench import Bench

CLASSES = [
    ("S", 1, -3.247834652034740e3, 13176389),
    ("S", 5, -3.247834652034740e3, 13176389),
    ("W", 2, -2.863319731645753e3, 26354769),
]


@pytest.mark.parametrize(("size", "ranks", "sum_x", "accepted"), CLASSES)
def test_ep_gives_the_sums_of_its_class_at_any_number_of_ranks(
    bench: Bench, size: str, ranks: int, sum_x: float, accepted: int
) -> None:
    metrics = bench.run("ep", "--class", size, processes=ranks).report["metrics"]
    assert metrics["sum_x"] == pytest.approx(sum_x, rel=1e-12)
    assert metrics["accepted_pairs"] == accepted
    assert metrics["rate_Mop_per_s"] > 0


def test_ep_accepts_as_many_pairs_as_the_circle_covers_of_the_square(bench: Bench) -> None:
    metrics = bench.run("ep", "--class", "S", processes=3).report["metrics"]
    assert metrics["accepted_pairs"] / 2**24 == pytest.approx(3.14159265 / 4, abs=1e-3)
