"""`make status`: what is there, asked of those who know (Docker, Slurm, the swarm)."""

from __future__ import annotations

import subprocess

from . import argv, containers, engine
from .errors import ClusterError

MANAGER = "tare-node01"


def status() -> int:
    """Prints the state; 0 when a cluster is there."""
    names = sorted(found.name for found in containers.present()) if engine.answers() else []
    if not names:
        print("there is no cluster; make up starts it")
        return 1
    form = "table {{.Names}}\t{{.Status}}\t{{.Networks}}"
    sections = [
        ("nodes", ["docker", "ps", "--all", "--filter", f"label={argv.LABEL}", "--format", form]),
        ("CPUs and addresses", ["docker", "inspect", "--format", _ADDRESSES, *names]),
        ("Slurm", argv.node_exec(containers.LOGIN, ["sinfo", "--Node", "--long"])),
        ("jobs", argv.node_exec(containers.LOGIN, ["squeue"])),
        ("swarm", argv.node_exec(MANAGER, ["docker", "node", "ls"])),
        ("networks in the nodes", argv.node_exec(MANAGER, ["docker", "network", "ls"])),
        ("images in the registry", argv.node_exec(containers.LOGIN, ["curl", "-fsS", "http://localhost:5000/v2/_catalog"])),
    ]
    for title, command in sections:
        print(f"--- {title}", flush=True)
        subprocess.run(command, check=False)
    return 0


_ADDRESSES = (
    "{{slice .Name 1}}  CPUs {{.HostConfig.CpusetCpus}}  "
    "{{range $name, $net := .NetworkSettings.Networks}}{{$name}} {{$net.IPAddress}}  {{end}}"
)


def container_of(node: str) -> str:
    """The running container that plays a node, for `exec --node`."""
    running = [it.name for it in containers.present() if it.state == "running"] if engine.answers() else []
    if not running:
        raise ClusterError("cluster: there is no cluster on this machine; run make up first")
    if f"tare-{node}" not in running:
        known = ", ".join(sorted(name.removeprefix("tare-") for name in running))
        raise ClusterError(f"cluster: --node: unknown node '{node}'; known: {known}")
    return f"tare-{node}"
