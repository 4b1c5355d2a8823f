"""Overhead of wall_s in percent for every cell: one map per backend, ranks across; bold where it is sure (slower or faster).

Orange is slower than native, blue is faster, white is no difference; colours end at the largest overhead or at 30 %. An empty
field was not in the study or has no number.
"""

from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib import cm
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure

from tare.figures._style import backends_of, empty, panels, title_of, varying
from tare.measurements import BASELINE, Study, rows_of
from tare.rounding import overhead_percent
from tare.verdicts import FASTER, SLOWER, judged

ROW = ["app", "userland", "toolchain", "flags", "nodes"]
LIMIT = 30.0
ACROSS = 5
COLOURS = LinearSegmentedColormap.from_list("tare", ["#0072B2", "#ffffff", "#D55E00"])

Cells = dict[tuple[str, str, int], Study]


def draw(measurements: pd.DataFrame, study: Study) -> Figure:
    """Return one panel per backend other than native (at most five beside each other), settings down, rank counts across."""
    table = judged(measurements, study)
    table = table[(table["metric"] == "wall_s") & table["counted"].astype(bool) & table["ratio"].notna()]
    if table.empty:
        return empty("no cell with a measured repeat beside native")
    backends = [name for name in backends_of(study) if name != BASELINE]
    counts = sorted({int(ranks) for ranks in table["ranks"]})
    names = varying(table, ROW[1:])
    cells = {(title_of(row, names), row["backend"], int(row["ranks"])): row for row in rows_of(table)}
    settings = list(dict.fromkeys(setting for setting, _, _ in cells))
    end = min(LIMIT, max(1.0, float((table["ratio"] - 1).abs().max()) * 100))
    lines = -(-len(backends) // ACROSS)
    across = -(-len(backends) // lines)
    width, height = max(1.9, 0.5 * len(counts) + 0.3), max(0.9, 0.3 * len(settings)) + 0.35 * (lines > 1)
    figure, grid = panels(lines, across, width, height, sharey=True)
    for axes, name in zip(grid.flat, backends, strict=False):
        panel(axes, cells, name, settings, counts, end)
    for axes in grid.flat[len(backends) :]:
        axes.set_axis_off()
    for axes in grid[:, 0]:
        axes.set_yticks(np.arange(len(settings)) + 0.5, settings, rotation=0)
    scale = cm.ScalarMappable(norm=Normalize(-end, end), cmap=COLOURS)
    figure.colorbar(scale, ax=list(grid.flat), label="overhead of wall_s [%]", shrink=0.9, aspect=15, pad=0.01)
    return figure


def panel(axes: Axes, cells: Cells, backend: str, settings: list[str], counts: list[int], end: float) -> None:
    """Draw one backend's map."""
    found = [[cells.get((setting, backend, count)) for count in counts] for setting in settings]
    percent = np.array([[value(cell) for cell in line] for line in found])
    texts = np.array([[text(cell) for cell in line] for line in found])
    look: dict[str, Any] = {"vmin": -end, "vmax": end, "cmap": COLOURS, "linewidths": 0.5, "linecolor": "#dddddd"}
    sns.heatmap(percent, ax=axes, annot=texts, fmt="", cbar=False, annot_kws={"size": 8 if len(counts) < 6 else 6.5}, **look)
    axes.set_xticks(np.arange(len(counts)) + 0.5, [str(count) for count in counts], rotation=0)
    axes.set_xlabel("ranks")
    axes.set_title(backend)
    axes.grid(False)
    axes.tick_params(axis="y", length=0)


def value(cell: Study | None) -> float:
    """Return a cell's overhead in percent, NaN (left white) where there is none."""
    return float("nan") if cell is None else (cell["ratio"] - 1) * 100


def text(cell: Study | None) -> str:
    """Return a cell's overhead as text, bold where the verdict is sure."""
    if cell is None:
        return ""
    shown = overhead_percent(cell["ratio"])
    return rf"$\mathbf{{{shown}}}$" if cell["verdict"] in (SLOWER, FASTER) else shown
