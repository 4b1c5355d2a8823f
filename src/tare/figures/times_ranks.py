"""Time and overhead against the number of ranks, with 99.7 % Gaussian bars (mean ± 3 standard errors), as Alles et al. 2018.

Above: mean of wall_s of every backend. Below: the ratio of its mean to native's; the bar carries both means' errors.
"""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tare.figures._style import (
    backends_of,
    counts_on_x,
    empty,
    legend_above,
    looks,
    offsets,
    panels,
    plain_log,
    select,
    title_of,
    varying,
)
from tare.measurements import BASELINE, Study, rows_of
from tare.methods import METHODS, SETTING, centres

ROW = ["app", "userland", "toolchain", "flags", "nodes"]
ACROSS = 4


def draw(measurements: pd.DataFrame, study: Study) -> Figure:
    """Return two panels per app (and userland, toolchain, flags, nodes): time above, overhead below."""
    table = centres(measurements, study, method=METHODS["alles2018"])
    if table.empty:
        return empty("no measured repeat")
    native = table.loc[table["backend"] == BASELINE, [*SETTING, "centre", "half_width"]]
    table = table.merge(native, on=SETTING, how="left", suffixes=("", "_native"))
    settings = rows_of(table[ROW].drop_duplicates())
    across = min(ACROSS, len(settings))
    figure, grid = panels(2 * -(-len(settings) // across), across, 3.2, 2.0)
    pairs = [column for above, below in zip(grid[0::2], grid[1::2], strict=True) for column in zip(above, below, strict=True)]
    for above, below in pairs[len(settings) :]:
        above.set_axis_off()
        below.set_axis_off()
    for pair, setting in zip(pairs, settings, strict=False):
        column(pair, select(table, setting), backends_of(study))
        pair[0].set_title(title_of(setting, varying(table, ROW[1:])))
    for above, below in pairs[::across]:
        above.set_ylabel("wall_s [s]")
        below.set_ylabel("overhead of the mean [%]")
    legend_above(figure, grid)
    return figure


def column(pair: tuple[Axes, Axes], rows: pd.DataFrame, backends: list[str]) -> None:
    """Draw one setting: every backend's times above, its overhead below."""
    counts = sorted({int(ranks) for ranks in rows["ranks"]})
    for name, shift in zip(backends, offsets(len(backends), 0.36), strict=True):
        mine = rows[rows["backend"] == name].sort_values("ranks")
        line(pair, mine, [counts.index(int(ranks)) + shift for ranks in mine["ranks"]], name, looks(backends)[name])
    for axes in pair:
        counts_on_x(axes, counts)
    pair[0].set_yscale("log")
    plain_log(pair[0].yaxis)
    pair[0].set_xlabel("")
    pair[1].axhline(0, color="black", lw=0.8)


def line(pair: tuple[Axes, Axes], rows: pd.DataFrame, places: list[float], name: str, look: tuple[str, str]) -> None:
    """Draw one backend's times and overheads."""
    common: dict[str, Any] = {"color": look[0], "marker": look[1], "ms": 4, "ls": "", "elinewidth": 1.3}
    pair[0].errorbar(places, rows["centre"], rows["half_width"].fillna(0), label=name, **common)
    if name != BASELINE:
        ratio = rows["centre"] / rows["centre_native"]
        relative = np.hypot(rows["half_width"] / rows["centre"], rows["half_width_native"] / rows["centre_native"])
        pair[1].errorbar(places, (ratio - 1) * 100, (ratio * relative).fillna(0) * 100, **common)
