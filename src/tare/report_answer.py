"""What the report's first part says: the answer in sentences, warnings, counts, and each program's overheads."""

from typing import Any

import pandas as pd

from tare import answers, facts, figures, quality
from tare.measurements import BASELINE, NOISE_FLOOR, Study, rows_of
from tare.rounding import half_up, number
from tare.stats import TIMES, settings_of

SETTING = ("app", "userland", "toolchain", "flags", "nodes", "ranks")
FEW_REPEATS = 5
WIDE_FLOOR = 5.0  # percent: as much as most overheads that containers are measured for


def part(measurements: pd.DataFrame, table: pd.DataFrame, study: Study) -> dict[str, Any]:
    """Return what the first part of the page says: sentences, warnings, accounts, and each program's overheads."""
    confidence, delta = settings_of(study)
    return {
        "answers": answers.sentences(table, delta),
        "warnings": warnings(measurements, table, study),
        "accounts": facts.accounts(study),
        "sum_rule": facts.SUM,
        "confidence": confidence,
        "margin": answers.margin(delta),
        "paired": "import" not in study,
        "crowded": any(cell["oversubscribed"] for cell in study["cells"]),
        "backends": [name for name in figures.backends_of(study) if name != BASELINE],
        "varying": varying(study),
        "matrix": matrix(table, delta),
        "probes": own_metrics(table, study, delta),
        "titles": {cell["app"]: cell.get("title") for cell in study["cells"]},
        "side_by_side": side_by_side(table),
    }


def warnings(measurements: pd.DataFrame, table: pd.DataFrame, study: Study) -> list[str]:
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
    return found + drift_warnings(measurements, study) + floor_warnings(table, study)


def drift_warnings(measurements: pd.DataFrame, study: Study) -> list[str]:
    """Warn where times moved from round to round."""
    blocks = quality.drift(measurements, study)
    drifting = blocks.loc[blocks["verdict"] == quality.DRIFT, "percent_per_round"]
    if drifting.empty:
        return []
    most = half_up(float(drifting.abs().max()), 2)
    return [
        f"Times drifted in {len(drifting)} of {answers.plural(len(blocks), 'block')}, by up to {most} % per round. What all"
        " backends of a block share cancels in the paired ratios; the table under Drift names the blocks."
    ]


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


def own_metrics(table: pd.DataFrame, study: Study, delta: float) -> list[dict[str, Any]]:
    """Return what a program measures beside its time (a latency, a rate): one entry per block and metric without message sizes.

    Of the study's own programs that is the metric its manifest names; of what ran beside them (pingpong) every one.
    """
    counted = counted_blocks(table)
    named = {(cell["block"], cell.get("metric")) for cell in study["cells"]}
    mine = [row["block"] not in counted or (row["block"], row["metric"]) in named for row in rows_of(table[["block", "metric"]])]
    own = table[pd.Series(mine, index=table.index, dtype=bool) & ~table["metric"].isin(TIMES) & table["size"].isna()]
    return [
        {
            "block": group["block"].iloc[0],
            "beside": group["block"].iloc[0] not in counted,
            "better": group["better"].iloc[0],
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
