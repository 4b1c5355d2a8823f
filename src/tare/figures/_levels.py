"""What figures of a factor inside the blocks share: its levels across, one bar per backend, relative to native."""

from collections.abc import Callable
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tare.figures._style import empty, legend_above, looks, offsets, one_app_panels, select, title_of, varying
from tare.measurements import BASELINE, rows_of

ROW = ["app", "userland", "toolchain", "flags", "nodes", "ranks"]


def bars(table: pd.DataFrame, factor: str, levels: list[Any], name: Callable[[Any], str], nothing: str) -> Figure:
    """Return one panel per setting of a table of levels; the line at 1 is native.

    ``levels`` are those of the factor in their order, ``name`` says how one is written under its bars, ``nothing`` what an empty
    figure says.
    """
    table = table[(table["backend"] != BASELINE) & table["app_ratio_to_native"].notna()]
    table = table[(table.groupby(ROW, dropna=False)[factor].transform("nunique") > 1).astype(bool)]
    if table.empty:
        return empty(nothing)
    settings = table[ROW].drop_duplicates()
    shown = [level for level in levels if level in set(table[factor])]
    backends = list(dict.fromkeys(table["backend"]))
    figure, grid, places = one_app_panels(len(settings))
    for axes, setting in zip(places, rows_of(settings), strict=True):
        panel(axes, select(table, setting), factor, shown, backends)
        axes.set_xticks(range(len(shown)), [name(level) for level in shown])
        axes.set_title(title_of(setting, varying(settings, ROW[1:])))
    for axes in grid[:, 0]:
        axes.set_ylabel("program's time [times native's]")
    legend_above(figure, grid)
    return figure


def panel(axes: Axes, rows: pd.DataFrame, factor: str, levels: list[Any], backends: list[str]) -> None:
    """Draw one setting's bars."""
    width = 0.8 / len(backends)
    for name, shift in zip(backends, offsets(len(backends), 0.8 - width), strict=True):
        mine = rows[rows["backend"] == name]
        places = [levels.index(level) + shift for level in mine[factor]]
        axes.bar(places, mine["app_ratio_to_native"], width * 0.95, color=looks([BASELINE, *backends])[name][0], label=name)
    axes.axhline(1, color="black", lw=0.8)
