"""Times from launch to exit (wall_s): quartiles, median, whiskers to the last repeat within 1.5 interquartile ranges.

With few rank counts each has a panel of its own and every repeat is a dot, from left to right as measured. With many, each
panel is a detail range of rank counts whose times are within a factor of four, and dots are the repeats beyond the whiskers.
Every panel has its own range of seconds, so that differences are seen; it does not begin at 0. Grey: the second native arm.
"""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tare.figures._style import GREY, backends_of, empty, hide, legend_above, looks, offsets, panels, select, title_of, varying
from tare.measurements import Study, measured, rows_of
from tare.ratios import Floats

ROW = ["app", "userland", "toolchain", "flags"]
FEW = 4
DETAIL = 4.0
"""Rank counts share a panel while their medians are within this factor."""


def draw(measurements: pd.DataFrame, study: Study) -> Figure:
    """Return a row of panels per app (and userland, toolchain, flags)."""
    apps = list(dict.fromkeys(cell["app"] for cell in study["cells"] if cell["counted"]))
    rows = measured(measurements)
    rows = rows[rows["app"].isin(apps) & (rows["wall_s"] > 0)]
    if rows.empty:
        return empty("no measured repeat")
    backends = backends_of(study, floor=True)
    few = len(rows[["nodes", "ranks"]].drop_duplicates()) <= FEW
    return by_rank(rows, apps, backends) if few else by_range(rows, apps, backends)


def settings_of(rows: pd.DataFrame, apps: list[str]) -> pd.DataFrame:
    """Return the settings that get a row of panels, apps in the order of the study."""
    return rows[ROW].drop_duplicates().sort_values("app", key=lambda names: names.map(apps.index), kind="stable")


def by_rank(rows: pd.DataFrame, apps: list[str], backends: list[str]) -> Figure:
    """Return one panel per rank count, backends side by side on its x axis."""
    settings = settings_of(rows, apps)
    layouts = rows[["nodes", "ranks"]].drop_duplicates().sort_values(["nodes", "ranks"])
    figure, grid = panels(len(settings), len(layouts), max(1.1, 0.42 * len(backends)), 1.7)
    for line, setting in zip(grid, rows_of(settings), strict=True):
        for axes, layout in zip(line, rows_of(layouts), strict=True):
            rank_panel(axes, select(rows, setting | layout), backends)
        line[0].set_ylabel(f"{title_of(setting, varying(settings, ROW[1:]))}\nwall_s [s]")
    many_nodes = layouts["nodes"].nunique() > 1
    for axes, layout in zip(grid[0], rows_of(layouts), strict=True):
        axes.set_title(column_title(layout, many_nodes))
    for axes in grid[:-1].flat:
        axes.tick_params(labelbottom=False)
    return figure


def column_title(layout: dict[str, Any], many_nodes: bool) -> str:
    """Name a column of panels by its ranks, and by its nodes where they vary."""
    place = f", {layout['nodes']:g} nodes" if many_nodes and layout["nodes"] > 0 else ""
    return f"{layout['ranks']:g} rank{'s' if layout['ranks'] > 1 else ''}{place}"


def rank_panel(axes: Axes, here: pd.DataFrame, backends: list[str]) -> None:
    """Draw one setting: a box and the repeats themselves for each backend."""
    if here.empty:
        hide(axes, "—")
        return
    style = looks(backends)
    for place, name in enumerate(backends):
        times = here.loc[here["backend"] == name].sort_values(["session", "rep"])["wall_s"].to_numpy(float)
        if len(times):
            boxes(axes, [times], [place], 0.6, style[name][0], beyond=False)
            steps = [place + step for step in offsets(len(times), 0.4)]
            axes.plot(steps, times, ".", color=style[name][0], alpha=0.6, ms=5)
        else:
            axes.text(place, 0.02, "none", rotation=90, ha="center", color=GREY, transform=axes.get_xaxis_transform())
    axes.set_xlim(-0.6, len(backends) - 0.4)
    axes.set_xticks(range(len(backends)), backends, rotation=45, ha="right", rotation_mode="anchor")


def boxes(axes: Axes, values: list[Floats], places: list[float], width: float, colour: str, beyond: bool) -> None:
    """Draw boxes in one colour; ``beyond`` shows the repeats beyond the whiskers."""
    parts = ("boxprops", "medianprops", "whiskerprops", "capprops")
    lines: dict[str, Any] = {part: {"color": colour, "linewidth": 1.0} for part in parts}
    dots = {"marker": ".", "markersize": 3, "markeredgecolor": colour, "markerfacecolor": colour}
    axes.boxplot(values, positions=places, widths=width, showfliers=beyond, flierprops=dots, manage_ticks=False, **lines)


def by_range(rows: pd.DataFrame, apps: list[str], backends: list[str]) -> Figure:
    """Return one panel per detail range, rank counts on its x axis, backends side by side at each."""
    settings = settings_of(rows, apps)
    ranges = {tuple(setting.values()): detail_ranges(select(rows, setting)) for setting in rows_of(settings)}
    figure, grid = panels(len(settings), max(len(found) for found in ranges.values()), 3.0, 1.6)
    for line, setting in zip(grid, rows_of(settings), strict=True):
        found = ranges[tuple(setting.values())]
        for axes, counts in zip(line, found, strict=False):
            range_panel(axes, select(rows, setting), backends, counts)
        for axes in line[len(found) :]:
            axes.set_axis_off()
        line[0].set_ylabel(f"{title_of(setting, varying(settings, ROW[1:]))}\nwall_s [s]")
    for axes in grid[-1]:
        axes.set_xlabel("ranks")
    legend_above(figure, grid)
    return figure


def detail_ranges(rows: pd.DataFrame) -> list[list[int]]:
    """Return consecutive rank counts in groups whose medians are within a factor of ``DETAIL``."""
    counts = sorted({int(ranks) for ranks in rows["ranks"]})
    medians = {count: float(rows.loc[rows["ranks"] == count, "wall_s"].median()) for count in counts}
    groups: list[list[int]] = []
    for count in counts:
        together = [medians[other] for other in (*groups[-1], count)] if groups else []
        if together and max(together) <= DETAIL * min(together):
            groups[-1].append(count)
        else:
            groups.append([count])
    return groups


def range_panel(axes: Axes, rows: pd.DataFrame, backends: list[str], counts: list[int]) -> None:
    """Draw one detail range."""
    style = looks(backends)
    steps = offsets(len(backends), 0.5)
    for name, step in zip(backends, steps, strict=True):
        mine = rows[rows["backend"] == name]
        values = [mine.loc[mine["ranks"] == count, "wall_s"].to_numpy(float) for count in counts]
        there = [(times, place + step) for place, times in enumerate(values) if len(times)]
        if there:
            times, places = (list(part) for part in zip(*there, strict=True))
            boxes(axes, times, places, 0.8 / len(backends), style[name][0], beyond=True)
            axes.plot([], [], color=style[name][0], label=name)
    axes.set_xticks(np.arange(len(counts)), [str(count) for count in counts])
    axes.set_xlim(-0.6, len(counts) - 0.4)
