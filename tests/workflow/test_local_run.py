"""A study that was really measured on this machine, without a scheduler, and runs of it that lie about themselves."""

import contextlib
import copy
import csv
import hashlib
import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from checkouts import Checkout, counts

from tare.allocation import Allocation, NodeLink, agent_argv
from tare.prepare import node_places
from tare.proof import Label, contradictions, read_answer
from tare.records import Record, Store, file_sha256, read_records

ONE, TWO = "dac/gcc/O2/n1r1", "dac/gcc/O2/n1r2"
ARMS = ["native", "native-aa"]
BINARY = "build/debian13/gcc/O2/dac"


def store(checkout: Checkout, study: str = "here") -> Store:
    """Where a study's records are."""
    return Store(checkout.root / "results" / study)


def records(checkout: Checkout, setting: str, arm: str, study: str = "here") -> list[Record]:
    """A cell's records, warm-ups included."""
    return read_records(store(checkout, study).records(setting, arm))


# --- what was measured --------------------------------------------------------------------------------------------------------


def test_every_cell_was_measured_as_often_as_planned(measured: Checkout) -> None:
    for setting in (ONE, TWO):
        for arm in ARMS:
            (stamp,) = read_records(store(measured).stamp(setting, arm))
            assert (stamp["measured"], stamp["failed"], stamp["pairs"], stamp["skipped"]) == (2, 0, 2, None)


def test_every_repeat_has_its_times_its_answer_and_the_proof_of_each_rank(measured: Checkout) -> None:
    for setting, ranks in ((ONE, 1), (TWO, 2)):
        for record in [*records(measured, setting, "native"), *records(measured, setting, "native-aa")]:
            assert (record["status"], record["reason"], record["exit_code"]) == ("ok", None, 0)
            assert 0 < record["app_s"] < record["wall_s"]
            assert record["answer"]["ok"] is True
            assert sorted((rank["rank"], rank["size"]) for rank in record["proof"]) == [(rank, ranks) for rank in range(ranks)]
            assert {rank["binary_sha256"] for rank in record["proof"]} == {file_sha256(measured.root / BINARY)}


def test_each_round_ran_each_arm_once_in_the_order_of_the_plan_after_one_warm_up(measured: Checkout) -> None:
    plan = json.loads((measured.root / "results/here/plan.json").read_text())
    for setting in (ONE, TWO):
        everything = sorted(
            (r for arm in ARMS for r in records(measured, setting, arm)), key=lambda record: str(record["started"])
        )
        assert [record["warmup"] for record in everything] == [True, True, False, False, False, False]
        ran = [record["backend"] for record in everything if not record["warmup"]]
        assert [ran[:2], ran[2:]] == plan["blocks"][setting]["order"]
        assert [record["order"] for record in everything] == [0, 1, 0, 1, 0, 1]


def test_the_table_has_a_row_for_every_repeat(measured: Checkout) -> None:
    with (measured.root / "results/here/measurements.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 8
    assert {(row["backend"], row["ranks"], row["rep"]) for row in rows} == {
        (arm, ranks, rep) for arm in ARMS for ranks in ("1", "2") for rep in ("1", "2")
    }
    assert (measured.root / "results/here/report.html").stat().st_size > 10000


def test_nothing_of_the_session_is_left(measured: Checkout) -> None:
    assert not list((measured.root / "results/here").glob("work/*"))
    assert not list((measured.root / "results/here").glob("records/**/lease"))


# --- running again ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def spare(measured: Checkout, tmp_path: Path) -> Checkout:
    """A copy of the measured checkout that may be spoilt."""
    return measured.copy(tmp_path / "tare")


def planned(checkout: Checkout, *arguments: str, targets: tuple[str, ...] = ()) -> dict[str, int]:
    """What would be done now."""
    study = str(checkout.root / "config" / "here.yaml")
    return counts(checkout.snakemake("--profile", "profiles/local", "-n", *targets, "--configfile", study, *arguments))


def measuring(jobs: dict[str, int]) -> int:
    """How many blocks would be measured."""
    return jobs.get("measure_block", 0)


def test_when_all_is_done_nothing_is_planned(measured: Checkout) -> None:
    assert planned(measured) == {}


def test_editing_a_figures_module_redraws_that_figure_and_measures_nothing(spare: Checkout) -> None:
    module = spare.root / "src/tare/figures/times_box.py"
    module.write_text(module.read_text() + "\n")
    done = spare.snakemake("--profile", "profiles/local", "-n", "--configfile", str(spare.root / "config/here.yaml"))
    assert set(counts(done)) <= {"draw_figure", "write_report", "all"}
    assert counts(done)["draw_figure"] == 1
    assert "figure=times_box" in done.stdout


def test_more_repeats_measure_every_block_again(spare: Checkout) -> None:
    assert measuring(planned(spare, "--config", "repeats=8")) == 2


def test_more_repeats_of_one_cell_measure_its_block_and_a_cell_that_is_complete_stays(spare: Checkout) -> None:
    targets = (f"results/here/cells/{TWO}/native-aa.json",)
    assert measuring(planned(spare, "--config", "repeats=1", targets=targets)) == 0
    assert measuring(planned(spare, "--config", "repeats=3", targets=targets)) == 1


def test_another_size_measures_every_block_again(spare: Checkout, local_study: dict[str, Any]) -> None:
    larger = copy.deepcopy(local_study)
    larger["apps"]["dac"]["options"]["rectangles"] += 1
    spare.write_study(**larger)
    assert measuring(planned(spare)) == 2


def test_a_cell_that_lost_its_records_is_measured_again_and_its_stale_stamp_removed(spare: Checkout) -> None:
    store(spare).records(TWO, "native-aa").unlink()
    done = spare.snakemake("--profile", "profiles/local", "-n", "--configfile", str(spare.root / "config/here.yaml"))
    assert measuring(counts(done)) == 1
    assert f"{TWO}/native-aa: measured again: its records have changed" in done.stderr
    assert not store(spare).stamp(TWO, "native-aa").exists()
    assert store(spare).stamp(TWO, "native").exists() and store(spare).stamp(ONE, "native-aa").exists()


def test_editing_the_text_of_the_measuring_rule_or_the_python_code_measures_nothing(spare: Checkout) -> None:
    for name in ("workflow/rules/measure.smk", "src/tare/runner.py"):
        path = spare.root / name
        path.write_text(path.read_text().replace('"""', '"""Edited. ', 1))
    assert measuring(planned(spare)) == 0


# --- runs that lie: the launch is spoilt, the label stays ---------------------------------------------------------------------


class Spoilt:
    """A measured checkout in which a program was replaced by one that does something else; a fresh study of it."""

    def __init__(self, checkout: Checkout, study: dict[str, Any]) -> None:
        self.checkout = checkout
        self.study = {**study, "name": "spoilt", "ranks": [2], "repeats": 1, "warmup": 0, "noise_floor": False}

    def replace(self, program: str, script: str) -> None:
        """Put a script where a program was; the program stays beside it, as `<program>.real`."""
        path = self.checkout.root / program
        path.rename(path.with_name(f"{path.name}.real"))
        path.write_text(f"#!/bin/sh\n{script}\n".replace("REAL", f"{path}.real"))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def measure(self) -> Record:
        """Plan and measure as the rules do; return the one record."""
        plan = self.checkout.root / "results/spoilt/plan.json"
        plan.parent.mkdir(parents=True)
        done = self.checkout.tare("plan", "--config", json.dumps(self.study), "--out", str(plan))
        assert done.returncode == 0, done.stderr
        done = self.checkout.tare("measure", "--plan", str(plan), "--block", TWO)
        assert done.returncode == 0, done.stderr
        (record,) = records(self.checkout, TWO, "native", "spoilt")
        return record


@pytest.fixture
def spoilt(spare: Checkout, local_study: dict[str, Any]) -> Iterator[Spoilt]:
    yield Spoilt(spare, local_study)
    assert running_in(spare.root) == []


def running_in(root: Path) -> list[str]:
    """The command lines of processes that still work in a directory."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (entry / "cwd").readlink() == root:
                found.append((entry / "cmdline").read_text(errors="replace").replace("\0", " "))
    return found


def assert_no_number(record: Record) -> None:
    """A repeat that is not a number has neither time nor metric."""
    assert (record["status"], record["wall_s"], record["app_s"], record["metrics"]) == ("failed", None, None, {})


def test_an_unspoilt_run_of_the_same_study_is_a_number(spoilt: Spoilt) -> None:
    assert spoilt.measure()["status"] == "ok"


def test_a_wrong_answer_is_no_number(spoilt: Spoilt) -> None:
    spoilt.replace(BINARY, 'exec REAL "$@" --inject-wrong-answer')
    record = spoilt.measure()
    assert_no_number(record)
    assert record["exit_code"] == 3 and record["answer"]["ok"] is False
    assert record["reason"].startswith("wrong answer: {")
    assert "wrong" in record["stderr_end"] or "answer" in record["stderr_end"]


def test_a_run_of_another_binary_is_no_number(spoilt: Spoilt) -> None:
    spoilt.replace(BINARY, 'exec REAL "$@"')
    record = spoilt.measure()
    real = file_sha256(spoilt.checkout.root / f"{BINARY}.real")
    assert_no_number(record)
    labelled = record["digests"]["binary"]
    for rank in (0, 1):
        assert f"rank {rank}: binary {real[:12]}; labelled {labelled[:12]}" in record["reason"]


def test_two_singletons_are_no_run_on_two_ranks(spoilt: Spoilt) -> None:
    forget = "unset $(env | sed -n 's/^\\(\\(PMIX\\|OMPI\\|PRTE\\)_[A-Za-z0-9_]*\\)=.*/\\1/p')"
    spoilt.replace(BINARY, f'{forget}; OMPI_MCA_ess_singleton_isolated=1 exec REAL "$@"')
    record = spoilt.measure()
    assert_no_number(record)
    assert record["reason"] == "stdout: found 2 lines; the app prints exactly one (several: each rank believed to be alone)"


def test_ranks_that_were_not_pinned_are_no_number_where_the_label_says_bound(spoilt: Spoilt) -> None:
    if len(node_of_this_machine().cores) < 2:
        pytest.fail("this machine has one core: an unpinned rank cannot be told from a pinned one; run the tests on two")
    spoilt.replace("build/debian13/pinned", 'exec "$@"')
    record = spoilt.measure()
    assert_no_number(record)
    assert record["binding"] == "core" and "labelled as bound to one core" in record["reason"]


def test_a_launch_without_end_is_killed_and_is_no_number(spoilt: Spoilt) -> None:
    spoilt.study["timeout_s"] = 1
    spoilt.replace(BINARY, "exec sleep 60")
    record = spoilt.measure()
    assert_no_number(record)
    assert record["timed_out"] is True and record["reason"] == "no end after 1 s (timeout_s)"


def test_a_program_that_cannot_be_started_fails_every_repeat_and_stops_nothing(spoilt: Spoilt) -> None:
    spoilt.replace(BINARY, "echo 'dac: error: no' >&2; exit 1")
    record = spoilt.measure()
    assert_no_number(record)
    assert record["exit_code"] == 1 and record["reason"].startswith("exit 1: ")
    (stamp,) = read_records(store(spoilt.checkout, "spoilt").stamp(TWO, "native"))
    assert (stamp["measured"], stamp["failed"], stamp["skipped"]) == (0, 1, None)


# --- real proofs held against other labels ------------------------------------------------------------------------------------


def node_of_this_machine() -> Any:
    """This machine as its agent sees it."""
    site = {"launch": "local", "cpus_per_node": 1}
    link = NodeLink("here", agent_argv(site, Allocation(None, ("here",)), "here"))
    try:
        (place,) = node_places([link.ask("hello")])
    finally:
        link.close()
    return place


@pytest.fixture
def proof(measured: Checkout) -> list[dict[str, Any]]:
    """What two real ranks of this machine proved."""
    found: list[dict[str, Any]] = records(measured, TWO, "native")[-1]["proof"]
    return found


@pytest.fixture
def truth(measured: Checkout) -> Label:
    """The label that this run really had."""
    return Label(
        processes=2,
        slots=(2,),
        places=(node_of_this_machine(),),
        runtime="native",
        network="host",
        subnet="127.0.0.0/8",
        bound=True,
        binary_sha256=file_sha256(measured.root / BINARY),
        mpi="mpirun (Open MPI) " + records(measured, TWO, "native")[-1]["proof"][0]["mpi"].split()[-1].lstrip("v"),
    )


def relabelled(truth: Label, **changes: Any) -> Label:
    """The same label with something else claimed."""
    return Label(**{**vars(truth), **changes})


def test_a_real_run_bears_its_own_label_out(truth: Label, proof: list[dict[str, Any]]) -> None:
    assert contradictions(truth, proof) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"runtime": "singularity"}, "outside any container; labelled singularity"),
        ({"runtime": "docker"}, "outside any container; labelled docker"),
        ({"runtime": "docker", "network": "overlay"}, "in the node's network namespace; labelled docker on network 'overlay'"),
        ({"runtime": "docker", "network": "macvlan"}, "in the node's network namespace; labelled docker on network 'macvlan'"),
        ({"binary_sha256": hashlib.sha256(b"another").hexdigest()}, "labelled"),
        ({"mpi": "mpirun (Open MPI) 3.1.1"}, "the launcher is 'mpirun (Open MPI) 3.1.1'"),
        ({"processes": 4, "slots": (4,)}, "ranks: found (rank, size) [(0, 2), (1, 2)]"),
    ],
    ids=["singularity", "docker-host", "docker-overlay", "docker-macvlan", "another-binary", "another-mpi", "four-ranks"],
)
def test_a_real_native_run_does_not_pass_for_anything_else(
    truth: Label, proof: list[dict[str, Any]], changes: dict[str, Any], words: str
) -> None:
    found = contradictions(relabelled(truth, **changes), proof)
    assert found and words in found[0]


def test_two_real_singletons_do_not_pass_for_two_ranks(measured: Checkout, truth: Label) -> None:
    alone = [
        measured.run(str(measured.root / BINARY), "--rectangles", "1000", OMPI_MCA_ess_singleton_isolated="1") for _ in range(2)
    ]
    assert [done.returncode for done in alone] == [0, 0]
    answer, problem = read_answer("".join(done.stdout for done in alone))
    assert answer is None and problem is not None and problem.startswith("stdout: found 2 lines")
    both = [rank for done in alone for rank in json.loads(done.stdout)["proof"]]
    assert contradictions(truth, both) == ["ranks: found (rank, size) [(0, 1), (0, 1)]; planned [(0, 2), (1, 2)]"]
