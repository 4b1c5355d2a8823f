"""``measurements.csv`` and ``study.json`` as the analysis reads them: checked once, then relied upon."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd

from tare.errors import TareError

Study = dict[str, Any]

BASELINE = "native"
NOISE_FLOOR = "native-aa"

REQUIRED = ("app", "toolchain", "flags", "backend", "ranks", "rep", "wall_s", "block", "status")
NUMBERS = ("ranks", "nodes", "rep", "round", "order", "wall_s", "app_s", "value", "startup_s", "other_cpu_s", "processes")
TEXTS = ("interconnect", "userland", "metric", "started", "hosts", "plan", "reason", "session", "size", "exit_code")
METRIC_COLUMNS = (
    *("app", "userland", "toolchain", "flags", "backend", "ranks", "rep", "block"),
    *("session", "round", "metric", "size", "value"),
)
"""metrics.csv: one row per repeat, metric and size (bytes of a message; empty where the metric knows no sizes)."""

PAIR = ["session", "round"]
"""What two arms of a block share when they were run side by side."""


def read_measurements(path: Path) -> pd.DataFrame:
    """Return measurements.csv with every known column there, numbers as floats, absent as NaN.

    Raises TareError for a file that cannot be read, lacks a needed column, or holds text where a number belongs.
    """
    table = read_table(path)
    for column in REQUIRED:
        if column not in table.columns:
            raise TareError(f"{path}: no column {column!r}: found {', '.join(table.columns)}; collect the study again")
    table = with_known_columns(table)
    for column in NUMBERS:
        table[column] = to_numbers(table[column], f"{path}: {column}")
    check_rows(table, path)
    return table


def with_known_columns(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table in which every column that the analysis knows is there, absent ones empty."""
    return table.assign(**{column: None for column in (*NUMBERS, *TEXTS) if column not in table.columns})


def read_table(path: Path) -> pd.DataFrame:
    """Return a CSV file as text; empty fields are absent, everything else (also ``NA``) is what it says."""
    try:
        return pd.read_csv(path, dtype="object", keep_default_na=False, na_values=[""])
    except OSError as error:
        raise TareError(f"{path}: cannot be read: {error.strerror}; check the name") from error
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise TareError(f"{path}: not a CSV table: {' '.join(str(error).split())}; collect the study again") from error


def to_numbers(column: "pd.Series[Any]", where: str) -> "pd.Series[float]":
    """Return a column as floats; text in it is a TareError."""
    numbers = pd.to_numeric(column, errors="coerce").astype("float64")
    wrong = column[numbers.isna() & column.notna()]
    if len(wrong):
        raise TareError(f"{where}: row {wrong.index[0] + 2}: {wrong.iloc[0]!r} is not a number; mend that row or collect again")
    return numbers


def check_rows(table: pd.DataFrame, path: Path) -> None:
    """Raise where a row cannot be true: a measured repeat without a time, an arm twice in a round."""
    measured = table[table["status"] == "ok"]
    wrong = measured[~((measured["wall_s"] > 0) | (measured["value"] > 0))]
    if len(wrong):
        row = wrong.index[0] + 2
        raise TareError(f"{path}: row {row}: status ok needs a wall_s or a value above 0; mend that row or collect again")
    rounds = table[table["round"].notna()]
    twice = rounds[rounds.duplicated(["block", "backend", *PAIR])]
    if len(twice):
        row = twice.iloc[0]
        raise TareError(
            f"{path}: row {twice.index[0] + 2}: {row['block']} {row['backend']} is there twice in round {row['round']:g}"
            f" of session {row['session']}; a round runs every arm once; remove one"
        )


def read_study(path: Path) -> Study:
    """Return study.json; a missing or malformed one is a TareError."""
    try:
        study = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise TareError(f"{path}: cannot be read: {error.strerror}; check the name") from error
    except ValueError as error:
        raise TareError(f"{path}: not JSON: {error}; collect the study again") from error
    if not isinstance(study, dict) or not isinstance(study.get("cells"), list):
        raise TareError(f"{path}: has no list 'cells'; collect the study again")
    return study


def read_pair(measurements_path: Path, study_path: Path) -> tuple[pd.DataFrame, Study]:
    """Read both files of a study and see that they tell the same story.

    ``study["metrics"]`` holds what stands in metrics.csv beside measurements.csv, if anything does.
    """
    measurements, study = read_measurements(measurements_path), read_study(study_path)
    study["metrics"] = read_metrics(measurements_path.with_name("metrics.csv"))
    counted = Counter(zip(*(measurements[key] for key in ("block", "backend", "status")), strict=True))
    for cell in study["cells"]:
        for status, key in (("ok", "measured"), ("failed", "failed")):
            rows = counted.pop((cell["block"], cell["backend"], status), 0)
            if rows != cell[key]:
                raise TareError(
                    f"{study_path}: {cell['block']} {cell['backend']}: says {cell[key]} {key}, {measurements_path.name} has"
                    f" {rows}; collect the study again"
                )
    if counted:
        block, backend, status = next(iter(counted))
        raise TareError(f"{measurements_path}: {block} {backend} ({status}) is not a cell of {study_path.name}; collect again")
    return measurements, study


def read_metrics(path: Path) -> pd.DataFrame:
    """Return metrics.csv: further numbers of the same repeats in long form; where there is no such file, an empty table."""
    if not path.is_file():
        return pd.DataFrame(columns=list(METRIC_COLUMNS))
    table = read_table(path)
    for column in METRIC_COLUMNS:
        if column not in table.columns:
            raise TareError(f"{path}: no column {column!r}: found {', '.join(table.columns)}; collect the study again")
    for column in ("ranks", "rep", "round", "size", "value"):
        table[column] = to_numbers(table[column], f"{path}: {column}")
    return table


def measured(measurements: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that have times; failed repeats stay in the report, never in a statistic."""
    return measurements[measurements["status"] == "ok"]


def rows_of(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a table's rows as dicts, for code that looks at one row at a time."""
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]
