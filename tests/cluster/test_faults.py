"""Kills, cancelled jobs and time limits, in the middle of a block: what was measured stays, what was started goes.

Each interrupted run goes on where the one before it was cut off; the last one is left to finish.
"""

from collections.abc import Callable

import pytest
from studies import (
    Study,
    assert_clean,
    cancel_the_job,
    fact,
    job_is_there,
    kill_snakemake,
    kill_the_measuring_process,
    let_the_jobs_time_run_out,
    processes,
    run,
    wait_for,
)

from tare.cases import BASELINE, round_order

Fault = Callable[[Study, str], None]
ARMS = ["native", "docker-overlay"]
STATES: dict[Fault, str] = {
    kill_the_measuring_process: "FAILED",
    cancel_the_job: "CANCELLED",
    let_the_jobs_time_run_out: "TIMEOUT",
}
FAULTS = [kill_the_measuring_process, cancel_the_job]


@pytest.fixture(scope="module")
def study(new_study: Callable[..., Study]) -> Study:
    """A block of two arms, long enough to be interrupted several times."""
    return new_study("faults", backends=ARMS)


def interrupt(study: Study, fault: Fault) -> str:
    """Start a run, let it measure a little, strike; return the job that was struck."""
    before = study.count()
    study.start()
    wait_for(lambda: study.count() >= before + 2, "two more records", 120)
    job = study.job()
    fault(study, job)
    return job


def assert_kept(study: Study, before: dict[str, bytes]) -> None:
    """The records before are a byte-for-byte prefix of those now, and no (round, arm) was measured twice."""
    after = study.contents()
    assert all(after[arm].startswith(content) for arm, content in before.items())
    for arm in ARMS:
        assert len(set(study.rounds(arm))) == len(study.rounds(arm))


class Interrupted:
    """What holds for a first run and for a top-up run."""

    repeats: int
    struck: int  # jobs struck until now

    @pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
    def test_an_interrupted_job_loses_no_record_and_leaves_nothing_running(self, study: Study, fault: Fault) -> None:
        study.write(repeats=self.repeats)
        before = study.contents()
        job = interrupt(study, fault)
        struck = study.contents()
        assert_clean(job)
        assert fact(job, "JobState") == STATES[fault]
        study.stop()
        assert_kept(study, before)
        assert_kept(study, struck)

    def test_a_killed_snakemake_is_unlocked_and_run_again_while_its_job_lives_on(self, study: Study) -> None:
        study.write(repeats=self.repeats)
        job = interrupt(study, kill_snakemake)
        assert job_is_there(job)
        before = study.contents()
        assert run(*study.argv("--unlock", *study.targets())).returncode == 0
        study.measure()
        assert not job_is_there(job)
        assert_kept(study, before)

    def test_afterwards_every_cell_is_complete_and_nothing_is_left(self, study: Study) -> None:
        for arm in ARMS:
            stamp = study.stamp(arm)
            # A strike between the two launches of a round leaves a record without its partner; native is its own partner.
            pairs = stamp["measured"] if arm == BASELINE else self.repeats
            assert (stamp["pairs"], stamp["failed"], stamp["skipped"]) == (pairs, 0, None)
            assert self.repeats <= stamp["measured"] <= self.repeats + self.struck
        assert not list(study.root.glob("work/*"))
        assert not list(study.root.glob("records/**/lease"))
        done = run(*study.argv("-n", *study.targets()))
        assert "Nothing to be done" in done.stdout + done.stderr


class TestFirstRun(Interrupted):
    repeats, struck = 8, len(FAULTS)


class TestTopUp(Interrupted):
    repeats, struck = 16, 2 * len(FAULTS)


def strike_a_long_launch(study: Study, fault: Fault) -> None:
    """Start a launch that would take minutes, strike, and see that nothing of it is left."""
    rectangles = study.document["apps"]["dac"]["options"]["rectangles"]
    study.start()
    wait_for(lambda: len(processes(rf"^/\S+/dac .*--rectangles {rectangles}")) >= 2, "both ranks", 90)
    job = study.job()
    fault(study, job)
    assert_clean(job)
    assert fact(job, "JobState") == STATES[fault]
    assert not processes(f"--rectangles {rectangles}")
    assert study.count() == 0


def long_study(new_study: Callable[..., Study], first: str, rectangles: int) -> Study:
    """A block whose first launch, on the arm given, takes minutes."""
    seed = {"native": 3, "docker-overlay": 1}[first]
    apps = {"dac": {"options": {"rectangles": rectangles}}}
    study = new_study(f"long-{rectangles}", apps=apps, backends=ARMS, warmup=0, repeats=1, seed=seed)
    assert round_order(seed, study.block(), 1, ARMS)[0] == first
    return study


@pytest.mark.parametrize(
    ("fault", "first", "rectangles"),
    [(kill_the_measuring_process, "native", 600000000001), (cancel_the_job, "docker-overlay", 600000000002)],
    ids=["killed-native", "cancelled-docker"],
)
def test_a_launch_that_would_take_minutes_goes_with_its_job_and_snakemake_says_that_it_failed(
    new_study: Callable[..., Study], fault: Fault, first: str, rectangles: int
) -> None:
    study = long_study(new_study, first, rectangles)
    strike_a_long_launch(study, fault)
    assert study.wait()[0] != 0


def test_a_job_whose_time_has_run_out_takes_its_launch_with_it(new_study: Callable[..., Study]) -> None:
    strike_a_long_launch(long_study(new_study, "native", 600000000003), let_the_jobs_time_run_out)
