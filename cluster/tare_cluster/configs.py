"""The text of the files the nodes read. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable
from ipaddress import IPv4Network

from .layout import Layout, Node, Site, node_ranges

Plugin = dict[str, object]
VXLAN_ID = 30
VXLAN_PORT = 8472  # 4789 is the swarm's
VXLAN_MTU = 1450  # of Ethernet's 1500, VXLAN takes 50


def slurm_conf(site: Site, layout: Layout, memory_mb: int) -> str:
    """slurm.conf for the login node and all compute nodes; the truth about CPUs and memory of each."""
    cores = layout.cpus_per_node // layout.threads_per_core
    names = ",".join(node.name for node in layout.compute)
    memory = memory_mb // len(layout.compute)
    nodes = "\n".join(
        f"NodeName={node.name} NodeAddr={node.addresses[0]} CPUs={layout.cpus_per_node} Sockets=1 CoresPerSocket={cores} "
        f"ThreadsPerCore={layout.threads_per_core} RealMemory={memory} State=UNKNOWN"
        for node in layout.compute
    )
    return f"""\
# Written by `make up`. What is not here is Slurm's default.
ClusterName=tare
SlurmctldHost=login({layout.login.addresses[0]})
SlurmUser=slurm
StateSaveLocation=/var/lib/tare/slurmctld
SlurmctldPidFile=/run/slurm/slurmctld.pid
SlurmctldLogFile=/var/log/tare/slurmctld.log
SlurmdPidFile=/run/slurmd.pid
SlurmdLogFile=/var/log/tare/slurmd.log
SlurmdSpoolDir=/var/spool/slurmd
# Job numbers go on from those of the clusters before: logs and leases in the checkout carry them.
include /etc/tare/first_job.conf

# No cgroups (see cgroup.conf): processes are found by their parents, and the nodes' cpusets bind them.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
# CPUs as declared below: slurmd would count the whole machine's.
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
# All nodes are one physical machine: a job that measures takes both of these licenses, so that no build runs beside it.
Licenses=machine:2

# Never start a job a second time by itself: the workflow decides.
JobRequeue=0
MpiDefault=none
MailProg=/bin/true
# Limits of the submitting shell may be higher than what a node's root may set.
PropagateResourceLimitsExcept=ALL
ReturnToService=2
SchedulerParameters=batch_sched_delay=0,bf_interval=5,sched_interval=5
# An allocation whose srun is gone (the login node was killed before Slurm had saved that the job ended) is given up.
InactiveLimit=30
KillWait=5
MessageTimeout=10
MinJobAge=3600
SlurmdTimeout=30
SlurmctldTimeout=30
TCPTimeout=2

{nodes}
PartitionName={site.partition} Nodes={names} Default=YES MaxTime=INFINITE State=UP
"""


def hosts(layout: Layout) -> str:
    lines = ["127.0.0.1 localhost", *(f"{node.addresses[0]} {node.name}" for node in layout.nodes)]
    return "\n".join(lines) + "\n"


def node_env(site: Site, layout: Layout, job_user: tuple[int, int], map_owner: bool) -> str:
    """Read by tare-node's shell: no value needs more than double quotes."""
    values = {
        "JOB_UID": str(job_user[0]),
        "JOB_GID": str(job_user[1]),
        "MAP_OWNER": "yes" if map_owner else "no",
        "LOGIN_ADDRESS": layout.login.addresses[0],
        "MACVLAN_NAME": site.macvlan_name,
        "MACVLAN_PARENT": site.links[0].interface,
        "MACVLAN_SUBNET": str(site.macvlan_subnet),
        "MACVLAN_RANGES": " ".join(node_ranges("docker.networks.macvlan", site.macvlan_subnet, len(layout.compute))),
        "INTERFACES": " ".join(f"{link.interface}={link.subnet}" for link in site.links),
        "LINKS": " ".join(f"{link.interface}={link.rate}" for link in site.links if link.rate),
    }
    return "".join(f'{key}="{value}"\n' for key, value in values.items())


def cni_files(site: Site, layout: Layout) -> dict[str, str]:
    """Each compute node's networks for Apptainer instances: cni-<node>-<kind>.conflist."""
    files = {}
    chains: dict[str, Callable[[Site, Layout, Node, Plugin], list[Plugin]]] = {
        "macvlan": _macvlan_chain,
        "overlay": _overlay_chain,
    }
    for kind, network in site.cni.items():
        ranges = node_ranges(f"singularity.networks.{kind}", network.subnet, len(layout.compute))
        for node, own in zip(layout.compute, map(IPv4Network, ranges), strict=True):
            pool: Plugin = {"subnet": str(network.subnet), "rangeStart": str(own[1]), "rangeEnd": str(own[-2])}
            ipam: Plugin = {"type": "host-local", "ranges": [[pool]], "dataDir": "/run/tare-cni"}
            conf = {"cniVersion": "1.0.0", "name": network.name, "plugins": chains[kind](site, layout, node, ipam)}
            files[f"cni-{node.name}-{kind}.conflist"] = json.dumps(conf, indent=2) + "\n"
    return files


def _macvlan_chain(site: Site, _layout: Layout, _node: Node, ipam: Plugin) -> list[Plugin]:
    return [{"type": "macvlan", "master": site.links[0].interface, "mode": "bridge", "ipam": ipam}]


def _overlay_chain(site: Site, layout: Layout, node: Node, ipam: Plugin) -> list[Plugin]:
    remotes = [other.addresses[0] for other in layout.compute if other != node]
    below: Plugin = {"device": site.links[0].interface, "remotes": remotes, "id": VXLAN_ID, "port": VXLAN_PORT}
    bridge: Plugin = {"bridge": "tare-br0", "mtu": VXLAN_MTU}
    return [{"type": "tare-vxlan", "vxlan": "tare-vx0", **bridge, **below}, {"type": "bridge", **bridge, "ipam": ipam}]


def sudoers(site: Site, job_user: tuple[int, int]) -> str:
    """What the job user may do as root: start an instance that runs as the job user, on these networks; look; end it."""
    networks = "|".join(sorted(network.name for network in site.cni.values()))
    start = f"--silent instance run --security uid:{job_user[0]} --security gid:{job_user[1]} --no-home"
    options = f"(--net --network ({networks}) )?(--apply-cgroups /[^ ]+ )?(--hostname [^ ]+ )?(--bind [^ ]+ )+"
    return (
        "# Written by `make up`. An instance in a network namespace of its own, or in a cgroup, is started by root.\n"
        "# Instances are looked up in the home of who started them.\n"
        'Defaults!/usr/bin/apptainer !always_set_home, !set_home, env_keep += "HOME"\n'
        f"tare ALL=(root) NOPASSWD: /usr/bin/apptainer ^{start} {options}/[^ ]+ tare-[^ ]+ sh( /[^ ]+){{3}}$\n"
        "tare ALL=(root) NOPASSWD: /usr/bin/apptainer ^--silent instance (list --json|stop) --user tare tare-[^ ]+$\n"
    )


def site_yaml(layout: Layout) -> str:
    """What the workflow merges over the static site file (`discovered:`)."""
    return (
        "# Written by `make up`: what it found on this machine.\n"
        f"nodes: {len(layout.compute)}\n"
        f"cpus_per_node: {layout.cpus_per_node}\n"
        f"shared_cpus: {str(layout.shared_cpus).lower()}\n"
    )


def describe_cpus(layout: Layout) -> str:
    """One line for people: which node has which CPUs, and the truth when they are shared."""

    def part(node: Node) -> str:
        return f"{node.name} {{{','.join(map(str, node.cpus))}}}"

    shared = " (more nodes than CPUs: nodes SHARE CPUs, shared_cpus: true)" if layout.shared_cpus else ""
    return "CPUs: " + ", ".join(part(node) for node in layout.compute) + shared
