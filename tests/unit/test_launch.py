"""Every backend's command lines, word by word, on the embedded site and on one that shares nothing with it."""

from collections.abc import Callable
from itertools import combinations
from typing import Any

import pytest
from planning import (
    BACKENDS,
    EMBEDDED_PROGRAM,
    INSTANCES,
    OPEN_MPI_4,
    OPEN_MPI_5,
    OTHER_PROGRAM,
    backend,
    embedded,
    embedded_context,
    golden,
    other,
    other_context,
    whole_argv,
)

from tare.backends import Argv, Context, load_backends
from tare.backends._docker import RDMA
from tare.backends._held import Held, Inhabited
from tare.errors import TareError
from tare.launch import ORTE, PRRTE, Program, dialect, interfaces_of, message_options, mpirun_argv, srun_agent
from tare.prepare import ssh_config, sshd_config

EVERY = [*BACKENDS, *INSTANCES]
Case = tuple[Callable[[], Context], Program, dict[str, tuple[str, ...]]]

# The interfaces that lead into each backend's subnet, as the nodes' or containers' routes say.
SITES: dict[str, Case] = {
    "embedded": (embedded_context, EMBEDDED_PROGRAM, dict.fromkeys(EVERY, ("eth0",))),
    "other": (
        other_context,
        OTHER_PROGRAM,
        {**dict.fromkeys(EVERY, ("ens1f0",)), "docker-macvlan": ("eth0",), "docker-overlay": ("eth0", "eth1")},
    ),
}


def rendered(site: str, name: str) -> str:
    """A backend's commands for one block: what holds its containers on each node, then one repeat; a word to a line."""
    make_context, program, interfaces = SITES[site]
    context = make_context()
    containers = {
        f"container on {node}": backend(name).container_argv(context, index) or [] for index, node in enumerate(context.nodes)
    }
    for index, node in enumerate(context.nodes):
        held = backend(name)
        around = {"before": held.before(context, index), "after": held.after(context, index)} if isinstance(held, Held) else {}
        containers |= {
            f"{when} it on {node}, {number}": argv for when, lines in around.items() for number, argv in enumerate(lines, 1)
        }
    parts = {**containers, "one repeat": whole_argv(name, context, program, interfaces[name])}
    return "".join(f"[{title}]\n" + "".join(f"{word}\n" for word in argv) for title, argv in parts.items())


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("site", SITES)
def test_every_word_of_a_backend_is_as_written_down_and_the_same_at_a_second_call(site: str, name: str) -> None:
    assert rendered(site, name) == golden(f"{site}/{name}.txt")
    assert rendered(site, name) == rendered(site, name)


def test_native_on_the_embedded_cluster_is_this_one_line() -> None:
    line = " ".join(whole_argv("native", embedded_context(), EMBEDDED_PROGRAM, ("eth0",)))
    assert line == (
        "/tare/build/debian13/timed --out /tare/results/pretend/work/slurm41/timed.json --timeout 600 --"
        " mpirun --prtemca ras ^slurm --prtemca plm ssh"
        " --prtemca plm_ssh_agent ssh -o BatchMode=yes -o StrictHostKeyChecking=accept-new"
        " --prtemca prte_if_include eth0 --host node01:1,node02:1 -n 2 --map-by slot --bind-to none"
        " --mca pml ob1 --mca btl self,sm,tcp --mca smsc ^cma,knem,xpmem --mca btl_tcp_if_include 172.30.0.0/20"
        " --mca mpi_yield_when_idle 0 -x OMP_NUM_THREADS=1"
        " /tare/build/debian13/pinned /tare/build/debian13/gcc14/O3_native/dac --rectangles 1000"
    )


def test_open_mpi_4_is_told_the_same_in_its_own_words() -> None:
    line = " ".join(whole_argv("native", embedded_context(), EMBEDDED_PROGRAM, ("eth0",), OPEN_MPI_4))
    assert line == (
        "/tare/build/debian13/timed --out /tare/results/pretend/work/slurm41/timed.json --timeout 600 --"
        " mpirun --mca ras ^slurm --mca plm rsh"
        " --mca plm_rsh_agent ssh -o BatchMode=yes -o StrictHostKeyChecking=accept-new"
        " --mca oob_tcp_if_include eth0 --host node01:1,node02:1 -n 2 --map-by slot --bind-to none"
        " --mca pml ob1 --mca btl self,vader,tcp --mca btl_vader_single_copy_mechanism none"
        " --mca btl_tcp_if_include 172.30.0.0/20 --mca mpi_yield_when_idle 0 -x OMP_NUM_THREADS=1"
        " /tare/build/debian13/pinned /tare/build/debian13/gcc14/O3_native/dac --rectangles 1000"
    )


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("mpirun (Open MPI) 2.1.1", ORTE),
        ("mpirun (Open MPI) 3.1.1", ORTE),
        (OPEN_MPI_4, ORTE),
        (OPEN_MPI_5, PRRTE),
        ("mpirun (Open MPI) 6.0.0rc2", PRRTE),
    ],
)
def test_each_generation_of_open_mpi_is_told_in_its_own_words(said: str, found: object) -> None:
    assert dialect(said) is found


@pytest.mark.parametrize("said", ["HYDRA build details: Version: 4.2.0", "mpirun (Open MPI) 1.10.7", "mpirun (Open MPI)", ""])
def test_another_launcher_is_refused_with_the_known_ones(said: str) -> None:
    with pytest.raises(TareError, match=r"mpirun: found .*; known: Open MPI 2 and later"):
        dialect(said)


def test_there_is_a_golden_file_for_every_backend() -> None:
    assert sorted(load_backends()) == sorted(EVERY)


# --- the same launch but for the factor under study ---------------------------------------------------------------------------

PER_BACKEND = {"--prtemca plm_ssh_agent", "--prtemca prte_if_include", "--mca btl_tcp_if_include", "hosts"}
"""What may differ: the agent, the launcher's interface, the subnet, the names of the places."""


def options_of(argv: Argv) -> tuple[dict[str, str], Argv]:
    """Split mpirun's options from the rank's command; the hosts' names are told from their slots."""
    options: dict[str, str] = {"launcher": argv[0]}
    at = 1
    while argv[at].startswith("-"):
        width = 2 if argv[at] in ("--prtemca", "--mca") else 1
        options[" ".join(argv[at : at + width])] = argv[at + width]
        at += width + 1
    places = [place.rpartition(":") for place in options.pop("--host").split(",")]
    options |= {"hosts": ",".join(place[0] for place in places), "slots": ",".join(place[2] for place in places)}
    return options, argv[at:]


def without_wrapper(rank: Argv, wrapper: Argv) -> Argv:
    """Return a rank's command without the backend's own words, which must stand in it exactly once."""
    if not wrapper:
        return rank
    starts = [at for at in range(len(rank)) if rank[at : at + len(wrapper)] == wrapper]
    assert len(starts) == 1
    return rank[: starts[0]] + rank[starts[0] + len(wrapper) :]


def unsaid_differences(one: str, two: str, context: Context, program: Program) -> list[str]:
    """List every difference between two backends' timed commands that is not the factor under study."""
    argvs = [mpirun_argv(program, backend(name), context, ("eth0",), OPEN_MPI_5) for name in (one, two)]
    (options_one, rank_one), (options_two, rank_two) = map(options_of, argvs)
    names = options_one.keys() | options_two.keys()
    found = [name for name in sorted(names - PER_BACKEND) if options_one.get(name) != options_two.get(name)]
    ranks = [without_wrapper(rank, backend(name).wrap(context)) for rank, name in ((rank_one, one), (rank_two, two))]
    return found + (["the rank's command"] if ranks[0] != ranks[1] else [])


@pytest.mark.parametrize(("one", "two"), list(combinations(EVERY, 2)))
@pytest.mark.parametrize("site", SITES)
def test_two_backends_are_launched_alike_but_for_names_subnet_agent_interface_and_wrapper(site: str, one: str, two: str) -> None:
    make_context, program, _ = SITES[site]
    assert unsaid_differences(one, two, make_context(), program) == []


def test_threads_come_with_as_many_cores() -> None:
    program = Program(**{**vars(EMBEDDED_PROGRAM), "threads": 3})
    argv = mpirun_argv(program, backend("docker-host"), embedded_context(), ("eth0",), OPEN_MPI_5)
    assert argv[argv.index("-x") + 1] == "OMP_NUM_THREADS=3"
    assert argv[argv.index("/tare/build/debian13/pinned") :][:3] == ["/tare/build/debian13/pinned", "--cores", "3"]


def test_ranks_on_threads_are_bound_to_hardware_threads() -> None:
    program = Program(**{**vars(EMBEDDED_PROGRAM), "ranks_on": "threads"})
    argv = mpirun_argv(program, backend("native"), embedded_context(), ("eth0",), OPEN_MPI_5)
    assert argv[argv.index("/tare/build/debian13/pinned") :][:2] == ["/tare/build/debian13/pinned", "--threads"]


ROCE = {"interface": "ens1f0", "subnet": "10.77.0.0/16"}
TCP = ["--mca", "pml", "ob1", "--mca", "btl", "self,sm,tcp"]
UCX = ["--mca", "pml", "ucx", "-x", "UCX_NET_DEVICES=mlx5_0:1,mlx5_1:1", "-x", "UCX_TLS=rc,posix,self"]


@pytest.mark.parametrize("name", ["native", "singularity", "docker-host"])
@pytest.mark.parametrize(
    ("fabric", "words", "box"),
    [
        (ROCE, TCP, []),
        ({**ROCE, "transport": "tcp"}, TCP, []),
        (
            {**ROCE, "transport": "rdma", "adapters": ["mlx5_0:1", "mlx5_1:1"]},
            UCX,
            ["--device", "/dev/infiniband", "--ulimit", "memlock=-1", "--cap-add", "IPC_LOCK"],
        ),
    ],
    ids=["unsaid", "tcp over it", "rdma"],
)
def test_an_interconnects_transport_is_what_messages_and_containers_get(
    name: str, fabric: dict[str, Any], words: Argv, box: Argv
) -> None:
    context = other_context(site=other(interconnects={"roce": fabric}))
    argv = mpirun_argv(OTHER_PROGRAM, backend(name), context, ("ens1f0",), OPEN_MPI_5)
    at = argv.index("pml") - 1
    assert argv[at : at + len(words)] == words
    assert ("btl_tcp_if_include" in argv) == (words is TCP)
    started = backend(name).container_argv(context, 0) or []
    assert [word for word in RDMA if word in started] == (box if started else [])


def test_two_arms_on_the_hosts_network_have_ports_of_their_own() -> None:
    of = backend("docker-host")
    assert isinstance(of, Inhabited)
    assert of.port(other_context(port_offset=3)) == of.port(other_context()) + 3


def test_a_container_gets_what_its_arm_says() -> None:
    places = {"containers_per_node": 2, "cpusets": ("0,1", "2,3") * 3, "mems": ("0", None) * 3}
    context = other_context(place="docker-overlay-arm3", factors={"cpu_quota": 1.5, "cpu_shares": 512}, **places)
    argv = backend("docker-overlay").container_argv(context, 4)
    assert argv is not None
    assert argv[argv.index("--name") + 1] == "tare-slurm990017-docker-overlay-arm3-4"
    limits = ["--cpuset-cpus", "0,1", "--cpuset-mems", "0", "--cpus", "1.5", "--cpu-shares", "512"]
    assert argv[argv.index("--cpuset-cpus") :][: len(limits)] == limits
    assert backend("docker-overlay").host_names(context)[4] == "tare-slurm990017-docker-overlay-arm3-4"
    assert context.node_of(4) == 2


@pytest.mark.parametrize(
    ("interconnect", "mtu", "name"),
    [("ethernet", None, "tare-overlay"), ("ethernet", 1450, "tare-overlay"), ("ethernet", 8950, "tare-overlay-8950")],
)
def test_an_overlay_network_is_chosen_by_its_mtu(interconnect: str, mtu: int | None, name: str) -> None:
    context = embedded_context(interconnect=interconnect, factors={} if mtu is None else {"mtu": mtu})
    argv = backend("docker-overlay").container_argv(context, 0) or []
    assert argv[argv.index("--network") + 1] == name


def test_a_network_on_another_interconnect_or_of_another_mtu_is_skipped_with_the_reason() -> None:
    site = embedded()
    assert backend("docker-host").lacks(site, {}, "fast") is None
    assert backend("docker-overlay").lacks(site, {}, "fast") == (
        "site 'embedded' has no docker network of kind 'overlay' on interconnect 'fast'"
    )
    assert backend("docker-overlay").lacks(site, {"mtu": 4000}, "ethernet") == (
        "site 'embedded' has no docker network of kind 'overlay' of MTU 4000 on interconnect 'ethernet'"
    )


def test_the_check_of_differences_sees_one() -> None:
    context = embedded_context()
    shared = Program(**{**vars(EMBEDDED_PROGRAM), "slots": (2, 2), "bound": False, "oversubscribed": True})
    alone = options_of(mpirun_argv(EMBEDDED_PROGRAM, backend("native"), context, ("eth0",), OPEN_MPI_5))
    crowded = options_of(mpirun_argv(shared, backend("native"), context, ("eth0",), OPEN_MPI_5))
    changed = {name for name in alone[0] if alone[0][name] != crowded[0][name]}
    assert changed == {"slots", "-n", "--mca mpi_yield_when_idle"}
    assert alone[1][1:] == crowded[1] and alone[1][0].endswith("/pinned")


# --- parts --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("oversubscribed", "yields"), [(False, "0"), (True, "1")])
def test_ranks_that_share_a_cpu_yield_it(oversubscribed: bool, yields: str) -> None:
    assert message_options("10.0.0.0/8", oversubscribed, PRRTE, {})[-3:] == ["--mca", "mpi_yield_when_idle", yields]


def test_every_backend_has_the_same_transport_parameters_native_included() -> None:
    words = {
        name: [word for word in message_options(backend(name).subnet(embedded_context()), False, PRRTE, {}) if "/" not in word]
        for name in BACKENDS
    }
    assert all(found == words["native"] for found in words.values())


@pytest.mark.parametrize(("interconnect", "subnet"), [("ethernet", "172.30.0.0/20"), ("fast", "172.30.16.0/20")])
def test_native_and_host_arms_talk_over_the_studys_interconnect(interconnect: str, subnet: str) -> None:
    context = embedded_context(interconnect=interconnect)
    assert {backend(name).subnet(context) for name in ("native", "singularity", "docker-host")} == {subnet}


def test_without_ssh_between_nodes_native_and_singularity_are_started_by_slurm_and_docker_by_its_own_sshd() -> None:
    context = other_context()
    agents = {name: backend(name).remote_agent(context) for name in BACKENDS}
    assert agents["native"] == agents["singularity"] == f"{context.block_dir}/srun-agent"
    assert all(agents[name] == f"ssh -F {context.block_dir}/{name}/ssh_config" for name in BACKENDS if "docker" in name)


def test_the_agent_for_slurm_is_as_written_down() -> None:
    assert srun_agent("990017", 8) == golden("other/srun-agent.sh")


def test_the_containers_sshd_takes_keys_of_this_block_only() -> None:
    assert sshd_config(other_context(), 30022) == golden("other/sshd_config")


def test_the_ssh_client_knows_the_containers_and_trusts_nobody_else() -> None:
    addresses = {"tare-slurm990017-docker-overlay-0": "10.200.0.4", "tare-slurm990017-docker-overlay-1": "10.200.0.9"}
    assert ssh_config(other_context(), 30022, addresses) == golden("other/ssh_config")


def route(interface: str, destination: str, mask: str) -> str:
    """A line of /proc/net/route (addresses as the kernel writes them on a little-endian machine)."""
    return f"{interface}\t{destination}\t00000000\t0001\t0\t0\t0\t{mask}\t0\t0\t0\n"


HEAD = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
DEFAULT = route("eth0", "00000000", "00000000")


@pytest.mark.parametrize(
    ("tables", "found"),
    [
        ([HEAD + DEFAULT + route("eth0", "00001EAC", "00F0FFFF") + route("eth1", "00101EAC", "00F0FFFF")], ("eth0",)),
        ([HEAD + DEFAULT], ()),
        ([HEAD + route("lo", "0000000A", "000000FF")], ()),
        ([HEAD + route("eno1", "00001EAC", "00F0FFFF"), HEAD + route("ens5", "00001EAC", "00F0FFFF")], ("eno1", "ens5")),
        (["", HEAD], ()),
    ],
    ids=["one-of-two", "only-the-default-route", "another-network", "named-differently-on-each-node", "no-routes"],
)
def test_the_launchers_interfaces_are_those_that_lead_into_the_subnet(tables: list[str], found: tuple[str, ...]) -> None:
    assert interfaces_of(tables, "172.30.0.0/20") == found


def test_where_no_interface_leads_into_the_subnet_the_launcher_is_left_to_choose() -> None:
    argv = mpirun_argv(EMBEDDED_PROGRAM, backend("native"), embedded_context(), (), OPEN_MPI_5)
    assert "prte_if_include" not in argv


@pytest.mark.parametrize("name", [name for name in BACKENDS if name.startswith("docker")])
def test_a_container_has_the_ranks_user_cpus_and_shared_memory_and_goes_when_its_stdin_closes(name: str) -> None:
    context = embedded_context()
    argv = backend(name).container_argv(context, 1)
    assert argv is not None
    words = " ".join(argv)
    assert all(part in words for part in ("--interactive --rm", "--user 1000:1000 --cpuset-cpus 1 --shm-size 1g"))
    assert argv[-2].endswith("exec cat >/dev/null")
    assert ("--hostname" in argv) == (name != "docker-host")


def test_containers_of_two_sessions_nodes_or_arms_never_share_a_name() -> None:
    names = [
        backend(arm).container_name(embedded_context(session=session), node)
        for arm in BACKENDS
        if arm.startswith("docker")
        for session in ("slurm41", "slurm42")
        for node in (0, 1)
    ]
    assert len(set(names)) == len(names) == 12


NO_DOCKER = dict.fromkeys(("docker-host", "docker-macvlan", "docker-overlay"), "site 'embedded' has no docker")
NO_SINGULARITY = {"singularity": "site 'embedded' has no singularity"}
NO_OTHER_NETWORK = {
    f"docker-{network}": f"site 'embedded' has no docker network of kind {network!r}" for network in ("macvlan", "overlay")
}


@pytest.mark.parametrize(
    ("runtimes", "reasons"),
    [
        ({"native": {}}, NO_SINGULARITY | NO_DOCKER),
        ({"native": {}, "docker": {"networks": {"host": {}}}}, NO_SINGULARITY | NO_OTHER_NETWORK),
        ({"native": {}, "singularity": {}}, NO_DOCKER),
    ],
    ids=["native-only", "docker-on-the-host-network-only", "no-docker"],
)
def test_what_a_site_lacks_rules_a_backend_out_with_the_reason(runtimes: dict[str, object], reasons: dict[str, str]) -> None:
    site = embedded(runtimes=runtimes)
    found = {name: backend(name).unavailable(site) for name in BACKENDS}
    assert {name: reason for name, reason in found.items() if reason} == reasons
