"""The stencil: the same bits whatever the cuboids, the least exchanged area, and work that grows."""

import itertools
import math
import struct

import pytest
from appbench import FLAGS, Bench

GRIDS = [(20, 40, 60), (7, 5, 3), (1, 1, 8)]
MASK = 2**64 - 1


def spmd_arguments(grid: tuple[int, ...], steps: int, coefficient: int) -> list[str]:
    sizes = "x".join(str(size) for size in grid)
    return ["--grid", sizes, "--steps", str(steps), "--coefficient", str(coefficient)]


def least_area(grid: tuple[int, ...], ranks: int) -> int:
    """By trying all triples of cuts."""
    x, y, z = grid
    areas = [
        (a - 1) * y * z + (b - 1) * x * z + (c - 1) * x * y
        for a, b, c in itertools.product(range(1, ranks + 1), repeat=3)
        if a * b * c == ranks and a <= x and b <= y and c <= z
    ]
    return min(areas)


@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_cuboids_exchange_the_least_area_and_change_no_bit(bench: Bench, grid: tuple[int, ...]) -> None:
    checksums = set()
    for ranks, (overlap, threads) in itertools.product((1, 2, 3, 4), (("0", "1"), ("1", "3"))):
        arguments = [*spmd_arguments(grid, 9, 2), "--overlap", overlap]
        report = bench.run("spmd", *arguments, processes=ranks, mpirun=["-x", f"OMP_NUM_THREADS={threads}"]).report
        metrics = report["metrics"]
        assert metrics["threads"] == (int(threads) if ranks > 1 else 1)
        assert metrics["parts_x"] * metrics["parts_y"] * metrics["parts_z"] == ranks
        assert metrics["exchanged_area_cells"] == least_area(grid, ranks)
        checksums.add(report["answer"]["checksum"])
    assert len(checksums) == 1


def test_a_number_of_ranks_with_three_factors_is_cut_in_three_directions(bench: Bench) -> None:
    arguments = spmd_arguments((6, 6, 6), 4, 1)
    eight = bench.run("spmd", *arguments, processes=8).report
    assert [eight["metrics"][f"parts_{axis}"] for axis in "xyz"] == [2, 2, 2]
    one = bench.run("spmd", *arguments, processes=1).report
    assert eight["answer"]["checksum"] == one["answer"]["checksum"]


def sine_of(p: int, q: int) -> float:
    x = math.pi * (p if 2 * p < q else q - p) / q
    total = 1.0
    for n in range(23, 2, -2):
        total = 1.0 - x * x / (n * (n - 1)) * total
    return x * total


def initial_values(grid: tuple[int, ...]) -> dict[tuple[int, ...], float]:
    """A linear field and the slowest sine mode, with the layer around the grid."""
    values = {}
    for cell in itertools.product(*(range(size + 2) for size in grid)):
        slopes = [w * (i / (n + 1)) for w, i, n in zip((0.5, 0.25, 0.125), cell, grid, strict=True)]
        sines = [sine_of(i, n + 1) for i, n in zip(cell, grid, strict=True)]
        linear = 1.0 + (slopes[0] + slopes[1] + slopes[2])
        values[cell] = linear + 0.25 * (sines[0] * sines[1] * sines[2])
    return values


def advance(values: dict[tuple[int, ...], float], grid: tuple[int, ...], retain: float, coefficient: int) -> None:
    """One step as the issue words it: v <- r v + (1 - r) mean, `coefficient` times."""
    old = dict(values)
    for x, y, z in itertools.product(*(range(1, size + 1) for size in grid)):
        pairs = (
            old[x - 1, y, z] + old[x + 1, y, z],
            old[x, y - 1, z] + old[x, y + 1, z],
            old[x, y, z - 1] + old[x, y, z + 1],
        )
        mean = (pairs[0] + pairs[1] + pairs[2]) * (1.0 / 6.0)
        for _ in range(coefficient):
            values[x, y, z] = retain * values[x, y, z] + (1.0 - retain) * mean


def mix(bits: int) -> int:
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9 & MASK
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EB & MASK
    return bits ^ bits >> 31


def checksum(values: dict[tuple[int, ...], float], grid: tuple[int, ...]) -> str:
    total = 0
    for x, y, z in itertools.product(*(range(1, size + 1) for size in grid)):
        (bits,) = struct.unpack("<Q", struct.pack("<d", values[x, y, z]))
        total += mix(bits ^ mix((x * (grid[1] + 2) + y) * (grid[2] + 2) + z))
    return f"{total & MASK:016x}"


@pytest.mark.parametrize("retain", [0.0, 0.3, 1.0])
def test_every_bit_is_that_of_a_plain_python_stencil(bench: Bench, retain: float) -> None:
    grid, steps, coefficient = (4, 5, 6), 5, 3
    values = initial_values(grid)
    for _ in range(steps):
        advance(values, grid, retain, coefficient)
    arguments = [*spmd_arguments(grid, steps, coefficient), "--retain", str(retain)]
    report = bench.run("spmd", *arguments, processes=4).report
    assert report["answer"]["checksum"] == checksum(values, grid)
    inner = [values[cell] for cell in itertools.product(*(range(1, size + 1) for size in grid))]
    assert (report["metrics"]["minimum"], report["metrics"]["maximum"]) == (min(inner), max(inner))


def test_values_stay_within_the_initial_range_and_far_from_denormals(bench: Bench) -> None:
    metrics = bench.run("spmd", *spmd_arguments((8, 9, 10), 3000, 5), processes=2).report["metrics"]
    assert 1 <= metrics["minimum"] < metrics["maximum"] <= 1 + 0.875 + 0.25


# Steps that take about the same time at each flag set: CPU seconds, start included, so that a busy machine does not
# matter; 200 times the arithmetic then takes some 15 times as much, a compiler that left it out would give 1.
@pytest.mark.parametrize(("flags", "steps"), [("O0", 8), ("O2", 30), ("O3", 120), ("O3_native", 200)])
def test_work_grows_with_the_coefficient(bench: Bench, flags: str, steps: int) -> None:
    assert flags in FLAGS
    cpu_s, checksums = {}, set()
    for coefficient in (1, 200):
        report = bench.single("spmd", *spmd_arguments((24, 40, 200), steps, coefficient), flags=flags).report
        cpu_s[coefficient] = report["proof"][0]["cpu_s"]
        checksums.add(report["answer"]["checksum"])
    assert cpu_s[200] > 5 * cpu_s[1]
    assert len(checksums) == 2
