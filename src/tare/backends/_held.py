"""What backends with long-lived containers share: each arm has its own, held by the nodes' agents.

A container's number is called ``node`` where a backend has one per node only.
"""

from dataclasses import dataclass
from pathlib import PurePosixPath

from tare.backends import Argv, Backend, Context


@dataclass(frozen=True)
class Held(Backend):
    """Ranks run in containers that are started once per block and go with the block's job, however it ends."""

    def container_name(self, context: Context, node: int) -> str:
        """Return the container's name; off the host network it is its host name as well."""
        return f"tare-{context.session}-{context.place or self.name}-{node}".replace("+", "-")

    def directory(self, context: Context) -> PurePosixPath:
        """Return where this arm's own files stand, seen by all nodes and containers."""
        return PurePosixPath(context.block_dir) / (context.place or self.name)

    def files(self, context: Context) -> dict[str, str]:
        """Return the arm's further files, by name; those with a first line ``#!`` are programs."""
        del context
        return {}

    def before(self, context: Context, node: int) -> list[Argv]:
        """Return the commands that come before the container's."""
        del context, node
        return []

    def after(self, context: Context, node: int) -> list[Argv]:
        """Return the commands that end the container; empty where it ends by itself when its stdin closes."""
        del context, node
        return []

    def into(self, context: Context, node: int) -> Argv:
        """Return what goes before a command to run it in the container of the node that it is given to."""
        raise NotImplementedError(f"{self.name}: node {node} of {len(context.nodes)}")


@dataclass(frozen=True)
class Inhabited(Held):
    """Containers with an sshd in each, and the launcher inside the first, as the published studies did."""

    def port(self, context: Context) -> int:
        """Return the port of the containers' sshd."""
        return int(context.site["runtimes"][self.runtime]["ssh_port"]) + context.port_offset

    def host_names(self, context: Context) -> tuple[str, ...]:
        """Return the containers' host names, which PRRTE needs to know itself by; on the host network the nodes'."""
        if self.network == "host":
            return context.nodes
        return tuple(self.container_name(context, container) for container in context.containers)

    def enter(self, context: Context) -> Argv:
        """Return what goes before the launcher: into the first container (a MACVLAN one cannot be reached from its own host)."""
        return self.into(context, 0)

    def remote_agent(self, context: Context) -> str:
        """Return ssh with the block's own keys and the containers' addresses."""
        return f"ssh -F {self.directory(context) / 'ssh_config'}"

    def state(self, context: Context, node: int) -> Argv:
        """Return the command that tells whether a node's container runs, and its address."""
        raise NotImplementedError(f"{self.name}: node {node} of {len(context.nodes)}")

    def address(self, context: Context, said: str) -> str | None:
        """Return the address that ``state`` told ("" on the host network), or None while the container does not run."""
        raise NotImplementedError(f"{self.name}: {said} in {context.session}")

    def learn_names(self, context: Context, node: int) -> Argv:
        """Return the command that adds its stdin to the /etc/hosts of a node's container."""
        raise NotImplementedError(f"{self.name}: node {node} of {len(context.nodes)}")
