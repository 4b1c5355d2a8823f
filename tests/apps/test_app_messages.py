"""The programs that measure messages: every size is there, with numbers that fit each other, and every byte arrives."""

import pytest
from appbench import Bench

FEW = ["--iterations=20", "--warmup=2", "--large_iterations=3", "--large_warmup=1"]
COLLECTIVES = ["alltoall", "alltoallv"]
TABLES = {"alltoall": "Avg Latency(us)", "alltoallv": "Avg Latency(us)", "bibw": "Bandwidth (MB/s)"}


@pytest.mark.parametrize("message_bytes", [1, 8, 100_000])
def test_pingpong_gives_median_and_minimum_of_half_a_round_trip(bench: Bench, message_bytes: int) -> None:
    size = f"--message_bytes={message_bytes}"
    report = bench.run("pingpong", size, "--iterations=20", "--samples=4", processes=2).report
    least = report["metrics"]["half_round_trip_min_s"]
    assert set(report["metrics"]) == {"half_round_trip_s", "half_round_trip_min_s"}
    assert 0 < least <= report["metrics"]["half_round_trip_s"] < report["app_s"]
    assert report["app_s"] >= 4 * 20 * 2 * least
    assert report["answer"]["value"] == 0


@pytest.mark.parametrize("mode", ["two-sided", "put"])
def test_pingpong_doubles_the_size_up_to_the_last(bench: Bench, mode: str) -> None:
    sizes = ["--message_bytes=1", "--last_message_bytes=1048576"]
    done = bench.run("pingpong", *sizes, f"--mode={mode}", "--iterations=2", "--samples=3", processes=2)
    assert (done.code, done.stderr) == (0, "")
    metrics = done.report["metrics"]
    assert len(metrics) == 2 + 2 * 21
    assert metrics["half_round_trip_1B_s"] == metrics["half_round_trip_s"]
    for bytes_each in (1 << n for n in range(21)):
        expected = bytes_each / metrics[f"half_round_trip_{bytes_each}B_s"] / 1e6
        assert metrics[f"bandwidth_{bytes_each}B_MB_per_s"] == pytest.approx(expected)


# A last size that no doubling reaches ends the sizes below it; one below the first leaves the first.
@pytest.mark.parametrize(("first", "last", "sizes"), [(3, 13, [3, 6, 12]), (16, 8, []), (8, 8, [])])
def test_pingpong_keeps_to_the_sizes_asked_for(bench: Bench, first: int, last: int, sizes: list[int]) -> None:
    arguments = [f"--message_bytes={first}", f"--last_message_bytes={last}", "--iterations=2", "--samples=2"]
    metrics = bench.run("pingpong", *arguments, processes=2).report["metrics"]
    assert [name for name in metrics if name.startswith("bandwidth")] == [f"bandwidth_{n}B_MB_per_s" for n in sizes]


def test_pingpong_notices_a_damaged_put(bench: Bench) -> None:
    done = bench.run("pingpong", "--mode=put", "--samples=2", "--inject-wrong-answer", processes=2)
    assert done.code == 3
    assert done.report["answer"]["value"] > 0


@pytest.mark.parametrize("ranks", [2, 6])
def test_contention_gives_mean_and_least_bandwidth_of_the_pairs_for_each_size(bench: Bench, ranks: int) -> None:
    sizes = ["--first_message_bytes=8", "--last_message_bytes=131072"]
    metrics = bench.run("contention", *sizes, "--repeats=3", processes=ranks).report["metrics"]
    assert len(metrics) == 1 + 2 * 15
    assert metrics["bandwidth_MB_per_s"] == metrics["bandwidth_131072B_MB_per_s"]
    for bytes_each in (8 << n for n in range(15)):
        least, mean = (metrics[f"bandwidth{which}_{bytes_each}B_MB_per_s"] for which in ("_min", ""))
        assert 0 < least <= mean * (1 + 1e-12)
        assert ranks > 2 or least == mean


@pytest.mark.parametrize("app", COLLECTIVES)
def test_a_collective_gives_mean_least_and_most_over_the_ranks_for_each_size(bench: Bench, app: str) -> None:
    report = bench.run(app, "--last_message_bytes=32768", *FEW, processes=3).report
    metrics = report["metrics"]
    assert len(metrics) == 1 + 3 * 16
    assert metrics["latency_us"] == metrics["latency_32768B_us"]
    for bytes_each in (1 << n for n in range(16)):
        least, mean, most = (metrics[f"latency{which}_{bytes_each}B_us"] for which in ("_min", "", "_max"))
        assert 0 < least <= mean * (1 + 1e-12) <= most * (1 + 2e-12)
    assert report["app_s"] * 1e6 > sum(metrics[f"latency_{1 << n}B_us"] * (20 if n <= 13 else 3) for n in range(16))


@pytest.mark.parametrize(("app", "column"), TABLES.items())
def test_osu_prints_a_table_that_tools_for_osu_can_read_and_no_json(bench: Bench, app: str, column: str) -> None:
    done = bench.run(app, "--osu", "--last_message_bytes=64", *FEW, processes=2)
    assert (done.code, done.stderr) == (0, "")
    title, head, *rows = done.stdout.splitlines()
    assert title.startswith("# Tare: ")
    assert head.split(maxsplit=2) == ["#", "Size", column]
    assert [int(row.split()[0]) for row in rows] == [1, 2, 4, 8, 16, 32, 64]
    assert all(float(row.split()[1]) > 0 and row.split()[1].partition(".")[2].isdigit() for row in rows)


def test_osu_is_unknown_where_osu_has_no_such_program(bench: Bench) -> None:
    done = bench.single("dac", "--osu")
    assert done.code == 2
    assert done.stderr.startswith("dac: error: unknown option '--osu'; known: ")


def test_bibw_gives_a_bandwidth_for_each_size_that_its_own_time_allows(bench: Bench) -> None:
    report = bench.run("bibw", "--last_message_bytes=32768", *FEW, "--window=8", processes=2).report
    metrics = report["metrics"]
    assert list(metrics) == ["bandwidth_MB_per_s", *(f"bandwidth_{1 << n}B_MB_per_s" for n in range(16))]
    assert metrics["bandwidth_MB_per_s"] == metrics["bandwidth_32768B_MB_per_s"]
    megabytes = [2 * 8 * (1 << n) * (20 if n <= 13 else 3) / 1e6 for n in range(16)]
    seconds = [mb / metrics[f"bandwidth_{1 << n}B_MB_per_s"] for n, mb in enumerate(megabytes)]
    assert 0 < sum(seconds) < report["app_s"]
