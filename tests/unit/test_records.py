"""Records, what is missing of a block, stamps, and the lease: everything that a kill must not harm."""

import dataclasses
import json
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from planning import ARMS, BUILT, block, built, embedded, plans_of, study

from tare import runner
from tare.allocation import Allocation, is_alive
from tare.cases import Block, round_order
from tare.config import Mapping
from tare.errors import TareError
from tare.files import save
from tare.records import (
    Holder,
    Missing,
    Record,
    Store,
    append_record,
    contradiction,
    counted,
    drop_contradicted,
    file_sha256,
    find_missing,
    make_stamp,
    read_lease,
    read_records,
    release_lease,
    try_lease,
    validated,
)
from tare.runner import Job


class Bench:
    """A store with one block, and a pretended runner that appends records as the real one does, only without launching."""

    def __init__(self, root: Path) -> None:
        self.store = Store(root)
        self.block = block(backends=ARMS)
        self.plans = plans_of(self.block)
        self.sessions = 0

    def path(self, arm: str) -> Path:
        return self.store.records(self.block.setting.id, arm)

    def add(self, arm: str, number: int | None, session: str = "s0", **more: Any) -> None:
        record = {"plan": self.plans[arm], "session": session, "round": number, "warmup": number is None, "status": "ok"}
        append_record(self.path(arm), record | more)

    def missing(self, repeats: int) -> Missing:
        return find_missing(self.store, self.block, self.plans, repeats)

    def launches(self, repeats: int) -> Iterator[tuple[str, int | None]]:
        """What the runner would launch now: warm-ups, then the missing rounds in the planned order."""
        missing = self.missing(repeats)
        if missing.rounds:
            yield from ((arm, None) for arm in sorted(missing.arms_of_round(0)))
        for index in range(max(missing.rounds.values(), default=0)):
            number = missing.first_round + index
            order = round_order(1, self.block.setting.id, number, [arm.name for arm in self.block.arms])
            yield from ((arm, number) for arm in order if arm in missing.arms_of_round(index))

    def run(self, repeats: int, killed_after: int | None = None) -> None:
        """Play a job, which may be killed after some launches."""
        self.sessions += 1
        for done, (arm, number) in enumerate(self.launches(repeats)):
            if done == killed_after:
                return
            self.add(arm, number, f"s{self.sessions}")

    def rounds(self, arm: str) -> list[int]:
        return [record["round"] for record in counted(read_records(self.path(arm)), self.plans[arm])]

    def contents(self) -> dict[str, bytes]:
        return {arm: self.path(arm).read_bytes() if self.path(arm).is_file() else b"" for arm in ARMS}

    def stamp(self, arm: str, repeats: int, skipped: str | None = None) -> Path:
        stamp = make_stamp(self.store, self.block, arm, self.plans[arm], self.plans["native"], repeats, skipped)
        path = self.store.stamp(self.block.setting.id, arm)
        save(path, json.dumps(stamp) + "\n")
        return path


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def is_prefix(before: dict[str, bytes], after: dict[str, bytes]) -> bool:
    return all(after[arm].startswith(content) for arm, content in before.items())


# --- what is missing ----------------------------------------------------------------------------------------------------------


def test_of_a_fresh_block_everything_is_missing(bench: Bench) -> None:
    assert bench.missing(3) == Missing(dict.fromkeys(ARMS, 3), 1)


def test_of_a_complete_block_nothing_is_missing(bench: Bench) -> None:
    bench.run(3)
    assert bench.missing(3) == Missing({}, 4)
    assert list(bench.launches(3)) == []
    assert bench.missing(2) == Missing({}, 4)


def test_a_top_up_runs_the_rounds_that_are_lacking_and_rewrites_nothing(bench: Bench) -> None:
    bench.run(2)
    before = bench.contents()
    assert bench.missing(5) == Missing(dict.fromkeys(ARMS, 3), 3)
    bench.run(5)
    assert is_prefix(before, bench.contents())
    assert all(bench.rounds(arm) == [1, 2, 3, 4, 5] for arm in ARMS)


def test_an_arm_that_lost_its_records_is_measured_again_with_native_partners_and_nothing_else(bench: Bench) -> None:
    bench.run(3)
    before = bench.contents()
    bench.path("docker-host").unlink()
    assert bench.missing(3) == Missing({"docker-host": 3}, 4)
    assert bench.missing(3).arms_of_round(0) == {"docker-host", "native"}
    bench.run(3)
    after = bench.contents()
    assert after["native"].startswith(before["native"]) and bench.rounds("native") == [1, 2, 3, 4, 5, 6]
    assert bench.rounds("docker-host") == [4, 5, 6]
    assert {arm for arm in ARMS if after[arm] == before[arm]} == {"singularity", "docker-overlay"}
    assert bench.missing(3).rounds == {}


def test_native_that_lost_its_records_makes_every_arm_run_again(bench: Bench) -> None:
    bench.run(2)
    bench.path("native").unlink()
    assert bench.missing(2) == Missing(dict.fromkeys(ARMS, 2), 3)


@pytest.mark.parametrize("killed_after", range(5, 12))
@pytest.mark.parametrize("first_run", [True, False], ids=["first-run", "top-up"])
def test_a_killed_job_is_resumed_from_what_is_on_disk(bench: Bench, first_run: bool, killed_after: int) -> None:
    if not first_run:
        bench.run(2)
    repeats = 3 if first_run else 5
    bench.run(repeats, killed_after)
    before = bench.contents()
    bench.run(repeats)
    assert is_prefix(before, bench.contents())
    assert bench.missing(repeats).rounds == {}
    for arm in ARMS:
        assert len(set(bench.rounds(arm))) == len(bench.rounds(arm))
        assert repeats <= len(bench.rounds(arm)) <= repeats + 1


def test_a_round_without_its_native_partner_is_no_pair(bench: Bench) -> None:
    bench.add("docker-host", 1)
    bench.add("native", 2)
    assert bench.missing(1).rounds["docker-host"] == 1


def test_the_same_round_of_another_session_is_no_partner(bench: Bench) -> None:
    bench.add("docker-host", 1, "s1")
    bench.add("native", 1, "s2")
    assert bench.missing(1).rounds["docker-host"] == 1


def test_a_failed_repeat_counts_because_failures_are_data(bench: Bench) -> None:
    bench.add("native", 1)
    bench.add("docker-host", 1, status="failed")
    assert "docker-host" not in bench.missing(1).rounds


def test_a_warm_up_does_not_count(bench: Bench) -> None:
    bench.add("native", None)
    bench.add("docker-host", None)
    assert bench.missing(1) == Missing(dict.fromkeys(ARMS, 1), 1)


def test_records_of_another_plan_are_set_aside_and_their_round_numbers_never_used_again(bench: Bench) -> None:
    bench.run(2)
    before = bench.contents()
    bench.plans = plans_of(bench.block, {**BUILT, "binary": "b2"})
    assert bench.missing(2) == Missing(dict.fromkeys(ARMS, 2), 3)
    bench.run(2)
    assert is_prefix(before, bench.contents())
    assert all(bench.rounds(arm) == [3, 4] for arm in ARMS)


def test_a_new_image_measures_the_arms_again_that_run_in_it(bench: Bench) -> None:
    bench.run(2)
    bench.plans = plans_of(bench.block, {**BUILT, "images": {"docker": "d2", "singularity": "s1"}})
    assert bench.missing(2).rounds == {"docker-host": 2, "docker-overlay": 2}


def test_an_arm_that_the_site_lacks_is_not_missing(tmp_path: Path) -> None:
    site = embedded(runtimes={"native": {}, "singularity": {}})
    found = find_missing(Store(tmp_path), block(site), plans_of(block(site)), 2)
    assert found.rounds == {"native": 2, "singularity": 2}


# --- what a record must share to count ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("digests", "changed"),
    [
        ({**BUILT, "binary": "b2"}, set(ARMS)),
        ({**BUILT, "images": {"docker": "d2", "singularity": "s1"}}, {"docker-host", "docker-overlay"}),
        ({**BUILT, "images": {"docker": "d1", "singularity": "s2"}}, {"singularity"}),
    ],
    ids=["binary", "docker-image", "sif"],
)
def test_a_plan_digest_changes_with_the_binary_and_the_arms_own_image(digests: Mapping, changed: set[str]) -> None:
    one, two = plans_of(block(backends=ARMS)), plans_of(block(backends=ARMS), digests)
    assert {arm for arm in ARMS if one[arm] != two[arm]} == changed


@pytest.mark.parametrize(
    "changes",
    [
        {"apps": {"dac": {"options": {"rectangles": 1001}}}},
        {"flags": ["O2"]},
        {"toolchains": ["gcc"]},
        {"ranks": [4]},
        {"nodes": [1]},
        {"interconnect": "fast"},
        {"binding": "none"},
        {"userland": "debian11"},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_plan_digest_changes_with_everything_of_the_setting(changes: dict[str, Any]) -> None:
    before = {"backends": ARMS, "toolchains": ["distribution"]}
    one, two = plans_of(block(**before)), plans_of(block(**before | changes))
    assert all(one[arm] != two[arm] for arm in ARMS)


@pytest.mark.parametrize(
    "changes",
    [{"repeats": 9}, {"seed": 2}, {"noise_floor": True}, {"warmup": 0}, {"backends": ["native", "docker-host"]}],
    ids=lambda changes: next(iter(changes)),
)
def test_a_plan_digest_stays_when_repeats_seed_or_other_arms_change(changes: dict[str, Any]) -> None:
    one, two = plans_of(block(backends=ARMS)), plans_of(block(**{"backends": ARMS, **changes}))
    assert all(one[arm] == two[arm] for arm in one.keys() & two.keys())


def test_the_second_native_arm_has_a_plan_of_its_own() -> None:
    plans = plans_of(block(noise_floor=True))
    assert len(set(plans.values())) == len(plans) == 6


# --- the file -----------------------------------------------------------------------------------------------------------------


def test_records_are_read_in_the_order_in_which_they_were_appended(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "below" / "native.jsonl"
    for number in range(3):
        append_record(path, {"round": number})
    assert [record["round"] for record in read_records(path)] == [0, 1, 2]
    assert path.read_bytes().count(b"\n") == 3


def test_a_file_that_is_not_there_has_no_records(tmp_path: Path) -> None:
    assert read_records(tmp_path / "none.jsonl") == []


@pytest.mark.parametrize("torn", [b'{"round":2', b"{", b'{"round":2,"wall_s":0.'], ids=["no-end", "one-byte", "in-a-number"])
def test_a_line_that_a_killed_writer_left_torn_is_no_record_and_stays_in_the_file(tmp_path: Path, torn: bytes) -> None:
    path = tmp_path / "native.jsonl"
    append_record(path, {"round": 1})
    with path.open("ab") as file:
        file.write(torn)
    before = path.read_bytes()
    assert [record["round"] for record in read_records(path)] == [1]
    append_record(path, {"round": 3})
    assert path.read_bytes().startswith(before)
    assert [record["round"] for record in read_records(path)] == [1, 3]


def test_a_torn_line_is_measured_again(bench: Bench) -> None:
    bench.run(2)
    path = bench.path("docker-host")
    path.write_bytes(path.read_bytes()[:-20])
    assert bench.missing(2) == Missing({"docker-host": 1}, 3)


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ({"status": "ok", "wall_s": None, "app_s": 1.0}, "here: a record with status ok has no time: found [None, 1.0]"),
        ({"status": "ok", "wall_s": 0, "app_s": 1.0}, "here: a record with status ok has no time: found [0, 1.0]"),
        ({"status": "failed", "wall_s": 2.0, "app_s": None}, "here: a failed record has a time: found [2.0, None]"),
    ],
    ids=["ok-without", "ok-with-zero", "failed-with"],
)
def test_a_damaged_record_is_named(record: Record, problem: str) -> None:
    with pytest.raises(TareError) as caught:
        validated(record, "here")
    assert str(caught.value) == f"{problem}; remove that line and run again"


@pytest.mark.parametrize(
    "record",
    [{"status": "ok", "wall_s": 1, "app_s": 0.5}, {"status": "failed", "wall_s": None, "app_s": None}],
    ids=["ok", "failed"],
)
def test_a_sound_record_is_taken_as_it_is(record: Record) -> None:
    assert validated(record, "here") == record


# --- stamps -------------------------------------------------------------------------------------------------------------------


def test_a_stamp_counts_what_the_records_hold(bench: Bench) -> None:
    bench.run(2)
    bench.add("docker-host", 3, "s1", status="failed")
    stamp = json.loads(bench.stamp("docker-host", 2).read_text())
    path = bench.path("docker-host")
    assert stamp == {
        **{"block": bench.block.setting.id, "arm": "docker-host", "plan": bench.plans["docker-host"]},
        **{"planned": 2, "measured": 2, "failed": 1, "pairs": 2, "skipped": None, "skipped_by": None},
        "records": {"bytes": path.stat().st_size, "sha256": file_sha256(path)},
    }


def test_a_stamp_that_was_just_written_contradicts_nothing(bench: Bench) -> None:
    bench.run(2)
    for arm in ARMS:
        bench.stamp(arm, 2)
    assert drop_contradicted(bench.store, bench.block, built(bench.block), 2) == []
    assert drop_contradicted(bench.store, bench.block, built(bench.block), 1) == []


NOT_BUILT: Mapping = {"binary": None, "images": {"docker": None, "singularity": None}}


def test_before_anything_is_built_a_stamp_is_held_against_the_setting_alone(bench: Bench) -> None:
    bench.run(2)
    bench.stamp("native", 2)
    assert drop_contradicted(bench.store, bench.block, built(bench.block, NOT_BUILT), 2) == []


def test_before_anything_is_built_a_stamp_of_another_size_is_removed_all_the_same(bench: Bench) -> None:
    bench.run(2)
    path = bench.stamp("native", 2)
    larger = Block(dataclasses.replace(bench.block.setting, options={"rectangles": 7}), bench.block.arms, {})
    (told,) = drop_contradicted(bench.store, larger, built(larger, NOT_BUILT), 2)
    assert told.endswith("native: measured again: another size, binary or image is planned") and not path.exists()


def grown(bench: Bench) -> dict[str, Any]:
    bench.add("docker-host", 9)
    return {}


def lost(bench: Bench) -> dict[str, Any]:
    bench.path("docker-host").unlink()
    return {}


def replanned(_bench: Bench) -> dict[str, Any]:
    return {"digests": {**BUILT, "images": {"docker": "another", "singularity": "s1"}}}


def short(_bench: Bench) -> dict[str, Any]:
    return {"repeats": 3}


def garbled(bench: Bench) -> dict[str, Any]:
    bench.store.stamp(bench.block.setting.id, "docker-host").write_text("{")
    return {}


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (grown, "its records have changed"),
        (lost, "its records have changed"),
        (replanned, "another size, binary or image is planned"),
        (short, "3 paired repeats are planned, 2 are there"),
        (garbled, "it is not readable"),
    ],
)
def test_a_stamp_that_contradicts_its_records_or_plan_is_removed_with_the_reason(bench: Bench, spoil: Any, reason: str) -> None:
    bench.run(2)
    path = bench.stamp("docker-host", 2)
    arguments = {"digests": BUILT, "repeats": 2} | spoil(bench)
    told = drop_contradicted(bench.store, bench.block, built(bench.block, arguments["digests"]), arguments["repeats"])
    assert told == [f"{bench.block.setting.id}/docker-host: measured again: {reason}"]
    assert not path.exists()


def test_an_arm_that_could_not_run_last_time_is_tried_again(bench: Bench) -> None:
    bench.stamp("docker-host", 2, skipped="node1: docker: not found")
    (told,) = drop_contradicted(bench.store, bench.block, built(bench.block), 2)
    assert told.endswith("docker-host: measured again: it could not run last time")


def test_an_arm_that_the_site_lacks_stays_skipped_until_the_site_has_it(bench: Bench) -> None:
    lacking = Block(bench.block.setting, bench.block.arms, {"docker-host": "no docker"})
    path = bench.path("docker-host")
    stamp = make_stamp(bench.store, lacking, "docker-host", "p", "q", 2, "no docker")
    assert stamp["skipped"] == "no docker" and not path.exists()
    assert contradiction(stamp, bench.store, lacking, "docker-host", "p", True, 2) is None
    assert contradiction(stamp, bench.store, bench.block, "docker-host", "p", True, 2) == "what the site can run has changed"


def test_only_the_stamps_that_contradict_are_removed(bench: Bench) -> None:
    bench.run(2)
    paths = {arm: bench.stamp(arm, 2) for arm in ARMS}
    bench.path("singularity").unlink()
    drop_contradicted(bench.store, bench.block, built(bench.block), 2)
    assert {arm for arm, path in paths.items() if not path.exists()} == {"singularity"}


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "a" / "stamp.json"
    save(path, "one\n")
    save(path, "two\n")
    assert path.read_text() == "two\n"
    assert [entry.name for entry in path.parent.iterdir()] == ["stamp.json"]


# --- the lease ----------------------------------------------------------------------------------------------------------------

ONE = Holder("s1", "71", "a1", 100)
TWO = Holder("s2", "72", "a2", 200)


def alive(_holder: Holder) -> bool:
    return True


def dead(_holder: Holder) -> bool:
    return False


def test_a_free_lease_is_taken_and_given_back(tmp_path: Path) -> None:
    assert try_lease(tmp_path, ONE, alive) is None
    assert read_lease(tmp_path) == ONE
    release_lease(tmp_path, ONE)
    assert read_lease(tmp_path) is None


def test_a_second_writer_is_kept_out_while_the_first_is_alive(tmp_path: Path) -> None:
    try_lease(tmp_path, ONE, alive)
    assert try_lease(tmp_path, TWO, alive) == ONE
    assert read_lease(tmp_path) == ONE


def test_a_dead_holder_is_replaced(tmp_path: Path) -> None:
    try_lease(tmp_path, ONE, alive)
    assert try_lease(tmp_path, TWO, dead) is None
    assert read_lease(tmp_path) == TWO


def test_nobody_gives_back_the_lease_of_another(tmp_path: Path) -> None:
    try_lease(tmp_path, ONE, alive)
    release_lease(tmp_path, TWO)
    assert read_lease(tmp_path) == ONE


@pytest.mark.parametrize("text", ["", "{", "[]", '{"session": "s"}'], ids=["empty", "torn", "list", "half"])
def test_a_lease_that_cannot_be_read_keeps_nobody_out(tmp_path: Path, text: str) -> None:
    (tmp_path / "lease").write_text(text)
    assert try_lease(tmp_path, ONE, alive) is None


def test_of_many_that_try_at_once_exactly_one_gets_the_lease(tmp_path: Path) -> None:
    holders = [Holder(f"s{number}", None, "a", number) for number in range(8)]
    results: dict[str, Holder | None] = {}
    gate = threading.Barrier(len(holders))

    def attempt(mine: Holder) -> None:
        gate.wait()
        results[mine.session] = try_lease(tmp_path, mine, alive)

    threads = [threading.Thread(target=attempt, args=(holder,)) for holder in holders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    winner = read_lease(tmp_path)
    assert winner is not None
    assert [session for session, other in results.items() if other is None] == [winner.session]
    assert all(other == winner for other in results.values() if other is not None)


@pytest.fixture
def somebody() -> Iterator[subprocess.Popen[bytes]]:
    """A process of this machine that holds a lease."""
    process = subprocess.Popen(["sleep", "60"])
    yield process
    process.kill()
    process.wait()


def test_a_process_of_this_machine_holds_its_lease_until_it_ends(tmp_path: Path, somebody: subprocess.Popen[bytes]) -> None:
    theirs = Holder("local1", None, socket.gethostname(), somebody.pid)
    try_lease(tmp_path, theirs, is_alive)
    assert try_lease(tmp_path, ONE, is_alive) == theirs
    somebody.kill()
    somebody.wait()
    assert try_lease(tmp_path, ONE, is_alive) is None


def test_a_process_of_another_machine_is_taken_for_alive(tmp_path: Path) -> None:
    theirs = Holder("local1", None, "elsewhere", 1)
    try_lease(tmp_path, theirs, is_alive)
    assert try_lease(tmp_path, ONE, is_alive) == theirs


def test_a_job_waits_for_the_holder_to_end_says_so_once_and_gives_the_lease_back(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    somebody: subprocess.Popen[bytes],
) -> None:
    monkeypatch.setattr(runner, "LEASE_POLL_S", 0.05)
    job = Job({"study": study(), "site": embedded()}, block(), Store(tmp_path), Allocation(None, (socket.gethostname(),)))
    directory = job.store.directory(job.block.setting.id)
    try_lease(directory, Holder("local1", None, socket.gethostname(), somebody.pid), is_alive)
    threading.Timer(0.4, lambda: (somebody.kill(), somebody.wait())).start()
    begin = time.monotonic()
    with runner.leased(job):
        assert time.monotonic() - begin >= 0.4
        assert read_lease(directory) == job.allocation.holder()
    assert read_lease(directory) is None
    told = capfd.readouterr().err.splitlines()
    assert told == [f"{job.block.setting.id}: local1 on {socket.gethostname()} is measuring this block; waiting for its end"]


def test_what_a_killed_job_could_not_remove_goes_with_its_lease_and_nobody_elses_does(tmp_path: Path) -> None:
    job = Job({"study": study(), "site": embedded()}, block(), Store(tmp_path), Allocation(None, (socket.gethostname(),)))
    ended = subprocess.Popen(["true"])
    ended.wait()
    killed = Holder("local1p7", None, socket.gethostname(), ended.pid)
    try_lease(job.store.directory(job.block.setting.id), killed, is_alive)
    for session in ("local1p7", "slurm99"):
        (tmp_path / "work" / session).mkdir(parents=True)
        (tmp_path / "work" / session / "key").write_text("secret")
    with runner.leased(job):
        assert [path.name for path in (tmp_path / "work").iterdir()] == ["slurm99"]


def test_a_job_that_fails_gives_the_lease_back(tmp_path: Path) -> None:
    job = Job({"study": study(), "site": embedded()}, block(), Store(tmp_path), Allocation(None, (socket.gethostname(),)))
    with pytest.raises(KeyError), runner.leased(job):
        raise KeyError
    assert read_lease(job.store.directory(job.block.setting.id)) is None
