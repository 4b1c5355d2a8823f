"""Affinity of containers and ranks, after Liu & Guitart 2022 (Section 3, equations (1) to (4)), in their symbols.

h hosts of s sockets with P cores each; N ranks in all, N_ctn containers per host, N_cpu CPUs per container, N_cps containers per
socket. Ranks, containers and cores are counted from 0. Four levels, each with all that the one before it has:

* ``any``: a container may use every CPU and all memory of its host.
* ``cpu``: N_cpu CPUs of its own.
* ``cpumem``: memory of the sockets of these CPUs only.
* ``cpumempin``: each rank on one of these CPUs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tare.errors import TareError

LEVELS = ("any", "cpu", "cpumem", "cpumempin")
Position = tuple[int, int]
"""Socket, and core in it."""


@dataclass(frozen=True)
class Host:
    """The part of a host that a job has: ``sockets`` s, ``cores`` P per socket."""

    sockets: int
    cores: int


@dataclass(frozen=True)
class Enclosure:
    """What one container may use: CPU numbers, and memory nodes (None: all)."""

    cpus: tuple[int, ...]
    mems: tuple[int, ...] | None = None


def cpus_per_container(ranks: int, hosts: int, containers: int) -> int:
    """Equation (1): N_cpu = N / (h · N_ctn), a CPU for each rank; a remainder is a TareError."""
    if ranks % (hosts * containers):
        raise TareError(
            f"affinity: found {ranks} ranks for {hosts * containers} containers; every container needs as many; "
            "choose a number of containers that divides the ranks"
        )
    return ranks // (hosts * containers)


def containers_per_socket(containers: int, sockets: int) -> int:
    """Equation (2): N_cps = N_ctn / s; 0 where a container spans several sockets; neither evenly is a TareError."""
    if containers % sockets and sockets % containers:
        raise TareError(
            f"affinity: found {containers} containers on {sockets} sockets; one must divide the other, or a container would have "
            "more of one socket than its neighbour; choose another number of containers"
        )
    return containers // sockets


def positions(host: Host, ranks: int, containers: int, index: int) -> tuple[Position, ...]:
    """Equation (3): the cores of container ``index`` on one host with so many ``ranks``, in rank order.

    With N_cps ≥ 1 it is the (index mod N_cps)-th run of N_cpu cores of socket ⌊index / N_cps⌋. A container that spans s / N_ctn
    sockets has as many cores of each, the first of the socket.
    """
    wanted, beside = cpus_per_container(ranks, 1, containers), containers_per_socket(containers, host.sockets)
    spanned = 1 if beside else host.sockets // containers
    if wanted % spanned:
        raise TareError(
            f"affinity: found {wanted} CPUs of a container over {spanned} sockets; they must divide; change the ranks"
        )
    share = wanted // spanned
    if max(beside, 1) * share > host.cores:
        raise TareError(
            f"affinity: found {max(beside, 1)} containers of {share} CPUs on a socket of {host.cores} cores; "
            "choose fewer ranks per node"
        )
    first_socket, first_core = (index // beside, index % beside * share) if beside else (index * spanned, 0)
    return tuple((first_socket + socket, first_core + core) for socket in range(spanned) for core in range(share))


def memory_of(cores: Sequence[Position]) -> tuple[int, ...]:
    """Equation (4): the sockets whose memory a container may use are those of its cores."""
    return tuple(sorted({socket for socket, _core in cores}))


def check_level(level: str, host: Host, ranks: int, containers: int) -> None:
    """Raise where a level cannot be had with so many ranks and containers on a host."""
    if level != "any":
        positions(host, ranks, containers, 0)


def enclosures(level: str | None, sockets: list[dict[str, Any]], ranks: int, containers: int, bound: bool) -> list[Enclosure]:
    """Return what each container of one node may use.

    ``sockets``: what the node's agent found, for each socket ``cores`` (lists of hardware threads that the job may use) and
    ``mems``. Without a level, several containers whose ranks are bound still need cores of their own: they take turns through
    the job's cores, because a rank finds its core by its number in its own container.
    """
    every = [core for socket in sockets for core in socket["cores"]]
    whole = Enclosure(cpu_numbers(every))
    if level in (None, "any"):
        share = ranks // containers
        apart = level is None and bound and containers > 1
        return [Enclosure(cpu_numbers(every[index * share :][:share])) if apart else whole for index in range(containers)]
    host = Host(len(sockets), min(len(socket["cores"]) for socket in sockets))
    return [enclosure(level == "cpu", sockets, positions(host, ranks, containers, index)) for index in range(containers)]


def enclosure(any_memory: bool, sockets: list[dict[str, Any]], cores: Sequence[Position]) -> Enclosure:
    """Return a container's CPUs by number, and its memory nodes unless it may use all."""
    cpus = cpu_numbers([sockets[socket]["cores"][core] for socket, core in cores])
    mems = sorted({node for socket in memory_of(cores) for node in sockets[socket]["mems"]})
    return Enclosure(cpus, None if any_memory or not mems else tuple(mems))


def cpu_numbers(cores: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Return all hardware threads of some cores."""
    return tuple(sorted(cpu for core in cores for cpu in core))
