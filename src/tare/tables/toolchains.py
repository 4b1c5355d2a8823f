"""Toolchain against toolchain: which is faster, and by how many percent of the slower (Kononowicz & Czarnul 2022, Table 9).

``ratio`` is the mean of b's time over a's in the same round, with its interval. Toolchains that share a userland are compared
in it; those that do not are compared across theirs (``userland_a``, ``userland_b``), and then the C library differs too.
"""

from typing import Any

import pandas as pd

from tare.measurements import Study
from tare.methods import timed_cells
from tare.tables._pairs import COLUMNS, log_ratio, pairs_of, percent_faster, with_intervals

DECIMALS = {"percent": 2, "ratio": 3, "low": 3, "high": 3}
GROUP = ["app", "flags", "backend", "nodes", "ranks"]
NAMES = ["userland_a", "userland_b", "toolchain_a", "toolchain_b", "faster_toolchain", "percent"]


def build(measurements: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Return one row per pair of toolchains and cell that both have: (1 − fast/slow) · 100, ratio, interval, verdict."""
    rows, logs = [], []
    cells = timed_cells(measurements, study)
    cells = cells.assign(userland=plain_userlands(cells))
    for key, (one, first), (two, second) in pairs_of(cells, GROUP, "toolchain"):
        for here, there in userland_pairs(first, second):
            sides = (one, first[same(first, here)]), (two, second[same(second, there)])
            rows.append([*key, here, there, one, two, *percent_faster(study, *sides)])
            logs.append(log_ratio(sides[0][1], sides[1][1]))
    table = pd.DataFrame(rows, columns=[*GROUP, *NAMES])
    judged = with_intervals(table.assign(a=table["toolchain_a"], b=table["toolchain_b"]), logs, study)
    return judged[[*GROUP, *NAMES, *COLUMNS]]


def plain_userlands(cells: pd.DataFrame) -> "pd.Series[str]":
    """Return each row's userland without its toolchain's name: alpine312-v7 and alpine312-v9 are both alpine312."""
    pairs = zip(cells["userland"], cells["toolchain"], strict=True)
    plain = [name.removesuffix(f"-{toolchain}") if isinstance(name, str) else name for name, toolchain in pairs]
    return pd.Series(plain, index=cells.index, dtype=object)


def userland_pairs(one: pd.DataFrame, two: pd.DataFrame) -> list[tuple[Any, Any]]:
    """Return the userlands to compare in: those that both have, else each of one's with each of the other's."""
    first, second = (list(rows["userland"].drop_duplicates()) for rows in (one, two))
    common = [name for name in first if name in second or (pd.isna(name) and any(pd.isna(other) for other in second))]
    return [(name, name) for name in common] or [(here, there) for here in first for there in second]


def same(rows: pd.DataFrame, userland: Any) -> "pd.Series[bool]":
    """Mark the rows of a userland, absent ones included."""
    return rows["userland"].isna() if pd.isna(userland) else rows["userland"] == userland
