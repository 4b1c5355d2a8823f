"""Who has which name, address, CPUs. Pure: everything follows from the site file, the machine's CPUs and the number of nodes."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network

from .errors import ClusterError

# Containers of one node on a network have at most this prefix's addresses (30), so that nodes never collide.
RANGE_PREFIX = 27
LOGIN_HOST = 2
FIRST_NODE_HOST = 11


@dataclass(frozen=True)
class Cpu:
    """One CPU the kernel schedules on, and the physical core it is a thread of."""

    number: int
    core: tuple[int, int]  # (package, core)


@dataclass(frozen=True)
class Link:
    """One network that all nodes have an interface on."""

    name: str
    interface: str
    subnet: IPv4Network
    rate: str | None


@dataclass(frozen=True)
class Cni:
    """A network of Apptainer instances."""

    name: str
    subnet: IPv4Network


@dataclass(frozen=True)
class Overlay:
    """One more Docker overlay network."""

    name: str
    subnet: IPv4Network
    mtu: int


@dataclass(frozen=True)
class Site:
    """What of the site file concerns the cluster."""

    nodes: int
    partition: str
    links: tuple[Link, ...]
    registry: str
    overlay_name: str
    overlay_subnet: IPv4Network
    macvlan_name: str
    macvlan_subnet: IPv4Network
    cni: dict[str, Cni]  # networks of Apptainer instances, by kind: macvlan, overlay
    further_overlays: tuple[Overlay, ...] = ()  # Docker's, of other packet sizes


@dataclass(frozen=True)
class Node:
    """One container that plays a machine."""

    name: str
    role: str  # login | compute
    cpus: tuple[int, ...]
    addresses: tuple[str, ...]  # one per link

    @property
    def container(self) -> str:
        return f"tare-{self.name}"


@dataclass(frozen=True)
class Layout:
    """The whole cluster."""

    login: Node
    compute: tuple[Node, ...]
    cpus_per_node: int
    threads_per_core: int
    shared_cpus: bool

    @property
    def nodes(self) -> tuple[Node, ...]:
        return (self.login, *self.compute)


def make_layout(site: Site, cpus: list[Cpu], nodes: int) -> Layout:
    """Names, addresses and CPUs of a cluster of `nodes` compute nodes."""
    if not 1 <= nodes <= 99:
        raise ClusterError(f"cluster: NODES: '{nodes}' compute nodes; 1 to 99 are possible; give another NODES")
    sets, shared = split_cpus(cpus, nodes)
    cores = {cpu.number: cpu.core for cpu in cpus}
    threads = len(sets[0]) // len({cores[number] for number in sets[0]})
    return Layout(
        login=Node("login", "login", tuple(sorted(cpu.number for cpu in cpus)), addresses(site, LOGIN_HOST)),
        compute=tuple(
            Node(f"node{i + 1:02d}", "compute", chosen, addresses(site, FIRST_NODE_HOST + i)) for i, chosen in enumerate(sets)
        ),
        cpus_per_node=len(sets[0]),
        threads_per_core=threads,
        shared_cpus=shared,
    )


def split_cpus(cpus: list[Cpu], nodes: int) -> tuple[list[tuple[int, ...]], bool]:
    """As many CPUs for each node, disjoint; whole cores while there are enough of them.

    Two nodes on the two threads of one core would slow each other down as two machines never do, so CPUs are handed out core
    by core and, on a machine with several packages, package by package. With more nodes than CPUs they are shared in turn.
    """
    cores: dict[tuple[int, int], list[int]] = {}
    for cpu in sorted(cpus, key=lambda c: (c.core, c.number)):
        cores.setdefault(cpu.core, []).append(cpu.number)
    units = list(cores.values())
    if len(units) < nodes:
        units = [[cpu.number] for cpu in sorted(cpus, key=lambda c: (c.core, c.number))]
    if len(units) < nodes:
        return [tuple(units[i % len(units)]) for i in range(nodes)], True
    # Equal nodes: cores that differ in their number of threads (hybrid machines) are cut to the smallest.
    threads = min(len(unit) for unit in units)
    each = len(units) // nodes
    return [tuple(sorted(n for unit in units[i * each : (i + 1) * each] for n in unit[:threads])) for i in range(nodes)], False


def addresses(site: Site, host: int) -> tuple[str, ...]:
    return tuple(str(link.subnet.network_address + host) for link in site.links)


def node_ranges(key: str, subnet: IPv4Network, nodes: int) -> list[str]:
    """One address range per node; the subnet's first range stays free (network and gateway addresses). `key` for errors."""
    ranges = [str(net) for net in subnet.subnets(new_prefix=RANGE_PREFIX)][1 : nodes + 1]
    if len(ranges) < nodes:
        raise ClusterError(
            f"site file: runtimes.{key}.subnet: {subnet} holds {len(ranges)} ranges of "
            f"/{RANGE_PREFIX}; {nodes} nodes need one each; give a larger subnet"
        )
    return ranges


def cpu_list(cpus: tuple[int, ...]) -> str:
    return ",".join(str(number) for number in cpus)
