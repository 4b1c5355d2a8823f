"""The better backend's time of each flag set, in percent above the fastest flag set of the same setting and rank count."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tare.figures._style import (
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
from tare.measurements import Study, rows_of
from tare.tables import better_backend
from tare.tables.flag_factors import in_order

ROW = ["app", "userland", "toolchain", "nodes"]


def draw(measurements: pd.DataFrame, study: Study) -> Figure:
    """Return one panel per app (and userland, toolchain, nodes)."""
    table = better_backend.build(measurements, study)
    if table["flags"].nunique() < 2:
        return empty("one flag set only: nothing to compare")
    fastest = table.groupby([*ROW, "ranks"], dropna=False)["median_s"].transform("min")
    table["above"] = (table["median_s"] / fastest - 1) * 100
    settings = table[ROW].drop_duplicates()
    names = in_order(list(dict.fromkeys(table["flags"])))
    figure, grid, places = one_app_panels(len(settings))
    for axes, setting in zip(places, rows_of(settings), strict=True):
        panel(axes, select(table, setting), names)
        axes.set_title(title_of(setting, varying(settings, ROW[1:])))
    for axes in grid[:, 0]:
        axes.set_ylabel("time above the fastest [%]")
    legend_above(figure, grid)
    return figure


def panel(axes: Axes, rows: pd.DataFrame, names: list[str]) -> None:
    """Draw one setting's flag sets side by side at each rank count."""
    counts = sorted({int(ranks) for ranks in rows["ranks"]})
    style = looks(names)
    for name, shift in zip(names, offsets(len(names), 0.4), strict=True):
        mine = rows[rows["flags"] == name]
        places = [counts.index(int(ranks)) + shift for ranks in mine["ranks"]]
        axes.plot(places, mine["above"], color=style[name][0], marker=style[name][1], ls="", label=name)
    axes.set_yscale("symlog", linthresh=1)
    axes.set_yticks([0, 1, 10, 100], ["0", "1", "10", "100"])
    counts_on_x(axes, counts)
