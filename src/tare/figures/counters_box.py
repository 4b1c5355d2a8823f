"""Hardware and system counters (perf stat) of each backend against the number of ranks, one panel per counter."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, NullLocator

from tare.figures._style import backends_of, counts_on_x, empty, legend_above, looks, offsets, panels
from tare.figures.times_box import boxes
from tare.measurements import Study

ACROSS = 4


def draw(_: pd.DataFrame, study: Study) -> Figure:
    """Return one panel per app, flags and counter."""
    rows = study.get("metrics", pd.DataFrame(columns=["metric", "size", "value"]))
    rows = rows[rows["size"].isna() & rows["value"].notna()]
    if rows.empty:
        return empty("no counters in this study")
    kinds = rows[["app", "flags", "metric"]].drop_duplicates().to_numpy().tolist()
    several = rows[["app", "flags"]].drop_duplicates().shape[0] > 1
    figure, grid = panels(-(-len(kinds) // ACROSS), ACROSS, 2.7, 1.9)
    for axes in grid.flat[len(kinds) :]:
        axes.set_axis_off()
    for axes, (app, flags, metric) in zip(grid.flat, kinds, strict=False):
        panel(axes, rows[(rows["app"] == app) & (rows["flags"] == flags) & (rows["metric"] == metric)], backends_of(study))
        axes.set_title(f"{app} {flags}\n{metric}" if several else metric)
    for axes in grid[:, 0]:
        axes.set_ylabel("value [as counted]")
    legend_above(figure, grid)
    return figure


def panel(axes: Axes, rows: pd.DataFrame, backends: list[str]) -> None:
    """Draw one counter: a box per backend and rank count, on a logarithmic axis where values differ tenfold."""
    counts = sorted({int(ranks) for ranks in rows["ranks"]})
    for name, step in zip(backends, offsets(len(backends), 0.4), strict=True):
        mine = rows[rows["backend"] == name]
        there = [(mine.loc[mine["ranks"] == count, "value"].to_numpy(float), place + step) for place, count in enumerate(counts)]
        there = [(values, place) for values, place in there if len(values)]
        if there:
            colour = looks(backends)[name][0]
            boxes(axes, [values for values, _ in there], [place for _, place in there], 0.7 / len(backends), colour, beyond=True)
            axes.plot([], [], color=colour, label=name)
    if (rows["value"] > 0).all() and rows["value"].max() > 10 * rows["value"].min():
        axes.set_yscale("log")
    axes.yaxis.set_major_formatter(EngFormatter(sep=""))
    axes.yaxis.set_minor_locator(NullLocator())
    if (rows["value"] == 0).all():
        axes.set_yticks([0])
    counts_on_x(axes, counts)
