"""``python -m tare.summary``: a study's answer for a terminal."""

import argparse
import io
import sys
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tare import analysis, answers, facts
from tare.audit import MATCH, audit
from tare.measurements import BASELINE, NOISE_FLOOR, Study, read_pair, rows_of
from tare.report_answer import warnings
from tare.rounding import ABSENT, overhead_percent
from tare.stats import settings_of
from tare.verdicts import EQUIVALENT, FASTER, SLOWER, judged

SIGNS = {SLOWER: "▲", FASTER: "▼", EQUIVALENT: "="}
COLOURS = {SLOWER: "red", FASTER: "blue", EQUIVALENT: "green"}
MOST_LINES = 40
CELL = 12
WIDTH = 100
"""Columns where there is no terminal to ask."""


def show(console: Console, measurements: pd.DataFrame, study: Study) -> None:
    """Print what was planned and measured, overheads by setting and backend, one sentence per backend, and warnings."""
    table = judged(measurements, study)
    confidence, delta = settings_of(study)
    console.print(Text(str(study["study"].get("name", "study")), style="bold"))
    if study["site"].get("simulated"):
        console.print(Text("SIMULATED: nothing here was measured", style="bold white on red"))
    for line in facts.accounts(study)[:2]:
        counts = f"{line.planned} planned, {line.measured} measured, {line.failed} failed, {line.skipped} skipped"
        console.print(f"{line.what}: {counts}", highlight=False)
    for part in grids(table, console.width):
        console.print(part)
    sure = f"no sign: undecided at {confidence:.0%}"
    console.print(f"overhead of wall_s; ▲ slower  ▼ faster  = within {answers.margin(delta)}  ({sure})", highlight=False)
    for sentence in answers.sentences(table, delta):
        backend, _, rest = sentence.partition(": ")
        console.print(Text.assemble((backend, "bold"), ": ", rest))
    for warning in warnings(measurements, table, study):
        console.print(Text(f"! {warning}", style="yellow"))
    for reproduced in audit_line(measurements, study):
        console.print(reproduced, highlight=False)


def grids(table: pd.DataFrame, width: int) -> list[Table]:
    """Return overheads of the study's own cells as tables, settings down, backends across, as many of them as the width takes."""
    counted = set(table.loc[table["counted"].astype(bool), "block"])
    wall = table[(table["metric"] == "wall_s") & table["block"].isin(counted)]
    backends = [name for name in dict.fromkeys(wall["backend"]) if name != BASELINE]
    groups = list(wall.groupby("block", sort=False))
    first = max((len(str(block)) for block, _ in groups), default=0)
    across = max(1, (width - first) // (CELL + 2))
    return [grid(groups, backends[start : start + across]) for start in range(0, len(backends), across)]


def grid(groups: list[tuple[Any, pd.DataFrame]], backends: list[str]) -> Table:
    """Return one table; a backend's name is broken where it has a sign, to be no wider than a cell."""
    shown = Table(box=None, pad_edge=False)
    shown.add_column("setting", no_wrap=True)
    for name in backends:
        shown.add_column(name.replace("-", "-\n").replace("+", "\n+"), justify="right", width=CELL, overflow="fold")
    for block, group in groups[:MOST_LINES]:
        cells = {row["backend"]: row for row in rows_of(group)}
        shown.add_row(str(block), *(cell(cells.get(name)) for name in backends))
    if len(groups) > MOST_LINES:
        shown.add_row(f"… {len(groups) - MOST_LINES} more")
    return shown


def cell(row: Study | None) -> Text:
    """Return one overhead, its sign for the verdict, and its colour."""
    text = overhead_percent(row["ratio"]) if row else ABSENT
    if row is None or text == ABSENT:
        return Text(ABSENT)
    style = COLOURS.get(row["verdict"], "") if row["backend"] != NOISE_FLOOR else "dim"
    return Text(f"{text} %{SIGNS.get(row['verdict'], ' ')}", style=style)


def summary(measurements: pd.DataFrame, study: Study, colour: bool = False) -> str:
    """Return the same as text, for a log or a test."""
    console = Console(file=io.StringIO(), width=WIDTH, force_terminal=colour, color_system="standard" if colour else None)
    show(console, measurements, study)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def audit_line(measurements: pd.DataFrame, study: Study) -> list[str]:
    """Return how many printed numbers were reproduced, of a replay."""
    table = audit(measurements, study)
    if table.empty:
        return []
    kinds = table.loc[table["status"] != MATCH, "status"].value_counts()
    others = ", ".join(f"{count} {name}" for name, count in kinds.items()) or "no other"
    return [f"audit: {(table['status'] == MATCH).sum()} of {len(table)} printed numbers reproduced; {others}"]


def write(argv: list[str]) -> None:
    """Print a study's answer."""
    parser = argparse.ArgumentParser(prog="python -m tare.summary", description=write.__doc__)
    parser.add_argument("--results", required=True, type=Path, help="results/<study>, where measurements.csv and study.json are")
    folder = parser.parse_args(argv).results
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    show(console, *read_pair(folder / "measurements.csv", folder / "study.json"))


def main(argv: list[str] | None = None) -> int:
    """Run ``python -m tare.summary --results results/<study>``."""
    return analysis.guarded(write, sys.argv[1:] if argv is None else argv)


if __name__ == "__main__":
    sys.exit(main())
