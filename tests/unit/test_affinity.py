"""Equations (1) to (4) on hosts worked out by hand: the paper's (2 sockets of 18 cores, 32 ranks per host) and odd ones."""

from typing import Any

import pytest
from planning import block, other, planned

from tare.affinity import (
    Enclosure,
    Host,
    containers_per_socket,
    cpus_per_container,
    enclosures,
    memory_of,
    positions,
)
from tare.errors import TareError

PAPER = Host(sockets=2, cores=18)


def flat(host: Host, ranks: int, containers: int, index: int) -> list[int]:
    """A container's CPUs as the paper's hosts number them: one socket after the other."""
    return [socket * host.cores + core for socket, core in positions(host, ranks, containers, index)]


def machine(sockets: int, cores: int, threads: int = 1) -> list[dict[str, Any]]:
    """What the agent of such a node finds: CPU n + k · (all cores) is thread k of core n; one memory node per socket."""
    every = sockets * cores
    numbers = [
        [[core + thread * every for thread in range(threads)] for core in range(n * cores, (n + 1) * cores)]
        for n in range(sockets)
    ]
    return [{"cores": found, "mems": [number]} for number, found in enumerate(numbers)]


@pytest.mark.parametrize(
    ("containers", "cpus", "beside"), [(1, 32, 0), (2, 16, 1), (4, 8, 2), (8, 4, 4), (16, 2, 8), (32, 1, 16)]
)
def test_the_papers_scenarios_have_as_many_cpus_per_container_and_containers_per_socket(
    containers: int, cpus: int, beside: int
) -> None:
    assert cpus_per_container(128, 4, containers) == cpus
    assert containers_per_socket(containers, 2) == beside


@pytest.mark.parametrize(
    ("containers", "index", "cpus", "mems"),
    [
        (1, 0, [*range(16), *range(18, 34)], (0, 1)),
        (2, 0, list(range(16)), (0,)),
        (2, 1, list(range(18, 34)), (1,)),
        (4, 1, list(range(8, 16)), (0,)),
        (4, 2, list(range(18, 26)), (1,)),
        (8, 3, [12, 13, 14, 15], (0,)),
        (8, 4, [18, 19, 20, 21], (1,)),
        (16, 9, [20, 21], (1,)),
        (32, 0, [0], (0,)),
        (32, 15, [15], (0,)),
        (32, 16, [18], (1,)),
        (32, 31, [33], (1,)),
    ],
)
def test_a_container_of_the_papers_hosts_has_these_cpus_and_that_memory(
    containers: int, index: int, cpus: list[int], mems: tuple[int, ...]
) -> None:
    assert flat(PAPER, 32, containers, index) == cpus
    assert memory_of(positions(PAPER, 32, containers, index)) == mems


@pytest.mark.parametrize("containers", [1, 2, 4, 8, 16, 32])
def test_no_two_containers_share_a_cpu_and_each_rank_has_one(containers: int) -> None:
    used = [cpu for index in range(containers) for cpu in flat(PAPER, 32, containers, index)]
    assert len(used) == len(set(used)) == 32


@pytest.mark.parametrize(
    ("host", "ranks", "containers", "index", "cpus"),
    [
        (Host(1, 1), 1, 1, 0, [0]),
        (Host(1, 2), 2, 2, 1, [1]),
        (Host(3, 5), 15, 3, 2, [10, 11, 12, 13, 14]),
        (Host(3, 5), 6, 6, 3, [6]),
        (Host(4, 6), 8, 2, 1, [12, 13, 18, 19]),
        (Host(4, 6), 4, 1, 0, [0, 6, 12, 18]),
        (Host(2, 7), 2, 2, 1, [7]),
    ],
)
def test_odd_hosts(host: Host, ranks: int, containers: int, index: int, cpus: list[int]) -> None:
    assert flat(host, ranks, containers, index) == cpus


@pytest.mark.parametrize(
    ("host", "ranks", "containers", "message"),
    [
        (PAPER, 32, 3, "found 32 ranks for 3 containers"),
        (PAPER, 36, 3, "found 3 containers on 2 sockets"),
        (PAPER, 33, 1, "found 33 CPUs of a container over 2 sockets"),
        (PAPER, 38, 2, "found 1 containers of 19 CPUs on a socket of 18 cores"),
        (Host(2, 2), 8, 8, "found 4 containers of 1 CPUs on a socket of 2 cores"),
    ],
)
def test_what_cannot_be_is_refused(host: Host, ranks: int, containers: int, message: str) -> None:
    with pytest.raises(TareError, match=message):
        positions(host, ranks, containers, 0)


def test_the_levels_add_cpus_then_memory() -> None:
    node = machine(2, 18)
    assert enclosures("any", node, 32, 2, False) == [Enclosure(tuple(range(36)))] * 2
    assert enclosures("cpu", node, 32, 2, False)[1] == Enclosure(tuple(range(18, 34)))
    assert enclosures("cpumem", node, 32, 2, False)[1] == Enclosure(tuple(range(18, 34)), (1,))
    assert enclosures("cpumempin", node, 32, 2, True) == enclosures("cpumem", node, 32, 2, False)
    assert enclosures("cpumem", node, 32, 1, False)[0].mems == (0, 1)


def test_a_container_has_all_hardware_threads_of_its_cores() -> None:
    assert enclosures("cpu", machine(1, 4, threads=2), 4, 2, False) == [Enclosure((0, 1, 4, 5)), Enclosure((2, 3, 6, 7))]


def test_cpu_numbers_are_those_that_the_job_has() -> None:
    node = [{"cores": [[4], [6]], "mems": [0]}, {"cores": [[5], [7]], "mems": [1]}]
    assert enclosures("cpumem", node, 4, 2, False) == [Enclosure((4, 6), (0,)), Enclosure((5, 7), (1,))]


def test_without_an_affinity_bound_ranks_of_several_containers_do_not_meet_on_a_core() -> None:
    node = machine(1, 4)
    assert enclosures(None, node, 4, 2, True) == [Enclosure((0, 1)), Enclosure((2, 3))]
    assert enclosures(None, node, 4, 2, False) == [Enclosure((0, 1, 2, 3))] * 2
    assert enclosures(None, node, 4, 1, True) == [Enclosure((0, 1, 2, 3))]


# --- in a study ---------------------------------------------------------------------------------------------------------------


def test_an_affinity_without_a_core_for_each_rank_is_skipped_with_the_reason() -> None:
    found = block(
        other(cpus_per_node=2), ranks=[8], nodes=[2], backends=["native", "docker-host"], compare={"affinity": ["any", "cpu"]}
    )
    assert found.skipped == {"docker-host+cpu": "affinity cpu needs a core for each of a node's 4 ranks; it has 2"}


def test_an_affinity_that_no_site_of_that_shape_can_give_is_refused_before_anything_runs() -> None:
    compare = {"affinity": ["cpu"], "containers_per_node": [3]}
    with pytest.raises(TareError, match="found 3 containers on 2 sockets; one must divide the other"):
        planned(other(sockets_per_node=2), apps={"spmd": {}}, ranks=[12], backends=["native", "docker-overlay"], compare=compare)


def test_ranks_that_cannot_be_divided_over_the_containers_are_skipped_with_the_reason() -> None:
    site, compare = other(), {"containers_per_node": [1, 2, 4]}
    found = block(site, ranks=[4], backends=["native", "docker-host", "docker-overlay", "docker-macvlan"], compare=compare)
    assert [arm.name for arm in found.arms] == [
        *("native", "docker-host"),
        *("docker-overlay", "docker-overlay+2ctn", "docker-overlay+4ctn"),
        *("docker-macvlan", "docker-macvlan+2ctn", "docker-macvlan+4ctn"),
    ]
    reason = "2 ranks of a node cannot be divided evenly over 4 containers"
    assert found.skipped == {"docker-overlay+4ctn": reason, "docker-macvlan+4ctn": reason}
    assert found.setting.slots_in(2) == (1, 1, 1, 1)
