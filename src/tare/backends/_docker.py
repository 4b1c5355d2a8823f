"""What the Docker backends share: one container per node and arm, an sshd in it, and the launcher inside the first."""

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from tare.backends import Argv, Backend, Context

START = '/usr/sbin/sshd -f "$0" && exec cat >/dev/null'
"""The container's command: an sshd in the background, then wait for the end of stdin.

The container's stdin is held open by the block's job. When the job ends, however it ends (also SIGKILL, scancel,
time-out), stdin closes and the container goes with it.
"""


@dataclass(frozen=True)
class Docker(Backend):
    """Ranks run in long-lived containers and are started by a launcher inside the first, as the published studies did."""

    runtime: str = "docker"

    def unavailable(self, site: dict[str, Any]) -> str | None:
        """Return why the site file rules this backend out, or None."""
        missing = super().unavailable(site)
        if missing is None and self.network not in site["runtimes"]["docker"]["networks"]:
            return f"site {site['name']!r} has no docker network of kind {self.network!r}"
        return missing

    def network_name(self, context: Context) -> str:
        """Return the name of the Docker network."""
        network = context.site["runtimes"]["docker"]["networks"][self.network] or {}
        return str(network.get("name", self.network))

    def subnet(self, context: Context) -> str:
        """Return the Docker network's subnet; on the host network, the interconnect's."""
        network = context.site["runtimes"]["docker"]["networks"][self.network] or {}
        return str(network.get("subnet", super().subnet(context)))

    def container_name(self, context: Context, node: int) -> str:
        """Return the container's name; off the host network it is its host name as well."""
        return f"tare-{context.session}-{context.place or self.name}-{node}"

    def host_names(self, context: Context) -> tuple[str, ...]:
        """Return the containers' host names, which PRRTE needs to know itself by; on the host network the nodes'."""
        if self.network == "host":
            return context.nodes
        return tuple(self.container_name(context, node) for node in range(len(context.nodes)))

    def directory(self, context: Context) -> PurePosixPath:
        """Return where this arm's sshd and ssh configurations stand."""
        return PurePosixPath(context.block_dir) / (context.place or self.name)

    def container_argv(self, context: Context, node: int) -> Argv:
        """Return ``docker run`` for a node: same user, CPUs, shared memory and checkout as the native ranks have."""
        docker = context.site["runtimes"]["docker"]
        name = self.container_name(context, node)
        hostname = [] if self.network == "host" else ["--hostname", name]
        return [
            *(docker["command"], "run", "--interactive", "--rm", "--init", "--log-driver", "none"),
            *("--name", name, *hostname, "--network", self.network_name(context)),
            *("--user", context.user, "--cpuset-cpus", context.cpus[node], "--shm-size", docker["shm_size"]),
            *("--volume", f"{context.root}:{context.root}"),
            *("--volume", f"{context.block_dir}/passwd:/etc/passwd:ro"),
            *("--env", "HOME=/tmp", "--workdir", context.root),
            *(str(context.image), "sh", "-c", START, str(self.directory(context) / "sshd_config")),
        ]

    def enter(self, context: Context) -> Argv:
        """Return ``docker exec`` into the first container (a MACVLAN container cannot be reached from its own host)."""
        return [str(context.site["runtimes"]["docker"]["command"]), "exec", self.container_name(context, 0)]

    def remote_agent(self, context: Context) -> str:
        """Return ssh with the block's own keys and the containers' addresses."""
        return f"ssh -F {self.directory(context) / 'ssh_config'}"
