"""From records to ``measurements.csv`` (one row per repeat) and ``study.json`` (what was planned, run, failed, skipped)."""

import argparse
import csv
import datetime
import io
import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

from tare import profile, system
from tare.analysis import guarded
from tare.arms import FACTOR_COLUMNS
from tare.cases import BASELINE, NOISE_FLOOR, Arm, Block, block_from_document
from tare.config import Mapping, load_manifests
from tare.errors import TareError
from tare.files import save
from tare.measurements import METRIC_COLUMNS
from tare.metrics import further_rows
from tare.records import Record, Store, counted, read_records, validated
from tare.yamlio import ROOT

COLUMNS = (
    *("app", "toolchain", "flags", "backend", "ranks", "rep", "wall_s", "app_s", "nodes", "block", "round", "order"),
    *("session", "status", "exit_code", "processes", "oversubscribed", "interconnect", "userland", "metric", "value"),
    *("startup_s", "other_cpu_s", "started", "hosts", "virtual", "plan", "reason", "arm", "baseline", *FACTOR_COLUMNS),
)


def cell_rows(records: list[Record], metric: str, block: Block, arm: Arm) -> list[Mapping]:
    """Return a cell's rows in the order measured; warm-ups are not among ``records``."""
    facts = arm_facts(block, arm)
    return [row(record, number, metric, facts) for number, record in enumerate(records, start=1)]


def arm_facts(block: Block, arm: Arm) -> Mapping:
    """Return what places a cell among the others, for its rows and for study.json.

    ``backend`` is the arm's label. ``block`` is the block's id with the arm's own toolchain and flags: where they are compared,
    one job measures what the analysis sees as several blocks, each with a native of its own.
    """
    setting = block.setting.of(arm)
    return {
        "block": setting.id,
        "userland": setting.userland,
        "toolchain": setting.toolchain,
        "flags": setting.flags,
        "interconnect": setting.interconnect,
        "backend": arm.label,
        "arm": arm.name,
        "baseline": arm.baseline,
        **{name: getattr(arm, name) for name in FACTOR_COLUMNS},
    }


def row(record: Record, rep: int, metric: str, facts: Mapping) -> Mapping:
    """Return one repeat as a row; what is absent stays empty."""
    value = record["app_s"] if metric == "app_s" else record["metrics"].get(metric)
    derived = {
        **facts,
        "rep": rep,
        "metric": metric,
        "value": value,
        "startup_s": startup_s(record["startup"]),
        "other_cpu_s": record["cpu"]["other_s"],
        "hosts": " ".join(record["hosts"]),
    }
    return {column: derived.get(column, record.get(column)) for column in COLUMNS}


def startup_s(startup: Mapping) -> float | None:
    """Return how long an arm's preparation took, or None where there was none."""
    parts = [seconds for seconds in startup.values() if seconds is not None]
    return sum(parts) if parts else None


def csv_text(rows: list[Mapping], columns: tuple[str, ...] = COLUMNS) -> str:
    """Return rows as CSV with a header; None becomes an empty field."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def read_stamp(store: Store, setting_id: str, arm: str) -> Record:
    """Return a cell's stamp; its absence means the block was not measured."""
    stamps = read_records(store.stamp(setting_id, arm))
    if not stamps:
        raise TareError(f"{store.stamp(setting_id, arm)}: no stamp; the block was not measured; run snakemake again")
    return stamps[0]


def describe_cell(block: Block, arm: Arm, stamp: Record, records: list[Record], manifest: Mapping) -> Mapping:
    """Return one cell for ``study.json``."""
    setting = block.setting
    last = records[-1] if records else {}
    return {
        **arm_facts(block, arm),
        "native": native_label(block, arm),
        "kind": setting.kind,
        "app": setting.app,
        "nodes": setting.nodes,
        "ranks": setting.ranks,
        "processes": setting.processes,
        "oversubscribed": block.oversubscribed,
        "counted": setting.kind == "app" and arm.label != NOISE_FLOOR,
        "planned": stamp["planned"],
        "measured": stamp["measured"],
        "failed": stamp["failed"],
        "pairs": stamp["pairs"],
        "skipped": stamp["skipped"],
        "argv": last.get("argv"),
        "container_argv": last.get("container_argv"),
        "startup": last.get("startup"),
        "hosts": last.get("hosts"),
        "options": setting.options,
        "metric": manifest["metric"]["name"],
        "unit": manifest["metric"]["unit"],
        "better": manifest["metric"]["better"],
        "metrics": manifest["metrics"],
        "digests": last.get("digests"),
        "title": manifest["title"],
        "cpu_model": last.get("cpu_model"),
        "kernel": last.get("kernel"),
        "software": software(last),
        "with": built_and_run_with(last),
        "records": f"records/{setting.id}/{arm.name}.jsonl" if records else None,
        "system": system.summary([record for record in records if record["status"] == "ok"]),
    }


def software(record: Record) -> list[str]:
    """Return the MPI library and libc that the ranks of a repeat reported."""
    return sorted({str(rank[key]) for rank in record.get("proof") or [] for key in ("mpi", "libc") if rank.get(key)})


def built_and_run_with(record: Record) -> Mapping:
    """Return a cell's compiler and its CPU from the build, MPI and C library as rank 0 proved them; None where unknown."""
    build: Mapping = record.get("build") or {}
    proof: Mapping = next(iter(record.get("proof") or []), {})
    cpu = build.get("cpu_model") if build.get("native_cpu") else None
    return {"compiler": build.get("compiler"), "mpi": proof.get("mpi"), "libc": proof.get("libc"), "compiled_for": cpu}


def describe_profiles(store: Store, block: Block, arm: Arm, plan: str, records: list[Record]) -> Mapping:
    """Return what a cell's profiled launches say, beside the cost of profiling."""
    profiles = counted(read_records(store.profiles(block.setting.id, arm.name)), plan)
    times = [record["wall_s"] for record in records if record["status"] == "ok"]
    return {"profile": profile.summary(profiles, median(times) if times else None)}


def native_label(block: Block, arm: Arm) -> str:
    """Return the column ``backend`` of the cell that an arm is weighed against."""
    return block.arm(arm.baseline).label


def check_checksums(records: list[Record]) -> None:
    """Raise when two runs of one app at one size gave different answers: whatever ran them, the bits must agree."""
    first: dict[str, Record] = {}
    for record in records:
        checksum = (record["answer"] or {}).get("checksum")
        if record["status"] != "ok" or checksum is None:
            continue
        size = json.dumps([record["app"], record["options"]], sort_keys=True)
        other = first.setdefault(size, record)
        if other["answer"]["checksum"] != checksum:
            raise TareError(
                f"{record['block']}: {record['backend']} answered {checksum}; {other['block']}: {other['backend']} answered"
                f" {other['answer']['checksum']}; one of them is wrong, so no table is made; remove the wrong one's records"
            )


def commit() -> str | None:
    """Return the checkout's commit, or None outside a repository."""
    argv = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() or None


def collect(plan_path: Path, manifests: dict[str, Mapping], csv_path: Path, metrics_path: Path, study_path: Path) -> None:
    """Write a study's measurements and facts, from its plan, stamps and records."""
    plan = json.loads(plan_path.read_text(encoding="utf-8"))
    store = Store(plan_path.parent)
    rows: list[Mapping] = []
    metrics: list[Mapping] = []
    everything: list[Record] = []
    cells: list[Mapping] = []
    for document in plan["blocks"].values():
        block = block_from_document(document)
        for arm in block.arms:
            stamp = read_stamp(store, block.setting.id, arm.name)
            path = store.records(block.setting.id, arm.name)
            records = [validated(record, str(path)) for record in counted(read_records(path), stamp["plan"])]
            everything += records
            manifest = manifests[block.setting.app]
            measured = cell_rows(records, manifest["metric"]["name"], block, arm)
            rows += measured
            for line, record in zip(measured, records, strict=True):
                metrics += further_rows(line, record["metrics"])
            cell = describe_cell(block, arm, stamp, records, manifest)
            cells.append(cell | describe_profiles(store, block, arm, stamp["plan"], records))
    check_checksums(everything)
    facts: dict[str, Any] = {
        "study": plan["study"],
        "site": plan["site"],
        "baseline": BASELINE,
        "seed": plan["study"]["seed"],
        "repeats": plan["study"]["repeats"],
        "provenance": {
            "commit": commit(),
            "snakemake": version("snakemake"),
            "made": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        },
        "cells": cells,
    }
    save(csv_path, csv_text(rows))
    save(metrics_path, csv_text(metrics, METRIC_COLUMNS))
    save(study_path, json.dumps(facts, indent=1, sort_keys=True) + "\n")


def write(argv: list[str]) -> None:
    """Turn a study's records into measurements.csv, metrics.csv and study.json."""
    parser = argparse.ArgumentParser(prog="python -m tare.collect", description=write.__doc__)
    parser.add_argument("--plan", required=True, type=Path)
    for name in ("measurements", "metrics", "study"):
        parser.add_argument(f"--{name}", required=True, type=Path, help="to be written")
    arguments = parser.parse_args(argv)
    planned = json.loads(arguments.plan.read_text(encoding="utf-8"))["study"]
    collect(arguments.plan, load_manifests(planned), arguments.measurements, arguments.metrics, arguments.study)


if __name__ == "__main__":
    sys.exit(guarded(write, sys.argv[1:]))
