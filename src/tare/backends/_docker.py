"""What the Docker backends share: one container per node and arm, an sshd in it, and the launcher inside the first."""

import json
from dataclasses import dataclass
from typing import Any

from tare.backends import Argv, Context
from tare.backends._held import Inhabited

START = '/usr/sbin/sshd -f "$0" && exec cat >/dev/null'
"""The container's command: an sshd in the background, then wait for the end of stdin.

The container's stdin is held open by the block's job. When the job ends, however it ends (also SIGKILL, scancel,
time-out), stdin closes and the container goes with it.
"""

RDMA = ("--device", "/dev/infiniband", "--ulimit", "memlock=-1", "--cap-add", "IPC_LOCK")
"""What a container needs for RDMA: the adapters' files, and memory that may be locked without limit."""


@dataclass(frozen=True)
class Docker(Inhabited):
    """Ranks run in long-lived containers and are started by a launcher inside the first, as the published studies did."""

    runtime: str = "docker"

    def unavailable(self, site: dict[str, Any]) -> str | None:
        """Return why the site file rules this backend out, or None."""
        missing = super().unavailable(site)
        if missing is None and self.network not in site["runtimes"]["docker"]["networks"]:
            return f"site {site['name']!r} has no docker network of kind {self.network!r}"
        return missing

    @property
    def factors(self) -> frozenset[str]:
        """Return what of a study's ``compare:`` makes sense: several containers need addresses of their own."""
        own = {"overlay": {"containers_per_node", "mtu"}, "macvlan": {"containers_per_node"}}.get(self.network, set())
        return super().factors | {"affinity", "cpu_quota", "cpu_shares"} | own

    def lacks(self, site: dict[str, Any], factors: dict[str, Any], interconnect: str) -> str | None:
        """Return why the site's Docker networks cannot serve an arm, or None."""
        if self.find_network(site, factors, interconnect) is not None:
            return None
        mtu = f" of MTU {factors['mtu']}" if "mtu" in factors else ""
        return f"site {site['name']!r} has no docker network of kind {self.network!r}{mtu} on interconnect {interconnect!r}"

    def find_network(self, site: dict[str, Any], factors: dict[str, Any], interconnect: str) -> dict[str, Any] | None:
        """Return the site's Docker network for an arm: of its interconnect, and of its MTU where the study varies that.

        A network without a word on its interconnect serves all, the host's network every arm. None: there is no such network.
        """
        first: dict[str, Any] = site["runtimes"]["docker"]["networks"][self.network] or {}
        wanted = {"interconnect": interconnect, "mtu": factors.get("mtu", first.get("mtu"))}
        known = (first, *first.get("further", []))
        return next((network for network in known if all(network.get(key, wanted[key]) == wanted[key] for key in wanted)), None)

    def network_name(self, context: Context) -> str:
        """Return the name of the Docker network."""
        network = self.find_network(context.site, context.factors, context.interconnect) or {}
        return str(network.get("name", self.network))

    def subnet(self, context: Context) -> str:
        """Return the Docker network's subnet; on the host network, the interconnect's."""
        network = self.find_network(context.site, context.factors, context.interconnect) or {}
        return str(network.get("subnet", super().subnet(context)))

    def container_argv(self, context: Context, container: int) -> Argv:
        """Return ``docker run`` for a container: same user, CPUs, shared memory and checkout as the native ranks have."""
        docker = context.site["runtimes"]["docker"]
        name = self.container_name(context, container)
        hostname = [] if self.network == "host" else ["--hostname", name]
        return [
            *(docker["command"], "run", "--interactive", "--rm", "--init", "--log-driver", "none"),
            *("--name", name, *hostname, "--network", self.network_name(context)),
            *("--user", context.user, *self.limits(context, container), "--shm-size", docker["shm_size"]),
            *(RDMA if context.fabric.get("transport") == "rdma" else ()),
            *("--volume", f"{context.root}:{context.root}"),
            *("--volume", f"{context.block_dir}/passwd:/etc/passwd:ro"),
            *("--env", "HOME=/tmp", "--workdir", context.root),
            *(str(context.image), "sh", "-c", START, str(self.directory(context) / "sshd_config")),
        ]

    def into(self, context: Context, container: int) -> Argv:
        """Return ``docker exec``."""
        return [str(context.site["runtimes"]["docker"]["command"]), "exec", self.container_name(context, container)]

    def limits(self, context: Context, container: int) -> Argv:
        """Return what of the node a container may use: CPUs, memory nodes, CPU time, weight."""
        options = {
            "--cpuset-cpus": context.cpuset(container),
            "--cpuset-mems": context.memory(container),
            "--cpus": context.factors.get("cpu_quota"),
            "--cpu-shares": context.factors.get("cpu_shares"),
        }
        return [word for name, value in options.items() if value is not None for word in (name, f"{value}")]

    def state(self, context: Context, container: int) -> Argv:
        """Return ``docker container inspect`` for whether it runs, and its networks."""
        found = '{"running":{{.State.Running}},"networks":{{json .NetworkSettings.Networks}}}'
        command = str(context.site["runtimes"]["docker"]["command"])
        return [command, "container", "inspect", "--format", found, self.container_name(context, container)]

    def address(self, context: Context, said: str) -> str | None:
        """Return the container's address on its network."""
        state = json.loads(said)
        if not state["running"]:
            return None
        return "" if self.network == "host" else str(state["networks"][self.network_name(context)]["IPAddress"])

    def learn_names(self, context: Context, container: int) -> Argv:
        """Return ``tee`` as the container's root."""
        command = str(context.site["runtimes"]["docker"]["command"])
        inside = [command, "exec", "--interactive", "--user", "0", self.container_name(context, container)]
        return [*inside, "tee", "-a", "/etc/hosts"]
