"""The launcher's command line: the same for every backend but for names, subnet, agent and the rank's wrapper."""

import ipaddress
import sys
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from tare.backends import Argv, Backend, Context
from tare.errors import TareError
from tare.packaged import PROOF_FILE, PROOF_LIBRARY, Command
from tare.proof import mpi_version

ENVIRONMENT = ("HOME", "LANG", "LD_LIBRARY_PATH", "LOGNAME", "PATH", "SLURM_CONF", "TZ", "USER")
"""What a launch keeps of the job's environment: no SLURM_JOB_*, PMIX_* or OMPI_* of an outer layer may steer it."""


@dataclass(frozen=True)
class Program:
    """What is launched: the app's binary and options, and how its ranks are laid out."""

    mpirun: str
    binary: str  # relative to the checkout
    options: dict[str, Any]
    slots: tuple[int, ...]
    bound: bool  # each rank to as many cores of its own as it has threads
    oversubscribed: bool
    threads: int = 1
    packaged: Command | None = None
    ranks_on: str = "cores"  # or threads: then every hardware thread counts as a core
    preload: tuple[str, ...] = ()  # libraries, absolute
    environment: tuple[str, ...] = ()  # NAME=value, seen by the program alone: not by the launcher, nor by a runtime's command


@dataclass(frozen=True)
class Dialect:
    """How one generation of Open MPI's launcher and transports wants to be told the same things."""

    launcher: str  # before each of the launcher's own parameters
    agent: tuple[str, str, str]  # the plugin that starts daemons, its name, its parameter
    interfaces: str  # the launcher's own network
    shared_memory: str  # the transport between ranks of one place
    single_copy_off: tuple[str, str]
    daemon: str  # what is started on other nodes


ORTE = Dialect(
    launcher="--mca",
    agent=("plm", "rsh", "plm_rsh_agent"),
    interfaces="oob_tcp_if_include",
    shared_memory="vader",
    single_copy_off=("btl_vader_single_copy_mechanism", "none"),
    daemon="orte_launch_agent",
)
"""Open MPI 2 to 4: the launcher is ORTE, its daemon orted."""

PRRTE = Dialect(
    launcher="--prtemca",
    agent=("plm", "ssh", "plm_ssh_agent"),
    interfaces="prte_if_include",
    shared_memory="sm",
    single_copy_off=("smsc", "^cma,knem,xpmem"),
    daemon="prte_launch_agent",
)
"""Open MPI 5 and later: the launcher is PRRTE, its daemon prted."""

OLDEST, PRRTE_SINCE = 2, 5


def dialect(mpi: str) -> Dialect:
    """Return how a launcher is spoken to, by what it says of itself (``mpirun (Open MPI) 4.1.0``)."""
    number = next(iter(mpi_version(mpi)), "")
    if "Open MPI" not in mpi or not number.isdigit() or int(number) < OLDEST:
        raise TareError(f"mpirun: found {mpi!r}; known: Open MPI {OLDEST} and later; choose a toolchain with one of these")
    return PRRTE if int(number) >= PRRTE_SINCE else ORTE


def message_options(subnet: str, oversubscribed: bool, words: Dialect, fabric: dict[str, Any]) -> Argv:
    """Return the MPI layer's parameters: one transport choice for all backends, native included.

    ``fabric`` is the site's interconnect. ``tcp`` also serves an InfiniBand's IP interface (IPoIB). Single-copy shared memory
    (CMA) is off because it is refused between containers; ranks that share a CPU must yield it.
    """
    if fabric.get("transport") == "rdma":
        return rdma_options(fabric["adapters"])
    switch, value = words.single_copy_off
    parameters = {
        "pml": "ob1",
        "btl": f"self,{words.shared_memory},tcp",
        switch: value,
        "btl_tcp_if_include": subnet,
        "mpi_yield_when_idle": str(int(oversubscribed)),
    }
    return [word for name, value in parameters.items() for word in ("--mca", name, value)]


def rdma_options(adapters: list[str]) -> Argv:
    """Return the same for RDMA: UCX alone, reliable connections over these adapters, its copies within a node without CMA."""
    variables = {"UCX_NET_DEVICES": ",".join(adapters), "UCX_TLS": "rc,posix,self"}
    exported = [word for name, value in variables.items() for word in ("-x", f"{name}={value}")]
    return ["--mca", "pml", "ucx", *exported]


def launcher_options(interfaces: tuple[str, ...], agent: str, daemon: str | None, words: Dialect) -> Argv:
    """Return the launcher's own parameters: an explicit host list, daemons started by ``agent``, no resource manager.

    PRRTE 3.0 finds no interface by its subnet inside a container, so it gets names; it never takes a loopback interface, so
    where there is nothing but that it is left to choose.
    """
    framework, plugin, parameter = words.agent
    parameters = {"ras": "^slurm", framework: plugin, parameter: agent}
    if interfaces:
        parameters[words.interfaces] = ",".join(interfaces)
    if daemon is not None:
        parameters[words.daemon] = daemon
    return [word for name, value in parameters.items() for word in (words.launcher, name, value)]


def layout_options(program: Program, hosts: tuple[str, ...]) -> Argv:
    """Return where ranks go: filled node by node. Binding is not the launcher's business (src/launch/pinned.c says why)."""
    host_list = ",".join(f"{host}:{slots}" for host, slots in zip(hosts, program.slots, strict=True))
    return ["--host", host_list, "-n", str(sum(program.slots)), "--map-by", "slot", "--bind-to", "none"]


def thread_options(program: Program) -> Argv:
    """Return how every rank is told its threads: always, or a program with OpenMP starts as many as it sees CPUs."""
    return ["-x", f"OMP_NUM_THREADS={program.threads}"]


def rank_argv(program: Program, backend: Backend, context: Context) -> Argv:
    """Return what every rank is: bound to cores of its own unless ranks share, in its container, the program, its options."""
    cores = ["--cores", str(program.threads)] if program.threads > 1 else []
    on_threads = ["--threads"] if program.ranks_on == "threads" else []
    bind = [context.tool("pinned"), *on_threads, *cores] if program.bound else []
    options = [word for name, value in program.options.items() for word in (f"--{name}", str(value))]
    environment = ["env", f"LD_PRELOAD={':'.join(program.preload)}", *program.environment] if program.preload else []
    own = [*environment, str(PurePosixPath(context.root) / program.binary), *options]
    return [
        *bind,
        *backend.wrap(context),
        *(own if program.packaged is None else packaged_argv(program, program.packaged, context)),
    ]


def packaged_argv(program: Program, command: Command, context: Context) -> Argv:
    """Return a packaged program's words: the library that proves where it ran is loaded into it (src/launch/proof.c)."""
    library = str(PurePosixPath(context.root) / PurePosixPath(program.binary).parent / PROOF_LIBRARY)
    libraries = ":".join((*program.preload, library))
    proof = [*program.environment, f"LD_PRELOAD={libraries}", f"TARE_PROOF={run_directory(context)}/{PROOF_FILE}"]
    return ["env", *command.environment, *proof, str(PurePosixPath(context.root) / command.executable), *command.arguments]


def run_directory(context: Context) -> str:
    """Return where a packaged program runs, finds its input files and writes its output; made anew for every launch."""
    return f"{context.block_dir}/run"


def directory_options(program: Program, context: Context) -> Argv:
    """Return where ranks start: our own programs need no directory."""
    return [] if program.packaged is None else ["--wdir", run_directory(context)]


def mpirun_argv(program: Program, backend: Backend, context: Context, interfaces: tuple[str, ...], mpi: str) -> Argv:
    """Return the timed command: from here to its exit is ``wall_s``. ``mpi`` is what the launcher says of itself."""
    words = dialect(mpi)
    return [
        program.mpirun,
        *launcher_options(interfaces, backend.remote_agent(context), context.daemon, words),
        *layout_options(program, backend.host_names(context)),
        *message_options(backend.subnet(context), program.oversubscribed, words, context.fabric),
        *thread_options(program),
        *directory_options(program, context),
        *rank_argv(program, backend, context),
    ]


def launch_argv(backend: Backend, context: Context, mpirun: Argv, result: str, timeout_s: float) -> Argv:
    """Return the whole command of one repeat: enter the first place, time the launcher there."""
    timer = [context.tool("timed"), "--out", result, "--timeout", f"{timeout_s:g}", "--"]
    return [*backend.enter(context), *timer, *mpirun]


def interfaces_of(route_tables: list[str], subnet: str) -> tuple[str, ...]:
    """Return the interfaces that lead into a subnet, from the nodes' /proc/net/route (addresses in host byte order)."""
    network = ipaddress.IPv4Network(subnet)
    found = set()
    for line in "\n".join(route_tables).splitlines():
        fields = line.split()
        if len(fields) < 8 or fields[0] == "Iface" or fields[7] == "00000000":
            continue
        address = ipaddress.IPv4Address(int.from_bytes(bytes.fromhex(fields[1]), sys.byteorder))
        if address in network:
            found.add(fields[0])
    return tuple(sorted(found))


def srun_agent(job: str, cpus_per_node: int) -> str:
    """Return the launcher's agent for sites without ssh between nodes: a script that starts a command through Slurm."""
    return (
        "#!/bin/sh\n"
        "host=$1\nshift\n"
        f"exec srun --jobid={job} --overlap --nodes=1 --ntasks=1 --cpus-per-task={cpus_per_node} --cpu-bind=none --mpi=none "
        '--nodelist="$host" /bin/sh -c "$*"\n'
    )
