"""``report.html``: one file that opens from disk, with the answer first and everything it rests on behind it."""

import base64
import math
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd

from tare import analysis, answers, facts, figures, quality
from tare.audit import MATCH, audit
from tare.measurements import BASELINE, NOISE_FLOOR, Study, measured, read_pair, rows_of
from tare.methods import DEFAULT, METHODS, method_of
from tare.rounding import ABSENT, MINUS, duration, half_up, number, overhead_percent, significant
from tare.stats import settings_of
from tare.verdicts import judged, rank_test_needs
from tare.yamlio import ROOT

Images = dict[str, bytes | None]

TEMPLATES = ROOT / "workflow" / "report"
SETTING = ("app", "userland", "toolchain", "flags", "nodes", "ranks")
FIRST_FIGURE = "overhead_heatmap"
FEW_REPEATS = 5
WIDE_FLOOR = 5.0  # percent: as much as most overheads that containers are measured for


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
        "duration": signed(duration),
        "in_unit": in_unit,
        "interval": answers.interval,
        "argv": shlex.join,
        "half_up": signed(half_up),
        "known": known,
    }
    return engine


def signed(form: Callable[..., str]) -> Callable[..., str]:
    """Return a formatter that writes a true minus sign."""
    return lambda *values: form(*values).replace("-", MINUS)


def known(value: Any) -> Any:
    """Return a value for the page, absent ones as a dash."""
    return ABSENT if number_is_absent(value) else value


def number_is_absent(value: Any) -> bool:
    """Tell None and NaN from values."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def in_unit(value: Any, unit: str) -> str:
    """Return a metric's value: seconds with a suitable unit, others with their own."""
    return signed(duration)(value) if unit == "s" else f"{signed(significant)(value)} {unit}"


def render(measurements: pd.DataFrame, study: Study, images: Images | None = None) -> str:
    """Return the report as one HTML text; ``images`` are its figures as SVG where they were drawn before."""
    table = judged(measurements, study)
    images = drawn(measurements, study) if images is None else images
    pictures = [picture(name, image) for name, image in images.items() if image is not None]
    words = answer(table, study) | measured_how(measurements, study, table) | trust(measurements, study)
    return (
        environment()
        .get_template("report.html.j2")
        .render(
            study=study,
            config={"title": None, "citation": None, "method": METHODS[DEFAULT].name, **study["study"]},
            site={"simulated": False, **study["site"]},
            css=(TEMPLATES / "report.css").read_text(encoding="utf-8"),
            js=(TEMPLATES / "report.js").read_text(encoding="utf-8"),
            absent=ABSENT,
            heatmap=next((found for found in pictures if found["name"] == FIRST_FIGURE), None),
            figures=[found for found in pictures if found["name"] != FIRST_FIGURE],
            left_out=[name for name, image in images.items() if image is None],
            audit=audited(measurements, study),
            **words,
        )
    )


def answer(table: pd.DataFrame, study: Study) -> dict[str, Any]:
    """Return what the first part of the page says: sentences, warnings, accounts, and each program's overheads."""
    confidence, delta = settings_of(study)
    return {
        "answers": answers.sentences(table, delta),
        "warnings": warnings(table, study),
        "accounts": facts.accounts(study),
        "sum_rule": facts.SUM,
        "confidence": confidence,
        "margin": answers.margin(delta),
        "paired": "import" not in study,
        "crowded": any(cell["oversubscribed"] for cell in study["cells"]),
        "backends": [name for name in figures.backends_of(study) if name != BASELINE],
        "varying": varying(study),
        "matrix": matrix(table, delta),
        "probes": probes(table, study, delta),
        "side_by_side": side_by_side(table),
        "startups": startups(study),
    }


def measured_how(measurements: pd.DataFrame, study: Study, table: pd.DataFrame) -> dict[str, Any]:
    """Return what the page says of how and where it was measured."""
    counted = table[table["counted"].astype(bool)]
    return {
        "has_records": "import" not in study and not study["site"].get("simulated", False),
        "span": span(measurements),
        "hosts": hosts(measurements),
        "settings": settings(study),
        "commands": commands(study),
        "skipped": facts.skipped(study),
        "failures": facts.failures(measurements),
        "rank_needs": rank_test_needs(int((counted["metric"] == "wall_s").sum())),
        "methods": sorted(set(table["method"].dropna())),
        "method": method_of(study),
        "again": again(study),
        "adaptive": adaptive(table, study),
        "digests": digests(study),
    }


def digests(study: Study) -> dict[str, str]:
    """Return which binaries and images the numbers belong to: what → digest, each once."""
    found: dict[str, str] = {}
    for cell in study["cells"]:
        known = cell.get("digests") or {}
        if known.get("binary"):
            found[f"binary of {cell['app']}, {cell['toolchain']} {cell['flags']}"] = f"sha256:{known['binary']}"
        for runtime, image in (known.get("images") or {}).items():
            found[f"image of {runtime}"] = str(image)
    return found


def adaptive(table: pd.DataFrame, study: Study) -> dict[str, Any] | None:
    """Return how many blocks of a study with adaptive repeats became precise enough; None where repeats are fixed."""
    repeats = study["study"].get("repeats")
    if not isinstance(repeats, dict):
        return None
    wall = table[(table["metric"] == "wall_s") & table["skipped"].isna()]
    widths = ((wall["high"] - wall["low"]) / 2).groupby(wall["block"]).max()
    return {**repeats, "blocks": len(widths), "reached": int((widths <= repeats["until"]).sum())}


def again(study: Study) -> str | None:
    """Return the command that repeats the study, where its file is known."""
    where = study["study"].get("where")
    if where is None or str(where).startswith("-"):
        return None
    return "make replay" if "import" in study else f"snakemake --profile slurm --config study={where}"


def trust(measurements: pd.DataFrame, study: Study) -> dict[str, Any]:
    """Return outliers (cells that have any, with and without them) and drift."""
    flagged = [row for row in rows_of(quality.outliers(measurements, study)) if row["flagged"] and row["backend"] != BASELINE]
    for row in flagged:
        row["without"] = {"low": row["low_without"], "high": row["high_without"]}
        row["oversubscribed"] = False
    drift = rows_of(quality.drift(measurements, study))
    return {"outliers": flagged, "drift": drift, "drifting": [row for row in drift if row["verdict"] == "drift"]}


def audited(measurements: pd.DataFrame, study: Study) -> dict[str, Any] | None:
    """Return the audit of a published study's printed tables, or None where there are none."""
    table = audit(measurements, study)
    if table.empty:
        return None
    others = rows_of(table[table["status"] != MATCH])
    return {"total": len(table), "matched": len(table) - len(others), "others": others}


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
        found.append(f"{answers.plural(len(short), 'cell')} with fewer than {FEW_REPEATS} measured repeats; intervals are wide.")
    return found + floor_warnings(table, study)


def floor_warnings(table: pd.DataFrame, study: Study) -> list[str]:
    """Warn where there is no noise floor, or one so wide that small overheads cannot be seen above it."""
    floor = table[(table["backend"] == NOISE_FLOOR) & (table["metric"] == "wall_s") & table["high"].notna()]
    if floor.empty:
        if "import" in study:
            return []
        return ["No second native arm was measured, so there is no noise floor to hold the overheads against."]
    width = float(((floor["high"] / floor["low"]) ** 0.5 - 1).median() * 100)
    if width <= WIDE_FLOOR:
        return []
    return [
        f"The noise floor is wide: two native arms of the same block are told apart only beyond ±{half_up(width, 0)} % (median"
        " over blocks). Something else used the machine, or the runs are too short; measure again on a quiet machine."
    ]


def matrix(table: pd.DataFrame, delta: float) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return each program's rows: one per setting, with a judged cell per backend for wall_s."""
    programs: dict[str, list[dict[str, Any]]] = {}
    wall = table[(table["metric"] == "wall_s") & table["block"].isin(counted_blocks(table))]
    for _, group in wall.groupby("block", sort=False):
        rows = rows_of(group)
        programs.setdefault(rows[0]["app"], []).append(
            {
                **{key: rows[0][key] for key in (*SETTING, "block", "oversubscribed")},
                "native": number(group["median_native"].max()),
                "floor": next((row for row in rows if row["backend"] == NOISE_FLOOR), None),
                "cells": {row["backend"]: row | {"words": answers.in_words(row, delta)} for row in rows},
            }
        )
    return list(programs.items())


def varying(study: Study) -> list[str]:
    """Return which of toolchain, flags and nodes differ between the study's settings; the others need no column."""
    cells = [cell for cell in study["cells"] if cell["counted"]]
    return [key for key in ("userland", "toolchain", "flags", "nodes") if len({cell.get(key) for cell in cells}) > 1]


def counted_blocks(table: pd.DataFrame) -> set[str]:
    """Return the blocks of the study itself, without probes."""
    return set(table.loc[table["counted"].astype(bool), "block"])


def probes(table: pd.DataFrame, study: Study, delta: float) -> list[dict[str, Any]]:
    """Return what ran beside the apps (pingpong's latency): one entry per block and own metric without message sizes."""
    beside = {cell["block"] for cell in study["cells"] if not cell["counted"]} - counted_blocks(table)
    own = table[table["block"].isin(beside) & ~table["metric"].isin(("wall_s", "app_s")) & table["size"].isna()]
    return [
        {
            "app": group["app"].iloc[0],
            "metric": metric,
            "unit": group["unit"].iloc[0],
            "native": number(group["median_native"].max()),
            "n_native": int(group["n_native"].max()),
            "rows": [row | {"words": answers.in_words(row, delta)} for row in rows_of(group)],
        }
        for (_, metric), group in own.groupby(["block", "metric"], sort=False)
    ]


def side_by_side(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return wall_s and app_s of each counted cell beside each other; nothing where no program told its own time."""
    both = table[table["counted"].astype(bool)]
    if not (both.loc[both["metric"] == "app_s", "n"] > 0).any():
        return []
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


def drawn(measurements: pd.DataFrame, study: Study) -> Images:
    """Return every figure as SVG, None where it has nothing to show in this study."""
    found: Images = {}
    for name in figures.names():
        figure = figures.draw(name, measurements, study)
        found[name] = figures.image(figure, ".svg") if figure.axes else None
    return found


def picture(name: str, image: bytes) -> dict[str, str]:
    """Return a figure for the page; as an image of its own, its SVG ids cannot clash with another's."""
    source = f"data:image/svg+xml;base64,{base64.b64encode(image).decode()}"
    return {"name": name, "caption": figures.caption(name), "source": source}


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
