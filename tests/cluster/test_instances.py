"""Apptainer instances through Slurm: every kind measures and proves where it ran, and nothing of it outlives its job."""

from collections.abc import Callable

import pytest
from studies import Study, assert_clean, kill_the_measuring_process, nodes, on, processes, wait_for

KINDS = [f"singularity-instance-{network}{limits}" for network in ("host", "macvlan", "overlay") for limits in ("", "+cgroup")]
ARMS = ["native", *KINDS]


def traces() -> dict[str, list[str]]:
    """What an instance would leave on each node: network interfaces, unpacked images, its own processes."""
    interfaces = {node: on(node, "ip", "-brief", "link").splitlines() for node in nodes()}
    unpacked = {node: [name for name in on(node, "ls", "/tmp").split() if name.startswith("tare-")] for node in nodes()}
    instances = processes(r"[Aa]pptainer instance|tare\.keeper")
    return {node: [*(line.split()[0] for line in interfaces[node]), *unpacked[node], *instances] for node in nodes()}


@pytest.fixture(scope="module")
def before() -> dict[str, list[str]]:
    """The nodes before any instance."""
    return traces()


def test_every_kind_of_instance_measures_and_proves_its_network(
    before: dict[str, list[str]], new_study: Callable[..., Study]
) -> None:
    study = new_study("instances", backends=ARMS, warmup=0, noise_floor=False)
    study.measure()
    for arm in ARMS:
        stamp = study.stamp(arm)
        assert (stamp["skipped"], stamp["failed"], stamp["pairs"]) == (None, 0, 2), arm
    wait_for(lambda: traces() == before, "the nodes as before")


def test_no_instance_outlives_a_job_that_is_killed(before: dict[str, list[str]], new_study: Callable[..., Study]) -> None:
    rectangles = 600000000003
    apps = {"dac": {"options": {"rectangles": rectangles}}}
    study = new_study("instances-killed", apps=apps, backends=ARMS, warmup=0, repeats=1, noise_floor=False)
    study.start()
    wait_for(lambda: len(processes(rf"/dac .*--rectangles {rectangles}")) >= 2, "both ranks", 120)
    assert traces() != before
    job = study.job()
    kill_the_measuring_process(study, job)
    assert_clean(job)
    wait_for(lambda: not processes(f"--rectangles {rectangles}"), "end of the ranks")
    wait_for(lambda: traces() == before, "the nodes as before")
