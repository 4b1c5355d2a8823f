"""Profiled launches through Slurm: every arm gets its own, apart from the repeats, and they say where messages went."""

from collections.abc import Callable

import pytest
from studies import Study

from tare import profile
from tare.records import Record, read_records

ARMS = ["native", "singularity", "docker-overlay"]
STEPS, SIDE = 20, 32
SPMD = {"options": {"grid": f"{SIDE}x{SIDE}x{SIDE}", "steps": STEPS, "coefficient": 1}}


@pytest.fixture(scope="module")
def study(new_study: Callable[..., Study]) -> Study:
    """One block on two nodes, one rank each, with both kinds of profile."""
    study = new_study("profile", apps={"spmd": SPMD}, backends=ARMS, warmup=0, profile=["mpi", "perf"])
    study.measure(*(study.target(arm, "spmd") for arm in ARMS))
    return study


def profiles(study: Study, arm: str) -> list[Record]:
    return read_records(study.store.profiles(study.block("spmd"), arm))


def test_every_arm_has_one_profile_of_each_kind_beside_its_repeats(study: Study) -> None:
    for arm in ARMS:
        assert [(record["profile"]["kind"], record["status"]) for record in profiles(study, arm)] == [
            ("mpi", "ok"),
            ("perf", "ok"),
        ]
        assert [record["round"] for record in study.records(arm, "spmd")] == [1, 2]


def test_messages_between_nodes_are_those_of_the_stencil_whatever_the_backend(study: Study) -> None:
    face_bytes, ring = SIDE * SIDE * 8, 2  # the proof sends one number around the ring
    for arm in ARMS:
        found = profile.traffic(profiles(study, arm)[0])["inter-node"]
        assert found == {"messages": 2 * STEPS + ring, "bytes": 2 * STEPS * face_bytes + ring * 4}


def test_the_nodes_saw_the_bytes_that_the_program_sent(study: Study) -> None:
    for arm in ARMS:
        for record in study.records(arm, "spmd"):
            sent = sum(counts["tx_bytes"] for node in record["system"].values() for counts in node["interfaces"].values())
            assert sent > 2 * STEPS * SIDE * SIDE * 8
