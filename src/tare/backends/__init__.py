"""Backends: runtime × network. One module here is one backend: its file name, with - for _ and +cgroup for a last _cgroup."""

import importlib
import pkgutil
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

Argv = list[str]


def after_loading(modules: tuple[str, ...]) -> Argv:
    """Return what goes before a command to run it after ``module load``; nothing where there is nothing to load."""
    script = 'count=$1; shift; module load "${@:1:count}"; shift "$count"; exec "$@"'
    return ["bash", "-lec", script, "tare", str(len(modules)), *modules] if modules else []


@dataclass(frozen=True)
class Context:
    """What a backend must know of its block to say its commands."""

    site: dict[str, Any]
    interconnect: str
    session: str
    root: str  # the checkout, at the same path on every node and in every container
    block_dir: str  # shared between the nodes, private to the session
    nodes: tuple[str, ...]  # used nodes in rank order
    cpus: tuple[str, ...]  # what the job may use on each node, as a list like 0-3
    user: str  # uid:gid
    tools: str  # directory of the timer and the binder, absolute
    user_name: str = "tare"
    image: str | None = None  # Docker image with its digest
    sif: str | None = None  # Singularity image, absolute
    modules: tuple[str, ...] = ()  # environment modules that have the toolchain, for ranks outside containers
    place: str | None = None  # unlike any other arm's of the block, where two arms have the same backend
    port_offset: int = 0  # unlike any other arm's of the block: on the host's network their sshds would meet
    containers_per_node: int = 1
    cpusets: tuple[str, ...] = ()  # of each container, in rank order; none: the node's of ``cpus``
    mems: tuple[str | None, ...] = ()  # memory nodes of each container; None: all
    factors: dict[str, Any] = field(default_factory=dict)  # the arm's own: mtu, cpu_quota …

    @property
    def fabric(self) -> dict[str, Any]:
        """What the site says of the block's interconnect."""
        found: dict[str, Any] = self.site["interconnects"][self.interconnect]
        return found

    @property
    def containers(self) -> range:
        """The numbers of an arm's containers, in rank order: those of the first node, of the second …"""
        return range(len(self.nodes) * self.containers_per_node)

    def node_of(self, container: int) -> int:
        """Return the number of the node that a container is on."""
        return container // self.containers_per_node

    def cpuset(self, container: int) -> str:
        """Return the CPUs that a container may use."""
        return self.cpusets[container] if self.cpusets else self.cpus[self.node_of(container)]

    def memory(self, container: int) -> str | None:
        """Return the memory nodes that a container may use, None for all."""
        return self.mems[container] if self.mems else None

    @property
    def daemon(self) -> str | None:
        """The script that starts the launcher's daemon on another node with the modules loaded, or None."""
        name = "-".join(self.modules).replace("/", "-")
        return str(PurePosixPath(self.block_dir) / f"daemon-{name}") if self.modules else None

    def tool(self, name: str) -> str:
        """Return one of Tare's own small programs."""
        return f"{self.tools}/{name}"


@dataclass(frozen=True)
class Backend:
    """One way of running ranks. The base class is the native one: no container anywhere."""

    name: str
    runtime: str = "native"
    network: str = "host"

    def unavailable(self, site: dict[str, Any]) -> str | None:
        """Return why the site file rules this backend out, or None."""
        if self.runtime not in site["runtimes"]:
            absent: dict[str, str] = site.get("absent", {})
            return absent.get(self.runtime, f"site {site['name']!r} has no {self.runtime}")
        return None

    @property
    def factors(self) -> frozenset[str]:
        """Return the keys of a study's ``compare:`` that make sense for this backend."""
        everywhere = {"toolchains", "flags", "interconnects", "ranks_on"}
        return frozenset(everywhere if self.runtime == "native" else everywhere | {"userlands"})

    def subnet(self, context: Context) -> str:
        """Return the subnet that MPI's messages and the launcher's own must use."""
        return str(context.site["interconnects"][context.interconnect]["subnet"])

    def host_names(self, context: Context) -> tuple[str, ...]:
        """Return the names by which the launcher knows the places where ranks run."""
        return context.nodes

    def lacks(self, site: dict[str, Any], factors: dict[str, Any], interconnect: str) -> str | None:
        """Return why the site cannot run this backend with an arm's factors on an interconnect, or None."""
        del site, factors, interconnect
        return None

    def container_argv(self, context: Context, container: int) -> Argv | None:
        """Return the command that holds one of this arm's containers while its stdin stays open, or None."""
        del context, container
        return None

    def container_name(self, context: Context, container: int) -> str | None:
        """Return the name of one of this arm's containers, or None where ranks run in none."""
        del context, container
        return None

    def enter(self, context: Context) -> Argv:
        """Return what goes before the launcher to run it where the first rank runs (outside the timed part)."""
        return after_loading(context.modules)

    def wrap(self, context: Context) -> Argv:
        """Return what goes before each rank's program (inside the timed part)."""
        del context
        return []

    def remote_agent(self, context: Context) -> str:
        """Return the command by which the launcher starts its daemon on another node."""
        if context.site["launch"] == "slurm":
            return str(PurePosixPath(context.block_dir) / "srun-agent")
        return "ssh -o BatchMode=yes -o StrictHostKeyChecking=accept-new"


def load_backends() -> dict[str, Backend]:
    """Return every backend by name."""
    modules = (module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))
    backends = (importlib.import_module(f"{__name__}.{module}").BACKEND for module in modules)
    return {backend.name: backend for backend in backends}
