"""``python -m tare.summary``: a study's answer for a terminal, in as many columns as it has."""

import argparse
import shutil
import sys
import textwrap
from pathlib import Path

import pandas as pd

from tare import analysis, answers, facts
from tare.audit import MATCH, audit
from tare.measurements import BASELINE, NOISE_FLOOR, Study, read_pair, rows_of
from tare.report_answer import warnings
from tare.rounding import ABSENT, overhead_percent
from tare.stats import settings_of
from tare.verdicts import EQUIVALENT, FASTER, SLOWER, judged

SIGNS = {SLOWER: "▲", FASTER: "▼", EQUIVALENT: "="}
COLOURS = {SLOWER: "31", FASTER: "34", EQUIVALENT: "32"}
MOST_LINES = 40


def summary(measurements: pd.DataFrame, study: Study, colour: bool = False, width: int = 100) -> str:
    """Return the answer as text: what was planned and measured, overheads by setting and backend, one sentence per backend."""
    table = judged(measurements, study)
    confidence, delta = settings_of(study)
    simulated = ["SIMULATED: nothing here was measured"] if study["site"].get("simulated") else []
    counts = [
        f"{line.what}: {line.planned} planned, {line.measured} measured, {line.failed} failed, {line.skipped} skipped"
        for line in facts.accounts(study)[:2]
    ]
    key = f"overhead of wall_s; ▲ slower  ▼ faster  = within {answers.margin(delta)}  (no sign: undecided at {confidence:.0%})"
    parts = [f"{study['study'].get('name', 'study')}", *simulated, *counts, ""]
    lines = grid(table, colour)
    said = answers.sentences(table, delta) + [f"! {text}" for text in warnings(measurements, table, study)]
    parts += [*lines[:MOST_LINES], *([f"… {len(lines) - MOST_LINES} more"] if len(lines) > MOST_LINES else []), key, ""]
    parts += [textwrap.fill(text, width, subsequent_indent="  ") for text in said]
    return "\n".join(parts + audit_line(measurements, study))


def grid(table: pd.DataFrame, colour: bool) -> list[str]:
    """Return overheads as lines of text: settings down, backends across."""
    counted = set(table.loc[table["counted"].astype(bool), "block"])
    wall = table[(table["metric"] == "wall_s") & table["block"].isin(counted)]
    backends = [name for name in dict.fromkeys(wall["backend"]) if name != BASELINE]
    rows = []
    for block, group in wall.groupby("block", sort=False):
        cells = {row["backend"]: row for row in rows_of(group)}
        rows.append((str(block), [cells.get(name) for name in backends]))
    first = max((len(block) for block, _ in rows), default=0)
    widths = [max(len(name), 9) for name in backends]
    head = " " * first + "".join(f"  {name:>{width}}" for name, width in zip(backends, widths, strict=True))
    return [head] + [
        f"{block:<{first}}" + "".join(f"  {cell(row, width, colour)}" for row, width in zip(cells, widths, strict=True))
        for block, cells in rows
    ]


def cell(row: Study | None, width: int, colour: bool) -> str:
    """Return one overhead, its sign for the verdict, and its colour where the terminal has any."""
    shown = overhead_percent(row["ratio"]) if row else ABSENT
    text = f"{shown + ' %' if shown != ABSENT else ABSENT}{SIGNS.get(row['verdict'], ' ') if row else ' '}"
    code = COLOURS.get(row["verdict"]) if row and colour and row["backend"] != NOISE_FLOOR else None
    return f"\033[{code}m{text:>{width}}\033[0m" if code else f"{text:>{width}}"


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
    width = min(shutil.get_terminal_size((100, 40)).columns, 120)
    print(summary(*read_pair(folder / "measurements.csv", folder / "study.json"), sys.stdout.isatty(), width))


def main(argv: list[str] | None = None) -> int:
    """Run ``python -m tare.summary --results results/<study>``."""
    return analysis.guarded(write, sys.argv[1:] if argv is None else argv)


if __name__ == "__main__":
    sys.exit(main())
