"""The profiled launches of a study as tables: one row per cell, call, counter, lane or pair of ranks."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from tare.measurements import Study
from tare.system import traffic_verdict

KEYS = ["app", "toolchain", "flags", "nodes", "ranks", "backend"]
PARTS = ("startup_s", "init_s", "compute_s", "mpi_s")
"""They add up to ``wall_s`` of the profiled launch."""


def profiled(study: Study, kind: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield the keys of every cell with a good profile of a kind, and that profile."""
    for cell in study["cells"]:
        found = (cell.get("profile") or {}).get(kind)
        if found and found["wall_s"] is not None:
            yield {key: cell[key] for key in KEYS}, found


def table(rows: list[dict[str, Any]], columns: list[str]) -> pd.DataFrame:
    """Return rows with the cells' keys first; no rows, no profile."""
    return pd.DataFrame(rows, columns=[*KEYS, *columns])


def decompositions(study: Study) -> pd.DataFrame:
    """Return where each cell's seconds went, beside what profiling cost it."""
    columns = ["wall_s", *PARTS, "system_s", "timed_s", "cost"]
    return table([{**keys, **{name: found[name] for name in columns}} for keys, found in profiled(study, "mpi")], columns)


def mpi_calls(study: Study) -> pd.DataFrame:
    """Return each cell's MPI calls, the one that takes longest first."""
    columns = ["call", "count", "bytes", "seconds", "longest_s"]
    rows = [
        {**keys, "call": name, **entry}
        for keys, found in profiled(study, "mpi")
        for name, entry in sorted(found["calls"].items(), key=lambda pair: -pair[1]["seconds"])
    ]
    return table(rows, columns)


def lanes(study: Study) -> pd.DataFrame:
    """Return each cell's messages by where they go."""
    rows = [
        {**keys, "lane": name, **entry}
        for keys, found in profiled(study, "mpi")
        for name, entry in found["traffic"].items()
        if entry["messages"]
    ]
    return table(rows, ["lane", "messages", "bytes"])


def counters(study: Study) -> pd.DataFrame:
    """Return each cell's counters; one that is absent has a reason in the place of a value."""
    rows = [
        {**keys, "counter": name, **entry} for keys, found in profiled(study, "perf") for name, entry in found["counters"].items()
    ]
    return table(rows, ["counter", "value", "reason"])


def system(study: Study) -> pd.DataFrame:
    """Return what each cell's nodes counted during a repeat, and whether the traffic went where the label says."""
    columns = ["interface", "sent_MB", "traffic", "softirq_s", "steal_s", "throttled_s", "load"]
    return table([system_row(cell, study) for cell in study["cells"] if cell.get("system")], columns)


def system_row(cell: dict[str, Any], study: Study) -> dict[str, Any]:
    """Return one cell's row."""
    counted = cell["system"]
    named = study["site"].get("interconnects", {}).get(cell.get("interconnect"), {}).get("interface")
    interface, verdict = traffic_verdict(counted["sent_bytes"], named, len(cell["hosts"] or []))
    sent = counted["sent_bytes"][interface] / 1e6 if interface else None
    rest = {key: counted[key] for key in ("softirq_s", "steal_s", "throttled_s", "load")}
    return {**{key: cell[key] for key in KEYS}, "interface": interface, "sent_MB": sent, "traffic": verdict, **rest}
