"""Round trips: how often each time was seen, one panel per measurement, backends over each other; dashed: medians."""

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from tare.figures._style import backends_of, empty, legend_above, looks, one_app_panels, select, title_of, varying
from tare.measurements import Study, rows_of
from tare.tables.latency import trips

ROW = ["app", "userland", "toolchain", "flags", "nodes"]


def draw(measurements: pd.DataFrame, study: Study) -> Figure:
    """Return one panel per app (and userland, toolchain, flags, nodes) and metric that is a round trip."""
    rows = trips(measurements)
    if rows.empty:
        return empty("no round trips in this study")
    settings = rows[[*ROW, "metric"]].drop_duplicates()
    figure, grid, places = one_app_panels(len(settings), 4.6, 2.8)
    for axes, setting in zip(places, rows_of(settings), strict=True):
        here = select(rows, setting)
        panel(axes, here, [name for name in backends_of(study) if (here["backend"] == name).any()], backends_of(study))
        axes.set_title(f"{title_of(setting, varying(settings, ROW[1:]))}: {setting['metric']}")
    for axes in grid[:, 0]:
        axes.set_ylabel("seen [count]")
    legend_above(figure, grid)
    return figure


def panel(axes: Axes, rows: pd.DataFrame, present: list[str], backends: list[str]) -> None:
    """Draw the backends' histograms over common bins, in microseconds where that suits."""
    small = float(rows["ms"].median()) < 0.1
    times = rows["ms"] * (1000 if small else 1)
    low, high = float(times.min()), float(times.max())
    bins = 60 if len(rows) > 200 else 20
    for name in present:
        colour = looks(backends)[name][0]
        mine = times[rows["backend"] == name]
        span = (low, high) if high > low else (low * 0.9, high * 1.1)
        sns.histplot(x=mine, bins=bins, binrange=span, color=colour, element="step", alpha=0.25, ax=axes, label=name)
        axes.axvline(float(mine.median()), color=colour, ls="--", lw=1)
    axes.set(xlabel=f"round trip [{'µs' if small else 'ms'}]", ylabel="")
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
