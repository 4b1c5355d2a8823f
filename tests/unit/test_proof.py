"""Every way in which ranks can contradict their label, on made-up proofs. Real mislabelled runs are tested elsewhere."""

import copy
import json
from dataclasses import replace
from typing import Any

import pytest

from tare.prepare import read_limit
from tare.proof import Label, Place, contradictions, mpi_version, parse_list, read_answer

Rank = dict[str, Any]
SHA = "5eed" * 16


def namespaces(net: str, mnt: str) -> dict[str, str]:
    """Namespace inodes of a place."""
    return {"net": net, "mnt": mnt, "uts": f"u{mnt}", "pid": f"p{mnt}"}


def place(node: int, contained: bool, network: str) -> Place:
    """A node with two cores of two hardware threads, or the arm's container on it."""
    own = network != "host"
    inside = namespaces(f"{network}{node}" if own else f"n{node}", f"in-{network}{node}")
    return Place(
        hostname=f"box-{network}{node}" if own else f"node{node}",
        node_ns=namespaces(f"n{node}", f"m{node}"),
        container_ns=inside if contained else None,
        cpus=frozenset({0, 1, 2, 3}),
        cores=(frozenset({0, 2}), frozenset({1, 3})),
    )


def label(runtime: str = "native", network: str = "host", slots: tuple[int, ...] = (2, 2), **changes: Any) -> Label:
    """A label of two bound ranks on each of two nodes."""
    values: dict[str, Any] = {
        "processes": sum(slots),
        "slots": slots,
        "places": tuple(place(node, runtime == "docker", network) for node in range(len(slots))),
        "runtime": runtime,
        "network": network,
        "subnet": {"host": "10.1.0.0/24", "macvlan": "10.8.0.0/24", "overlay": "10.9.0.0/24"}[network],
        "bound": True,
        "binary_sha256": SHA,
        "mpi": "mpirun (Open MPI) 5.0.7",
    }
    return Label(**values | changes)


def proof_of(it: Label) -> list[Rank]:
    """What ranks report that run as labelled."""
    net = it.subnet.removesuffix("0/24")
    homes = [(node, local) for node, slots in enumerate(it.slots) for local in range(slots)]
    return [
        {
            "rank": number,
            "size": it.processes,
            "hostname": it.places[node].hostname,
            "ns": {
                **(it.places[node].container_ns or it.places[node].node_ns),
                **({"mnt": f"sif{number}"} if it.runtime == "singularity" else {}),
            },
            "cpus_allowed": ("0,2", "1,3")[local],
            "mpi": "Open MPI v5.0.7",
            "binary_sha256": SHA,
            "links": [{"interface": "eth0", "local": f"{net}{node + 1}", "peer": f"{net}{2 - node}"}]
            if len(it.slots) > 1
            else [],
        }
        for number, (node, local) in enumerate(homes)
    ]


LABELS = {
    "native": label(),
    "singularity": label("singularity"),
    "docker-host": label("docker"),
    "docker-macvlan": label("docker", "macvlan"),
    "docker-overlay": label("docker", "overlay"),
    "one-node": label(slots=(2,)),
    "shared-cpus": label(bound=False),
}


@pytest.mark.parametrize("name", LABELS)
def test_ranks_that_ran_as_labelled_bear_the_label_out(name: str) -> None:
    assert contradictions(LABELS[name], proof_of(LABELS[name])) == []


@pytest.mark.parametrize("name", LABELS)
def test_the_order_in_which_ranks_report_does_not_matter(name: str) -> None:
    assert contradictions(LABELS[name], proof_of(LABELS[name])[::-1]) == []


def spoiled(name: str, at: int, **changes: Any) -> list[str]:
    """The contradictions when one rank of a labelled run reports something else."""
    proof = copy.deepcopy(proof_of(LABELS[name]))
    proof[at] |= changes
    return contradictions(LABELS[name], proof)


PLANNED = "planned [(0, 4), (1, 4), (2, 4), (3, 4)]"


def link(local: str, peer: str, interface: str = "eth0") -> list[Rank]:
    """One connection."""
    return [{"interface": interface, "local": local, "peer": peer}]


@pytest.mark.parametrize(
    ("name", "at", "changes", "found"),
    [
        ("native", 2, {"hostname": "node7"}, ["rank 2: host 'node7'; planned 'node1'"]),
        ("native", 0, {"binary_sha256": "0" * 64}, ["rank 0: binary 000000000000; labelled 5eed5eed5eed"]),
        ("native", 1, {"mpi": "Open MPI v4.1.4"}, ["rank 1: MPI 'Open MPI v4.1.4'; the launcher is 'mpirun (Open MPI) 5.0.7'"]),
        (
            "native",
            3,
            {"ns": {**namespaces("n1", "m1"), "mnt": "elsewhere"}},
            ["rank 3: inside a container; labelled native"],
        ),
        (
            "native",
            3,
            {"ns": namespaces("own", "m1")},
            ["rank 3: in a network namespace of its own; labelled native on network 'host'"],
        ),
        ("singularity", 0, {"ns": namespaces("n0", "m0")}, ["rank 0: outside any container; labelled singularity"]),
        (
            "singularity",
            0,
            {"ns": {**namespaces("n0", "docker"), "uts": "um0"}},
            ["rank 0: in a process namespace of its own; labelled singularity, which shares the node's"],
        ),
        (
            "docker-overlay",
            0,
            {"ns": namespaces("n0", "in-overlay0")},
            [
                "rank 0: in the node's network namespace; labelled docker on network 'overlay'",
                "rank 0: net namespace n0; the arm's container has overlay0",
            ],
        ),
        (
            "docker-host",
            1,
            {"ns": namespaces("n0", "other")},
            [
                "rank 1: mnt namespace other; the arm's container has in-host0",
                "rank 1: uts namespace uother; the arm's container has uin-host0",
                "rank 1: pid namespace pother; the arm's container has pin-host0",
            ],
        ),
        (
            "native",
            0,
            {"cpus_allowed": "0-3"},
            [
                "rank 0: may use CPUs 0-3; labelled as bound to one core",
                "ranks 0 and 1 share core [1, 3] of node0; labelled as bound",
            ],
        ),
        ("native", 0, {"cpus_allowed": "7"}, ["rank 0: may use CPUs 7; the job has [0, 1, 2, 3]"]),
        ("shared-cpus", 0, {"cpus_allowed": "0-4"}, ["rank 0: may use CPUs 0-4; the job has [0, 1, 2, 3]"]),
        (
            "native",
            3,
            {"cpus_allowed": "2"},
            ["ranks 2 and 3 share core [0, 2] of node1; labelled as bound"],
        ),
        ("docker-host", 1, {"cpus_allowed": "0"}, ["ranks 0 and 1 share core [0, 2] of node0; labelled as bound"]),
        (
            "docker-overlay",
            0,
            {"links": link("172.17.0.2", "172.17.0.3", "eth1")},
            ["rank 0: talks from 172.17.0.2 (eth1) to 172.17.0.3; labelled network 10.9.0.0/24"],
        ),
        (
            "native",
            0,
            {"links": link("10.1.0.1", "192.168.0.9")},
            ["rank 0: talks from 10.1.0.1 (eth0) to 192.168.0.9; labelled network 10.1.0.0/24"],
        ),
        ("native", 1, {"size": 1}, [f"ranks: found (rank, size) [(0, 4), (1, 1), (2, 4), (3, 4)]; {PLANNED}"]),
        ("native", 3, {"rank": 2}, [f"ranks: found (rank, size) [(0, 4), (1, 4), (2, 4), (2, 4)]; {PLANNED}"]),
    ],
    ids=[
        *("another-node", "another-binary", "another-mpi", "native-in-a-container", "native-with-a-network-of-its-own"),
        *(
            "singularity-outside",
            "docker-as-singularity",
            "overlay-on-the-hosts-network",
            "another-container",
            "unpinned",
            "foreign-cpu",
        ),
        *(
            "shared-but-foreign-cpu",
            "two-threads-of-one-core",
            "two-on-one-cpu",
            "wrong-network",
            "leaves-the-network",
            "a-singleton",
            "a-rank-twice",
        ),
    ],
)
def test_one_rank_that_contradicts_the_label_is_named(name: str, at: int, changes: Rank, found: list[str]) -> None:
    assert spoiled(name, at, **changes) == found


def test_an_unpinned_rank_is_fine_where_ranks_share_cpus() -> None:
    assert spoiled("shared-cpus", 0, cpus_allowed="0-3") == []


def threaded(cpus: list[str]) -> list[str]:
    """What is found of ranks with two threads each that report these CPUs."""
    four = frozenset(range(4))
    places = tuple(replace(home, cpus=four, cores=tuple(frozenset({cpu}) for cpu in range(4))) for home in label().places)
    it = label(places=places, threads=2)
    ranks = [{**rank, "cpus_allowed": own} for rank, own in zip(proof_of(it), cpus, strict=True)]
    return contradictions(it, ranks)


def test_a_bound_rank_with_threads_has_exactly_a_core_for_each() -> None:
    assert threaded(["0-1", "2-3", "0-1", "2-3"]) == []
    assert threaded(["0-1", "2", "0-1", "2-3"]) == ["rank 1: may use CPUs 2; labelled as bound to 2 cores"]
    assert threaded(["0-2", "3", "0-1", "2-3"])[0] == "rank 0: may use CPUs 0-2; labelled as bound to 2 cores"
    assert threaded(["0-1", "1-2", "0-1", "2-3"])[0].startswith("ranks 0 and 1 share core [1]")


def test_bound_ranks_of_different_nodes_may_have_the_same_cpu_number() -> None:
    proof = proof_of(label())
    assert proof[0]["cpus_allowed"] == proof[2]["cpus_allowed"]
    assert contradictions(label(), proof) == []


@pytest.mark.parametrize("singletons", [1, 4])
def test_ranks_that_believe_to_be_alone_are_no_world(singletons: int) -> None:
    alone = [{**rank, "rank": 0, "size": 1} for rank in proof_of(label())[:singletons]]
    assert contradictions(label(), alone) == [f"ranks: found (rank, size) {[(0, 1)] * singletons}; {PLANNED}"]


def test_no_proof_at_all_is_a_contradiction() -> None:
    assert contradictions(label(), []) == [f"ranks: found (rank, size) []; {PLANNED}"]


def test_ranks_on_two_nodes_that_nobody_saw_talking_are_a_contradiction() -> None:
    silent = [{**rank, "links": []} for rank in proof_of(label())]
    assert contradictions(label(), silent) == ["no rank was seen talking over 10.1.0.0/24; planned on 2 places"]


def test_talking_over_loopback_only_is_not_talking_between_nodes() -> None:
    inside = [{**rank, "links": link("127.0.0.1", "127.0.0.1", "lo")} for rank in proof_of(label())]
    assert contradictions(label(), inside) == ["no rank was seen talking over 10.1.0.0/24; planned on 2 places"]


@pytest.mark.parametrize(
    ("held_against", "ran_as"), [(one, two) for one in list(LABELS)[:5] for two in list(LABELS)[:5] if one != two]
)
def test_no_backends_run_passes_for_another_backends(held_against: str, ran_as: str) -> None:
    assert contradictions(LABELS[held_against], proof_of(LABELS[ran_as]))


# --- the app's one line -------------------------------------------------------------------------------------------------------

LINE = json.dumps({"app": "dac", "proof": []})


def test_the_apps_one_line_is_read() -> None:
    assert read_answer(f"{LINE}\n") == ({"app": "dac", "proof": []}, None)


@pytest.mark.parametrize(
    ("stdout", "problem"),
    [
        ("", "stdout: found 0 lines; the app prints exactly one (several: each rank believed to be alone)"),
        (f"{LINE}\n{LINE}\n", "stdout: found 2 lines; the app prints exactly one (several: each rank believed to be alone)"),
        ("Hello\n", "stdout: not JSON: found 'Hello'"),
        (LINE[:-1], f"stdout: not JSON: found '{LINE[:-1]}'"),
        ('{"app": "dac"}', "stdout: the JSON line has no proof"),
        ("[1, 2]", "stdout: the JSON line has no proof"),
    ],
    ids=["silent", "two-singletons", "text", "torn", "no-proof", "list"],
)
def test_an_output_that_is_not_one_json_line_with_proof_is_no_answer(stdout: str, problem: str) -> None:
    assert read_answer(stdout) == (None, problem)


@pytest.mark.parametrize(
    ("text", "members"),
    [("0", {0}), ("0-3", {0, 1, 2, 3}), ("0,2-3,8", {0, 2, 3, 8}), ("", set()), ("5\n", {5})],
)
def test_a_kernel_list_is_read(text: str, members: set[int]) -> None:
    assert parse_list(text) == members


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("Open MPI v5.0.7", ("5", "0", "7")),
        ("mpirun (Open MPI) 5.0.7", ("5", "0", "7")),
        ("Open MPI v4.1.4, package: Debian", ("4", "1", "4")),
        ("MPICH", ()),
    ],
)
def test_an_mpis_version_is_read_whoever_says_it(text: str, version: tuple[str, ...]) -> None:
    assert mpi_version(text) == version


def with_places(it: Label, **changes: Any) -> Label:
    """A label whose places all differ in the same way from the usual ones."""
    return replace(it, places=tuple(replace(place, **changes) for place in it.places))


def overlay(**changes: Any) -> Label:
    """Two containers on overlay of two ranks each."""
    return label("docker", "overlay", **changes)


def test_an_unbound_rank_with_an_affinity_must_have_all_cpus_of_its_container() -> None:
    it = overlay(bound=False, affinity="cpu")
    narrow = proof_of(it)
    whole = [{**rank, "cpus_allowed": "0-3"} for rank in narrow]
    assert contradictions(it, whole) == []
    assert contradictions(it, narrow)[0] == "rank 0: may use CPUs 0,2; with affinity 'cpu' the container has [0, 1, 2, 3]"


def test_ranks_must_have_the_memory_nodes_of_their_container() -> None:
    it = with_places(overlay(), mems=frozenset({1}))
    right = [{**rank, "mems_allowed": "1"} for rank in proof_of(it)]
    wrong = [{**rank, "mems_allowed": "0-1"} for rank in right]
    assert contradictions(it, right) == []
    assert contradictions(it, wrong)[0] == "rank 0: may use memory nodes 0-1; the container was given [1]"


def test_two_containers_of_one_node_may_not_share_a_core() -> None:
    it = with_places(overlay(slots=(1, 1)), node="node0")
    found = contradictions(it, proof_of(it))
    assert found == ["ranks 0 and 1 share core [0, 2] of box-overlay1; labelled as bound"]


@pytest.mark.parametrize(
    ("name", "planned", "seen", "good"),
    [
        ("cpu_quota", 0.5, 0.5, True),
        ("cpu_quota", 0.5, 1.0, False),
        ("cpu_quota", 0.5, None, False),
        ("mtu", 8950, 8950.0, True),
        ("mtu", 8950, 1450.0, False),
        ("cpu_shares", 512, 512.0, True),
        ("cpu_shares", 512, 20.0, True),
        ("cpu_shares", 512, 59.0, True),
        ("cpu_shares", 512, 100.0, False),
        ("cpu_shares", 512, 1024.0, False),
    ],
)
def test_a_limit_that_the_container_does_not_see_is_a_contradiction(name: str, planned: float, seen: float, good: bool) -> None:
    it = with_places(overlay(limits={name: planned}), limits={name: seen})
    said = [f"box-overlay{node}: {name} is {seen}; planned {planned}" for node in range(2)]
    assert contradictions(it, proof_of(it)) == ([] if good else said)


@pytest.mark.parametrize(
    ("name", "said", "limit"),
    [
        ("cpu_quota", "50000 100000", 0.5),
        ("cpu_quota", "max 100000", None),
        ("cpu_quota", "-1 100000", None),
        ("cpu_quota", "", None),
        ("cpu_shares", "512", 512.0),
        ("cpu_shares", "", None),
        ("mtu", "8950", 8950.0),
    ],
)
def test_a_limit_is_read_as_the_kernel_says_it(name: str, said: str, limit: float | None) -> None:
    assert read_limit(name, said.split()) == limit
