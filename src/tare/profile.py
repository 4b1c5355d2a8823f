"""Profiled launches: what the preloaded library is told, what it wrote, and what that says of a cell. Nothing is launched here.

The library (src/profile/profile.c) writes one file per rank; those of one launch are one record, apart from the timed repeats.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from tare.config import Mapping
from tare.errors import TareError

Record = dict[str, Any]
LANES = ("intra-container", "inter-container", "inter-node")
"""Where a message goes by its ends' places (Liu & Guitart 2022, Figs 20-22); outside containers a node counts as one."""


def environment(kind: str, directory: Path) -> tuple[str, ...]:
    """Return what a profiled program finds in its environment; the launcher and the runtimes do not."""
    return (f"TARE_PROFILE={kind}", f"TARE_PROFILE_DIR={directory}")


def read_ranks(directory: Path, processes: int) -> list[Record]:
    """Return what every rank of one launch wrote; a rank without a file is a TareError."""
    ranks = []
    for number in range(processes):
        path = directory / f"rank-{number}.json"
        try:
            ranks.append(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            raise TareError(
                f"rank {number}: no profile: {error}; needed: a program that calls MPI_Init and MPI_Finalize"
            ) from error
    return ranks


def homes(slots: Sequence[int]) -> list[int]:
    """Return the node of each rank, by how many ranks each node has."""
    return [node for node, count in enumerate(slots) for _ in range(count)]


def lane(one: int, other: int, nodes: Sequence[int], containers: Sequence[str]) -> str:
    """Return which way messages between two ranks go; ``containers``: what tells the ranks' containers of a node apart."""
    if nodes[one] != nodes[other]:
        return "inter-node"
    return "intra-container" if containers[one] == containers[other] else "inter-container"


def traffic(record: Record) -> Mapping:
    """Return lane → messages and bytes of an MPI profile, by the proof's placement (mount namespaces) and the nodes."""
    proof = sorted(record["proof"], key=lambda rank: int(rank["rank"]))
    containers = [rank["ns"]["mnt"] for rank in proof]
    found = {name: {"messages": 0, "bytes": 0.0} for name in LANES}
    for rank in record["profile"]["ranks"]:
        for target, messages, volume in rank["to"]:
            way = found[lane(rank["rank"], target, record["profile"]["nodes"], containers)]
            way["messages"] += messages
            way["bytes"] += volume
    return found


def matrix(record: Record) -> list[list[float]]:
    """Return the bytes that each rank (row) sent to each (column)."""
    size = len(record["profile"]["ranks"])
    rows = [[0.0] * size for _ in range(size)]
    for rank in record["profile"]["ranks"]:
        for target, _, volume in rank["to"]:
            rows[rank["rank"]][target] = volume
    return rows


def calls(ranks: Sequence[Record]) -> Mapping:
    """Return MPI call → count and bytes of all ranks, and seconds: mean and longest over the ranks (0 where one made none)."""
    names = list(dict.fromkeys(name for rank in ranks for name in rank["calls"]))
    return {name: call([rank["calls"].get(name, {}) for rank in ranks]) for name in names}


def call(shares: Sequence[Record]) -> Mapping:
    """Return one call of all ranks."""
    seconds = [share.get("seconds", 0.0) for share in shares]
    return {
        "count": sum(share.get("count", 0) for share in shares),
        "bytes": sum(share.get("bytes", 0.0) for share in shares),
        "seconds": fmean(seconds),
        "longest_s": max(seconds),
    }


def decomposition(wall_s: float, ranks: Sequence[Record]) -> Mapping:
    """Return where a launch's seconds went: parts that add up to ``wall_s``, means over the ranks.

    ``startup_s``: launch to MPI_Init and MPI_Finalize to exit, the runtime's own way in and out included; ``init_s``: inside
    MPI_Init and MPI_Finalize; ``mpi_s``: inside all other calls; ``compute_s``: the rest. ``system_s`` is no further part: the
    ranks' time in the kernel, wherever it fell.
    """
    span, init = fmean(rank["span_s"] for rank in ranks), fmean(rank["init_s"] + rank["finalize_s"] for rank in ranks)
    mpi = fmean(sum(entry["seconds"] for entry in rank["calls"].values()) for rank in ranks)
    return {
        "startup_s": wall_s - span,
        "init_s": init,
        "mpi_s": mpi,
        "compute_s": span - init - mpi,
        "system_s": fmean(rank["sys_s"] for rank in ranks),
    }


def counters(ranks: Sequence[Record]) -> Mapping:
    """Return counter → value (sum over the ranks), None with the reason where one rank has none; never 0 for absent."""
    return {name: counter([rank["counters"][name] for rank in ranks]) for name in (ranks[0]["counters"] if ranks else ())}


def counter(shares: Sequence[Record]) -> Mapping:
    """Return one counter of all ranks."""
    reason = next((share["reason"] for share in shares if share["value"] is None), None)
    return {"value": None if reason else sum(share["value"] for share in shares), "reason": reason}


def contention(cycles: float | None, cycles_alone: float | None) -> float | None:
    """Return the memory-contention ratio ω(n) = (C(n) - C(1)) / C(1) of Tudor, Teo and See (2011); None where a count is absent.

    ``cycles``: C(n), all cycles of a program on n cores; ``cycles_alone``: C(1), on one. The work is the same, so the growth is
    stall cycles: 0 is no contention, 1 means that the cores wait as long as one core takes for everything.
    """
    if cycles is None or not cycles_alone:
        return None
    return (cycles - cycles_alone) / cycles_alone


def summary(records: Sequence[Record], timed_s: float | None) -> Mapping | None:
    """Return kind → what the last profiled launch of a cell says; None where there is none.

    ``timed_s``: median ``wall_s`` of the cell's timed repeats; ``cost`` is the profiled launch's over it.
    """
    last = {record["profile"]["kind"]: record for record in records}
    return {kind: describe(record, timed_s) for kind, record in sorted(last.items())} or None


def describe(record: Record, timed_s: float | None) -> Mapping:
    """Return one profiled launch as it stands in study.json."""
    wall_s = record["wall_s"]
    found: Mapping = {"reason": record["reason"], "wall_s": wall_s, "app_s": record["app_s"], "timed_s": timed_s}
    if wall_s is None:
        return found
    found["cost"] = wall_s / timed_s if timed_s else None
    ranks = record["profile"]["ranks"]
    if record["profile"]["kind"] == "perf":
        return {**found, "counters": counters(ranks), "user_only": any(rank["user_only"] for rank in ranks)}
    parts = {"calls": calls(ranks), "traffic": traffic(record), "matrix": matrix(record)}
    return {**found, **decomposition(wall_s, ranks), **parts}
