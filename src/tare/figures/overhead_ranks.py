"""Overhead against native per backend and number of ranks, with its confidence interval; grey: the noise floor.

A dot is the median of the paired ratios of wall_s, its bar the interval. The grey band is the interval of a second native arm
(native-aa) in the same blocks: what "no difference" looks like there. A bar that crosses 0 % says only that this many repeats
do not tell, not that there is no overhead.
"""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tare.figures._style import (
    FLOOR,
    backends_of,
    counts_on_x,
    empty,
    legend_above,
    looks,
    offsets,
    one_app_panels,
    select,
    title_of,
    varying,
)
from tare.measurements import BASELINE, Study, rows_of
from tare.stats import overheads

ROW = ["app", "userland", "toolchain", "flags", "nodes"]


def draw(measurements: pd.DataFrame, study: Study) -> Figure:
    """Return one panel per app (and toolchain, flags, nodes)."""
    table = overheads(measurements, study)
    table = table[(table["metric"] == "wall_s") & table["counted"] & table["ratio"].notna()]
    if table.empty:
        return empty("no cell with a measured repeat beside native")
    backends = [name for name in backends_of(study) if name != BASELINE]
    settings = table[ROW].drop_duplicates()
    figure, grid, places = one_app_panels(len(settings))
    for axes, setting in zip(places, rows_of(settings), strict=True):
        here = select(table, setting)
        panel(axes, here, backends, sorted({int(ranks) for ranks in here["ranks"]}))
        axes.set_title(title_of(setting, varying(settings, ROW[1:])))
    for axes in grid[:, 0]:
        axes.set_ylabel("overhead of wall_s [%]")
    legend_above(figure, grid)
    return figure


def panel(axes: Axes, group: pd.DataFrame, backends: list[str], counts: list[int]) -> None:
    """Draw one setting's backends side by side at each rank count, over the noise floor."""
    floor = group[group["floor_low"].notna()].drop_duplicates("ranks")
    for index, row in enumerate(rows_of(floor)):
        place = counts.index(int(row["ranks"]))
        bottom, top = ((row[end] - 1) * 100 for end in ("floor_low", "floor_high"))
        label = "noise floor (native-aa)" if index == 0 else None
        axes.fill_between([place - 0.45, place + 0.45], bottom, top, color=FLOOR, lw=0, zorder=1, label=label)
    axes.axhline(0, color="black", lw=0.8, zorder=2)
    style = looks([BASELINE, *backends])
    for name, shift in zip(backends, offsets(len(backends)), strict=True):
        rows = group[group["backend"] == name].sort_values("ranks")
        if rows.empty:
            continue
        places = [counts.index(int(ranks)) + shift for ranks in rows["ranks"]]
        middle = (rows["ratio"] - 1) * 100
        colour, marker = style[name]
        axes.vlines(places, (rows["low"] - 1) * 100, (rows["high"] - 1) * 100, color=colour, lw=1.6, zorder=3)
        axes.plot(places, middle, color=colour, marker=marker, ls="", label=name, zorder=4)
    counts_on_x(axes, counts)
