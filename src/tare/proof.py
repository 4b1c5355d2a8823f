"""Proof: does what the ranks saw agree with the record's label? A contradiction is an error, never a number."""

import ipaddress
import json
import math
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Place:
    """Where a rank must find itself: seen from outside by the node's agent, before the launch."""

    hostname: str
    node_ns: dict[str, str]  # namespace inodes of the node itself
    container_ns: dict[str, str] | None  # those of the arm's container; None where there is none to look into
    cpus: frozenset[int]  # what the job may use on that node
    cores: tuple[frozenset[int], ...]  # the same by core: hardware threads that share one
    node: str | None = None  # the node that a container is on; None: the place is the node
    mems: frozenset[int] | None = None  # the memory nodes that its ranks may use; None: whatever the node has
    limits: dict[str, Any] = field(default_factory=dict)  # what the container itself sees: cpu_quota, cpu_shares, mtu


@dataclass(frozen=True)
class Label:
    """What a record says of itself, as far as ranks can prove it."""

    processes: int
    slots: tuple[int, ...]
    places: tuple[Place, ...]  # one per used node, or per container where a node has several
    runtime: str  # native, singularity, docker, podman
    network: str  # host, macvlan, overlay
    subnet: str
    bound: bool  # each rank on cores of its own, one for each of its threads
    binary_sha256: str
    mpi: str  # what the launcher says of itself, such as "Open MPI 5.0.7"
    affinity: str | None = None  # then an unbound rank may use all CPUs of its container, no fewer
    limits: dict[str, Any] = field(default_factory=dict)  # what the containers must see of cpu_quota, cpu_shares, mtu
    rdma: bool = False  # then messages leave by an adapter, not by a socket that a rank could show
    threads: int = 1  # of each rank


def parse_list(text: str) -> frozenset[int]:
    """Return the members of a kernel list such as ``0-3,8``."""
    members: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        members |= set(range(int(first), int(last or first) + 1))
    return frozenset(members)


def read_answer(stdout: str) -> tuple[dict[str, Any] | None, str | None]:
    """Return the app's one JSON line and no problem, or None and what is wrong with its output."""
    lines = [line for line in stdout.splitlines() if line.strip()]
    if len(lines) != 1:
        return (
            None,
            f"stdout: found {len(lines)} lines; the app prints exactly one (several: each rank believed to be alone)",
        )
    try:
        answer = json.loads(lines[0])
    except ValueError:
        return None, f"stdout: not JSON: found {lines[0][:120]!r}"
    if not isinstance(answer, dict) or not isinstance(answer.get("proof"), list):
        return None, "stdout: the JSON line has no proof"
    return answer, None


def contradictions(label: Label, proof: list[dict[str, Any]]) -> list[str]:
    """Return every way in which the ranks' proof contradicts the label; empty when it bears it out."""
    wrong_ranks = check_ranks(label, proof)
    if wrong_ranks:
        return wrong_ranks
    ranks = sorted(proof, key=lambda rank: int(rank["rank"]))
    homes = [place for place, slots in zip(label.places, label.slots, strict=True) for _ in range(slots)]
    found: list[str] = []
    for rank, place in zip(ranks, homes, strict=True):
        problems = [
            *check_program(label, rank),
            *check_place(label, rank, place),
            *check_mask(label, rank, place),
            *check_links(label, rank),
        ]
        found += [f"rank {rank['rank']}: {problem}" for problem in problems]
    return found + check_apart(label, ranks, homes) + check_crossing(label, ranks) + check_limits(label)


def check_ranks(label: Label, proof: list[dict[str, Any]]) -> list[str]:
    """Every rank once, all in one world of the planned size."""
    seen = sorted((rank["rank"], rank["size"]) for rank in proof)
    planned = [(number, label.processes) for number in range(label.processes)]
    return [] if seen == planned else [f"ranks: found (rank, size) {seen}; planned {planned}"]


def check_program(label: Label, rank: dict[str, Any]) -> list[str]:
    """Return where a rank's binary or MPI is not the labelled one."""
    problems = []
    if rank["binary_sha256"] != label.binary_sha256:
        problems.append(f"binary {rank['binary_sha256'][:12]}; labelled {label.binary_sha256[:12]}")
    if mpi_version(rank["mpi"]) != mpi_version(label.mpi):
        problems.append(f"MPI {rank['mpi']!r}; the launcher is {label.mpi!r}")
    return problems


def mpi_version(text: str) -> tuple[str, ...]:
    """Return the numbers of an MPI's name, such as ('5', '0', '7')."""
    words = [word.strip("v,()") for word in text.split()]
    return next((tuple(word.split(".")) for word in words if word[:1].isdigit()), ())


def check_place(label: Label, rank: dict[str, Any], place: Place) -> list[str]:
    """Return where a rank's host name or namespaces are not those of its place."""
    problems = []
    if rank["hostname"] != place.hostname:
        problems.append(f"host {rank['hostname']!r}; planned {place.hostname!r}")
    own_network = rank["ns"]["net"] != place.node_ns["net"]
    if own_network != (label.network != "host"):
        seen = "a network namespace of its own" if own_network else "the node's network namespace"
        problems.append(f"in {seen}; labelled {label.runtime} on network {label.network!r}")
    contained = rank["ns"]["mnt"] != place.node_ns["mnt"]
    if contained != (label.runtime != "native"):
        seen = "inside a container" if contained else "outside any container"
        problems.append(f"{seen}; labelled {label.runtime}")
    if place.container_ns is None and rank["ns"]["pid"] != place.node_ns["pid"]:
        problems.append(f"in a process namespace of its own; labelled {label.runtime}, which shares the node's")
    if place.container_ns is not None:
        problems += [
            f"{kind} namespace {rank['ns'][kind]}; the arm's container has {inode}"
            for kind, inode in place.container_ns.items()
            if rank["ns"][kind] != inode
        ]
    return problems


def check_mask(label: Label, rank: dict[str, Any], place: Place) -> list[str]:
    """Return where a rank may run on other CPUs than planned."""
    mask = parse_list(rank["cpus_allowed"])
    if not mask <= place.cpus:
        return [f"may use CPUs {rank['cpus_allowed']}; the job has {sorted(place.cpus)}"]
    if label.bound and sum(bool(mask & core) for core in place.cores) != label.threads:
        planned = "one core" if label.threads == 1 else f"{label.threads} cores"
        return [f"may use CPUs {rank['cpus_allowed']}; labelled as bound to {planned}"]
    if label.affinity is not None and not label.bound and mask != place.cpus:
        return [f"may use CPUs {rank['cpus_allowed']}; with affinity {label.affinity!r} the container has {sorted(place.cpus)}"]
    if place.mems is not None and parse_list(rank["mems_allowed"]) != place.mems:
        return [f"may use memory nodes {rank['mems_allowed']}; the container was given {sorted(place.mems)}"]
    return []


def check_limits(label: Label) -> list[str]:
    """Return the limits that a container does not see as planned."""
    return [
        f"{place.hostname}: {name} is {place.limits.get(name)}; planned {planned}"
        for place in label.places
        for name, planned in label.limits.items()
        if not as_planned(name, planned, place.limits.get(name))
    ]


def as_planned(name: str, planned: float, found: float | None) -> bool:
    """Say whether a container sees a limit as planned; shares are seen as such (cgroup v1) or as a weight (v2).

    runc's weight is 1 + (shares - 2) · 9999 / 262142, since version 1.3 ten to a quadratic in log2(shares); either is taken.
    """
    if found is None:
        return False
    if name != "cpu_shares":
        return abs(found - planned) < 0.01
    exponent = math.log2(planned)
    weights = (1 + (planned - 2) * 9999 // 262142, math.ceil(10 ** ((exponent * exponent + 125 * exponent) / 612 - 7 / 34)))
    return found in (planned, *weights)


def check_apart(label: Label, ranks: list[dict[str, Any]], homes: list[Place]) -> list[str]:
    """Return pairs of bound ranks that share a core, be it by different hardware threads of it."""
    if not label.bound:
        return []
    taken: dict[tuple[str, int], int] = {}
    problems = []
    for rank, place in zip(ranks, homes, strict=True):
        mask = parse_list(rank["cpus_allowed"])
        for core in (core for core in place.cores if mask & core):
            other = taken.setdefault((place.node or place.hostname, min(core)), rank["rank"])
            if other != rank["rank"]:
                shared = sorted(core)
                problems.append(f"ranks {other} and {rank['rank']} share core {shared} of {place.hostname}; labelled as bound")
    return problems


def check_links(label: Label, rank: dict[str, Any]) -> list[str]:
    """Return connections of a rank that leave the labelled network."""
    subnet = ipaddress.ip_network(label.subnet)
    ends = [(link, ipaddress.ip_address(link["local"]), ipaddress.ip_address(link["peer"])) for link in rank["links"]]
    return [
        f"talks from {link['local']} ({link['interface']}) to {link['peer']}; labelled network {label.subnet}"
        for link, local, peer in ends
        if not local.is_loopback and not (local in subnet and peer in subnet)
    ]


def check_crossing(label: Label, ranks: list[dict[str, Any]]) -> list[str]:
    """With several nodes, at least one rank must be seen talking to another address of the labelled network."""
    if len(label.places) == 1 or label.rdma:
        return []
    crossing = [
        link for rank in ranks for link in rank["links"] if link["local"] != link["peer"] and not link["local"].startswith("127.")
    ]
    return [] if crossing else [f"no rank was seen talking over {label.subnet}; planned on {len(label.places)} places"]
