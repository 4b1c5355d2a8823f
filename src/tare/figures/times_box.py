"""Times from launch to exit (wall_s) per backend: every measured repeat is a dot, from left to right as measured.

The box spans the quartiles, its line is the median, whiskers reach to the last repeat within 1.5 interquartile ranges. Every
panel has its own range of seconds, so that differences are seen; it does not begin at 0. Grey: the second native arm.
"""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tare.figures._style import GREY, backends_of, empty, hide, looks, offsets, panels
from tare.measurements import Study, measured, rows_of

ROW = ["app", "toolchain", "flags"]


def draw(measurements: pd.DataFrame, study: Study) -> Figure:
    """Return one panel per app (and toolchain, flags) and rank count."""
    apps = list(dict.fromkeys(cell["app"] for cell in study["cells"] if cell["counted"]))
    rows = measured(measurements)
    rows = rows[rows["app"].isin(apps)]
    if rows.empty:
        return empty("no measured repeat")
    settings = rows[ROW].drop_duplicates().sort_values("app", key=lambda names: names.map(apps.index), kind="stable")
    layouts = rows[["nodes", "ranks"]].drop_duplicates().sort_values(["nodes", "ranks"])
    backends = backends_of(study, floor=True)
    figure, grid = panels(len(settings), len(layouts), max(1.1, 0.42 * len(backends)), 1.7)
    many_nodes = layouts["nodes"].nunique() > 1
    for line, setting in zip(grid, rows_of(settings), strict=True):
        of_row = rows[(rows[ROW] == list(setting.values())).all(axis=1)]
        for axes, layout in zip(line, rows_of(layouts), strict=True):
            panel(axes, of_row[(of_row["ranks"] == layout["ranks"]) & same(of_row["nodes"], layout["nodes"])], backends)
        line[0].set_ylabel(f"{row_title(setting, settings)}\nwall_s [s]")
    for axes, layout in zip(grid[0], rows_of(layouts), strict=True):
        axes.set_title(column_title(layout, many_nodes))
    for axes in grid[:-1].flat:
        axes.tick_params(labelbottom=False)
    return figure


def column_title(layout: dict[str, Any], many_nodes: bool) -> str:
    """Name a column of panels by its ranks, and by its nodes where they vary."""
    place = f", {layout['nodes']:g} nodes" if many_nodes and layout["nodes"] > 0 else ""
    return f"{layout['ranks']:g} rank{'s' if layout['ranks'] > 1 else ''}{place}"


def same(column: "pd.Series[float]", value: float) -> "pd.Series[bool]":
    """Compare a column with a value that may be absent."""
    return column.isna() if pd.isna(value) else column == value


def row_title(setting: dict[str, Any], settings: pd.DataFrame) -> str:
    """Name what tells one row of panels from the others."""
    varying = [setting[name] for name in ROW[1:] if settings[name].nunique() > 1]
    return " ".join([setting["app"], *varying])


def panel(axes: Axes, here: pd.DataFrame, backends: list[str]) -> None:
    """Draw one setting: a box and the repeats themselves for each backend."""
    if here.empty:
        hide(axes, "—")
        return
    style = looks(backends)
    for place, name in enumerate(backends):
        times = here.loc[here["backend"] == name].sort_values(["session", "rep"])["wall_s"].to_numpy(float)
        colour = style[name][0]
        if len(times):
            axes.boxplot(times, positions=[place], widths=0.6, showfliers=False, **lines_in(colour))
            steps = [place + step for step in offsets(len(times), 0.4)]
            axes.plot(steps, times, ".", color=colour, alpha=0.6, ms=5)
        else:
            axes.text(place, 0.02, "none", rotation=90, ha="center", color=GREY, transform=axes.get_xaxis_transform())
    axes.set_xlim(-0.6, len(backends) - 0.4)
    axes.set_xticks(range(len(backends)), backends, rotation=45, ha="right", rotation_mode="anchor")


def lines_in(colour: str) -> dict[str, Any]:
    """Return the look of a box in one colour."""
    parts = ("boxprops", "medianprops", "whiskerprops", "capprops")
    return {part: {"color": colour, "linewidth": 1.0} for part in parts}
