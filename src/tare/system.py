"""What a node's kernel counts while a repeat runs: read before and after, the difference is the record's ``system``."""

import os
from collections.abc import Mapping as Counts
from pathlib import Path
from statistics import median
from typing import Any

INTERFACE_FIELDS = {"rx_bytes": 0, "rx_packets": 1, "tx_bytes": 8, "tx_packets": 9}
VIRTUAL = ("lo", "veth", "docker", "br-")
"""Interfaces that lead nowhere outside the node: what a message passes there, it passes again elsewhere."""
FLOOR_BYTES = 20_000
"""Traffic of a launch without messages: the launcher's own. Less than that says nothing of where messages go."""


def read_interfaces(text: str) -> dict[str, dict[str, int]]:
    """Return interface → bytes and packets from /proc/net/dev, without those that lead nowhere outside the node."""
    found = {}
    for line in text.splitlines()[2:]:
        name, _, rest = line.partition(":")
        fields = rest.split()
        if not name.strip().startswith(VIRTUAL):
            found[name.strip()] = {key: int(fields[place]) for key, place in INTERFACE_FIELDS.items()}
    return found


def read_ticks(text: str, cpus: Counts[int, Any] | set[int], ticks_per_s: int) -> dict[str, float]:
    """Return softirq and steal seconds of these CPUs from /proc/stat."""
    softirq = steal = 0
    for line in text.splitlines():
        name, *fields = line.split()
        if name.startswith("cpu") and name[3:].isdigit() and int(name[3:]) in cpus:
            softirq += int(fields[6])
            steal += int(fields[7])
    return {"softirq_s": softirq / ticks_per_s, "steal_s": steal / ticks_per_s}


def read_throttling(root: Path) -> float | None:
    """Return the seconds for which the node's control groups were held back by a CPU quota; None where that is not to be seen."""
    seconds, seen = 0.0, False
    for path in root.rglob("cpu.stat"):
        try:
            words = dict(line.split() for line in path.read_text().splitlines() if len(line.split()) == 2)
        except OSError:
            continue  # the group went while it was read
        seen = seen or "throttled_time" in words or "throttled_usec" in words
        seconds += int(words.get("throttled_time", 0)) * 1e-9 + int(words.get("throttled_usec", 0)) * 1e-6
    return seconds if seen else None


def snapshot() -> dict[str, Any]:
    """Return the counters of this node as they stand, for the CPUs that this process may use."""
    ticks = read_ticks(Path("/proc/stat").read_text(), os.sched_getaffinity(0), os.sysconf("SC_CLK_TCK"))
    return {
        "interfaces": read_interfaces(Path("/proc/net/dev").read_text()),
        **ticks,
        "throttled_s": read_throttling(cpu_groups()),
        "load": os.getloadavg()[0],
    }


def cpu_groups() -> Path:
    """Return where the control groups of the CPU stand: version 1 has a hierarchy of its own for it."""
    first = Path("/sys/fs/cgroup/cpu")
    return first if first.is_dir() else Path("/sys/fs/cgroup")


def difference(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Return what a node counted between two snapshots; ``load`` is the later one's."""
    interfaces = {
        name: {key: value - before["interfaces"][name][key] for key, value in counts.items()}
        for name, counts in after["interfaces"].items()
        if name in before["interfaces"]
    }
    known = before["throttled_s"] is not None and after["throttled_s"] is not None
    return {
        "interfaces": {name: counts for name, counts in interfaces.items() if any(counts.values())},
        **{key: round(after[key] - before[key], 6) for key in ("softirq_s", "steal_s")},
        "throttled_s": round(max(0.0, after["throttled_s"] - before["throttled_s"]), 6) if known else None,
        "load": after["load"],
    }


def summary(records: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return what a cell's repeats came to: medians over the repeats of sums over the nodes; None where nothing was counted.

    Of the load, which nodes of one machine share, the highest node's.
    """
    systems = [record["system"] for record in records if record.get("system")]
    if not systems:
        return None
    names = sorted({name for system in systems for node in system.values() for name in node["interfaces"]})
    sums = {key: middle([node_sum(system, key) for system in systems]) for key in ("softirq_s", "steal_s", "throttled_s")}
    return {
        "sent_bytes": {name: median(sent_by(system, name, "tx_bytes") for system in systems) for name in names},
        "sent_packets": {name: median(sent_by(system, name, "tx_packets") for system in systems) for name in names},
        **sums,
        "load": median(max(node["load"] for node in system.values()) for system in systems),
    }


def middle(values: list[float | None]) -> float | None:
    """Return the median, None where a value is absent."""
    known = [value for value in values if value is not None]
    return median(known) if len(known) == len(values) else None


def node_sum(system: dict[str, Any], key: str) -> float | None:
    """Return one counter of all nodes, None where a node has none."""
    values = [node[key] for node in system.values()]
    return None if None in values else sum(values)


def sent_by(system: dict[str, Any], interface: str, key: str) -> int:
    """Return what all nodes sent by an interface; one that counted nothing is not listed."""
    return sum(node["interfaces"].get(interface, {key: 0})[key] for node in system.values())


def traffic_verdict(sent: dict[str, float], labelled: str | None, nodes: int) -> tuple[str | None, str]:
    """Return the interface that sent most between nodes, and whether it is the labelled one.

    A container's overlay or MACVLAN network has the node's interface under it, so bytes of the label must be seen there.
    """
    if nodes < 2:
        return None, "one node"
    busiest = max(sent, key=lambda name: sent[name], default=None)
    if busiest is None or sent[busiest] < FLOOR_BYTES:
        return None, "too little to tell"
    if labelled is None:
        return busiest, "the site names no interface"
    return busiest, "as labelled" if busiest == labelled else f"not as labelled: {labelled}"
