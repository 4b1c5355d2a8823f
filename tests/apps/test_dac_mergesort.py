"""dac's merge sort: in order, the same keys, the same bits whatever the ranks and flags."""

import pytest
from appbench import FLAGS, Bench

MASK = 2**64 - 1


def mix(bits: int) -> int:
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9 & MASK
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EB & MASK
    return bits ^ bits >> 31


def checksum_of_sorted(count: int) -> str:
    keys = sorted(mix(i * 0x9E3779B97F4A7C15 & MASK) for i in range(count))
    return f"{sum(mix(key ^ mix(place)) for place, key in enumerate(keys)) & MASK:016x}"


# Pieces of 0 and 1 keys come out of 1 to 3 for 4 ranks; 25 is the first that is merged on one rank; odd and even halves.
@pytest.mark.parametrize("keys", [1, 2, 3, 24, 25, 49, 1001, 20_000])
@pytest.mark.parametrize("ranks", [1, 4])
def test_the_keys_are_those_that_python_sorts(bench: Bench, ranks: int, keys: int) -> None:
    done = bench.run("dac", "--work=mergesort", f"--keys={keys}", processes=ranks)
    assert (done.code, done.stderr) == (0, "")
    assert done.report["answer"]["checksum"] == checksum_of_sorted(keys)
    assert set(done.report["metrics"]) == {"tree_levels", "rate_Mkeys_per_s"}


@pytest.mark.parametrize("flags", FLAGS)
def test_each_flag_set_sorts_the_same_over_three_levels(bench: Bench, flags: str) -> None:
    done = bench.run("dac", "--work=mergesort", "--keys=20000", processes=8, flags=flags)
    assert done.report["answer"]["checksum"] == checksum_of_sorted(20_000)


@pytest.mark.parametrize("keys", [1, 1000])
def test_a_damaged_key_is_not_the_key_that_it_began_with(bench: Bench, keys: int) -> None:
    done = bench.single("dac", "--work=mergesort", f"--keys={keys}", "--inject-wrong-answer")
    assert done.code == 3
    (complaint,) = done.complaints("dac")
    assert "not the keys that it began with" in complaint
