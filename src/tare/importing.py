"""Published data: a study with ``import:`` becomes measurements.csv and study.json; from there on all is the same."""

import argparse
import sys
from pathlib import Path
from typing import Any

import pandas as pd

from tare import analysis
from tare.errors import TareError
from tare.files import save
from tare.measurements import METRIC_COLUMNS, NUMBERS, PAIR, Study, read_table, rows_of, to_numbers
from tare.yamlio import ROOT, check, read_yaml, shown, suggestion

KEYS = ["app", "userland", "toolchain", "flags", "backend", "ranks"]
NEEDED = ("app", "toolchain", "flags", "backend", "ranks", "rep")
COLUMNS = (*KEYS, "rep", "wall_s", "app_s", "nodes", "block", *PAIR, "order", "status", "metric", "value", "size", "reason")


def load(path: Path) -> Study:
    """Return a checked study of published data."""
    study = read_yaml(path)
    check(study, "import", shown(path))
    files = study["import"] if isinstance(study["import"], list) else [study["import"]]
    return {"method": "tare", **study, "import": files, "where": shown(path)}


def read_file(entry: Study) -> pd.DataFrame:
    """Return one published file under this project's column names, with its constants and scales applied."""
    path = ROOT / entry["path"]
    table = renamed(read_table(path), entry, shown(path))
    table = without(table, entry.get("drop", {}), shown(path))
    for column, names in entry.get("values", {}).items():
        needs(table, column, f"{shown(path)}: values")
        table[column] = table[column].fillna("").map(lambda value, names=names: names.get(value, value)).replace("", None)
    table = table.assign(**entry.get("constants", {}))
    for column in NUMBERS:
        if column in table.columns:
            table[column] = to_numbers(table[column], f"{shown(path)}: {column}") * entry.get("scale", {}).get(column, 1)
    for column in NEEDED:
        needs(table, column, shown(path))
    return table


def renamed(table: pd.DataFrame, entry: Study, where: str) -> pd.DataFrame:
    """Give a table this project's column names; a name that the study says and the file lacks is a TareError."""
    for theirs in entry.get("columns", {}).values():
        needs(table, theirs, where)
    return table.rename(columns={theirs: ours for ours, theirs in entry.get("columns", {}).items()})


def without(table: pd.DataFrame, drop: dict[str, list[str]], where: str) -> pd.DataFrame:
    """Leave out rows that are no measurements of their own (values entered twice); the study says which, and why."""
    for column, values in drop.items():
        needs(table, column, f"{where}: drop")
        table = table[~table[column].isin(values)]
    return table.copy()


def needs(table: pd.DataFrame, column: str, where: str) -> None:
    """Raise when a column is missing."""
    if column not in table.columns:
        known = [str(name) for name in table.columns]
        raise TareError(f"{where}: no column {column!r}; {suggestion(column, known)}; say columns: or constants: in the study")


def completed(table: pd.DataFrame, columns: tuple[str, ...]) -> pd.DataFrame:
    """Return a table with exactly these columns; a row without a time or value is a failed repeat."""
    for column in columns:
        if column not in table.columns:
            table[column] = None
    table["block"] = [block(row) for row in rows_of(table[KEYS])]
    table = table.astype({"ranks": "Int64", "rep": "Int64"})
    if "status" in columns:
        measured = table["wall_s"].notna() | table["value"].notna()
        table["status"] = ["ok" if known else "failed" for known in measured]
        table.loc[~measured, "reason"] = "no time in the published data"
    return table[list(columns)]


def block(row: dict[str, Any]) -> str:
    """Return the setting's id, as in a measured study but without nodes, which published tables rarely say."""
    userland = f"{row['userland']}/" if isinstance(row["userland"], str) else ""
    return f"{row['app']}/{userland}{row['toolchain']}/{row['flags']}/r{row['ranks']:g}"


def cells_of(table: pd.DataFrame, entry: Study) -> list[Study]:
    """Return the cells of one file as they stand in study.json: all that is there was planned."""
    limit = entry.get("oversubscribed_above")
    cells = []
    for _, rows in table.groupby([*KEYS, "block"], dropna=False, sort=False):
        first = rows_of(rows.head(1))[0]
        done = int((rows["status"] == "ok").sum())
        cells.append(
            {
                **{key: None if pd.isna(first[key]) else first[key] for key in (*KEYS, "block", "nodes")},
                "ranks": int(first["ranks"]),
                "kind": entry.get("kind", "app"),
                "counted": entry.get("kind", "app") == "app",
                "processes": None,
                "oversubscribed": limit is not None and first["ranks"] > limit,
                **{"planned": len(rows), "measured": done, "failed": len(rows) - done, "skipped": None, "pairs": 0},
                **{"argv": None, "container_argv": None, "startup": None, "options": None},
            }
        )
    return cells


def imported(study: Study) -> tuple[pd.DataFrame, pd.DataFrame, Study]:
    """Return measurements, further metrics in long form, and the facts of a study of published data."""
    tables, metrics, cells = [], [], []
    for entry in study["import"]:
        table = read_file(entry)
        if entry.get("kind") == "counters":
            metrics.append(completed(table, METRIC_COLUMNS))
            continue
        tables.append(completed(table, COLUMNS))
        cells += cells_of(tables[-1], entry)
    if not tables:
        raise TareError(f"{study['where']}: import: no file with times; a file of kind counters cannot stand alone; add one")
    facts = {
        "study": {key: value for key, value in study.items() if key != "import"},
        "site": {"name": "published", "virtual": False},
        "import": study["import"],
        "cells": cells,
        "provenance": {"source": study.get("citation"), "files": ", ".join(entry["path"] for entry in study["import"])},
    }
    return pd.concat(tables, ignore_index=True), joined(metrics), facts


def joined(parts: list[pd.DataFrame]) -> pd.DataFrame:
    """Return all further metrics, an empty table where there are none."""
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=list(METRIC_COLUMNS))


def write(argv: list[str]) -> None:
    """Turn a study of published data into measurements.csv, metrics.csv and study.json."""
    parser = argparse.ArgumentParser(prog="python -m tare.importing", description=write.__doc__)
    parser.add_argument("studyfile", type=Path)
    for name in ("measurements", "metrics", "study"):
        parser.add_argument(f"--{name}", required=True, type=Path, help="to be written")
    arguments = parser.parse_args(argv)
    write_files(imported(load(arguments.studyfile)), arguments.measurements, arguments.metrics, arguments.study)


def write_files(what: tuple[pd.DataFrame, pd.DataFrame, Study], measurements: Path, metrics: Path, study: Path) -> None:
    """Write the three files that the analysis reads."""
    save(measurements, csv(what[0]))
    save(metrics, csv(what[1]))
    save(study, analysis.json_bytes(what[2]))


def csv(table: pd.DataFrame) -> bytes:
    """Return a table as CSV; absent values are empty fields."""
    return str(table.to_csv(index=False, lineterminator="\n")).encode()


def main(argv: list[str] | None = None) -> int:
    """Run ``python -m tare.importing STUDY.yaml --measurements … --metrics … --study …``."""
    return analysis.guarded(write, sys.argv[1:] if argv is None else argv)


if __name__ == "__main__":
    sys.exit(main())
