"""Adaptive repeats: the records alone say how many rounds a block must have."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from planning import ARMS, block, built, embedded, plans_of, study

from tare.cases import plan_document
from tare.config import Mapping, Repeats, load_manifests, load_toolchains
from tare.errors import TareError
from tare.files import save
from tare.records import (
    Store,
    append_record,
    counted,
    drop_contradicted,
    find_missing,
    make_stamp,
    read_records,
)
from tare.repeats import rounds_wanted

ADAPTIVE = {"min": 5, "max": 12, "until": 0.02}
STEADY = (1.0, 1.001, 0.999, 1.002)
WILD = (1.0, 1.5, 0.7, 1.2)


class Bench:
    """A block whose pretended runner does what the real one does, only without launching; each arm has its own times."""

    def __init__(self, root: Path, **times: tuple[float, ...]) -> None:
        self.store = Store(root)
        self.block = block(backends=ARMS)
        self.plans = plans_of(self.block)
        cycles = [itertools.cycle(times.get(arm.replace("-", "_"), STEADY)) for arm in ARMS]
        self.times = {
            arm: itertools.islice(cycle, start, None) for start, (arm, cycle) in enumerate(zip(ARMS, cycles, strict=True))
        }
        self.sessions = 0

    def wanted(self, **repeats: Any) -> int:
        planned = study(repeats=ADAPTIVE | repeats)
        return rounds_wanted(self.store, self.block, self.block.runnable, self.plans, planned)

    def run(self, launches: int | None = None, **repeats: Any) -> None:
        """Play a job, which may be killed after some launches."""
        self.sessions += 1
        done = 0
        while (missing := find_missing(self.store, self.block, self.plans, self.wanted(**repeats))).rounds:
            for index in range(max(missing.rounds.values())):
                for arm in sorted(missing.arms_of_round(index)):
                    if done == launches:
                        return
                    self.add(arm, missing.first_round + index)
                    done += 1

    def add(self, arm: str, number: int) -> None:
        wall_s = next(self.times[arm])
        record = {"plan": self.plans[arm], "session": f"s{self.sessions}", "round": number, "warmup": False}
        append_record(self.path(arm), record | {"status": "ok" if wall_s else "failed", "wall_s": wall_s or None})

    def path(self, arm: str) -> Path:
        return self.store.records(self.block.setting.id, arm)

    def rounds(self, arm: str) -> int:
        return len(counted(read_records(self.path(arm)), self.plans[arm]))


def test_a_number_is_a_number_of_rounds(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    planned = study(repeats=7)
    assert rounds_wanted(bench.store, bench.block, bench.block.runnable, bench.plans, planned) == 7


def test_a_steady_block_stops_at_the_minimum(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.run()
    assert {arm: bench.rounds(arm) for arm in ARMS} == dict.fromkeys(ARMS, 5)


def test_one_wild_arm_takes_the_whole_block_to_the_maximum(tmp_path: Path) -> None:
    bench = Bench(tmp_path, docker_overlay=WILD)
    bench.run()
    assert {arm: bench.rounds(arm) for arm in ARMS} == dict.fromkeys(ARMS, 12)
    assert bench.wanted() == 12


def test_an_arm_that_always_fails_does_not_take_the_others_to_the_maximum(tmp_path: Path) -> None:
    bench = Bench(tmp_path, docker_overlay=(0.0,))
    bench.run()
    assert {arm: bench.rounds(arm) for arm in ARMS} == dict.fromkeys(ARMS, 5)


def test_a_block_whose_native_always_fails_stops_at_the_minimum(tmp_path: Path) -> None:
    bench = Bench(tmp_path, native=(0.0,))
    bench.run()
    assert bench.rounds("singularity") == 5


@pytest.mark.parametrize("launches", [1, 7, 22, 30])
def test_a_killed_job_goes_on_with_what_it_has_until_it_is_precise_enough(tmp_path: Path, launches: int) -> None:
    bench = Bench(tmp_path, docker_host=(*STEADY, 1.3, 0.9, *STEADY * 5))
    bench.run(launches, until=0.12)
    before = {arm: bench.path(arm).read_bytes() for arm in ARMS if bench.path(arm).is_file()}
    bench.run(until=0.12)
    assert all(bench.path(arm).read_bytes().startswith(content) for arm, content in before.items())
    rounds = {bench.wanted(until=0.12), *(bench.rounds(arm) for arm in ARMS if arm != "native")}
    assert max(rounds) - min(rounds) <= 1  # a round that was cut in two: some of its arms have a record more
    assert 5 < min(rounds) < 12


def test_an_arm_that_lost_its_records_is_brought_to_where_the_others_are(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.run(min=8)
    others = {arm: bench.path(arm).read_bytes() for arm in ARMS if arm not in ("native", "docker-host")}
    bench.path("docker-host").unlink()
    bench.run(min=5)
    assert bench.rounds("docker-host") == 8
    assert {arm: bench.path(arm).read_bytes() for arm in others} == others


def stamped(bench: Bench) -> None:
    for arm in bench.block.arms:
        stamp = make_stamp(bench.store, bench.block, arm.name, bench.plans[arm.name], bench.plans["native"], bench.wanted(), None)
        save(bench.store.stamp(bench.block.setting.id, arm.name), json.dumps(stamp) + "\n")


@pytest.mark.parametrize(
    ("repeats", "kept"),
    [({}, True), ({"max": 50}, True), ({"until": 1e-6}, False), ({"min": 6}, False), ({"min": 4}, True)],
)
def test_a_stamp_stands_as_long_as_the_block_is_precise_enough_or_has_the_maximum(
    tmp_path: Path, repeats: Mapping, kept: bool
) -> None:
    bench = Bench(tmp_path)
    bench.run()
    stamped(bench)
    dropped = drop_contradicted(bench.store, bench.block, built(bench.block), bench.wanted(**repeats))
    assert (dropped == []) is kept
    assert kept or len(dropped) == len(ARMS)


def test_a_minimum_above_the_maximum_is_refused() -> None:
    with pytest.raises(TareError, match=r"study.yaml: repeats: min: found 9; allowed: 3 to max \(5\)"):
        Repeats.of({"min": 9, "max": 5, "until": 0.01}, "study.yaml")


def test_the_order_is_written_down_up_to_the_maximum() -> None:
    document = plan_document(study(repeats=ADAPTIVE), embedded(), load_manifests(), load_toolchains())
    assert [len(entry["order"]) for entry in document["blocks"].values()] == [12]
