"""``report.html``: one file that opens from disk, with the answer first and everything it rests on behind it."""

import base64
import shlex
import sys
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd

from tare import analysis, answers, facts, figures
from tare.measurements import BASELINE, NOISE_FLOOR, Study, measured, read_pair, rows_of
from tare.rounding import ABSENT, MINUS, duration, half_up, number, overhead_percent, significant
from tare.stats import settings_of
from tare.verdicts import judged, rank_test_needs
from tare.yamlio import ROOT

TEMPLATES = ROOT / "workflow" / "report"
SETTING = ("app", "toolchain", "flags", "nodes", "ranks")
FEW_REPEATS = 5


def environment() -> jinja2.Environment:
    """Return the template engine: undefined names are errors, text is escaped."""
    engine = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    engine.filters |= {
        "overhead": overhead_percent,
        "duration": lambda seconds: duration(seconds).replace("-", MINUS),
        "significant": lambda value: significant(value).replace("-", MINUS),
        "interval": answers.interval,
        "argv": shlex.join,
        "half_up": half_up,
        "known": known,
    }
    return engine


def known(value: Any) -> Any:
    """Return a value for the page, absent ones as a dash."""
    return ABSENT if value is None or value != value else value  # noqa: PLR0124 - only NaN differs from itself


def render(measurements: pd.DataFrame, study: Study) -> str:
    """Return the report as one HTML text."""
    table = judged(measurements, study)
    confidence, delta = settings_of(study)
    counted = rows_of(table[table["counted"].astype(bool)])
    return (
        environment()
        .get_template("report.html.j2")
        .render(
            study=study,
            config=study["study"],
            site=study["site"],
            css=(TEMPLATES / "report.css").read_text(encoding="utf-8"),
            confidence=confidence,
            margin=answers.margin(delta),
            answers=answers.sentences(table, delta),
            warnings=warnings(table, study),
            accounts=facts.accounts(study),
            sum_rule=facts.SUM,
            backends=[name for name in figures.backends_of(study) if name != BASELINE],
            matrix=matrix(table, delta),
            varying=varying(study),
            probes=probes(table, study, delta),
            side_by_side=side_by_side(table),
            startups=startups(study),
            figures=drawn(measurements, study),
            commands=commands(study),
            settings=settings(study),
            span=span(measurements),
            hosts=hosts(measurements),
            skipped=facts.skipped(study),
            failures=facts.failures(measurements),
            rank_needs=rank_test_needs(sum(row["metric"] == "wall_s" for row in counted)),
            methods=sorted(set(table["method"].dropna())),
            absent=ABSENT,
        )
    )


def warnings(table: pd.DataFrame, study: Study) -> list[str]:
    """Return what a reader must know before believing a number."""
    cells = [cell for cell in study["cells"] if cell["counted"]]
    found = []
    if study["site"].get("virtual"):
        found.append(
            "All nodes are containers of one machine (virtual: true). Overheads are relative costs on that machine; absolute"
            " times, and how backends scale over a real network, belong to a real cluster."
        )
    crowded = sorted({cell["block"] for cell in cells if cell["oversubscribed"]})
    if crowded:
        found.append(
            f"{answers.plural(len(crowded), 'setting')} marked † ran more processes than a node has CPUs (oversubscribed);"
            " what they measure is scheduling as well as containers."
        )
    short = [cell for cell in cells if 0 < cell["measured"] < FEW_REPEATS]
    if short:
        found.append(
            f"{answers.plural(len(short), 'cell')} have fewer than {FEW_REPEATS} measured repeats; their intervals are wide."
        )
    if not (table["backend"] == NOISE_FLOOR).any():
        found.append(
            "No second native arm was run (noise_floor: false), so there is no noise floor to hold the overheads against."
        )
    return found


def matrix(table: pd.DataFrame, delta: float) -> list[dict[str, Any]]:
    """Return the answer's rows: one per setting, with a judged cell per backend for wall_s."""
    return [
        {
            **{key: group[key].iloc[0] for key in (*SETTING, "block", "oversubscribed")},
            "native": number(group["median_native"].max()),
            "floor": next((row for row in rows_of(group) if row["backend"] == NOISE_FLOOR), None),
            "cells": {row["backend"]: row | {"words": answers.in_words(row, delta)} for row in rows_of(group)},
        }
        for _, group in table[(table["metric"] == "wall_s") & table["block"].isin(counted_blocks(table))].groupby(
            "block", sort=False
        )
    ]


def varying(study: Study) -> list[str]:
    """Return which of toolchain, flags and nodes differ between the study's settings; the others need no column."""
    cells = [cell for cell in study["cells"] if cell["counted"]]
    return [key for key in ("toolchain", "flags", "nodes") if len({cell[key] for cell in cells}) > 1]


def counted_blocks(table: pd.DataFrame) -> set[str]:
    """Return the blocks of the study itself, without probes."""
    return set(table.loc[table["counted"].astype(bool), "block"])


def probes(table: pd.DataFrame, study: Study, delta: float) -> list[dict[str, Any]]:
    """Return what ran beside the apps (pingpong's latency): one entry per block and own metric."""
    beside = {cell["block"] for cell in study["cells"] if not cell["counted"]} - counted_blocks(table)
    own = table[table["block"].isin(beside) & ~table["metric"].isin(("wall_s", "app_s"))]
    return [
        {
            "app": group["app"].iloc[0],
            "metric": metric,
            "unit": group["unit"].iloc[0],
            "nodes": group["nodes"].iloc[0],
            "native": number(group["median_native"].max()),
            "rows": [row | {"words": answers.in_words(row, delta)} for row in rows_of(group)],
        }
        for (_, metric), group in own.groupby(["block", "metric"], sort=False)
    ]


def side_by_side(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return wall_s and app_s of each counted cell beside each other."""
    both = table[table["counted"].astype(bool)]
    return [
        {"setting": rows[0], "backend": backend, "wall": first(rows, "wall_s"), "app": first(rows, "app_s")}
        for (_, backend), group in both.groupby(["block", "backend"], sort=False)
        if (rows := rows_of(group))
    ]


def first(rows: list[Study], metric: str) -> Study:
    """Return the row of one metric."""
    return next(row for row in rows if row["metric"] == metric)


def startups(study: Study) -> list[dict[str, Any]]:
    """Return each backend's preparation: median over blocks of image and containers, outside every time above."""
    found: dict[str, list[Study]] = {}
    for cell in study["cells"]:
        if cell.get("startup"):
            found.setdefault(cell["backend"], []).append(cell["startup"])
    lines = []
    for backend, parts in found.items():
        medians = {key: middle([part.get(key) for part in parts]) for key in ("image_s", "containers_s")}
        if any(value is not None for value in medians.values()):
            lines.append({"backend": backend, "blocks": len(parts), **medians})
    return lines


def middle(values: list[Any]) -> float | None:
    """Return the median of the values that are there."""
    return number(pd.Series([value for value in values if value is not None], dtype="float64").median())


def drawn(measurements: pd.DataFrame, study: Study) -> list[dict[str, str]]:
    """Return every figure as a data URI; as images of their own, their SVG ids cannot clash."""
    pictures = []
    for name in figures.names():
        content = figures.image(figures.draw(name, measurements, study), ".svg")
        source = f"data:image/svg+xml;base64,{base64.b64encode(content).decode()}"
        pictures.append({"name": name, "caption": figures.caption(name), "source": source})
    return pictures


def commands(study: Study) -> list[dict[str, Any]]:
    """Return each backend's command lines: how its container is started, and the launch of every block."""
    found: dict[str, dict[str, Any]] = {}
    for cell in study["cells"]:
        if cell.get("argv"):
            entry = found.setdefault(cell["backend"], {"backend": cell["backend"], "container": None, "launches": []})
            entry["container"] = entry["container"] or cell.get("container_argv")
            entry["launches"].append((cell["block"], cell["argv"]))
    return list(found.values())


def settings(study: Study) -> list[Study]:
    """Return what was run: one entry per block with its options and repeats."""
    blocks: dict[str, Study] = {}
    for cell in study["cells"]:
        entry = blocks.setdefault(cell["block"], {**cell, "backends": []})
        entry["backends"].append(cell["backend"])
    return list(blocks.values())


def span(measurements: pd.DataFrame) -> tuple[str, str] | None:
    """Return when the first and the last repeat began."""
    times = sorted(measurements["started"].dropna())
    return (times[0][:19], times[-1][:19]) if times else None


def hosts(measurements: pd.DataFrame) -> list[str]:
    """Return the nodes that measured repeats ran on."""
    return sorted({name for names in measured(measurements)["hosts"].dropna() for name in names.split()})


def write(argv: list[str]) -> None:
    """Write the report of one study."""
    arguments = analysis.parse("tare.report", write.__doc__ or "", argv, None)
    for path in arguments.output:
        analysis.check_suffix(path, (".html",))
    page = render(*read_pair(arguments.measurements, arguments.study))
    for path in arguments.output:
        analysis.save(Path(path), page.encode())


def main(argv: list[str] | None = None) -> int:
    """Run ``python -m tare.report --measurements … --study … -o report.html``."""
    return analysis.guarded(write, sys.argv[1:] if argv is None else argv)


if __name__ == "__main__":
    sys.exit(main())
