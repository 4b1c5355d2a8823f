"""Made-up measurements for the analysis tests: drawn from a seed, with planted overheads. Nobody measured these."""

from collections.abc import Mapping
from itertools import product
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

SECONDS = {"dac": 2.0, "masterslave": 3.0, "spmd": 1.5}
PLANTED = {
    "native": 1.0,
    "native-aa": 1.0,
    "singularity": 1.02,
    "docker-host": 1.0,
    "docker-macvlan": 1.1,
    "docker-overlay": 1.3,
}
SITE = {"name": "pretend", "virtual": True, "nodes": 2, "cpus_per_node": 1}


def row(block: str, backend: str, ranks: int, number: int, wall_s: float | None, **more: Any) -> dict[str, Any]:
    """Return one repeat as it stands in measurements.csv."""
    app, toolchain, flags, _ = block.split("/")
    values: dict[str, Any] = {
        **{"app": app, "toolchain": toolchain, "flags": flags, "backend": backend, "ranks": float(ranks)},
        **{"rep": float(number), "wall_s": wall_s, "app_s": None if wall_s is None else wall_s - 0.4, "nodes": 2.0},
        **{"block": block, "round": float(number), "order": 1.0, "session": "s1", "userland": "debian13"},
        **{"status": "ok" if wall_s else "failed", "metric": "app_s", "value": None if wall_s is None else wall_s - 0.4},
        **{"started": f"2031-01-01T00:{number:02d}:00+00:00", "hosts": "a1 a2", "interconnect": "lan", "reason": None},
        **{"startup_s": 2.0 if "docker" in backend else None, "other_cpu_s": 0.1, "processes": float(ranks)},
        **{"size": None, "plan": "p1", "oversubscribed": "False", "virtual": "True", "exit_code": "0"},
    }
    return values | more


def cell(block: str, backend: str, ranks: int, planned: int, rows: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """Return one cell as it stands in study.json, counted from its rows."""
    app, toolchain, flags, _ = block.split("/")
    values: dict[str, Any] = {
        **{"block": block, "kind": "app", "app": app, "toolchain": toolchain, "flags": flags, "userland": "debian13"},
        **{"backend": backend, "nodes": 2, "ranks": ranks, "processes": ranks, "oversubscribed": ranks > 2},
        **{"counted": backend != "native-aa", "planned": planned, "skipped": None, "pairs": planned},
        "measured": sum(r["status"] == "ok" for r in rows),
        "failed": sum(r["status"] == "failed" for r in rows),
        "argv": ["mpirun", "-np", str(ranks), f"--wrap={backend}", f"build/{app}"],
        "container_argv": ["docker", "run", backend] if "docker" in backend else [],
        "startup": {"image_s": 0.5, "containers_s": 1.5} if "docker" in backend else {},
        "hosts": ["a1", "a2"],
        "options": {"rectangles": 1000},
        "records": f"records/{block}/{backend}.jsonl",
        "digests": {"binary": "b1" * 32, "images": {"docker": "registry/image@sha256:" + "c2" * 32}},
    }
    return values | more


def study(cells: list[dict[str, Any]], **config: Any) -> dict[str, Any]:
    """Return a study.json around cells."""
    return {
        "study": {"name": "pretend", "repeats": 5, "seed": 1, "warmup": 1, **config},
        "site": SITE,
        "baseline": "native",
        "seed": 1,
        "repeats": 5,
        "provenance": {"commit": "abc", "snakemake": "9", "made": "2031-01-01T00:00:00+00:00"},
        "cells": cells,
    }


def frame(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Return rows as the table that ``read_measurements`` returns."""
    table = pd.DataFrame(rows if rows else [row("dac/gcc14/O2/n2r1", "native", 1, 1, 1.0)])
    for name in ("wall_s", "app_s", "value", "startup_s"):
        table[name] = table[name].astype("float64")
    return table if rows else table.iloc[:0]


def campaign(
    repeats: int = 5,
    planted: Mapping[str, float] = PLANTED,
    apps: Mapping[str, float] = SECONDS,
    rank_counts: tuple[int, ...] = (1, 2, 4),
    noise: float = 0.01,
    seed: int = 7,
    flags: Mapping[str, float] = MappingProxyType({"O3_native": 1.0}),
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return a whole study with planted overheads (ratios to native) and log-normal noise."""
    random = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    cells = []
    for (app, seconds), ranks, (name, factor) in product(apps.items(), rank_counts, flags.items()):
        block = f"{app}/gcc14/{name}/n2r{ranks}"
        for backend, ratio in planted.items():
            times = factor * seconds / ranks * ratio * np.exp(random.normal(0, noise, repeats)) + 0.5
            here = [row(block, backend, ranks, number, float(time)) for number, time in enumerate(times, 1)]
            rows += here
            cells.append(cell(block, backend, ranks, repeats, here))
    return frame(rows), study(cells)


def with_pingpong(table: pd.DataFrame, facts: dict[str, Any]) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Add a pingpong probe, whose own metric is its half round trip."""
    random = np.random.default_rng(3)
    block = "pingpong/gcc14/O3_native/n2r2"
    rows: list[dict[str, Any]] = []
    cells = []
    for backend, ratio in PLANTED.items():
        trips = 9e-6 * ratio * np.exp(random.normal(0, 0.03, 5))
        own = {"metric": "half_round_trip_s"}
        here = [row(block, backend, 2, n, 1.5, app_s=0.9, value=float(trip), **own) for n, trip in enumerate(trips, 1)]
        rows += here
        cells.append(cell(block, backend, 2, 5, here, kind="probe", counted=False))
    return pd.concat([table, frame(rows)], ignore_index=True), facts | {"cells": facts["cells"] + cells}


def with_metrics(table: pd.DataFrame, facts: dict[str, Any]) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Add further metrics: half round trips by message size, a rate by message size, and two counters."""
    random = np.random.default_rng(5)
    sizes = (1, 64, 4096, 262144)
    rows = []
    for backend, repeat in product(PLANTED, (1, 2, 3)):
        factor = PLANTED[backend] * float(np.exp(random.normal(0, 0.02)))
        base = {"userland": "debian13", "toolchain": "gcc14", "backend": backend, "rep": repeat, "session": "s1", "round": repeat}
        sized = base | {"app": "pingpong", "flags": "O3_native", "ranks": 2, "block": "pingpong/gcc14/O3_native/n2r2"}
        rate = base | {"app": "bibw", "flags": "O3_native", "ranks": 2, "block": "bibw/gcc14/O3_native/n2r2"}
        trips = {size: (9e-6 + size / 1e9) * factor for size in sizes}
        rows += [sized | {"metric": "half_round_trip_s", "size": size, "value": trip} for size, trip in trips.items()]
        rows += [rate | {"metric": "sent_bytes_per_s", "size": size, "value": size / trip} for size, trip in trips.items()]
        for app, ranks in product(SECONDS, (1, 4)):
            counted = base | {"app": app, "flags": "O3_native", "ranks": ranks, "block": f"{app}/gcc14/O3_native/n2r{ranks}"}
            rows.append(counted | {"metric": "context-switches", "size": None, "value": 100.0 * ranks * factor})
            rows.append(counted | {"metric": "major-faults", "size": None, "value": 0.0})
    metrics = pd.DataFrame(rows).astype({"size": "float64", "value": "float64"})
    return table, facts | {"metrics": metrics}


def with_profiles(table: pd.DataFrame, facts: dict[str, Any]) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Give every cell what its profiled launches and its nodes' counters said."""
    call = {"count": 60, "bytes": 4800.0, "seconds": 0.2, "longest_s": 0.3}
    parts = {"startup_s": 0.4, "init_s": 0.1, "mpi_s": 0.3, "compute_s": 0.7, "system_s": 0.05}
    mpi = {
        **{"reason": None, "wall_s": 1.5, "app_s": 1.0, "timed_s": 1.4, "cost": 1.5 / 1.4, "matrix": [[0.0, 1e6], [2e6, 0.0]]},
        **{"calls": {"MPI_Recv": call, "MPI_Send": {**call, "seconds": 0.1}}, **parts},
        "traffic": {"intra-container": {"messages": 0, "bytes": 0.0}, "inter-node": {"messages": 60, "bytes": 3e6}},
    }
    absent = {"value": None, "reason": "no such counter"}
    perf = {**mpi, "user_only": False, "counters": {"task-clock": {"value": 900.0, "reason": None}, "cycles": absent}}
    moved = {"sent_bytes": {"eth0": 3.1e6}, "sent_packets": {"eth0": 2500}}
    counted = {**moved, "softirq_s": 0.01, "steal_s": 0.0, "throttled_s": None, "load": 0.7}
    cells = [{**cell, "profile": {"mpi": mpi, "perf": perf}, "system": counted} for cell in facts["cells"]]
    return table, facts | {"cells": cells}


def tour() -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return a study that has something for every table and figure."""
    flags = {"O2": 1.4, "O3_native": 1.0}
    table, facts = with_metrics(*with_pingpong(*campaign(apps={"dac": 2.0, "spmd": 1.5}, rank_counts=(1, 4), flags=flags)))
    table, facts = with_profiles(table, facts)
    container = ~table["backend"].isin(["native", "native-aa"])
    scenario = table["rep"].map(lambda rep: (1.0, 2.0, 4.0)[int(rep) % 3]).where(container)
    affinity = table["rep"].map(lambda rep: ("any", "cpu", "cpumem", "cpumempin")[int(rep) % 4]).where(container)
    return table.assign(containers_per_node=scenario, affinity=affinity), facts
