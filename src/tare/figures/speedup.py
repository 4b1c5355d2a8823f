"""Speed-up of wall_s against one rank of the same backend; dashed: the ideal, as many times faster as there are ranks."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from tare.figures._style import GREY, backends_of, empty, legend_above, looks, one_app_panels, select, title_of, varying
from tare.measurements import Study, rows_of
from tare.tables import speedup

ROW = ["app", "userland", "toolchain", "flags"]


def draw(measurements: pd.DataFrame, study: Study) -> Figure:
    """Return one panel per app (and userland, toolchain, flags)."""
    table = speedup.build(measurements, study)
    table = table[(table["metric"] == "wall_s") & table["speedup"].notna()]
    if table.empty:
        return empty("no run on one rank to compare with")
    settings = table[ROW].drop_duplicates()
    figure, grid, places = one_app_panels(len(settings))
    for axes, setting in zip(places, rows_of(settings), strict=True):
        panel(axes, select(table, setting), backends_of(study))
        axes.set_title(title_of(setting, varying(settings, ROW[1:])))
    for axes in grid[:, 0]:
        axes.set_ylabel("speed-up [times]")
    legend_above(figure, grid)
    return figure


def panel(axes: Axes, rows: pd.DataFrame, backends: list[str]) -> None:
    """Draw one setting's backends over the ideal."""
    counts = sorted({int(ranks) for ranks in rows["ranks"]})
    axes.plot(counts, counts, ls="--", lw=0.9, color=GREY, label="ideal")
    style = looks(backends)
    for name in backends:
        mine = rows[rows["backend"] == name].sort_values(["nodes", "ranks"])
        for _, line in mine.groupby("nodes", dropna=False):
            colour, marker = style[name]
            axes.plot(line["ranks"].astype(float), line["speedup"], color=colour, marker=marker, ms=4, label=name)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    shown = counts if len(counts) <= 8 else [count for count in counts if count & (count - 1) == 0]
    axes.set_xticks(shown, [str(count) for count in shown])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlabel("ranks")
