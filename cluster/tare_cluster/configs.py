"""The text of the files the nodes read. Pure."""

from __future__ import annotations

from .layout import Layout, Node, Site, macvlan_ranges


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
        "MACVLAN_RANGES": " ".join(macvlan_ranges(site, len(layout.compute))),
        "INTERFACES": " ".join(f"{link.interface}={link.subnet}" for link in site.links),
        "LINKS": " ".join(f"{link.interface}={link.rate}" for link in site.links if link.rate),
    }
    return "".join(f'{key}="{value}"\n' for key, value in values.items())


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
