"""Who gets which CPUs and addresses."""

from ipaddress import IPv4Network, ip_address

import pytest
from tare_cluster.errors import ClusterError
from tare_cluster.layout import Cni, Cpu, Link, Site, make_layout, node_ranges, split_cpus

SITE = Site(
    nodes=2,
    partition="batch",
    links=(
        Link("ethernet", "eth0", IPv4Network("172.30.0.0/20"), None),
        Link("fast", "eth1", IPv4Network("172.30.16.0/20"), None),
    ),
    registry="login:5000",
    overlay_name="tare-overlay",
    overlay_subnet=IPv4Network("10.30.0.0/20"),
    macvlan_name="tare-macvlan",
    macvlan_subnet=IPv4Network("172.30.8.0/21"),
    cni={
        "macvlan": Cni("tare-macvlan", IPv4Network("172.30.4.0/22")),
        "overlay": Cni("tare-overlay", IPv4Network("10.31.0.0/20")),
    },
)


def machine(*cores: tuple[int, ...], package: int = 0) -> list[Cpu]:
    """CPUs given core by core."""
    return [Cpu(number, (package, index)) for index, threads in enumerate(cores) for number in threads]


@pytest.mark.parametrize(
    ("cpus", "nodes", "expected", "shared"),
    [
        pytest.param(machine((0,), (1,)), 2, [(0,), (1,)], False, id="one CPU each"),
        pytest.param(
            machine((0,), (1,), (2,), (3,), (4,)), 2, [(0, 1), (2, 3)], False, id="the odd CPU stays with the login node"
        ),
        pytest.param(machine((0, 2), (1, 3)), 2, [(0, 2), (1, 3)], False, id="whole cores, not half of two"),
        pytest.param(machine((0, 1)), 2, [(0,), (1,)], False, id="threads of one core when there is no second core"),
        pytest.param(machine((0, 1), (2,)), 2, [(0,), (2,)], False, id="equal nodes on unequal cores"),
        pytest.param(machine((0,), (1,)), 4, [(0,), (1,), (0,), (1,)], True, id="more nodes than CPUs"),
        pytest.param(
            [*machine((0,), (2,), package=0), *machine((1,), (3,), package=1)],
            2,
            [(0, 2), (1, 3)],
            False,
            id="package by package",
        ),
    ],
)
def test_cpus_are_disjoint_while_there_are_enough(
    cpus: list[Cpu], nodes: int, expected: list[tuple[int, ...]], shared: bool
) -> None:
    assert split_cpus(cpus, nodes) == (expected, shared)


def test_the_login_node_may_use_all_cpus_and_compute_nodes_are_told_their_threads() -> None:
    layout = make_layout(SITE, machine((0, 2), (1, 3)), 2)
    assert layout.login.cpus == (0, 1, 2, 3)
    assert (layout.cpus_per_node, layout.threads_per_core, layout.shared_cpus) == (2, 2, False)


def test_every_node_has_an_address_of_its_own_on_every_network() -> None:
    layout = make_layout(SITE, machine((0,), (1,)), 4)
    assert [node.name for node in layout.nodes] == ["login", "node01", "node02", "node03", "node04"]
    assert layout.compute[1].addresses == ("172.30.0.12", "172.30.16.12")
    every = [address for node in layout.nodes for address in node.addresses]
    assert len(set(every)) == len(every) == 10


def test_macvlan_ranges_do_not_overlap_each_other_nor_the_nodes_addresses() -> None:
    ranges = [IPv4Network(text) for text in node_ranges("docker.networks.macvlan", SITE.macvlan_subnet, 20)]
    nodes = [ip_address(address) for node in make_layout(SITE, machine((0,)), 20).nodes for address in node.addresses]
    assert all(not a.overlaps(b) for i, a in enumerate(ranges) for b in ranges[i + 1 :])
    assert all(net.subnet_of(SITE.macvlan_subnet) for net in ranges)
    assert not [address for address in nodes for net in ranges if address in net]


def test_a_macvlan_subnet_that_is_too_small_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(ClusterError, match=r"holds 63 ranges of /27; 64 nodes need one each; give a larger subnet"):
        node_ranges("docker.networks.macvlan", SITE.macvlan_subnet, 64)


@pytest.mark.parametrize("nodes", [0, -1, 100])
def test_an_impossible_number_of_nodes_is_an_error(nodes: int) -> None:
    with pytest.raises(ClusterError, match=rf"NODES: '{nodes}' compute nodes; 1 to 99 are possible"):
        make_layout(SITE, machine((0,)), nodes)
