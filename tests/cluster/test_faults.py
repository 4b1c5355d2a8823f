"""Kills, cancelled jobs and time limits, in the middle of a block: what was measured stays, what was started goes.

Each interrupted run goes on where the one before it was cut off; the last one is left to finish.
"""

from collections.abc import Callable

import pytest
from studies import (
    Study,
    assert_clean,
    cancel_the_job,
    job_is_there,
    kill_snakemake,
    kill_the_measuring_process,
    let_the_jobs_time_run_out,
    processes,
    run,
    wait_for,
)

Fault = Callable[[Study, str], None]
ARMS = ["native", "docker-overlay"]
FAULTS: list[Fault] = [kill_the_measuring_process, cancel_the_job, let_the_jobs_time_run_out]


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
        code, _ = study.wait()
        assert code != 0
        assert_clean(job)
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
            assert (stamp["pairs"], stamp["failed"], stamp["skipped"]) == (self.repeats, 0, None)
            assert stamp["measured"] - stamp["pairs"] <= self.struck
        assert not list(study.root.glob("work/*"))
        assert not list(study.root.glob("records/**/lease"))
        done = run(*study.argv("-n", *study.targets()))
        assert "Nothing to be done" in done.stdout + done.stderr


class TestFirstRun(Interrupted):
    repeats, struck = 9, len(FAULTS)


class TestTopUp(Interrupted):
    repeats, struck = 18, 2 * len(FAULTS)


@pytest.mark.parametrize("fault", [kill_the_measuring_process, cancel_the_job], ids=lambda fault: fault.__name__)
@pytest.mark.parametrize(("first", "seed"), [("docker-overlay", 1), ("native", 3)], ids=ARMS[::-1])
def test_a_launch_that_would_take_minutes_goes_with_its_job(
    new_study: Callable[..., Study], fault: Fault, first: str, seed: int
) -> None:
    rectangles = f"60000000000{seed}"
    apps = {"dac": {"options": {"rectangles": int(rectangles)}}}
    study = new_study(f"long-{first}-{fault.__name__}", apps=apps, backends=ARMS, warmup=0, repeats=1, seed=seed)
    study.start()
    wait_for(lambda: len(processes(rf"^\S+/dac .*--rectangles {rectangles}")) >= 2, "both ranks", 90)
    assert all(("docker" in line) == (first != "native") for line in processes(f"exec .*--rectangles {rectangles}"))
    job = study.job()
    fault(study, job)
    study.wait()
    assert_clean(job)
    assert not processes(f"--rectangles {rectangles}")
    assert study.count() == 0
