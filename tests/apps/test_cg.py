"""cg: the same iterations and the same bits whatever the ranks, and an error that shrinks with the residual."""

import pytest
from appbench import Bench


def test_neither_the_iterations_nor_any_bit_depend_on_the_ranks(bench: Bench) -> None:
    reports = [bench.run("cg", "--coarse_grid=5x2x3", processes=ranks).report for ranks in (1, 2, 3, 5, 8)]
    assert [report["answer"]["ok"] for report in reports] == [True] * 5
    assert len({report["answer"]["checksum"] for report in reports}) == 1
    assert len({report["metrics"]["iterations"] for report in reports}) == 1
    cuts = [tuple(report["metrics"][f"parts_{axis}"] for axis in "xyz") for report in reports]
    assert cuts == [(1, 1, 1), (2, 1, 1), (3, 1, 1), (5, 1, 1), (4, 1, 2)]


def test_a_smaller_residual_takes_more_iterations_and_leaves_less_error(bench: Bench) -> None:
    reports = [bench.single("cg", "--coarse_grid=2x2x2", f"--residual={r}").report for r in (1e-8, 1e-10, 1e-12)]
    iterations = [report["metrics"]["iterations"] for report in reports]
    errors = [report["answer"]["error"] for report in reports]
    assert iterations == sorted(set(iterations))
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-10


# 36 iterations without a preconditioner, 26 with sweeps on the finest grid alone, 18 with the cycle.
def test_the_preconditioner_is_worth_its_while(bench: Bench) -> None:
    metrics = bench.single("cg", "--coarse_grid=3x3x3", "--residual=1e-8").report["metrics"]
    assert 1 < metrics["iterations"] <= 20


def test_solving_again_from_zero_gives_the_same_bits(bench: Bench) -> None:
    once, thrice = (bench.run("cg", "--coarse_grid=1x2x2", f"--solves={n}", processes=2).report for n in (1, 3))
    assert once["answer"]["checksum"] == thrice["answer"]["checksum"]


@pytest.mark.parametrize("ranks", [1, 4])
def test_matrix_and_preconditioner_are_symmetric(bench: Bench, ranks: int) -> None:
    metrics = bench.run("cg", "--coarse_grid=2x2x2", processes=ranks).report["metrics"]
    assert 0 <= metrics["asymmetry"] < 1e-13
