"""What the Apptainer instances share: one instance per node and arm, started once per block and ended by a keeper."""

import json
from dataclasses import dataclass
from typing import Any

from tare.backends import Argv, Context
from tare.backends._held import Held, Inhabited

START = """\
#!/bin/sh
# An instance's first process: start SSHD_CONFIG CALLS. An sshd for the other instances, and one more for each pair of pipes
# that is named in CALLS: its own node does not reach an instance on MACVLAN, and only root can enter its network.
exec 3<>"$2"
/usr/sbin/sshd -f "$1"
while read -r pipes <&3; do
    /usr/sbin/sshd -i -f "$1" <"$pipes.in" >"$pipes.out" 3<&- &
done
"""

CALL = """\
#!/bin/sh
# ssh's way into the instance of this node: call CALLS.
pipes=$1.$$
mkfifo "$pipes.in" "$pipes.out"
echo "$pipes" >"$1"
exec 3<&0
cat <&3 >"$pipes.in" &
cat <"$pipes.out"
rm "$pipes.in" "$pipes.out"
"""

ENTER = """\
#!/bin/sh
# Run a command in the instance of this node, in the checkout: enter CONFIG NODE ROOT COMMAND [ARGUMENT ...]
config=$1 node=$2 line="cd '$3' && exec"
shift 3
for word; do
    line="$line '$(printf '%s' "$word" | sed "s/'/'\\\\\\\\''/g")'"
done
exec ssh -n -F "$config" "$node" "$line"
"""


def settings(site: dict[str, Any]) -> dict[str, Any]:
    """Return what the site says of Singularity."""
    found: dict[str, Any] = site["runtimes"]["singularity"]
    return found


@dataclass(frozen=True)
class OwnInstance(Held):
    """The job user's own instance on the host's network; ranks enter it by ``apptainer exec``, each paid inside ``wall_s``."""

    runtime: str = "singularity"

    def container_name(self, context: Context, node: int) -> str:
        """Return the instance's name: the same on every node, because it is a word of the ranks' one command line."""
        del node
        return super().container_name(context, 0).removesuffix("-0")

    def container_argv(self, context: Context, node: int) -> Argv:
        """Return ``apptainer instance run`` with a process that does nothing."""
        start = [settings(context.site)["command"], "--silent", "instance", "run", "--bind", context.root]
        return [*start, str(context.sif), self.container_name(context, node), "sleep", "infinity"]

    def after(self, context: Context, node: int) -> list[Argv]:
        """Return ``apptainer instance stop``."""
        return [[settings(context.site)["command"], "--silent", "instance", "stop", self.container_name(context, node)]]

    def into(self, context: Context, node: int) -> Argv:
        """Return ``apptainer exec`` into the instance."""
        instance = f"instance://{self.container_name(context, node)}"
        return [settings(context.site)["command"], "--silent", "exec", instance]

    def wrap(self, context: Context) -> Argv:
        """Return what goes before each rank's program."""
        return self.into(context, 0)


@dataclass(frozen=True)
class RootInstance(Inhabited):
    """An instance with a network or a cgroup of its own: root starts it as the job user, and the launcher runs inside it.

    All ranks descend from the instance's first process, through its sshd: a cgroup holds that process and what it starts,
    and nothing that enters the instance later.
    """

    runtime: str = "singularity"
    cgroup: bool = False  # the CPUs of the job as a cpuset of the instance's own

    def unavailable(self, site: dict[str, Any]) -> str | None:
        """Return why the site file rules this backend out, or None."""
        missing = super().unavailable(site)
        if missing is not None:
            return missing
        if "root" not in settings(site):
            return f"site {site['name']!r} does not say how root starts an instance (runtimes.singularity.root)"
        if self.network != "host" and self.network not in settings(site)["networks"]:
            return f"site {site['name']!r} has no CNI network of kind {self.network!r} for instances"
        return None

    def subnet(self, context: Context) -> str:
        """Return the CNI network's subnet; on the host network, the interconnect's."""
        if self.network == "host":
            return super().subnet(context)
        return str(settings(context.site)["networks"][self.network]["subnet"])

    def unpacked(self, context: Context, node: int) -> str | None:
        """Return the directory into which a node unpacks the image, or None where root can mount it."""
        return f"/tmp/{self.container_name(context, node)}" if settings(context.site)["unpack"] else None

    def cgroup_file(self, context: Context, node: int) -> str:
        """Return the instance's limits."""
        cpus = f'[cpu]\ncpus = "{context.cpus[node]}"\n' if self.cgroup else ""
        return str(settings(context.site)["cgroup"]) + cpus

    def files(self, context: Context) -> dict[str, str]:
        """Return the scripts that start and enter an instance, its limits, and what it takes for /etc/hosts."""
        found = {"start": START, "call": CALL, "enter": ENTER}
        for node in range(len(context.nodes)):
            found[f"hosts{node}"] = "127.0.0.1\tlocalhost\n"
            found[f"cgroup{node}.toml"] = self.cgroup_file(context, node)
            found[f"enter_config{node}"] = self.enter_config(context, node)
        return found

    def enter_config(self, context: Context, node: int) -> str:
        """Return the ssh configuration for the way from a node into its own instance."""
        directory = self.directory(context)
        call = f"Host *\n  ProxyCommand {directory}/call {self.calls(context, node)}\n"
        return f"{call}Include {directory}/ssh_config\n"

    def calls(self, context: Context, node: int) -> str:
        """Return the pipe through which an instance is told of a caller."""
        return f"{self.directory(context)}/calls{node}"

    def before(self, context: Context, node: int) -> list[Argv]:
        """Return what makes the pipe, and unpacks the image where root cannot mount it."""
        unpacked = self.unpacked(context, node)
        build = [settings(context.site)["command"], "--silent", "build", "--sandbox"]
        return [["mkfifo", self.calls(context, node)], *([[*build, unpacked, str(context.sif)]] if unpacked else [])]

    def container_argv(self, context: Context, node: int) -> Argv:
        """Return the command by which root starts an instance that is the job user's in all but its network and cgroup."""
        directory = self.directory(context)
        uid, gid = context.user.split(":")
        network = (
            ["--net", "--network", str(settings(context.site)["networks"][self.network]["name"])]
            if self.network != "host"
            else []
        )
        limits = ["--apply-cgroups", f"{directory}/cgroup{node}.toml"] if self.cgroup_file(context, node) else []
        name = self.container_name(context, node)
        hosts = ["--hostname", name, "--bind", f"{directory}/hosts{node}:/etc/hosts"] if self.network != "host" else []
        return [
            *(*settings(context.site)["root"], settings(context.site)["command"], "--silent", "instance", "run"),
            *("--security", f"uid:{uid}", "--security", f"gid:{gid}", "--no-home", *network, *limits, *hosts),
            *("--bind", context.root, "--bind", f"{context.block_dir}/passwd:/etc/passwd"),
            *(self.unpacked(context, node) or str(context.sif), name),
            *("sh", f"{directory}/start", f"{directory}/sshd_config", self.calls(context, node)),
        ]

    def instance(self, context: Context, node: int, *verb: str) -> Argv:
        """Return one of root's commands for an instance of the job user."""
        root = [*settings(context.site)["root"], settings(context.site)["command"], "--silent", "instance"]
        return [*root, *verb, "--user", context.user_name, self.container_name(context, node)]

    def after(self, context: Context, node: int) -> list[Argv]:
        """Return what ends the instance (its network goes with it) and removes the unpacked image."""
        unpacked = self.unpacked(context, node)
        return [self.instance(context, node, "stop"), *([["rm", "-rf", unpacked]] if unpacked else [])]

    def into(self, context: Context, node: int) -> Argv:
        """Return the script that enters the instance of the node that it is given to."""
        directory = self.directory(context)
        name = self.host_names(context)[node]
        return [f"{directory}/enter", f"{directory}/enter_config{node}", name, context.root]

    def state(self, context: Context, node: int) -> Argv:
        """Return ``apptainer instance list``."""
        return self.instance(context, node, "list", "--json")

    def address(self, context: Context, said: str) -> str | None:
        """Return the instance's address."""
        del context
        found = json.loads(said)["instances"]
        if not found:
            return None
        return "" if self.network == "host" else str(found[0]["ip"])

    def learn_names(self, context: Context, node: int) -> Argv:
        """Return ``tee`` on the file that the instance has for /etc/hosts."""
        return ["tee", "-a", f"{self.directory(context)}/hosts{node}"]
